/* Inventory: every field that is published makes two of them differ, whatever it is; a copy is its own; there
 * is an end to each list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "agent/inventory/inventory.h"
#include "base/cleanup.h"
#include "base/text.h"

struct field {
        const char *name;
        size_t offset;
};

/* clang-format off */
#define OF(type, member) { #type "." #member, offsetof(struct type, member) }
static const struct field of_inventory[] = {
        OF(inventory, node), OF(inventory, boot_id), OF(inventory, node_class), OF(inventory, pool),
        OF(inventory, hardware.cpu_model), OF(inventory, hardware.cores), OF(inventory, hardware.max_mhz),
        OF(inventory, hardware.memory_bytes), OF(inventory, hardware.memory_type), OF(inventory, hardware.network_count),
        OF(inventory, hardware.networks[0].name), OF(inventory, hardware.networks[0].kind), OF(inventory, hardware.networks[0].mbps),
        OF(inventory, programs[0].runtime), OF(inventory, programs[0].sha256), OF(inventory, programs[0].speed_name),
        OF(inventory, program_count), OF(inventory, group_count), OF(inventory, device_count), OF(inventory, loss_count),
};
static const struct field of_group[] = {
        OF(device_group, name), OF(device_group, vendor), OF(device_group, runtime), OF(device_group, model),
        OF(device_group, resource), OF(device_group, fabric), OF(device_group, fabric_source), OF(device_group, total),
        OF(device_group, healthy), OF(device_group, free), OF(device_group, shares), OF(device_group, tflops_bf16),
        OF(device_group, tflops_fp16), OF(device_group, tflops_fp32), OF(device_group, tflops_estimated),
        OF(device_group, memory_bytes), OF(device_group, measured_kernel), OF(device_group, measured_precision),
        OF(device_group, measured_gflops), OF(device_group, measured_usec),
};
static const struct field of_device[] = {
        OF(device, id), OF(device, group), OF(device, vendor), OF(device, model), OF(device, index), OF(device, ordinal), OF(device, pci),
        OF(device, partition), OF(device, numa), OF(device, nodes[0]), OF(device, node_count), OF(device, memory_bytes),
        OF(device, health), OF(device, usable), OF(device, reason), OF(device, message), OF(device, rule), OF(device, since_usec),
};
static const struct field of_loss[] = { OF(inventory_loss, device_id), OF(inventory_loss, pod) };
static const struct field of_wiring[] = {
        OF(device, pci_switch), OF(device, pci_port), OF(device, link_count), OF(device, links[0].peer), OF(device, links[0].width),
};
/* clang-format on */

static void fill(struct inventory *ret)
{
        struct device *device;

        inventory_init(ret);
        ret->hardware.network_count = 2;
        ret->program_count = 2;
        assert_non_null(inventory_add_group(ret));
        device = inventory_add_device(ret);
        assert_non_null(device);
        device->node_count = device->link_count = 2;
        assert_non_null(inventory_add_device(ret));
        assert_int_equal(inventory_add_loss(ret, "gpu-0", "team/pod"), 0);
}

/* One bit of each field in turn; @same: who has to see it. */
static void each_is_seen(const struct inventory *a, void *in_b, const struct inventory *b,
                         const struct field *fields, size_t count,
                         bool (*same)(const struct inventory *, const struct inventory *))
{
        for (size_t i = 0; i < count; i++) {
                char *byte = (char *) in_b + fields[i].offset;

                *byte ^= 1;
                if (same(a, b) || same(b, a))
                        fail_msg("%s may change unseen", fields[i].name);
                *byte ^= 1;
                assert_true(same(a, b));
        }
}

