/* Readers: devices that only their vendor's reader tells rightly: parts, cards of two functions, files alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "tests/support/machine_text.h"

static void mig_instances_are_devices_of_one_function(void **state)
{
        struct inventory inventory;
        struct text machine;

        (void) state;
        machine_begin(&machine);
        machine_function(&machine, &(struct machine_function){ .address = "0000:11:00.0",
                                                               .vendor = 0x10de,
                                                               .device = 0x20b2,
                                                               .class_code = 0x030200,
                                                               .driver = "nvidia" });
        machine_line(&machine, "/proc/driver/nvidia/gpus/0000:11:00.0/information |");
        machine_line(&machine, "\tGPU UUID: \t GPU-aaaa");
        machine_line(&machine, "\tDevice Minor: \t 0");
        for (unsigned gi = 7; gi < 9; gi++) {
                machine_line(&machine, "/proc/driver/nvidia/capabilities/gpu0/mig/gi%u/access |", gi);
                machine_line(&machine, "\tDeviceFileMinor: %u", gi * 9);
                machine_line(&machine, "/proc/driver/nvidia/capabilities/gpu0/mig/gi%u/ci0/access |", gi);
                machine_line(&machine, "\tDeviceFileMinor: %u", gi * 9 + 1);
        }
        machine_function(&machine, &(struct machine_function){ .address = "0000:12:00.0",
                                                               .vendor = 0x10de,
                                                               .device = 0x20b2,
                                                               .class_code = 0x030200,
                                                               .driver = "nvidia" });
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.device_count, 3);
        assert_int_equal(inventory.devices[1].index, 0);
        assert_int_equal(inventory.devices[2].index, 1); /* of the GPU after the one that is divided */
        assert_string_equal(inventory.devices[0].id, "MIG-GPU-aaaa/7/0");
        assert_string_equal(inventory.devices[0].partition, "1g.10gb");
        assert_string_equal(inventory.devices[0].pci, "0000:11:00.0");
        assert_string_equal(inventory.devices[1].nodes[0], "/dev/nvidia0");
        assert_string_equal(inventory.devices[1].nodes[1], "/dev/nvidia-caps/nvidia-cap72");
        assert_string_equal(inventory.devices[1].nodes[2], "/dev/nvidia-caps/nvidia-cap73");
        assert_int_equal(inventory.group_count, 2);
        assert_string_equal(inventory.groups[0].resource, "nvidia.com/mig-1g.10gb");
        assert_int_equal(inventory.groups[0].memory_bytes >> 30, 10);
        inventory_free(&inventory);
        text_free(&machine);
}

static void compute_partitions_are_devices_of_one_function(void **state)
{
        struct inventory inventory;
        struct text machine;

        (void) state;
        machine_begin(&machine);
        machine_function(&machine,
                         &(struct machine_function){ .address = "0000:05:00.0",
                                                     .vendor = 0x1002,
                                                     .device = 0x74a1,
                                                     .class_code = 0x120000,
                                                     .driver = "amdgpu",
                                                     .extra = "@/current_compute_partition = CPX" });
        for (unsigned i = 0; i < 8; i++) {
                machine_line(&machine, "/sys/class/kfd/kfd/topology/nodes/%u/properties |", i + 2);
                machine_line(&machine, "\tsimd_count 152\n\tvendor_id 4098\n\tdevice_id 29857");
                machine_line(&machine, "\tlocation_id 1280\n\tdomain 0\n\tdrm_render_minor %u", 128 + i);
                machine_line(&machine, "\thive_id 5\n\tunique_id 1234");
        }
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.device_count, 8);
        assert_string_equal(inventory.devices[3].partition, "CPX-3");
        assert_string_equal(inventory.devices[3].id, "GPU-00000000000004d2-p3");
        assert_string_equal(inventory.devices[3].nodes[0], "/dev/dri/renderD131");
        assert_int_equal(inventory.devices[3].memory_bytes >> 30, 24);
        assert_int_equal(inventory.group_count, 1);
        assert_int_equal(inventory.groups[0].total, 8);
        inventory_free(&inventory);
        text_free(&machine);
}

static void a_tpu_on_vfio_is_its_own(void **state)
{
        static const struct {
                unsigned device;
                bool own;
        } cases[] = { { 0x005e, false }, { 0x0063, true }, { 0x006f, true }, { 0x0076, true } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct inventory inventory;
                struct text machine;

                machine_begin(&machine);
                machine_function(&machine,
                                 &(struct machine_function){
                                         .address = "0000:00:04.0",
                                         .vendor = 0x1ae0,
                                         .device = cases[i].device,
                                         .class_code = 0xff0000,
                                         .driver = "vfio-pci",
                                         .extra = "@/iommu_group -> ../../../kernel/iommu_groups/7" });
                machine_line(&machine, "/dev/vfio/7 char 241 0");
                machine_discover(&machine, NULL, &inventory);
                assert_string_equal(inventory.devices[0].reason, cases[i].own ? "" : "Assigned");
                if (cases[i].own)
                        assert_string_equal(inventory.devices[0].nodes[0], "/dev/vfio/7");
                inventory_free(&inventory);
                text_free(&machine);
        }
}

