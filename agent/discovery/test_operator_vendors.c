/* Operator's words: a vendor and models that no row knows, with as much of them as is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "tests/support/machine_text.h"

/* clang-format off */
static const struct {
        const char *what;
        struct discovery_options_vendor vendor;
        struct discovery_options_model model; /* vendor "" = none is given */
        unsigned class_code;
        const char *runtime, *resource, *name, *node; /* runtime: NULL = no device, node: NULL = none */
        double tflops;
        unsigned gib;
} rows[] = {
        { "its name alone", { .name = "acme", .pci_vendor = 0x1234 }, { .name = "" }, 0x120000,
          "acme", "remuda.dev/acme", "1234:0001", NULL, 0, 0 },
        { "all of it", { .name = "acme", .runtime = "ac", .resource = "acme.com/chip", .pci_vendor = 0x1234, .node = "/dev/acme{n}" },
          { .name = "" }, 0x120000, "ac", "acme.com/chip", "1234:0001", "/dev/acme0", 0, 0 },
        { "a node without a number", { .name = "acme", .pci_vendor = 0x1234, .node = "/dev/acme" }, { .name = "" }, 0x120000,
          "acme", "remuda.dev/acme", "1234:0001", "/dev/acme", 0, 0 },
        { "a class of its own", { .name = "acme", .pci_vendor = 0x1234, .classes = { 0x0b40 }, .class_count = 1 }, { .name = "" }, 0x0b4000,
          "acme", "remuda.dev/acme", "1234:0001", NULL, 0, 0 },
        { "another class", { .name = "acme", .pci_vendor = 0x1234, .classes = { 0x0b40 }, .class_count = 1 }, { .name = "" }, 0x120000,
          NULL, NULL, NULL, NULL, 0, 0 },
        { "a model of a name", { .name = "acme", .pci_vendor = 0x1234 },
          { .vendor = "acme", .pci_vendor = 0x1234, .pci_device = 1, .name = "One" }, 0x120000,
          "acme", "remuda.dev/acme", "One", NULL, 0, 0 },
        { "a model with memory and speeds", { .name = "acme", .pci_vendor = 0x1234 },
          { .vendor = "acme", .pci_vendor = 0x1234, .pci_device = 1, .name = "One", .memory_bytes = (uint64_t) 16 << 30, .tflops_fp16 = 90 },
          0x120000, "acme", "remuda.dev/acme", "One", NULL, 90, 16 },
        { "a model of another device", { .name = "acme", .pci_vendor = 0x1234 },
          { .vendor = "acme", .pci_vendor = 0x1234, .pci_device = 2, .name = "Two" }, 0x120000,
          "acme", "remuda.dev/acme", "1234:0001", NULL, 0, 0 },
        { "a model of another's device", { .name = "acme", .pci_vendor = 0x1234 },
          { .vendor = "acme", .pci_vendor = 0x4321, .pci_device = 1, .name = "Two" }, 0x120000,
          "acme", "remuda.dev/acme", "1234:0001", NULL, 0, 0 },
};
/* clang-format on */

static void as_much_counts_as_is_given(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct machine_function function = { .address = "0000:11:00.0",
                                                           .vendor = 0x1234,
                                                           .device = 1,
                                                           .class_code = rows[i].class_code,
                                                           .driver = "acme" };
                struct discovery_options_vendor vendor = rows[i].vendor;
                struct discovery_options_model model = rows[i].model;
                const struct discovery_options options = { .models = &model,
                                                           .model_count = model.vendor[0] != '\0',
                                                           .vendors = &vendor,
                                                           .vendor_count = 1 };
                const struct device_group *group;
                const struct device *device;
                struct inventory node;
                struct text machine;

                machine_begin(&machine);
                machine_function(&machine, &function);
                machine_discover(&machine, &options, &node);
                text_free(&machine);
                if (machine_count(&node, "acme") != (rows[i].runtime != NULL))
                        fail_msg("%s: %u devices", rows[i].what, machine_count(&node, "acme"));
                if (rows[i].runtime == NULL) {
                        inventory_free(&node);
                        continue;
                }
                device = machine_first(&node, "acme");
                group = inventory_find_group(&node, device->group);
                assert_non_null(group);
                if (strcmp(group->runtime, rows[i].runtime) != 0 ||
                    strcmp(group->resource, rows[i].resource) != 0 ||
                    strcmp(device->model, rows[i].name) != 0)
                        fail_msg("%s: %s %s %s", rows[i].what, group->runtime, group->resource,
                                 device->model);
                assert_int_equal(device->node_count, rows[i].node != NULL);
                if (rows[i].node != NULL)
                        assert_string_equal(device->nodes[0], rows[i].node);
                assert_int_equal(device->memory_bytes >> 30, rows[i].gib);
                assert_true(rows[i].tflops > 0 ? group->tflops_fp16 > rows[i].tflops - 1
                                               : !(group->tflops_fp16 > 0));
                inventory_free(&node);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(as_much_counts_as_is_given),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
