/* Slices stored: is a slice in the store the one that should be there? */
#include "plugin/dra/slices_stored.h"

#include <string.h>

#include "agent/inventory/dra_name.h"
#include "base/json/json_read.h"
#include "base/quantity.h"
#include "plugin/dra/slices.h"

static const json_t *spec_of(const json_t *slice)
{
        return json_object_get(slice, "spec");
}

/* "80Gi" and "85899345920" are one quantity. */
static bool same_text(const json_t *want, const json_t *have)
{
        int64_t a = 0, b = 0;

        return json_equal(want, have) != 0 || (json_is_string(want) && json_is_string(have) &&
                                               quantity_parse(json_string_value(want), &a) == 0 &&
                                               quantity_parse(json_string_value(have), &b) == 0 && a == b);
}

/* Capacities or counters: objects of objects, whose texts are quantities or names. */
static bool same_amounts(const json_t *want, const json_t *have)
{
        const char *name;
        json_t *value;
        size_t i;

        if (want == NULL || have == NULL)
                return want == have;
        if (json_is_array(want)) {
                if (json_array_size(want) != json_array_size(have))
                        return false;
                json_array_foreach((json_t *) want, i,
                                   value) if (!same_amounts(value, json_array_get(have, i))) return false;
                return true;
        }
        if (!json_is_object(want))
                return same_text(want, have);
        if (json_object_size(want) != json_object_size(have))
                return false;
        json_object_foreach((json_t *) want, name,
                            value) if (!same_amounts(value, json_object_get(have, name))) return false;
        return true;
}

static bool same_taints(const json_t *want, const json_t *have)
{
        size_t i;
        json_t *taint;

        if (json_array_size(want) != json_array_size(have))
                return false;
        json_array_foreach((json_t *) want, i, taint)
        {
                const json_t *other = json_array_get(have, i);

                if (strcmp(json_read_word(taint, "key"), json_read_word(other, "key")) != 0 ||
                    strcmp(json_read_word(taint, "value"), json_read_word(other, "value")) != 0 ||
                    strcmp(json_read_word(taint, "effect"), json_read_word(other, "effect")) != 0)
                        return false;
        }
        return true;
}

static bool same_device(const json_t *want, const json_t *have)
{
        return strcmp(json_read_word(want, "name"), json_read_word(have, "name")) == 0 &&
               json_equal(json_object_get(want, "attributes"), json_object_get(have, "attributes")) != 0 &&
               same_amounts(json_object_get(want, "capacity"), json_object_get(have, "capacity")) &&
               same_amounts(json_object_get(want, "consumesCounters"),
                            json_object_get(have, "consumesCounters")) &&
               json_is_true(json_object_get(want, "allowMultipleAllocations")) ==
                       json_is_true(json_object_get(have, "allowMultipleAllocations")) &&
               same_taints(json_object_get(want, "taints"), json_object_get(have, "taints")) &&
               json_object_size(want) - (json_object_get(want, "taints") != NULL) ==
                       json_object_size(have) - (json_object_get(have, "taints") != NULL);
}

static bool same_pool(const json_t *want, const json_t *have, bool any_generation)
{
        const json_t *count = json_object_get(want, "resourceSliceCount");

        return strcmp(json_read_word(want, "name"), json_read_word(have, "name")) == 0 &&
               json_equal(count, json_object_get(have, "resourceSliceCount")) != 0 &&
               (any_generation ||
                json_equal(json_object_get(want, "generation"), json_object_get(have, "generation")) != 0);
}

bool slices_stored_same(const json_t *want, const json_t *have, bool any_generation)
{
        const json_t *a = spec_of(want), *b = spec_of(have), *devices = json_object_get(a, "devices"),
                     *others = json_object_get(b, "devices");

        if (strcmp(json_read_word(a, "driver"), json_read_word(b, "driver")) != 0 ||
            strcmp(json_read_word(a, "nodeName"), json_read_word(b, "nodeName")) != 0 ||
            !same_pool(json_object_get(a, "pool"), json_object_get(b, "pool"), any_generation) ||
            !same_amounts(json_object_get(a, "sharedCounters"), json_object_get(b, "sharedCounters")) ||
            json_array_size(devices) != json_array_size(others))
                return false;
        for (size_t i = 0; i < json_array_size(devices); i++)
                if (!same_device(json_array_get(devices, i), json_array_get(others, i)))
                        return false;
        return true;
}

unsigned slices_stored_features(const json_t *slice)
{
        const json_t *devices = json_object_get(spec_of(slice), "devices");
        unsigned features =
                json_array_size(json_object_get(spec_of(slice), "sharedCounters")) > 0 ? SLICES_COUNTERS : 0;

        for (size_t i = 0; i < json_array_size(devices); i++) {
                const json_t *device = json_array_get(devices, i);

                if (json_array_size(json_object_get(device, "taints")) > 0)
                        features |= SLICES_TAINTS;
                if (json_array_size(json_object_get(device, "consumesCounters")) > 0)
                        features |= SLICES_COUNTERS;
                if (json_is_true(json_object_get(device, "allowMultipleAllocations")))
                        features |= SLICES_SHARES;
        }
        return features;
}

bool slices_stored_is_ours(const json_t *slice, const char *node, uint64_t *ret_generation)
{
        const json_t *spec = spec_of(slice);
        json_int_t generation =
                json_integer_value(json_object_get(json_object_get(spec, "pool"), "generation"));

        *ret_generation = generation > 0 ? (uint64_t) generation : 0;
        return strcmp(json_read_word(spec, "driver"), DRA_NAME_DRIVER) == 0 &&
               strcmp(json_read_word(spec, "nodeName"), node) == 0;
}