static void every_field_that_is_published_is_compared(void **state)
{
        struct inventory a, b;

        (void) state;
        fill(&a);
        fill(&b);
        b.generation = 7; /* says how often it was reported */
        assert_true(inventory_same(&a, &b));
        each_is_seen(&a, &b, &b, of_inventory, ARRAY_SIZE(of_inventory), inventory_same);
        each_is_seen(&a, b.groups, &b, of_group, ARRAY_SIZE(of_group), inventory_same);
        each_is_seen(&a, b.devices, &b, of_device, ARRAY_SIZE(of_device), inventory_same);
        each_is_seen(&a, b.losses, &b, of_loss, ARRAY_SIZE(of_loss), inventory_same);
        inventory_free(&a);
        inventory_free(&b);
}

static void wires_are_compared_by_themselves(void **state)
{
        struct inventory a, b;

        (void) state;
        fill(&a);
        fill(&b);
        each_is_seen(&a, b.devices, &b, of_wiring, ARRAY_SIZE(of_wiring), inventory_wired_same);
        for (size_t i = 0; i < ARRAY_SIZE(of_wiring); i++) { /* they are not published */
                ((char *) b.devices)[of_wiring[i].offset] ^= 1;
                assert_true(inventory_same(&a, &b));
        }
        inventory_free(&b);
        inventory_init(&b);
        assert_false(inventory_wired_same(&a, &b));
        inventory_free(&a);
        inventory_free(NULL);
}

static void a_copy_is_its_own(void **state)
{
        struct inventory a, empty, b;

        (void) state;
        fill(&a);
        assert_int_equal(inventory_copy(&a, &b), 0);
        assert_true(inventory_same(&a, &b) && inventory_wired_same(&a, &b));
        b.devices[0].id[0] = b.groups[0].name[0] = b.losses[0].pod[0] = 'x';
        assert_string_equal(a.devices[0].id, "");
        assert_string_equal(a.groups[0].name, "");
        assert_string_equal(a.losses[0].pod, "team/pod");
        inventory_free(&a);
        inventory_free(&b);
        inventory_init(&empty);
        assert_int_equal(inventory_copy(&empty, &b), 0);
        assert_true(inventory_same(&empty, &b));
        inventory_free(&b);
}

static void lists_have_an_end(void **state)
{
        struct inventory inventory;

        (void) state;
        inventory_init(&inventory);
        for (size_t i = 0; i < DEVICES_MAX; i++)
                assert_non_null(inventory_add_device(&inventory));
        assert_null(inventory_add_device(&inventory));
        for (size_t i = 0; i < GROUPS_MAX; i++)
                assert_non_null(inventory_add_group(&inventory));
        assert_null(inventory_add_group(&inventory));
        for (size_t i = 0; i < LOSSES_MAX; i++)
                assert_int_equal(inventory_add_loss(&inventory, "d", "p"), 0);
        assert_int_equal(inventory_add_loss(&inventory, "d", "p"), -E2BIG);
        inventory_free(&inventory);
}

static void devices_count_in_their_groups_where_there_are_such(void **state)
{
        struct inventory inventory;

        (void) state;
        inventory_init(&inventory);
        (void) text_copy(inventory_add_group(&inventory)->name, DEVICE_GROUP_BYTES, "g");
        for (size_t i = 0; i < 4; i++) {
                struct device *device = inventory_add_device(&inventory);

                (void) text_copy(device->group, sizeof(device->group), i == 2 ? "" : i == 3 ? "gone" : "g");
                device->usable = i != 0;
        }
        inventory_count(&inventory);
        assert_int_equal(inventory.groups[0].total, 2);
        assert_int_equal(inventory.groups[0].healthy, 1);
        assert_int_equal(inventory.groups[0].free, 1);
        assert_null(inventory_find_group(&inventory, "gone"));
        assert_null(inventory_find_device(&inventory, "none"));
        inventory_free(&inventory);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_field_that_is_published_is_compared),
                cmocka_unit_test(wires_are_compared_by_themselves),
                cmocka_unit_test(a_copy_is_its_own),
                cmocka_unit_test(lists_have_an_end),
                cmocka_unit_test(devices_count_in_their_groups_where_there_are_such),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
