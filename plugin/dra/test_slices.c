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
#include "agent/inventory/dra_name.h"
#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"
#include "base/text.h"
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
        const struct slices_options options = { .node = "node-1",
                                                .generation = 7,
                                                .features = taints ? SLICES_FEATURES : 0,
                                                .bundles = taints,
                                                .facts = facts };
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

static const char *root_at(const json_t *slices, size_t at)
{
        const json_t *attributes = json_object_get(json_array_get(devices_of(slices, 0), at), "attributes");

        return json_string_value(
                json_object_get(json_object_get(attributes, "resource.kubernetes.io/pcieRoot"), "string"));
}

static void unknown_roots_match_nobodys(void **state)
{
        struct slices_fact facts[4] = { { .pcie_root = "pci0000:15" }, { .pcie_root = "pci0000:15" } };
        CLEANUP(inventory_free) struct inventory inventory;
        json_t *slices;

        (void) state;
        inventory_init(&inventory);
        (void) add_group(&inventory, "g");
        for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
                (void) add_device(&inventory, (const char *[]){ "a", "b", "c", "d" }[i], "g");
        slices = build(&inventory, false, facts);
        assert_string_equal(root_at(slices, 0), "pci0000:15");
        assert_string_equal(root_at(slices, 1), "pci0000:15");
        assert_true(text_starts_with(root_at(slices, 2), "unknown-"));
        assert_string_not_equal(root_at(slices, 2), root_at(slices, 3));
        json_decref(slices);
}

static const char *said_at(const json_t *slices, size_t at, const char *attribute, const char *type)
{
        const json_t *attributes = json_object_get(json_array_get(devices_of(slices, 0), at), "attributes");
        const char *text = json_string_value(json_object_get(json_object_get(attributes, attribute), type));

        return text == NULL ? "none" : text;
}

/* A partition, a whole chip, and another vendor's: the same attributes, each with what is known. */
static void selectors_of_another_driver_find_devices(void **state)
{
        static const struct plugin_config config = { .selectors = { "nvidia", "amd" }, .selector_count = 2 };
        static const struct slices_fact facts[] = { { .product = "P 1", .driver_version = "5.1.0" },
                                                    { .product = "P 1", .driver_version = "5.1.0" },
                                                    { .product = "Q_2" } };
        struct slices_options options = { .node = "n", .generation = 1, .facts = facts, .config = &config };
        CLEANUP(inventory_free) struct inventory inventory;
        struct device_group *a, *b;
        json_t *slices = NULL;

        (void) state;
        inventory_init(&inventory);
        a = add_group(&inventory, "a");
        (void) text_copy(a->vendor, sizeof(a->vendor), "nvidia");
        (void) text_copy(a->model, sizeof(a->model), "A10G");
        b = add_group(&inventory, "b");
        (void) text_copy(b->vendor, sizeof(b->vendor), "amd");
        (void) add_device(&inventory, "d0", "a");
        (void) text_copy(add_device(&inventory, "d1", "a")->partition, sizeof(inventory.devices[0].partition),
                         "1g.10gb");
        (void) add_device(&inventory, "d2", "b");
        assert_int_equal(slices_build(&inventory, &options, &slices, NULL), 0);
        assert_string_equal(said_at(slices, 0, "gpu.nvidia.com/type", "string"), "gpu");
        assert_string_equal(said_at(slices, 0, "gpu.nvidia.com/uuid", "string"), "d0");
        assert_string_equal(said_at(slices, 0, "gpu.nvidia.com/productName", "string"), "P 1");
        assert_string_equal(said_at(slices, 0, "gpu.nvidia.com/architecture", "string"), "Ampere");
        assert_string_equal(said_at(slices, 0, "gpu.nvidia.com/cudaComputeCapability", "version"), "8.6.0");
        assert_string_equal(said_at(slices, 0, "gpu.nvidia.com/driverVersion", "version"), "5.1.0");
        assert_string_equal(said_at(slices, 0, "gpu.amd.com/type", "string"), "");
        assert_string_equal(said_at(slices, 1, "gpu.nvidia.com/type", "string"), "mig");
        assert_string_equal(said_at(slices, 1, "gpu.nvidia.com/profile", "string"), "1g.10gb");
        assert_string_equal(said_at(slices, 2, "gpu.nvidia.com/type", "string"), "");
        assert_string_equal(said_at(slices, 2, "gpu.nvidia.com/cudaComputeCapability", "version"), "0.0.0");
        assert_string_equal(said_at(slices, 2, "gpu.amd.com/type", "string"), "amdgpu");
        assert_string_equal(said_at(slices, 2, "gpu.amd.com/productName", "string"), "Q_2");
        json_decref(slices);
        options.config = NULL;
        assert_int_equal(slices_build(&inventory, &options, &slices, NULL), 0);
        assert_string_equal(said_at(slices, 0, "gpu.nvidia.com/type", "string"), "none");
        json_decref(slices);
}