static void an_fpga_card_of_two_functions_is_one_device(void **state)
{
        struct inventory inventory;
        struct text machine;

        (void) state;
        machine_begin(&machine);
        machine_function(&machine, &(struct machine_function){ .address = "0000:65:00.0",
                                                               .vendor = 0x10ee,
                                                               .device = 0x5004,
                                                               .class_code = 0x120000,
                                                               .driver = "xclmgmt" });
        machine_function(&machine, &(struct machine_function){ .address = "0000:65:00.1",
                                                               .vendor = 0x10ee,
                                                               .device = 0x5005,
                                                               .class_code = 0x120000,
                                                               .driver = "xocl",
                                                               .extra = "@/drm/renderD129/" });
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.device_count, 1);
        assert_string_equal(inventory.devices[0].nodes[0], "/dev/xclmgmt25856");
        assert_string_equal(inventory.devices[0].nodes[1], "/dev/dri/renderD129");
        inventory_free(&inventory);
        text_free(&machine);
}

static void devices_without_pci_are_found_by_their_files(void **state)
{
        static const struct {
                const char *lines, *vendor, *id;
                unsigned count;
        } cases[] = {
                { "/dev/bpu_core0 char 10 0\n/dev/bpu_core1 char 10 1\n/dev/bpu char 10 2", "horizon",
                  "horizon-bpu_core0", 2 },
                { "/dev/bpu0 char 10 0", "horizon", "horizon-bpu0", 1 },
                { "/sys/devices/system/bpu/bpu0/ratio = 0", "horizon", "horizon-bpu0", 1 },
                { "/dev/alixpu_ppu0 char 10 0\n/dev/alixpu_ppu1 char 10 1\n/dev/alixpu_ctl char 10 2",
                  "thead", "thead-alixpu_ppu0", 2 },
                { "/dev/biren/card_0 char 10 0", "biren", "biren-card_0", 1 },
                { "/sys/devices/virtual/neuron_device/neuron0/core_count = 2", "aws", "aws-neuron0", 1 },
                { "/sys/class/accel/accel0/device/driver_override = x", "unknown", "unknown-accel0", 1 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct inventory inventory;
                struct text machine;

                machine_begin(&machine);
                machine_line(&machine, "%s", cases[i].lines);
                machine_discover(&machine, NULL, &inventory);
                if (machine_count(&inventory, cases[i].vendor) != cases[i].count)
                        fail_msg("case %zu: %u devices", i, machine_count(&inventory, cases[i].vendor));
                assert_string_equal(machine_first(&inventory, cases[i].vendor)->id, cases[i].id);
                inventory_free(&inventory);
                text_free(&machine);
        }
}

static void a_kfd_link_of_xgmi_joins_what_no_hive_names(void **state)
{
        struct inventory inventory;
        struct text machine;

        (void) state;
        machine_begin(&machine);
        for (unsigned i = 0; i < 4; i++) {
                machine_line(&machine, "/sys/class/kfd/kfd/topology/nodes/%u/properties |", i);
                machine_line(&machine,
                             "\tsimd_count 240\n\tvendor_id 4098\n\tdevice_id 26273\n\tlocation_id %u",
                             (i + 1) << 8);
                machine_line(&machine, "\tdomain 0\n\tdrm_render_minor %u\n\thive_id 0", 128 + i);
                machine_line(&machine, "/sys/class/kfd/kfd/topology/nodes/%u/io_links/0/properties |", i);
                machine_line(&machine, "\ttype 11\n\tnode_from %u\n\tnode_to %u", i, i ^ 1);
        }
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.group_count, 2);
        assert_string_equal(inventory.groups[0].fabric, "xgmi");
        assert_string_equal(inventory.groups[0].fabric_source, "kfd");
        assert_int_equal(inventory.groups[0].total, 2);
        inventory_free(&inventory);
        text_free(&machine);
}

static void a_radeon_counts_when_kfd_computes_on_it(void **state)
{
        struct inventory inventory;
        struct text machine;

        (void) state;
        for (unsigned gib = 0; gib < 32; gib += 16) {
                machine_begin(&machine);
                machine_function(&machine, &(struct machine_function){ .address = "0000:11:00.0",
                                                                       .vendor = 0x1002,
                                                                       .device = 0x73a3,
                                                                       .class_code = 0x030000,
                                                                       .driver = "amdgpu" });
                machine_line(&machine, "/sys/class/kfd/kfd/topology/nodes/1/properties |");
                machine_line(&machine, "\tsimd_count 120\n\tvendor_id 4098\n\tdevice_id 29603");
                machine_line(&machine, "\tlocation_id 4352\n\tdomain 0\n\tdrm_render_minor 128");
                machine_line(&machine, "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties |");
                machine_line(&machine, "\theap_type 1\n\tsize_in_bytes %llu", (unsigned long long) gib << 30);
                machine_discover(&machine, NULL, &inventory);
                assert_int_equal(machine_count(&inventory, "amd"), gib > 0 ? 1 : 0);
                inventory_free(&inventory);
                text_free(&machine);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(mig_instances_are_devices_of_one_function),
                cmocka_unit_test(compute_partitions_are_devices_of_one_function),
                cmocka_unit_test(a_tpu_on_vfio_is_its_own),
                cmocka_unit_test(an_fpga_card_of_two_functions_is_one_device),
                cmocka_unit_test(devices_without_pci_are_found_by_their_files),
                cmocka_unit_test(a_kfd_link_of_xgmi_joins_what_no_hive_names),
                cmocka_unit_test(a_radeon_counts_when_kfd_computes_on_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
