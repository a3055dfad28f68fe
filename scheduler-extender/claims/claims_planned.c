/* An inventory's devices as a slice, and which of them nobody has. */
#include "scheduler-extender/claims/claims_planned.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/inventory/dra_name.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/claims/claims_internal.h"

#define KEY_BYTES (sizeof("planned//1024") + 256)

/* No object is called so: names have no '/'. */
static void key_of(const char *node, size_t part, char ret[KEY_BYTES])
{
        (void) text_format(ret, KEY_BYTES, "planned/%.255s/%zu", node, part);
}

/* Devices that several pods share are not allocated whole, and so not planned. */
static bool is_for_plans(const struct inventory *inventory, const struct dra_name *names, size_t index)
{
        const struct device_group *group = inventory_find_group(inventory, inventory->devices[index].group);

        return names[index].label[0] != '\0' && group != NULL && group->resource[0] != '\0' &&
               group->shares <= 1;
}

static void add_device(const struct device *device, const char *name, struct claims_slice_facts *facts)
{
        facts->devices[facts->device_count++] =
                (struct claims_slice_device){ .name = name,
                                              .vendor = vendor_find(device->vendor, NULL),
                                              .group = device->group,
                                              .sick = !device->usable };
}

static int set_parts(struct claims *c, const char *node, const struct inventory *inventory,
                     const struct dra_name *names, size_t *ret)
{
        size_t count = 0, parts;
        struct claims_slice_facts facts = { .driver = DRA_NAME_DRIVER,
                                            .pool = node,
                                            .node = node,
                                            .generation = INT64_MIN, /* any slice is newer */
                                            .planned = true };
        char key[KEY_BYTES];
        int r = 0;

        for (size_t i = 0; i < inventory->device_count; i++)
                count += is_for_plans(inventory, names, i);
        parts = count == 0 ? 1 : (count + CLAIMS_DEVICES_MAX - 1) / CLAIMS_DEVICES_MAX;
        facts.slice_count = (int64_t) parts;
        for (size_t i = 0; r == 0 && i <= inventory->device_count && *ret < parts; i++) {
                if (i < inventory->device_count && is_for_plans(inventory, names, i))
                        add_device(&inventory->devices[i], names[i].label, &facts);
                if (facts.device_count < CLAIMS_DEVICES_MAX && i < inventory->device_count)
                        continue;
                key_of(node, (*ret)++, key);
                r = claims_set_slice(c, key, &facts);
                facts.device_count = 0;
        }
        return r;
}

int claims_planned_set(struct claims *c, const char *node, const struct inventory *inventory)
{
        CLEANUP(free_p) struct dra_name *names = NULL;
        char key[KEY_BYTES];
        size_t parts = 0;
        int r = 0;

        if (inventory != NULL && inventory->planned) {
                names = calloc(inventory->device_count + 1, sizeof(*names));
                if (names == NULL)
                        return -ENOMEM;
                dra_name_all(inventory, names);
                r = set_parts(c, node, inventory, names, &parts);
        }
        for (key_of(node, parts, key); name_map_find(&c->slices, key) != NULL; key_of(node, ++parts, key))
                (void) claims_set_slice(c, key, NULL);
        return r;
}

static bool has_device(const struct claim *claim, const struct slice *slice, const char *name)
{
        for (uint32_t i = 0; i < claim->result_count; i++)
                if (same_pool(slice, claim->results[i].driver, claim->results[i].pool) &&
                    strcmp(claim->results[i].device, name) == 0)
                        return true;
        return false;
}

static bool is_free(const struct place *place, const struct slice *slice, const struct offered *device)
{
        if (device->sick)
                return false;
        for (const struct claim *claim = place->claims; claim != NULL; claim = claim->next)
                if (has_device(claim, slice, slice->text + device->name))
                        return false;
        return true;
}

/* Of several slices of a node the one that was made last comes first in its place. */
static const struct slice *part_of(const struct claims *c, const char *node, size_t part)
{
        char key[KEY_BYTES];

        key_of(node, part, key);
        return (const struct slice *) name_map_find(&c->slices, key);
}

size_t claims_planned_free(const struct claims *c, const char *node, const char *group,
                           bool (*taken)(void *userdata, const char *device), void *userdata,
                           const char **ret, size_t max)
{
        const struct place *place = (const struct place *) name_map_find(&c->places, node);
        const struct slice *slice;
        size_t count = 0;

        for (size_t part = 0; place != NULL && (slice = part_of(c, node, part)) != NULL; part++)
                for (uint32_t i = 0; slice->counts && i < slice->device_count && count < max; i++) {
                        const struct offered *device = &slice->devices[i];
                        const char *name = slice->text + device->name;

                        if (device->group != 0 && strcmp(slice->text + device->group, group) == 0 &&
                            is_free(place, slice, device) && !taken(userdata, name))
                                ret[count++] = name;
                }
        return count;
}

static bool is_shared(const struct claim *a, const struct claim *b)
{
        for (uint32_t i = 0; i < a->result_count; i++)
                for (uint32_t k = 0; k < b->result_count; k++)
                        if (strcmp(a->results[i].device, b->results[k].device) == 0 &&
                            strcmp(a->results[i].pool, b->results[k].pool) == 0 &&
                            strcmp(a->results[i].driver, b->results[k].driver) == 0)
                                return true;
        return false;
}

const char *claims_planned_rival(const struct claims *c, const char *key)
{
        const struct claim *own = (const struct claim *) name_map_find(&c->claims, key);

        if (own == NULL || own->place == NULL)
                return NULL;
        for (const struct claim *other = own->place->claims; other != NULL; other = other->next)
                if (other != own && is_shared(own, other))
                        return other->entry.key;
        return NULL;
}
