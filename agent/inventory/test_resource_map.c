/* Resource map: rules, names, and names that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/plugin_config.h"

/* clang-format off */
static const struct {
        const char *name;
        bool valid;
} names[] = {
        { "nvidia.com/gpu",                        true },
        { "huawei.com/Ascend910",                  true },
        { "remuda.dev/sunway-cg",                  true },
        { "a/b",                                   true },
        { "a-b.example.com/x_y.z-1",               true },
        { "gpu",                                   false },
        { "/gpu",                                  false },
        { "nvidia.com/",                           false },
        { "Nvidia.com/gpu",                        false },
        { "nvidia..com/gpu",                       false },
        { ".nvidia.com/gpu",                       false },
        { "-nvidia.com/gpu",                       false },
        { "nvidia-.com/gpu",                       false },
        { "nvidia.com/gpu/mig",                    false },
        { "nvidia.com/-gpu",                       false },
        { "nvidia.com/gpu-",                       false },
        { "nvidia.com/g pu",                       false },
        { "kubernetes.io/gpu",                     false },
        { "node.kubernetes.io/gpu",                false },
        { "requests.example.com/gpu",              false },
        { "mykubernetes.io/gpu",                   true },
        { "e.com/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",  true },
        { "e.com/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
};
/* clang-format on */

static void knows_an_extended_resource(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct err err = { 0 };
                int r = resource_map_check_name(names[i].name, &err);

                if ((r == 0) != names[i].valid || (r < 0 && err.msg[0] == '\0'))
                        fail_msg("%s: got %d (%s)", names[i].name, r, err.msg);
        }
}

static void add_group(struct inventory *inventory, const char *name, const char *vendor, const char *model,
                      const char *resource)
{
        struct device_group *group = inventory_add_group(inventory);

        assert_non_null(group);
        (void) text_copy(group->name, sizeof(group->name), name);
        (void) text_copy(group->vendor, sizeof(group->vendor), vendor);
        (void) text_copy(group->model, sizeof(group->model), model);
        (void) text_copy(group->resource, sizeof(group->resource), resource);
}

static void mixed_node(struct inventory *inventory)
{
        inventory_init(inventory);
        add_group(inventory, "nvidia-h100-0", "nvidia", "H100-SXM5-80GB", "nvidia.com/gpu");
        add_group(inventory, "nvidia-l40s-0", "nvidia", "L40S", "nvidia.com/gpu");
        add_group(inventory, "cpu-0", "cpu", "Intel(R) Xeon(R) Gold 6330", "remuda.dev/cpu-group");
}

/* clang-format off */
static const struct {
        const char *what, *json, *resources[3];
        unsigned shares[3];
} maps[] = {
        { "a resource for each vendor by default", "{}",
          { "nvidia.com/gpu", "nvidia.com/gpu", "remuda.dev/cpu-group" }, { 0, 0, 0 } },
        { "for each model", "{\"resources\":{\"by\":\"model\"}}",
          { "nvidia.com/h100-sxm5-80gb", "nvidia.com/l40s", "remuda.dev/intel-r-xeon-r-gold-6330" }, { 0, 0, 0 } },
        { "for each group", "{\"resources\":{\"by\":\"group\"}}",
          { "nvidia.com/nvidia-h100-0", "nvidia.com/nvidia-l40s-0", "remuda.dev/cpu-0" }, { 0, 0, 0 } },
        { "the first rule that matches", "{\"resources\":{\"rules\":[{\"model\":\"H100*\",\"resource\":\"e.com/h100\"},"
          "{\"vendor\":\"nvidia\",\"resource\":\"e.com/other\",\"replicas\":4}]}}",
          { "e.com/h100", "e.com/other", "remuda.dev/cpu-group" }, { 0, 4, 0 } },
        { "the list alone", "{\"resources\":[{\"group\":\"cpu-?\",\"replicas\":2}]}",
          { "nvidia.com/gpu", "nvidia.com/gpu", "remuda.dev/cpu-group" }, { 0, 0, 2 } },
        { "a pattern inside", "{\"resources\":[{\"model\":\"*Gold*30\",\"resource\":\"e.com/xeon\"}]}",
          { "nvidia.com/gpu", "nvidia.com/gpu", "e.com/xeon" }, { 0, 0, 0 } },
};

