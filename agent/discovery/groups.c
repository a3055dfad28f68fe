/* Groups: devices of one vendor and model that one fabric joins become one group, named after them.
 *
 * The order of groups, and with it their numbers, follows the wish of the placements (an HCCS ring's number,
 * a NUMA node) and otherwise the order of devices. */
#include "agent/discovery/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static void keep_out(struct scan *scan, size_t i, enum device_health health, const char *reason,
                     const char *rule, const char *message)
{
        struct device *device = &scan->inventory->devices[i];

        scan->placements[i].grouped = false;
        device->health = health;
        device->usable = false;
        (void) text_copy(device->reason, sizeof(device->reason), reason);
        (void) text_copy(device->rule, sizeof(device->rule), rule);
        (void) text_copy(device->message, sizeof(device->message), message);
}

/* Every bearer of an id that comes twice is kept out, and is known by its place, which is unique. */
static void find_duplicates(struct scan *scan)
{
        struct inventory *inventory = scan->inventory;

        for (size_t i = 0; i < inventory->device_count; i++) {
                char id[DEVICE_ID_BYTES];
                unsigned bearers = 0;

                (void) text_copy(id, sizeof(id), inventory->devices[i].id);
                for (size_t j = i; j < inventory->device_count; j++)
                        bearers += strcmp(inventory->devices[j].id, id) == 0;
                for (size_t j = i; bearers > 1 && j < inventory->device_count; j++) {
                        struct device *device = &inventory->devices[j];

                        if (strcmp(device->id, id) != 0)
                                continue;
                        keep_out(scan, j, HEALTH_UNHEALTHY, "DuplicateId", "identity", "");
                        (void) text_format(device->message, sizeof(device->message),
                                           "%u devices say that they are %s", bearers, id);
                        (void) text_format(device->id, sizeof(device->id), "%s-duplicate-%u",
                                           device->pci[0] != '\0' ? device->pci : device->vendor,
                                           device->index);
                }
        }
}

void groups_keep_out(struct scan *scan)
{
        struct inventory *inventory = scan->inventory;

        find_duplicates(scan);
        for (size_t i = 0; i < inventory->device_count; i++)
                if (discovery_options_exclude(scan->options, &inventory->devices[i]))
                        keep_out(scan, i, HEALTH_UNKNOWN, "Excluded", "configuration",
                                 "the configuration keeps it out");
}

/* Do the two devices belong to one group? */
static bool together(const struct scan *scan, size_t a, size_t b)
{
        const struct device *x = &scan->inventory->devices[a], *y = &scan->inventory->devices[b];
        const struct scan_placement *p = &scan->placements[a], *q = &scan->placements[b];

        return strcmp(x->vendor, y->vendor) == 0 && strcmp(x->model, y->model) == 0 &&
               strcmp(p->fabric, q->fabric) == 0 && strcmp(p->key, q->key) == 0 &&
               strcmp(p->resource, q->resource) == 0;
}

/* "nvidia-h100": lower case, digits and single dashes, as a Kubernetes label's name part must be. */
static void slug(const char *vendor, const char *family, char *ret, size_t ret_bytes)
{
        size_t length = 0;
        char joined[128];

        (void) text_format(joined, sizeof(joined), family[0] != '\0' ? "%s-%s" : "%s%s", vendor, family);
        for (const char *c = joined; *c != '\0' && length + 1 < ret_bytes; c++) {
                bool letter = *c >= 'a' && *c <= 'z', capital = *c >= 'A' && *c <= 'Z';

                if (letter || (*c >= '0' && *c <= '9'))
                        ret[length++] = *c;
                else if (capital)
                        ret[length++] = (char) (*c - 'A' + 'a');
                else if (length > 0 && ret[length - 1] != '-')
                        ret[length++] = '-';
        }
        while (length > 0 && ret[length - 1] == '-')
                length--;
        ret[length] = '\0';
}

/* What of a model goes into the name: "H100-SXM5-80GB" -> "h100"; all of a short or unknown one; nothing of a
 * CPU's, which is a sentence. */
static void family(const struct device_group *group, char *ret, size_t ret_bytes)
{
        size_t length = strcspn(group->model, "-");

        if (strcmp(group->vendor, "cpu") == 0 || strlen(group->model) > 40)
                length = 0;
        else if (length < 3) /* "BI-V100", "n" */
                length = strlen(group->model);
        (void) text_format(ret, ret_bytes, "%.*s", (int) length, group->model);
}

static void name_group(const struct scan *scan, const struct scan_placement *placement,
                       struct device_group *group)
{
        char base[DEVICE_GROUP_BYTES - 8], name[DEVICE_GROUP_BYTES], model[DEVICE_MODEL_BYTES];
        unsigned number = placement->order >= 0 ? (unsigned) placement->order : 0;

