/* Slices: names, versions, order, taints and limits; and every machine's slices are what an API server takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/discovery.h"
#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/dra/dra_name.h"
#include "plugin/dra/slices.h"
#include "plugin/dra/slices_facts.h"

#define FOLDER "tests/data/machines"

static struct device *add_device(struct inventory *inventory, const char *id, const char *group)
{
        struct device *device = inventory_add_device(inventory);

        assert_non_null(device);
        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->group, sizeof(device->group), group);
        device->index = (unsigned) inventory->device_count - 1;
        device->numa = -1;
        device->usable = true;
        device->health = HEALTH_HEALTHY;
        return device;
}

static struct device_group *add_group(struct inventory *inventory, const char *name)
{
        struct device_group *group = inventory_add_group(inventory);

        assert_non_null(group);
        (void) text_copy(group->name, sizeof(group->name), name);
        (void) text_copy(group->resource, sizeof(group->resource), "example.com/npu");
        return group;
}

static json_t *build(const struct inventory *inventory, bool taints, const struct slices_fact *facts)
{
        const struct slices_options options = {
                .node = "node-1", .generation = 7, .taints = taints, .facts = facts
        };
        json_t *slices = NULL;

        assert_int_equal(slices_build(inventory, &options, &slices, NULL), 0);
        return slices;
}

static const json_t *devices_of(const json_t *slices, size_t at)
{
        return json_object_get(json_object_get(json_array_get(slices, at), "spec"), "devices");
}

static const char *name_at(const json_t *slices, size_t at)
{
        return json_string_value(json_object_get(json_array_get(devices_of(slices, 0), at), "name"));
}

static void names_are_labels_of_their_ids(void **state)
{
        static const struct {
                const char *id, *name;
        } rows[] = {
                { "GPU-5E001db1-0000-4000-8000-000000000000", "gpu-5e001db1-0000-4000-8000-000000000000" },
                { "0000:18:00.0", "0000-18-00-0" },
                { "", "" },
                { "a_b", "a-b-648fa9b3" }, /* another id would be a-b, too */
                { "a.b", "a-b-2e7336dc" },
                { "a.b", "" }, /* the second of one id */
                { "-x-", "x-x-c6cf95e5" },
                { "..", "x-5ec1f7e7" },
                { "MIG-01234567-0123-0123-0123-0123456789ab-01234567-0123-0123-0123",
                  "mig-01234567-0123-0123-0123-0123456789ab-01234567-0123-ebd05899" },
        };
        struct dra_name names[ARRAY_SIZE(rows)];
        CLEANUP(inventory_free) struct inventory inventory;

        (void) state;
        inventory_init(&inventory);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                (void) add_device(&inventory, rows[i].id, "");
        dra_name_all(&inventory, names);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_string_equal(names[i].label, rows[i].name);
}

static void versions_are_strict(void **state)
{
        static const char *const rows[][2] = {
                { "550.54.15", "550.54.15" },
                { "5.15", "5.15.0" },
                { "590.48.01-open", "590.48.1" },
                { "6.8.5.12", "6.8.5" },
                { "", "0.0.0" },
                { "v1.2", "0.0.0" },
                { "007", "7.0.0" },
                { "1..2", "1.0.0" },
                { "1.2.", "1.2.0" },
                { "9999999999999999999", "0.0.0" },
        };
        char version[DRA_VERSION_BYTES];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                dra_version_of(rows[i][0], version);
                assert_string_equal(version, rows[i][1]);
        }
}

/* Two groups of two; what is held or sick breaks its group. */
static void broken_groups_come_first(void **state)
{
        struct slices_fact facts[4] = { { .held = false } };
        CLEANUP(inventory_free) struct inventory inventory;
        json_t *slices;

        (void) state;
        inventory_init(&inventory);
        (void) add_group(&inventory, "a");
        (void) add_group(&inventory, "b");
        for (size_t i = 0; i < 4; i++)
                (void) add_device(&inventory, (const char *[]){ "a0", "a1", "b0", "b1" }[i],
                                  i < 2 ? "a" : "b");
        slices = build(&inventory, true, NULL);
        assert_string_equal(name_at(slices, 0), "a0");
        json_decref(slices);
        facts[3].held = true;
        slices = build(&inventory, true, facts);
        assert_string_equal(name_at(slices, 0), "b0");
        assert_string_equal(name_at(slices, 2), "a0");
        assert_int_equal(json_array_size(devices_of(slices, 0)), 4);
        json_decref(slices);
        facts[3].hidden = true; /* and is not shown: its group is as broken */
        slices = build(&inventory, true, facts);
        assert_string_equal(name_at(slices, 0), "b0");
        assert_int_equal(json_array_size(devices_of(slices, 0)), 3);
        json_decref(slices);
}