static void a_resource_is_named_whole_or_not(void **state)
{
        CLEANUP(inventory_free) struct inventory inventory;
        struct device_group *group;
        json_t *slices;

        (void) state;
        inventory_init(&inventory);
        group = add_group(&inventory, "a");
        (void) add_device(&inventory, "d0", "a");
        (void) text_format(group->resource, sizeof(group->resource), "%056d/npu-0.1", 0);
        slices = build(&inventory, true, NULL);
        assert_string_equal(said_at(slices, 0, "resource", "string"), group->resource); /* 64 bytes */
        json_decref(slices);
        (void) text_format(group->resource, sizeof(group->resource), "%056d/npu-0.10", 0);
        slices = build(&inventory, true, NULL);
        assert_string_equal(said_at(slices, 0, "resource", "string"), "");
        json_decref(slices);
}

static void versions_are_strict(void **state)
{
        static const char *const rows[][2] = {
                { "550.54.15", "550.54.15" },
                { "5.15", "5.15.0" },
                { "590.48.01-open", "590.48.1" },
                { "6.8.5.12", "6.8.5" },
                { "", "0.0.0" },
                { "v1.2", "1.2.0" },
                { "V01.2.3-rc1", "1.2.3" },
                { "v", "0.0.0" },
                { "vv1.2", "0.0.0" },
                { "version 1.2", "0.0.0" },
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

/* What the API server and its allocator ask of counters: who draws, draws on one that is there, and devices
 * that draw on it alone use it up exactly. */
static void check_counters(const char *machine, const json_t *slices)
{
        json_t *sets = json_object(), *counters, *value;
        const char *name;

        for (size_t i = 0; i < json_array_size(slices); i++) {
                const json_t *spec = json_object_get(json_array_get(slices, i), "spec");
                const json_t *list = json_object_get(spec, "sharedCounters");

                assert_true((list == NULL) != (json_object_get(spec, "devices") == NULL));
                assert_true(json_array_size(list) <= SLICES_COUNTER_SETS_MAX);
                for (size_t k = 0; k < json_array_size(list); k++) {
                        counters = json_object_get(json_array_get(list, k), "counters");
                        assert_in_range(json_object_size(counters), 1, BUNDLES_COUNTERS_MAX);
                        (void) json_object_set(
                                sets, json_string_value(json_object_get(json_array_get(list, k), "name")),
                                counters);
                }
        }
        for (size_t i = 0; i < json_array_size(slices); i++)
                for (size_t k = 0; k < json_array_size(devices_of(slices, i)); k++) {
                        const json_t *device = json_array_get(devices_of(slices, i), k);
                        const json_t *draws = json_object_get(device, "consumesCounters"), *first;

                        if (draws == NULL)
                                continue;
                        first = json_array_get(draws, 0);
                        counters = json_object_get(sets,
                                                   json_string_value(json_object_get(first, "counterSet")));
                        if (json_array_size(draws) != 1 || counters == NULL)
                                fail_msg("%s: counters of '%s'", machine,
                                         json_string_value(json_object_get(device, "name")));
                        json_object_foreach(json_object_get(first, "counters"), name, value)
                        {
                                assert_true(object_name_label_valid(name));
                                assert_non_null(json_object_get(counters, name));
                        }
                }
        json_decref(sets);
}

static const json_t *device_called(const json_t *slices, const char *name)
{
        for (size_t i = 0; i < json_array_size(slices); i++)
                for (size_t k = 0; k < json_array_size(devices_of(slices, i)); k++) {
                        const json_t *device = json_array_get(devices_of(slices, i), k);

                        if (strcmp(json_string_value(json_object_get(device, "name")), name) == 0)
                                return device;
                }
        return NULL;
}

static json_t *slices_of_machine(const char *path)
{
        CLEANUP(inventory_free) struct inventory inventory;
        struct tree *tree = NULL;
        json_t *slices;

        inventory_init(&inventory);
        assert_true(tree_machine_open(path, &tree, NULL) >= 0 &&
                    discovery_run(tree, NULL, &inventory, NULL) >= 0);
        tree_close(tree);
        slices = build(&inventory, true, NULL);
        return slices;
}

static json_int_t int_of(const json_t *device, const char *name)
{
        return json_integer_value(
                json_object_get(json_object_get(json_object_get(device, "attributes"), name), "int"));
}

static void a_whole_group_is_a_device_that_takes_its_chips(void **state)
{
        json_t *slices = slices_of_machine(FOLDER "/nvidia-h100-x8.machine");
        const json_t *group = device_called(slices, "group-nvidia-h100-0"),
                     *draws = json_array_get(json_object_get(group, "consumesCounters"), 0);

        (void) state;
        assert_non_null(group);
        assert_int_equal(int_of(group, "devices"), 8);
        assert_int_equal(json_object_size(json_object_get(draws, "counters")), 8);
        assert_ptr_equal(group, json_array_get(devices_of(slices, 0), json_array_size(devices_of(slices, 0)) -
                                                                              1)); /* the last one */
        json_decref(slices);
}

/* Four instances of one chip with three profiles: no program uses them together, and they are one chip. */
static void partitions_of_a_chip_draw_on_one_set(void **state)
{
        json_t *slices = slices_of_machine(FOLDER "/nvidia-a100-mig.machine");
        size_t parts = 0;

        (void) state;
        for (size_t i = 0; i < json_array_size(devices_of(slices, 0)); i++) {
                const json_t *device = json_array_get(devices_of(slices, 0), i),
                             *draws = json_array_get(json_object_get(device, "consumesCounters"), 0);

                if (draws == NULL)
                        continue;
                parts++;
                assert_int_equal(json_object_size(json_object_get(draws, "counters")), 1);
        }
        assert_int_equal(parts, 4);
        check_counters("mig", slices);
        json_decref(slices);
        slices = slices_of_machine(FOLDER "/amd-mi300x-cpx.machine");
        assert_int_equal(int_of(device_called(slices, "group-amd-mi300x-0"), "devices"), 8);
        json_decref(slices);
}

static void a_shared_chip_says_what_a_claim_may_have_of_it(void **state)
{
        CLEANUP(inventory_free) struct inventory inventory;
        const json_t *device, *memory;
        json_t *slices;

        (void) state;
        inventory_init(&inventory);
        add_group(&inventory, "a")->shares = 4;
        inventory.groups[0].memory_bytes = UINT64_C(80) << 30;
        (void) add_device(&inventory, "a0", "a");
        slices = build(&inventory, true, NULL);
        device = json_array_get(devices_of(slices, 0), 0);
        memory = json_object_get(json_object_get(device, "capacity"), "memory");
        assert_true(json_is_true(json_object_get(device, "allowMultipleAllocations")));
        assert_string_equal(json_string_value(json_object_get(memory, "value")), "85899345920");
        assert_string_equal(
                json_string_value(json_object_get(json_object_get(memory, "requestPolicy"), "default")),
                "21474836480");
        json_decref(slices);
        slices = build(&inventory, false, NULL); /* to one alone */
        device = json_array_get(devices_of(slices, 0), 0);
        assert_null(json_object_get(device, "allowMultipleAllocations"));
        assert_null(json_object_get(json_object_get(json_object_get(device, "capacity"), "memory"),
                                    "requestPolicy"));
        json_decref(slices);
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
        check_counters(path, slices);
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
                cmocka_unit_test(unknown_roots_match_nobodys),
                cmocka_unit_test(selectors_of_another_driver_find_devices),
                cmocka_unit_test(a_resource_is_named_whole_or_not),
                cmocka_unit_test(versions_are_strict),
                cmocka_unit_test(broken_groups_come_first),
                cmocka_unit_test(sick_devices_are_tainted_or_left_out),
                cmocka_unit_test(many_devices_are_several_slices),
                cmocka_unit_test(slices_have_names_of_objects),
                cmocka_unit_test(a_device_says_its_id),
                cmocka_unit_test(a_whole_group_is_a_device_that_takes_its_chips),
                cmocka_unit_test(partitions_of_a_chip_draw_on_one_set),
                cmocka_unit_test(a_shared_chip_says_what_a_claim_may_have_of_it),
                cmocka_unit_test(every_machine_is_taken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