        family(group, model, sizeof(model));
        slug(group->vendor, model, base, sizeof(base));
        do
                (void) text_format(name, sizeof(name), "%s-%u", base, number++);
        while (inventory_find_group(scan->inventory, name) != NULL);
        (void) text_copy(group->name, sizeof(group->name), name);
}

static int add_group(struct scan *scan, size_t first, struct err *err)
{
        const struct device *device = &scan->inventory->devices[first];
        const struct scan_placement *placement = &scan->placements[first];
        struct device_group *group = inventory_add_group(scan->inventory);

        if (group == NULL)
                return err_set(err, -ENOMEM, "more than %d device groups", GROUPS_MAX);
        (void) text_copy(group->vendor, sizeof(group->vendor), device->vendor);
        (void) text_copy(group->model, sizeof(group->model), device->model);
        (void) text_copy(group->runtime, sizeof(group->runtime), placement->runtime);
        (void) text_copy(group->resource, sizeof(group->resource), placement->resource);
        (void) text_copy(group->fabric, sizeof(group->fabric), placement->fabric);
        (void) text_copy(group->fabric_source, sizeof(group->fabric_source), placement->source);
        group->tflops_bf16 = placement->tflops_bf16;
        group->tflops_fp16 = placement->tflops_fp16;
        group->tflops_fp32 = placement->tflops_fp32;
        group->tflops_estimated = placement->tflops_estimated;
        group->memory_bytes = device->memory_bytes;
        name_group(scan, placement, group);
        return 0;
}

struct pair {
        struct device device;
        struct scan_placement placement;
};

static int by_index(const void *a, const void *b)
{
        const struct pair *x = a, *y = b;

        return x->device.index < y->device.index ? -1 : x->device.index > y->device.index;
}

static bool index_taken(const struct inventory *inventory, size_t i, unsigned index)
{
        for (size_t j = 0; j < inventory->device_count; j++)
                if (j != i && inventory->devices[j].index == index &&
                    strcmp(inventory->devices[j].vendor, inventory->devices[i].vendor) == 0)
                        return true;
        return false;
}

/* A device without its driver does not tell its number: one that another bears is not its own. */
static void mend_indexes(struct scan *scan)
{
        struct inventory *inventory = scan->inventory;

        for (size_t i = 0; i < inventory->device_count; i++) {
                unsigned index = 0;

                if (scan->placements[i].bound || scan->placements[i].pci_ids == 0 ||
                    !index_taken(inventory, i, inventory->devices[i].index))
                        continue;
                while (index_taken(inventory, i, index))
                        index++;
                inventory->devices[i].index = index;
        }
}

/* Within each vendor's run of devices: by index. */
int groups_sort(struct scan *scan, struct err *err)
{
        struct inventory *inventory = scan->inventory;
        CLEANUP(free_p) struct pair *pairs = calloc(inventory->device_count + 1, sizeof(*pairs));

        if (pairs == NULL)
                return err_set(err, -ENOMEM, "no memory for discovery");
        mend_indexes(scan);
        for (size_t i = 0; i < inventory->device_count; i++)
                pairs[i] = (struct pair){ inventory->devices[i], scan->placements[i] };
        for (size_t begin = 0, end; begin < inventory->device_count; begin = end) {
                for (end = begin + 1; end < inventory->device_count; end++)
                        if (strcmp(pairs[end].device.vendor, pairs[begin].device.vendor) != 0)
                                break;
                qsort(pairs + begin, end - begin, sizeof(*pairs), by_index);
        }
        for (size_t i = 0; i < inventory->device_count; i++) {
                inventory->devices[i] = pairs[i].device;
                scan->placements[i] = pairs[i].placement;
        }
        return 0;
}

int groups_form(struct scan *scan, struct err *err)
{
        struct inventory *inventory = scan->inventory;

        for (size_t i = 0; i < inventory->device_count; i++) {
                struct device *device = &inventory->devices[i];
                size_t same = 0;

                if (!scan->placements[i].grouped)
                        continue;
                while (same < i && !(scan->placements[same].grouped && together(scan, same, i)))
                        same++;
                if (same == i) {
                        int r = add_group(scan, i, err);

                        if (r < 0)
                                return r;
                }
                (void) text_copy(device->group, sizeof(device->group),
                                 same == i ? inventory->groups[inventory->group_count - 1].name
                                           : inventory->devices[same].group);
        }
        for (size_t i = 0; i < inventory->device_count; i++) {
                struct device_group *group = inventory_find_group(inventory, inventory->devices[i].group);

                /* one that cannot be asked may not tell its memory */
                if (group != NULL && inventory->devices[i].memory_bytes > group->memory_bytes)
                        group->memory_bytes = inventory->devices[i].memory_bytes;
        }
        inventory_count(inventory);
        return 0;
}
