/* A ring of changes, each a block of its texts. */
#include "scheduler-extender/page/page_faults.h"

#include <stdlib.h>
#include <string.h>

static const char recovered[] = "recovered", gone[] = "gone", unknown_word[] = "unknown";

const char *page_faults_word(enum device_health health)
{
        switch (health) {
        case HEALTH_DEGRADED:
                return "degraded";
        case HEALTH_UNHEALTHY:
                return "sick";
        case HEALTH_QUARANTINED:
                return "quarantined";
        case HEALTH_UNKNOWN:
                return unknown_word;
        default:
                return NULL;
        }
}

const struct page_faults_entry *page_faults_at(const struct page_faults *faults, size_t i)
{
        return faults->ring[(faults->first + i) % PAGE_FAULTS_MAX];
}

static void drop_first(struct page_faults *faults)
{
        free(faults->ring[faults->first]);
        faults->ring[faults->first] = NULL;
        faults->first = (faults->first + 1) % PAGE_FAULTS_MAX;
        faults->count--;
}

void page_faults_free(struct page_faults *faults)
{
        while (faults->count > 0)
                drop_first(faults);
}

void page_faults_expire(struct page_faults *faults, uint64_t now_usec)
{
        while (faults->count > 0 && page_faults_at(faults, 0)->usec + PAGE_FAULTS_USEC < now_usec)
                drop_first(faults);
}

static char *put(char **at, const char *text)
{
        char *here = *at;
        size_t bytes = strlen(text) + 1;

        memcpy(here, text, bytes);
        *at += bytes;
        return here;
}

/* Without memory it is not shown. */
static void add(struct page_faults *faults, uint64_t usec, const char *to, const char *const texts[4])
{
        struct page_faults_entry *entry;
        size_t bytes = sizeof(*entry);
        char *at;

        for (size_t i = 0; i < 4; i++)
                bytes += strlen(texts[i]) + 1;
        entry = malloc(bytes);
        if (entry == NULL)
                return;
        at = (char *) (entry + 1);
        *entry = (struct page_faults_entry){ .usec = usec, .to = to };
        entry->node = put(&at, texts[0]);
        entry->device = put(&at, texts[1]);
        entry->reason = put(&at, texts[2]);
        entry->message = put(&at, texts[3]);
        if (faults->count == PAGE_FAULTS_MAX)
                drop_first(faults);
        faults->ring[(faults->first + faults->count++) % PAGE_FAULTS_MAX] = entry;
        faults->total++;
}

/* The agent's word on when counts where it can be so: not after now, and not before what is shown. */
static uint64_t when(const struct page_node_chip *chip, uint64_t now_usec)
{
        return chip->since_usec > 0 && chip->since_usec <= now_usec ? chip->since_usec : now_usec;
}

static void add_chip(struct page_faults *faults, const char *node, const struct page_node_told *told,
                     const struct page_node_chip *chip, const char *to, uint64_t usec)
{
        const char *const texts[4] = { node, page_node_text(told, chip->id),
                                       page_node_text(told, chip->reason),
                                       page_node_text(told, chip->message) };

        add(faults, usec, to, texts);
}

/* Where the order is as before, the same place is looked at first. */
static const struct page_node_chip *same_chip(const struct page_node_told *in, size_t place, const char *id)
{
        if (place < in->chip_count && strcmp(page_node_text(in, in->chips[place].id), id) == 0)
                return &in->chips[place];
        return page_node_find(in, id);
}

static void look_at(struct page_faults *faults, const char *node, const struct page_node_told *before,
                    const struct page_node_told *now, size_t place, uint64_t now_usec)
{
        const struct page_node_chip *chip = &now->chips[place],
                                    *was = same_chip(before, place, page_node_text(now, chip->id));
        const char *to = page_faults_word((enum device_health) chip->health);

        if (was != NULL && was->health != chip->health)
                add_chip(faults, node, now, chip, to != NULL ? to : recovered, when(chip, now_usec));
        else if (was == NULL && to != NULL && chip->since_usec + PAGE_FAULTS_USEC >= now_usec &&
                 chip->since_usec <= now_usec)
                add_chip(faults, node, now, chip, to, chip->since_usec);
}

void page_faults_compare(struct page_faults *faults, const char *node, const struct page_node_told *before,
                         const struct page_node_told *now, uint64_t now_usec)
{
        static const struct page_node_told nothing = { .groups = NULL };

        if (before == NULL)
                before = &nothing;
        for (size_t i = 0; i < now->chip_count; i++)
                look_at(faults, node, before, now, i, now_usec);
        for (size_t i = 0; i < before->chip_count; i++)
                if (same_chip(now, i, page_node_text(before, before->chips[i].id)) == NULL)
                        add_chip(faults, node, before, &before->chips[i], gone, now_usec);
}

void page_faults_node(struct page_faults *faults, const char *node, bool unknown, const char *reason,
                      uint64_t now_usec)
{
        const char *const texts[4] = { node, "", "", reason };

        add(faults, now_usec, unknown ? unknown_word : recovered, texts);
}
