/* Bundles: what a slice offers of a chip or a fabric beside single devices, and what keeps them apart. */
#include "plugin/dra/bundles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Which devices belong together, while they are found. */
struct search {
        const struct inventory *inventory;
        const struct dra_name *names;
        const struct device_group **groups; /* of each device, as group_of() has it */
        struct bundles *found;
};

static const struct device_group *group_of(const struct inventory *inventory, size_t index)
{
        const char *name = inventory->devices[index].group;
        const struct device_group *group = name[0] == '\0' ? NULL : inventory_find_group(inventory, name);

        return group != NULL && group->resource[0] != '\0' ? group : NULL;
}

bool bundles_offers(const struct inventory *inventory, size_t index)
{
        return group_of(inventory, index) != NULL;
}

unsigned bundles_shares(const struct device_group *group)
{
        return group->shares > 1 ? group->shares : 1;
}

struct dra_share_room bundles_room(const struct inventory *inventory, const struct device *device)
{
        const struct device_group *group =
                device == NULL ? NULL : inventory_find_group(inventory, device->group);
        struct dra_share_room room = { .memory_bytes = device == NULL ? 0 : device->memory_bytes,
                                       .shares = 1 };

        if (group != NULL) {
                room.shares = bundles_shares(group);
                room.memory_bytes = room.memory_bytes > 0 ? room.memory_bytes : group->memory_bytes;
        }
        return room;
}

/* May it be one of several? */
static bool is_single(const struct search *search, size_t index)
{
        const struct device_group *group = search->groups[index];

        return group != NULL && bundles_shares(group) == 1 && search->names[index].label[0] != '\0';
}

static bool is_of_group(const struct search *search, size_t index, size_t of)
{
        return search->groups[index] == search->groups[of];
}

static bool is_of_chip(const struct search *search, size_t index, size_t of)
{
        const struct device *device = &search->inventory->devices[index],
                            *other = &search->inventory->devices[of];

        return device->partition[0] != '\0' && other->partition[0] != '\0' && device->pci[0] != '\0' &&
               strcmp(device->pci, other->pci) == 0;
}

typedef bool belongs_function(const struct search *search, size_t index, size_t of);

/* The devices that belong to device @of; none where it is not the first of them, or where they are too many.
 */
static size_t gather(const struct search *search, size_t of, belongs_function *belongs,
                     size_t ret[BUNDLES_COUNTERS_MAX])
{
        size_t count = 0;

        if (!is_single(search, of))
                return 0;
        for (size_t i = 0; i < search->inventory->device_count; i++) {
                if (!belongs(search, i, of) || !is_single(search, i))
                        continue;
                if (i < of || count == BUNDLES_COUNTERS_MAX)
                        return 0;
                ret[count++] = i;
        }
        return count;
}

/* Of the sets that these devices are in one is made, if it is not too large. */
static bool join(const struct search *search, const size_t *devices, size_t count)
{
        size_t *sets = search->found->sets, all = 0, first = BUNDLES_NO_SET;
        bool in[DEVICES_MAX] = { false };

        for (size_t k = 0; k < count; k++)
                for (size_t i = 0; i < search->inventory->device_count; i++)
                        in[i] = in[i] || i == devices[k] ||
                                (sets[i] != BUNDLES_NO_SET && sets[i] == sets[devices[k]]);
        for (size_t i = search->inventory->device_count; i-- > 0;) {
                all += in[i];
                first = in[i] ? i : first;
        }
        if (all > BUNDLES_COUNTERS_MAX)
                return false;
        for (size_t i = 0; i < search->inventory->device_count; i++)
                if (in[i])
                        sets[i] = first;
        return true;
}

static bool has_fabric(const struct device_group *group)
{
        return group->fabric[0] != '\0' && strcmp(group->fabric, "none") != 0;
}

static bool of_one_resource(const struct search *search, const size_t *devices, size_t count)
{
        const char *first = search->groups[devices[0]]->resource;

        for (size_t i = 1; i < count; i++)
                if (strcmp(search->groups[devices[i]]->resource, first) != 0)
                        return false;
        return true;
}

static bool is_there(const struct bundles *found, const size_t *devices, size_t count)
{
        for (size_t i = 0; i < found->count; i++)
                if (found->items[i].device_count == count &&
                    memcmp(found->items[i].devices, devices, count * sizeof(*devices)) == 0)
                        return true;
        return false;
}

static void add(const struct search *search, enum bundle_kind kind, const size_t *devices, size_t count)
{
        const struct device *first = &search->inventory->devices[devices[0]];
        struct bundle *bundle = &search->found->items[search->found->count++];
        char text[DEVICE_GROUP_BYTES + 16];

        *bundle = (struct bundle){ .kind = kind, .device_count = count };
        memcpy(bundle->devices, devices, count * sizeof(*devices));
        (void) text_format(text, sizeof(text), kind == BUNDLE_GROUP ? "group-%s" : "chip-%s",
                           kind == BUNDLE_GROUP ? first->group : first->pci);
        dra_name_beside(search->inventory, search->names, text, &bundle->name);
}

static void find_groups(const struct search *search)
{
        size_t devices[BUNDLES_COUNTERS_MAX];

        for (size_t i = 0; i < search->inventory->device_count; i++) {
                size_t count = gather(search, i, is_of_group, devices);

                if (count > 1 && has_fabric(search->groups[i]) && join(search, devices, count))
                        add(search, BUNDLE_GROUP, devices, count);
        }
}

/* Partitions of several resources are for several programs: they have a set, and are no bundle. */
static void find_chips(const struct search *search)
{
        size_t devices[BUNDLES_COUNTERS_MAX];

        for (size_t i = 0; i < search->inventory->device_count; i++) {
                size_t count = gather(search, i, is_of_chip, devices);

                if (count > 1 && join(search, devices, count) && of_one_resource(search, devices, count) &&
                    !is_there(search->found, devices, count))
                        add(search, BUNDLE_CHIP, devices, count);
        }
}

int bundles_find(const struct inventory *inventory, const struct dra_name *names, struct bundles *ret)
{
        CLEANUP(free_p)
        const struct device_group **groups = calloc(inventory->device_count + 1, sizeof(*groups));
        const struct search search = {
                .inventory = inventory, .names = names, .groups = groups, .found = ret
        };

        *ret = (struct bundles){ .items = calloc(inventory->device_count + 1, sizeof(*ret->items)),
                                 .sets = calloc(inventory->device_count + 1, sizeof(*ret->sets)) };
        if (ret->items == NULL || ret->sets == NULL || groups == NULL) {
                bundles_free(ret);
                return -ENOMEM;
        }
        for (size_t i = 0; i < inventory->device_count; i++) {
                ret->sets[i] = BUNDLES_NO_SET;
                groups[i] = group_of(inventory, i);
        }
        find_groups(&search);
        find_chips(&search);
        return 0;
}

void bundles_free(struct bundles *bundles)
{
        if (bundles == NULL)
                return;
        free(bundles->items);
        free(bundles->sets);
        *bundles = (struct bundles){ .count = 0 };
}

const struct bundle *bundles_named(const struct bundles *bundles, const char *name)
{
        for (size_t i = 0; i < bundles->count; i++)
                if (strcmp(bundles->items[i].name.label, name) == 0)
                        return &bundles->items[i];
        return NULL;
}

const struct device *bundles_sick(const struct bundle *bundle, const struct inventory *inventory)
{
        for (size_t i = 0; i < bundle->device_count; i++)
                if (!inventory->devices[bundle->devices[i]].usable)
                        return &inventory->devices[bundle->devices[i]];
        return NULL;
}