static void sick_devices_are_tainted_or_left_out(void **state)
{
        CLEANUP(inventory_free) struct inventory inventory;
        struct device *device;
        json_t *slices;
        const json_t *taint;

        (void) state;
        inventory_init(&inventory);
        (void) add_group(&inventory, "a");
        device = add_device(&inventory, "a0", "a");
        device->usable = false;
        device->health = HEALTH_UNHEALTHY;
        (void) text_copy(device->reason, sizeof(device->reason), "DeviceLost");
        (void) add_device(&inventory, "a1", "a");
        slices = build(&inventory, true, NULL);
        taint = json_array_get(json_object_get(json_array_get(devices_of(slices, 0), 0), "taints"), 0);
        assert_string_equal(json_string_value(json_object_get(taint, "key")), "remuda.dev/health");
        assert_string_equal(json_string_value(json_object_get(taint, "value")), "DeviceLost");
        assert_string_equal(json_string_value(json_object_get(taint, "effect")), "NoSchedule");
        assert_null(json_object_get(json_array_get(devices_of(slices, 0), 1), "taints"));
        json_decref(slices);
        slices = build(&inventory, false, NULL);
        assert_int_equal(json_array_size(devices_of(slices, 0)), 1);
        assert_string_equal(name_at(slices, 0), "a1");
        json_decref(slices);
}

static void assert_split(const struct inventory *inventory, bool taints, size_t count, size_t last)
{
        json_t *slices = build(inventory, taints, NULL);
        const json_t *pool;

        assert_int_equal(json_array_size(slices), count);
        assert_int_equal(json_array_size(devices_of(slices, count - 1)), last);
        for (size_t i = 0; i < count; i++) {
                pool = json_object_get(json_object_get(json_array_get(slices, i), "spec"), "pool");
                assert_int_equal(json_integer_value(json_object_get(pool, "resourceSliceCount")), count);
                assert_int_equal(json_integer_value(json_object_get(pool, "generation")), 7);
        }
        json_decref(slices);
}

static void many_devices_are_several_slices(void **state)
{
        CLEANUP(inventory_free) struct inventory inventory;
        char id[16];

        (void) state;
        inventory_init(&inventory);
        assert_split(&inventory, true, 1, 0); /* an empty slice rather than none */
        (void) add_group(&inventory, "a");
        for (size_t i = 0; i < 129; i++) {
                (void) text_format(id, sizeof(id), "a%zu", i);
                (void) add_device(&inventory, id, "a");
        }
        assert_split(&inventory, true, 3, 1);
        assert_split(&inventory, false, 2, 1);
        inventory.device_count = 128;
        assert_split(&inventory, true, 2, 64);
        assert_split(&inventory, false, 1, 128);
}

static void slices_have_names_of_objects(void **state)
{
        char node[254], name[OBJECT_NAME_DNS_BYTES];

        (void) state;
        memset(node, 'n', sizeof(node) - 1);
        node[253] = '\0';
        dra_name_slice(node, 12, name);
        assert_true(object_name_dns_valid(name, strlen(name)));
        dra_name_slice("node-1", 0, name);
        assert_string_equal(name, "remuda.dev-node-1-0");
}

/* Selectors and people find a device by the id that everything else calls it by; an attribute has 64 bytes.
 */
