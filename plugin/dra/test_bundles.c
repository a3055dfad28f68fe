/* Bundles: which devices are one in a slice, and which draw on one set of counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/dra/bundles.h"

/* One device: its group, fabric, chip and partition. A group's resource is "r" and its own last letter. */
struct part {
        const char *group, *fabric, *pci, *partition;
        unsigned shares;
};

/* clang-format off */
static const struct { const char *what; struct part parts[6]; const char *bundles, *sets; } rows[] = {
        { "two chips that a fabric joins", { { "a", "nvlink", "1", "", 1 }, { "a", "nvlink", "2", "", 1 } }, "group-a=01 ", "00" },
        { "two that none joins",           { { "a", "none", "1", "", 1 }, { "a", "none", "2", "", 1 } }, "", "--" },
        { "one alone",                     { { "a", "nvlink", "1", "", 1 } }, "", "-" },
        { "two groups",                    { { "a", "hccs", "1", "", 1 }, { "b", "hccs", "2", "", 1 }, { "a", "hccs", "3", "", 1 }, { "b", "hccs", "4", "", 1 } }, "group-a=02 group-b=13 ", "0101" },
        { "shared chips are in none",      { { "a", "nvlink", "1", "", 4 }, { "a", "nvlink", "2", "", 4 } }, "", "--" },
        { "partitions of one resource",    { { "a", "none", "1", "x", 1 }, { "a", "none", "1", "x", 1 }, { "a", "none", "2", "x", 1 } }, "chip-1=01 ", "00-" },
        { "partitions of two",             { { "a", "none", "1", "x", 1 }, { "b", "none", "1", "y", 1 } }, "", "00" },
        { "a chip that is all of a group", { { "a", "package", "1", "x", 1 }, { "a", "package", "1", "y", 1 } }, "group-a=01 ", "00" },
        { "chips with parts in a group",   { { "a", "xgmi", "1", "x", 1 }, { "a", "xgmi", "1", "y", 1 }, { "a", "xgmi", "2", "x", 1 }, { "a", "xgmi", "2", "y", 1 } }, "group-a=0123 chip-1=01 chip-2=23 ", "0000" },
        { "a set grows over what it joins", { { "a", "none", "1", "x", 1 }, { "b", "nvlink", "2", "", 1 }, { "b", "nvlink", "1", "y", 1 } }, "group-b=12 ", "000" },
};
/* clang-format on */

static void make(struct inventory *inventory, const struct part *parts, size_t count)
{
        for (size_t i = 0; i < count && parts[i].group != NULL; i++) {
                struct device *device = inventory_add_device(inventory);
                struct device_group *group = inventory_find_group(inventory, parts[i].group);

                assert_non_null(device);
                (void) text_format(device->id, sizeof(device->id), "d%zu", i);
                (void) text_copy(device->group, sizeof(device->group), parts[i].group);
                (void) text_copy(device->pci, sizeof(device->pci), parts[i].pci);
                (void) text_copy(device->partition, sizeof(device->partition), parts[i].partition);
                device->usable = true;
                if (group != NULL)
                        continue;
                group = inventory_add_group(inventory);
                (void) text_copy(group->name, sizeof(group->name), parts[i].group);
                (void) text_format(group->resource, sizeof(group->resource), "r/%s", parts[i].group);
                (void) text_copy(group->fabric, sizeof(group->fabric), parts[i].fabric);
                group->shares = parts[i].shares;
        }
}

static void say(const struct inventory *inventory, const struct bundles *bundles, struct text *items,
                struct text *sets)
{
        for (size_t i = 0; i < bundles->count; i++) {
                text_printf(items, "%s=", bundles->items[i].name.label);
                for (size_t k = 0; k < bundles->items[i].device_count; k++)
                        text_printf(items, "%zu", bundles->items[i].devices[k]);
                text_append(items, " ");
        }
        for (size_t i = 0; i < inventory->device_count; i++)
                if (bundles->sets[i] == BUNDLES_NO_SET)
                        text_append(sets, "-");
                else
                        text_printf(sets, "%zu", bundles->sets[i]);
}