static const struct {
        const char *what, *json, *says;
} mistakes[] = {
        { "unknown way to divide",    "{\"resources\":{\"by\":\"colour\"}}",                        "resources.by" },
        { "unknown key",              "{\"resources\":{\"rule\":[]}}",                              "resources.rule: is not known" },
        { "unknown key in a rule",    "{\"resources\":[{\"modle\":\"x\",\"replicas\":1}]}",         "resources[0].modle" },
        { "a rule without effect",    "{\"resources\":[{\"model\":\"x\"}]}",                        "resources[0]" },
        { "no replicas",              "{\"resources\":[{\"replicas\":0}]}",                         "resources[0].replicas: must be a whole number in 1..256, not" },
        { "too many replicas",        "{\"resources\":[{\"replicas\":257}]}",                       "resources[0].replicas: must be a whole number in 1..256, not" },
        { "half a replica",           "{\"resources\":[{\"replicas\":1.5}]}",                       "resources[0].replicas: must be a whole number in 1..256, not" },
        { "a name without a domain",  "{\"resources\":[{\"resource\":\"gpu\"}]}",                   "resources[0]" },
        { "rules that are no list",   "{\"resources\":{\"rules\":{}}}",                             "resources.rules: must be a list" },
        { "resources of a word",      "{\"resources\":\"gpu\"}",                                    "resources: must be an object" },
        { "a number for a pattern",   "{\"resources\":[{\"vendor\":7,\"replicas\":2}]}",            "resources[0].vendor: must be a string" },
        { "another way to register",  "{\"plugin\":{\"registration\":\"mail\"}}",                   "plugin.registration: must be one of kubelet, watcher" },
        { "a relative directory",     "{\"plugin\":{\"deviceRoot\":\"dev\"}}",                      "plugin.deviceRoot: must be an absolute path" },
        { "names without specs",      "{\"plugin\":{\"cdi\":{\"names\":true}}}",                    "plugin.cdi: names without" },
        { "names that are no choice", "{\"plugin\":{\"cdi\":{\"names\":\"yes\"}}}",                 "plugin.cdi.names: must be true or false" },
};
/* clang-format on */

static void maps_groups_to_resources(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
                json_t *root = json_loads(maps[i].json, 0, NULL);
                struct plugin_config config;
                struct inventory inventory;
                struct err err = { 0 };

                assert_non_null(root);
                mixed_node(&inventory);
                if (plugin_config_parse(root, &config, &err) < 0 ||
                    resource_map_apply(&config.resources, &inventory, &err) < 0)
                        fail_msg("%s: %s", maps[i].what, err.msg);
                for (size_t g = 0; g < 3; g++)
                        if (strcmp(inventory.groups[g].resource, maps[i].resources[g]) != 0 ||
                            inventory.groups[g].shares != maps[i].shares[g])
                                fail_msg("%s: group %zu: want %s x %u, got %s x %u", maps[i].what, g,
                                         maps[i].resources[g], maps[i].shares[g],
                                         inventory.groups[g].resource, inventory.groups[g].shares);
                inventory_free(&inventory);
                json_decref(root);
        }
}

static void mistakes_are_named(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
                json_t *root = json_loads(mistakes[i].json, 0, NULL);
                struct plugin_config config;
                struct err err = { 0 };
                int r;

                assert_non_null(root);
                r = plugin_config_parse(root, &config, &err);
                if (r != -EBADMSG || strstr(err.msg, mistakes[i].says) == NULL)
                        fail_msg("%s: got %d (%s)", mistakes[i].what, r, err.msg);
                json_decref(root);
        }
}