static void a_device_says_its_id(void **state)
{
        static const char *const ids[] = { "GPU-5E00", "0123456789012345678901234567890123456789"
                                                       "0123456789012345678901234567890123456789" };
        CLEANUP(inventory_free) struct inventory inventory;
        json_t *slices;

        (void) state;
        inventory_init(&inventory);
        (void) add_group(&inventory, "a");
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                (void) add_device(&inventory, ids[i], "a");
        slices = build(&inventory, true, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                const json_t *attributes =
                        json_object_get(json_array_get(devices_of(slices, 0), i), "attributes");
                const char *id =
                        json_string_value(json_object_get(json_object_get(attributes, "id"), "string"));

                assert_non_null(id);
                assert_int_equal(strlen(id), strlen(ids[i]) < 64 ? strlen(ids[i]) : 64);
                assert_memory_equal(id, ids[i], strlen(id));
        }
        json_decref(slices);
}

/* The bounds of resource.k8s.io/v1, and one set of attributes. */
static void check_device(const char *machine, const json_t *device, json_t *names, const json_t *first)
{
        const char *name = json_string_value(json_object_get(device, "name")), *key;
        json_t *attributes = json_object_get(device, "attributes"), *attribute;
        const json_t *others = json_object_get(first, "attributes");

        if (!object_name_label_valid(name) || json_object_get(names, name) != NULL)
                fail_msg("%s: name '%s'", machine, name);
        assert_int_equal(json_object_set_new(names, name, json_true()), 0);
        assert_int_equal(json_object_size(attributes), json_object_size(others));
        json_object_foreach(attributes, key, attribute)
        {
                const char *text = json_string_value(json_object_get(attribute, "string"));
                const char *slash = strchr(key, '/');

                assert_int_equal(json_object_size(attribute), 1);
                assert_non_null(json_object_get(others, key));
                assert_true(strlen(slash != NULL ? slash + 1 : key) <= 32);
                assert_true(text == NULL || strlen(text) <= 64);
        }
        assert_true(json_object_size(attributes) + json_object_size(json_object_get(device, "capacity")) <=
                    32);
}

static size_t check_machine(const char *path)
{
        CLEANUP(inventory_free) struct inventory inventory;
        CLEANUP(free_p) struct slices_fact *facts = NULL;
        struct tree *tree = NULL;
        struct err err = { 0 };
        json_t *slices, *names = json_object();
        size_t devices;

        inventory_init(&inventory);
        if (tree_machine_open(path, &tree, &err) < 0 || discovery_run(tree, NULL, &inventory, &err) < 0)
                fail_msg("%s", err.msg);
        facts = calloc(inventory.device_count + 1, sizeof(*facts));
        assert_non_null(facts);
        slices_facts_read(tree, &inventory, facts);
        tree_close(tree);
        slices = build(&inventory, true, facts);
        for (size_t i = 0; i < json_array_size(slices); i++) {
                assert_true(json_array_size(devices_of(slices, i)) <= SLICES_TAINTED_DEVICES_MAX);
                for (size_t j = 0; j < json_array_size(devices_of(slices, i)); j++)
                        check_device(path, json_array_get(devices_of(slices, i), j), names,
                                     json_array_get(devices_of(slices, 0), 0));
        }
        devices = json_object_size(names);
        json_decref(slices);
        json_decref(names);
        return devices;
}

static void every_machine_is_taken(void **state)
{
        DIR *folder = opendir(FOLDER);
        const struct dirent *entry;
        size_t machines = 0, devices = 0;
        char path[512];

        (void) state;
        assert_non_null(folder);
        while ((entry = readdir(folder)) != NULL) {
                if (!text_ends_with(entry->d_name, ".machine"))
                        continue;
                (void) text_format(path, sizeof(path), FOLDER "/%s", entry->d_name);
                devices += check_machine(path);
                machines++;
        }
        (void) closedir(folder);
        assert_true(machines >= 40 && devices > 4 * machines);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_labels_of_their_ids),
                cmocka_unit_test(versions_are_strict),
                cmocka_unit_test(broken_groups_come_first),
                cmocka_unit_test(sick_devices_are_tainted_or_left_out),
                cmocka_unit_test(many_devices_are_several_slices),
                cmocka_unit_test(slices_have_names_of_objects),
                cmocka_unit_test(a_device_says_its_id),
                cmocka_unit_test(every_machine_is_taken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