static void devices_are_bundled_as_wires_and_chips_join_them(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(inventory_free) struct inventory inventory;
                CLEANUP(bundles_free) struct bundles bundles;
                CLEANUP(text_free) struct text items = { 0 }, sets = { 0 };
                struct dra_name names[6];

                inventory_init(&inventory);
                make(&inventory, rows[i].parts, ARRAY_SIZE(rows[i].parts));
                dra_name_all(&inventory, names);
                assert_int_equal(bundles_find(&inventory, names, &bundles), 0);
                text_append(&items, "");
                say(&inventory, &bundles, &items, &sets);
                assert_true(items.data != NULL && sets.data != NULL);
                if (strcmp(items.data, rows[i].bundles) != 0 || strcmp(sets.data, rows[i].sets) != 0)
                        fail_msg("%s: '%s' and '%s', got '%s' and '%s'", rows[i].what, rows[i].bundles,
                                 rows[i].sets, items.data, sets.data);
                for (size_t k = 0; k < bundles.count; k++)
                        assert_ptr_equal(bundles_named(&bundles, bundles.items[k].name.label),
                                         &bundles.items[k]);
                assert_null(bundles_named(&bundles, "d0"));
        }
}

/* A set has 32 counters: a group of 33 is not offered as one device, and its chips draw on none. */
static void what_is_too_large_is_no_bundle(void **state)
{
        struct dra_name names[33];

        (void) state;
        for (size_t count = 32; count <= 33; count++) {
                CLEANUP(inventory_free) struct inventory inventory;
                CLEANUP(bundles_free) struct bundles bundles;
                struct device_group *group;

                inventory_init(&inventory);
                group = inventory_add_group(&inventory);
                (void) text_copy(group->name, sizeof(group->name), "a");
                (void) text_copy(group->resource, sizeof(group->resource), "r/a");
                (void) text_copy(group->fabric, sizeof(group->fabric), "nvlink");
                for (size_t i = 0; i < count; i++) {
                        struct device *device = inventory_add_device(&inventory);

                        (void) text_format(device->id, sizeof(device->id), "d%zu", i);
                        (void) text_copy(device->group, sizeof(device->group), "a");
                }
                dra_name_all(&inventory, names);
                assert_int_equal(bundles_find(&inventory, names, &bundles), 0);
                assert_int_equal(bundles.count, count == 32);
                assert_int_equal(bundles.sets[0] == BUNDLES_NO_SET, count == 33);
        }
}

/* A device may be called as a bundle would be. */
static void a_bundle_has_a_name_of_its_own(void **state)
{
        CLEANUP(inventory_free) struct inventory inventory;
        CLEANUP(bundles_free) struct bundles bundles;
        const struct part parts[] = { { "a", "nvlink", "1", "", 1 }, { "a", "nvlink", "2", "", 1 } };
        struct dra_name names[2];

        (void) state;
        inventory_init(&inventory);
        make(&inventory, parts, ARRAY_SIZE(parts));
        (void) text_copy(inventory.devices[1].id, sizeof(inventory.devices[1].id), "group-a");
        dra_name_all(&inventory, names);
        assert_int_equal(bundles_find(&inventory, names, &bundles), 0);
        assert_string_equal(names[1].label, "group-a");
        assert_string_not_equal(bundles.items[0].name.label, "group-a");
        assert_int_equal(strncmp(bundles.items[0].name.label, "group-a-", 8), 0);
        inventory.devices[1].usable = false;
        assert_ptr_equal(bundles_sick(&bundles.items[0], &inventory), &inventory.devices[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(devices_are_bundled_as_wires_and_chips_join_them),
                cmocka_unit_test(what_is_too_large_is_no_bundle),
                cmocka_unit_test(a_bundle_has_a_name_of_its_own),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