/* clang-format off */
static const struct {
        const char *of, *model; /* of: the resource whose domain it keeps */
        const char *resource;
} made[] = {
        { "nvidia.com/gpu", "H100",          "nvidia.com/h100" },
        { "gpu",            "H100",          "remuda.dev/h100" },
        { "nvidia.com/gpu", "",              "nvidia.com/unknown" },
        { "nvidia.com/gpu", "(-_.)",         "nvidia.com/unknown" },
        { "nvidia.com/gpu", " _A__b (c)  d-", "nvidia.com/a__b-c-d" },
        { "nvidia.com/gpu", "a b_ ",         "nvidia.com/a-b" },
        { "nvidia.com/gpu", "0123456789012345678901234567890123456789012345678901234567890123456789",
          "nvidia.com/012345678901234567890123456789012345678901234567890123456789012" },
};
static const struct {
        const char *pattern, *model;
        bool matches;
} patterns[] = {
        { "",      "any",   true  },
        { "*",     "",      true  },
        { "H**",   "H",     true  },
        { "H*",    "H100",  true  },
        { "H?",    "H",     false },
        { "H",     "H100",  false },
        { "*100*", "H100",  true  },
        { "*10?x", "H1010", false },
        { "?100",  "H100",  true  },
};
/* clang-format on */

static void a_name_is_made_fit(void **state)
{
        const struct resource_map map = { .by = RESOURCE_BY_MODEL };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
                struct inventory inventory;

                inventory_init(&inventory);
                add_group(&inventory, "g", "v", made[i].model, made[i].of);
                assert_int_equal(resource_map_apply(&map, &inventory, NULL), 0);
                assert_string_equal(inventory.groups[0].resource, made[i].resource);
                assert_int_equal(resource_map_check_name(inventory.groups[0].resource, NULL), 0);
                inventory_free(&inventory);
        }
}

static void a_pattern_has_stars_and_question_marks(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
                struct resource_map map = { .rules = { { .resource = "e.com/it" } }, .rule_count = 1 };
                struct inventory inventory;

                (void) text_copy(map.rules[0].model, sizeof(map.rules[0].model), patterns[i].pattern);
                inventory_init(&inventory);
                add_group(&inventory, "g", "v", patterns[i].model, "e.com/other");
                assert_int_equal(resource_map_apply(&map, &inventory, NULL), 0);
                if ((strcmp(inventory.groups[0].resource, "e.com/it") == 0) != patterns[i].matches)
                        fail_msg("'%s' and '%s'", patterns[i].pattern, patterns[i].model);
                inventory_free(&inventory);
        }
}

static void one_name_is_one_kind_of_thing(void **state)
{
        struct resource_map map = { .rules = { { .resource = "e.com/chip" } }, .rule_count = 1 };
        struct inventory inventory;
        struct err err = { 0 };

        (void) state;
        mixed_node(&inventory);
        assert_int_equal(resource_map_apply(&map, &inventory, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "nvidia"));
        assert_non_null(strstr(err.msg, "cpu-0"));
        assert_string_equal(inventory.groups[0].resource, "nvidia.com/gpu");

        (void) text_copy(map.rules[0].model, sizeof(map.rules[0].model), "L40S");
        map.rules[0].resource[0] = '\0';
        map.rules[0].replicas = 2;
        assert_int_equal(resource_map_apply(&map, &inventory, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "shared 1 times in group nvidia-h100-0 and 2 times"));
        (void) text_copy(map.rules[0].model, sizeof(map.rules[0].model), "H100*"); /* the first is shared */
        assert_int_equal(resource_map_apply(&map, &inventory, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "shared 2 times in group nvidia-h100-0 and 1 times"));
        inventory_free(&inventory);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(knows_an_extended_resource),
                cmocka_unit_test(maps_groups_to_resources),
                cmocka_unit_test(mistakes_are_named),
                cmocka_unit_test(a_name_is_made_fit),
                cmocka_unit_test(a_pattern_has_stars_and_question_marks),
                cmocka_unit_test(one_name_is_one_kind_of_thing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
