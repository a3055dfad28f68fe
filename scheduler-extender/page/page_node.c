/* An inventory cut to what the page shows, in one block: chips, groups, the agent's libraries and offers,
 * texts. */
#include "scheduler-extender/page/page_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static bool is_shown(const struct device_group *group)
{
        return strcmp(group->vendor, "cpu") != 0 && strcmp(group->runtime, "cpu") != 0;
}

const char *page_node_text(const struct page_node_told *told, uint32_t text)
{
        return text < told->bytes ? told->text + text : "";
}

/* Behind the first byte, which is "". */
static uint32_t keep(struct text *texts, const char *text)
{
        uint32_t at = (uint32_t) texts->size_bytes;

        if (text[0] == '\0')
                return 0;
        text_append_bytes(texts, text, strlen(text) + 1);
        return at;
}

static const char *holder_of(const struct inventory *inventory, const char *device_id)
{
        for (size_t i = 0; i < inventory->loss_count; i++)
                if (strcmp(inventory->losses[i].device_id, device_id) == 0)
                        return inventory->losses[i].pod;
        return "";
}

static void take_chip(struct page_node_chip *chip, const struct inventory *inventory,
                      const struct device *device, uint16_t group, struct text *texts)
{
        *chip = (struct page_node_chip){
                .id = keep(texts, device->id),
                .reason = keep(texts, device->reason),
                .message = keep(texts, device->message),
                .holder = device->usable ? 0 : keep(texts, holder_of(inventory, device->id)),
                .group = group,
                .health = (uint8_t) device->health,
                .usable = device->usable,
                .since_usec = device->since_usec,
        };
}

static void take_group(struct page_node_told *told, const struct inventory *inventory,
                       const struct device_group *group, struct text *texts)
{
        struct page_node_group *g = &told->groups[told->group_count];
        uint32_t room = DEVICES_MAX;

        /* A node that lies has no more chips drawn than one may have. */
        for (size_t i = 0; i < told->group_count; i++)
                room -= told->groups[i].total;

        *g = (struct page_node_group){
                .name = keep(texts, group->name),
                .vendor = keep(texts, group->vendor),
                .model = keep(texts, group->model),
                .runtime = keep(texts, group->runtime),
                .resource = keep(texts, group->resource),
                .fabric = keep(texts, group->fabric),
                .total = group->total < room ? group->total : room,
                .healthy = group->healthy < room ? group->healthy : room,
                .shares = group->shares,
                .first = (uint32_t) told->chip_count,
        };
        for (size_t i = 0; i < inventory->device_count; i++)
                if (strcmp(inventory->devices[i].group, group->name) == 0)
                        take_chip(&told->chips[told->chip_count++], inventory, &inventory->devices[i],
                                  (uint16_t) told->group_count, texts);
        g->count = (uint32_t) told->chip_count - g->first;
        told->group_count++;
}

static void take_agent(struct page_node_told *told, const struct agent_facts *agent, struct text *texts)
{
        told->version = keep(texts, agent->version);
        for (; told->library_count < agent->library_count; told->library_count++) {
                const struct agent_facts_library *library = &agent->libraries[told->library_count];

                told->libraries[told->library_count] =
                        (struct page_node_library){ .vendor = keep(texts, library->vendor),
                                                    .message = keep(texts, library->message),
                                                    .state = (uint8_t) library->state };
        }
        for (; told->offer_count < agent->offer_count; told->offer_count++)
                told->offers[told->offer_count] =
                        (struct page_node_offer){ .name = keep(texts, agent->offers[told->offer_count].name),
                                                  .registered = agent->offers[told->offer_count].registered };
}

/* The next part of the block. Return: where it lies there. */
static void *append(char **at, const void *part, size_t bytes)
{
        char *begin = *at;

        if (bytes > 0)
                memcpy(begin, part, bytes);
        *at += bytes;
        return begin;
}

/* The block: room for all devices, cut to those that there are once the texts are known. */
static int join(struct page_node_told *told, const struct text *texts)
{
        size_t chips = told->chip_count * sizeof(*told->chips),
               groups = told->group_count * sizeof(*told->groups),
               libraries = told->library_count * sizeof(*told->libraries),
               offers = told->offer_count * sizeof(*told->offers);
        char *at = malloc(chips + groups + libraries + offers + texts->size_bytes);

        if (at == NULL)
                return -ENOMEM;
        told->chips = append(&at, told->chips, chips); /* the widest members first */
        told->groups = append(&at, told->groups, groups);
        told->libraries = append(&at, told->libraries, libraries);
        told->offers = append(&at, told->offers, offers);
        told->text = append(&at, texts->data, texts->size_bytes);
        told->bytes = texts->size_bytes;
        return 0;
}

int page_node_take(struct page_node_told *ret, const struct inventory *inventory)
{
        struct page_node_group *groups = calloc(inventory->group_count + 1, sizeof(*groups));
        struct page_node_chip *chips = calloc(inventory->device_count + 1, sizeof(*chips));
        struct page_node_library libraries[AGENT_FACTS_LIBRARIES_MAX];
        struct page_node_offer offers[AGENT_FACTS_OFFERS_MAX];
        struct page_node_told told = {
                .groups = groups, .chips = chips, .libraries = libraries, .offers = offers
        };
        struct text texts = { 0 };
        int r = groups == NULL || chips == NULL ? -ENOMEM : 0;

        text_append_char(&texts, '\0');
        for (size_t i = 0; r == 0 && i < inventory->group_count; i++)
                if (is_shown(&inventory->groups[i]))
                        take_group(&told, inventory, &inventory->groups[i], &texts);
        if (r == 0)
                take_agent(&told, &inventory->agent, &texts);
        if (texts.failed)
                r = -ENOMEM;
        if (r == 0)
                r = join(&told, &texts);
        text_free(&texts);
        free(groups);
        free(chips);
        if (r < 0)
                return r;
        page_node_free(ret);
        *ret = told;
        return 0;
}

void page_node_free(struct page_node_told *told)
{
        free(told->chips); /* the block */
        *told = (struct page_node_told){ .chips = NULL };
}

const struct page_node_chip *page_node_find(const struct page_node_told *told, const char *id)
{
        for (size_t i = 0; i < told->chip_count; i++)
                if (strcmp(page_node_text(told, told->chips[i].id), id) == 0)
                        return &told->chips[i];
        return NULL;
}
