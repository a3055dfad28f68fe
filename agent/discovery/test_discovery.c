/* Discovery: small machines, each with one thing to find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/discovery/discovery.h"
#include "agent/discovery/pci.h"
#include "agent/tree/tree_directory.h"
#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/private_folder.h"
#include "tests/support/machine_text.h"

/* clang-format off */
static const struct {
        const char *file;
        struct { const char *name, *vendor, *model, *fabric; unsigned total; } groups[4];
} machines[] = {
        { "nvidia-h100-x8", { { "nvidia-h100-0", "nvidia", "H100-SXM5-80GB", "nvlink", 8 },
                              { "cpu-0", "cpu", "Intel(R) Xeon(R) Platinum 8480C", "numa", 1 },
                              { "cpu-1", "cpu", "Intel(R) Xeon(R) Platinum 8480C", "numa", 1 } } },
        { "huawei-910a-x8", { { "huawei-ascend910a-0", "huawei", "Ascend910A", "hccs", 4 },
                              { "huawei-ascend910a-1", "huawei", "Ascend910A", "hccs", 4 } } },
        { "amd-mi210-x8",   { { "amd-mi210-0", "amd", "MI210", "xgmi", 4 },
                              { "amd-mi210-1", "amd", "MI210", "xgmi", 4 } } },
        { "nvidia-l40s-x4-huawei-310p-x4",
                            { { "nvidia-l40s-0", "nvidia", "L40S", "pcie-switch", 4 },
                              { "huawei-ascend310p-0", "huawei", "Ascend310P", "numa", 4 } } },
        { "cpu-only-x2",    { { "cpu-0", "cpu", "AMD EPYC 9654 96-Core Processor", "numa", 1 },
                              { "cpu-1", "cpu", "AMD EPYC 9654 96-Core Processor", "numa", 1 } } },
};
/* clang-format on */

static void recorded_machines_have_their_groups(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
                struct inventory inventory;
                struct tree *tree = NULL;
                struct err err = { 0 };
                char path[256];

                assert_true(
                        text_format(path, sizeof(path), "tests/data/machines/%s.machine", machines[i].file));
                if (tree_machine_open(path, &tree, &err) < 0 ||
                    discovery_run(tree, NULL, &inventory, &err) < 0)
                        fail_msg("%s: %s", machines[i].file, err.msg);
                for (size_t j = 0; j < 4 && machines[i].groups[j].name != NULL; j++) {
                        const struct device_group *group =
                                j < inventory.group_count ? &inventory.groups[j] : NULL;

                        if (group == NULL || strcmp(group->name, machines[i].groups[j].name) != 0)
                                fail_msg("%s: group %zu is not %s", machines[i].file, j,
                                         machines[i].groups[j].name);
                        assert_string_equal(group->vendor, machines[i].groups[j].vendor);
                        assert_string_equal(group->model, machines[i].groups[j].model);
                        assert_string_equal(group->fabric, machines[i].groups[j].fabric);
                        assert_int_equal(group->total, machines[i].groups[j].total);
                        assert_int_equal(group->healthy, machines[i].groups[j].total);
                }
                inventory_free(&inventory);
                tree_close(tree);
        }
}

static void an_empty_tree_has_nothing(void **state)
{
        struct inventory inventory;
        struct text machine;

        (void) state;
        machine_begin(&machine);
        machine_line(&machine, "/sys/");
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.device_count, 0);
        assert_int_equal(inventory.group_count, 0);
        inventory_free(&inventory);
        text_free(&machine);
}

/* clang-format off */
static const struct {
        const char *what;
        unsigned vendor, device, class_code;
        const char *driver;
} others[] = {
        { "NVIDIA audio",           0x10de, 0x22ba, 0x040300, "snd_hda_intel" },
        { "NVSwitch",               0x10de, 0x22a3, 0x068000, "nvidia-nvswitch" },
        { "AMD audio",              0x1002, 0xab38, 0x040300, "snd_hda_intel" },
        { "AMD integrated display", 0x1002, 0x164e, 0x030000, "amdgpu" },
        { "AMD bridge on a card",   0x1002, 0x14a0, 0x060400, "pcieport" },
        { "Huawei NIC",             0x19e5, 0x0200, 0x020000, "hinic" },
        { "Huawei iBMC display",    0x19e5, 0x1711, 0x030000, "hibmc-drm" },
        { "Huawei NVMe",            0x19e5, 0x3714, 0x010802, "nvme" },
        { "Hygon chipset USB",      0x1d94, 0x148c, 0x0c0330, "xhci_hcd" },
        { "Hygon encryption",       0x1d94, 0x1468, 0x108000, "ccp" },
        { "Intel integrated GPU",   0x8086, 0x4680, 0x030000, "i915" },
        { "Intel DSA",              0x8086, 0x0b25, 0x088000, "idxd" },
        { "Intel QAT",              0x8086, 0x4940, 0x0b4000, "4xxx" },
        { "AWS ENA",                0x1d0f, 0xec20, 0x020000, "ena" },
        { "AWS NVMe",               0x1d0f, 0x8061, 0x010802, "nvme" },
        { "Google gVNIC",           0x1ae0, 0x0042, 0x020000, "gve" },
        { "Google NVMe",            0x1ae0, 0x001f, 0x010802, "nvme" },
        { "Kunlun storage",         0x1d22, 0x1380, 0x010802, "nvme" },
        { "Moore Threads audio",    0x1ed5, 0x02ff, 0x040300, "snd_hda_intel" },
        { "Moore Threads audio of another class", 0x1ed5, 0x02ff, 0x030000, NULL },
        { "BMC display",            0x1a03, 0x2000, 0x030000, "ast" },
        { "Alibaba NVMe",           0x1ded, 0x5004, 0x010802, "nvme" },
        { "Qualcomm modem",         0x17cb, 0x0306, 0x028000, "mhi-pci-generic" },
        { "data mover",             0x1234, 0x5678, 0x120100, "sdxi" },
        { "Xilinx DMA design",      0x10ee, 0x903f, 0x058000, "xdma" },
        { "NVIDIA serial port",     0x10de, 0x2330, 0x070002, "serial" },
        { "NVIDIA gamepad",         0x10de, 0x2330, 0x098000, NULL },
        { "NVIDIA audio of old",    0x10de, 0x2330, 0x040100, NULL },
};
/* clang-format on */

static void what_is_no_accelerator_never_counts(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                const struct machine_function function = { .address = "0000:11:00.0",
                                                           .vendor = others[i].vendor,
                                                           .device = others[i].device,
                                                           .class_code = others[i].class_code,
                                                           .driver = others[i].driver };
                struct inventory inventory;
                struct text machine;

                machine_begin(&machine);
                machine_function(&machine, &function);
                machine_discover(&machine, NULL, &inventory);
                if (inventory.device_count != 0)
                        fail_msg("%s counts as %s %s", others[i].what, inventory.devices[0].vendor,
                                 inventory.devices[0].model);
                inventory_free(&inventory);
                text_free(&machine);
        }
}

static void a_virtual_function_is_part_of_its_physical_one(void **state)
{
        const struct machine_function physical = { .address = "0000:11:00.0",
                                                   .vendor = 0x1eff,
                                                   .device = 0x1220,
                                                   .class_code = 0x120000,
                                                   .driver = "rebellions" };
        const struct machine_function virtual = { .address = "0000:11:00.1",
                                                  .vendor = 0x1eff,
                                                  .device = 0x1221,
                                                  .class_code = 0x120000,
                                                  .driver = "rebellions",
                                                  .extra = "@/physfn -> ../0000:11:00.0" };
        struct inventory inventory;
        struct text machine;

        (void) state;
        machine_begin(&machine);
        machine_function(&machine, &physical);
        machine_function(&machine, &virtual);
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.device_count, 1);
        assert_string_equal(inventory.devices[0].pci, "0000:11:00.0");
        inventory_free(&inventory);
        text_free(&machine);

        /* in a virtual machine it comes alone, and counts */
        machine_begin(&machine);
        machine_function(&machine, &(struct machine_function){ .address = "0000:11:00.1",
                                                               .vendor = 0x1eff,
                                                               .device = 0x1221,
                                                               .class_code = 0x120000,
                                                               .driver = "rebellions" });
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.device_count, 1);
        inventory_free(&inventory);
        text_free(&machine);
}

static void two_devices_with_one_id_are_both_kept_out(void **state)
{
        struct inventory inventory;
        struct text machine;

        (void) state;
        machine_begin(&machine);
        for (unsigned i = 0; i < 3; i++) {
                char address[16];

                (void) text_format(address, sizeof(address), "0000:1%u:00.0", i);
                machine_function(&machine, &(struct machine_function){ .address = address,
                                                                       .vendor = 0x10de,
                                                                       .device = 0x2330,
                                                                       .class_code = 0x030200,
                                                                       .driver = "nvidia" });
                machine_line(&machine, "/proc/driver/nvidia/gpus/%s/information |", address);
                machine_line(&machine, "\tGPU UUID: \t GPU-%s", i < 2 ? "aaaa" : "bbbb");
                machine_line(&machine, "\tDevice Minor: \t %u", i);
        }
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.device_count, 3);
        for (size_t i = 0; i < 3; i++) {
                const struct device *device = &inventory.devices[i];

                assert_string_equal(device->reason, i < 2 ? "DuplicateId" : "");
                assert_int_equal(device->usable, i == 2);
                assert_int_equal(device->group[0] != '\0', i == 2);
        }
        assert_string_not_equal(inventory.devices[0].id, inventory.devices[1].id);
        assert_string_equal(inventory.devices[2].id, "GPU-bbbb");
        assert_int_equal(inventory.groups[0].total, 1);
        inventory_free(&inventory);
        text_free(&machine);
}

static void sunway_chips_show_their_core_groups(void **state)
{
        static const struct {
                const char *lines;
                unsigned devices, groups;
        } cases[] = {
                { "/proc/sys/kernel/arch = sw_64\n/proc/cpuinfo |\n\tmodel name : SW26010-Pro\n"
                  "/sys/devices/system/cpu/online = 0-5",
                  6, 1 },
                { "/proc/cpuinfo |\n\tprocessor : 0\n\tmodel name : SW26010\n\tprocessor : 1\n\tprocessor : "
                  "2\n"
                  "\tprocessor : 3\n\tprocessor : 4\n\tprocessor : 5\n\tprocessor : 6\n\tprocessor : 7",
                  8, 2 },
                { "/proc/sys/kernel/arch = sw_64\n/sys/devices/system/node/online = 0-1\n"
                  "/sys/devices/system/node/node0/cpulist = 0-15\n/sys/devices/system/node/node1/cpulist = "
                  "16-31\n"
                  "/sys/devices/system/cpu/online = 0-31",
                  2, 1 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct inventory inventory;
                struct text machine;

                machine_begin(&machine);
                machine_line(&machine, "%s", cases[i].lines);
                machine_discover(&machine, NULL, &inventory);
                assert_int_equal(machine_count(&inventory, "sunway"), cases[i].devices);
                assert_int_equal(inventory.group_count, cases[i].groups);
                assert_string_equal(inventory.groups[0].resource, "remuda.dev/sunway-cg");
                assert_string_equal(inventory.groups[0].fabric, "core-groups");
                inventory_free(&inventory);
                text_free(&machine);
        }
}

static void cpu_groups_are_numa_nodes_or_sockets(void **state)
{
        static const struct {
                const char *lines;
                unsigned groups;
        } cases[] = {
                { "/sys/devices/system/node/node0/cpulist = 0-3\n/sys/devices/system/node/node1/cpulist =\n"
                  "/sys/devices/system/node/node10/cpulist = 4-7",
                  2 }, /* node1 has memory alone */
                { "/sys/devices/system/cpu/online = 0-3\n"
                  "/sys/devices/system/cpu/cpu0/topology/physical_package_id = 0\n"
                  "/sys/devices/system/cpu/cpu1/topology/physical_package_id = 1\n"
                  "/sys/devices/system/cpu/cpu2/topology/physical_package_id = 0\n"
                  "/sys/devices/system/cpu/cpu3/topology/physical_package_id = 1",
                  2 },
                { "/proc/cpuinfo |\n\tprocessor : 0\n\tprocessor : 1", 1 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct inventory inventory;
                struct text machine;

                machine_begin(&machine);
                machine_line(&machine, "%s", cases[i].lines);
                machine_discover(&machine, NULL, &inventory);
                assert_int_equal(inventory.group_count, cases[i].groups);
                assert_string_equal(inventory.groups[0].vendor, "cpu");
                inventory_free(&inventory);
                text_free(&machine);
        }
}

static void an_unbound_device_stays_in_its_group(void **state)
{
        struct inventory inventory;
        struct text machine;

        (void) state;
        /* the driver is what would tell n300, and which ring */
        machine_begin(&machine);
        for (unsigned i = 0; i < 3; i++) {
                char address[16], extra[128];

                (void) text_format(address, sizeof(address), "0000:1%u:00.0", i);
                (void) text_format(extra, sizeof(extra), "@/tenstorrent/tenstorrent!%u/", i);
                machine_function(&machine,
                                 &(struct machine_function){ .address = address,
                                                             .vendor = 0x1e52,
                                                             .device = 0x401e,
                                                             .class_code = 0x120000,
                                                             .driver = i == 1 ? NULL : "tenstorrent",
                                                             .extra = i == 1 ? NULL : extra });
                if (i != 1)
                        machine_line(&machine, "/sys/class/tenstorrent/tenstorrent!%u/tt_card_type = n300",
                                     i);
        }
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.group_count, 1);
        assert_string_equal(inventory.groups[0].model, "n300");
        assert_int_equal(inventory.groups[0].total, 3);
        assert_int_equal(inventory.groups[0].healthy, 2);
        inventory_free(&inventory);
        text_free(&machine);

        machine_begin(&machine);
        for (unsigned i = 0; i < 8; i++) {
                char address[16], extra[32];

                (void) text_format(address, sizeof(address), "0000:1%u:00.0", i);
                (void) text_format(extra, sizeof(extra), "@/dev_id = %u", 7 - i);
                machine_function(&machine,
                                 &(struct machine_function){ .address = address,
                                                             .vendor = 0x19e5,
                                                             .device = 0xd801,
                                                             .class_code = 0x120000,
                                                             .driver = i == 0 ? NULL : "devdrv_device_driver",
                                                             .extra = i == 0 ? NULL : extra });
        }
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.group_count, 2);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(inventory.groups[i].total, 4);
                assert_int_equal(inventory.groups[i].healthy, i == 0 ? 4 : 3);
        }
        inventory_free(&inventory);
        text_free(&machine);
}

static void an_unbound_device_takes_no_other_ones_index(void **state)
{
        struct inventory inventory;
        struct text machine;
        unsigned seen = 0;

        (void) state;
        machine_begin(&machine);
        for (unsigned i = 0; i < 4; i++) {
                char address[16], extra[64];

                (void) text_format(address, sizeof(address), "0000:1%u:00.0", i);
                (void) text_format(extra, sizeof(extra), "@/enflame/gcu%u/",
                                   3 - i); /* against the addresses */
                machine_function(&machine, &(struct machine_function){ .address = address,
                                                                       .vendor = 0x1e36,
                                                                       .device = 0xc035,
                                                                       .class_code = 0x120000,
                                                                       .driver = i == 0 ? NULL : "enflame",
                                                                       .extra = i == 0 ? NULL : extra });
        }
        machine_discover(&machine, NULL, &inventory);
        assert_int_equal(inventory.device_count, 4);
        for (size_t i = 0; i < 4; i++)
                seen |= 1u << inventory.devices[i].index;
        assert_int_equal(seen, 15);
        assert_string_equal(inventory.devices[3].reason, "DriverMissing");
        assert_int_equal(inventory.devices[3].node_count, 0);
        inventory_free(&inventory);
        text_free(&machine);
}

static void put_file(const char *folder, const char *name, const char *text)
{
        char path[512];
        FILE *f;

        assert_true(text_format(path, sizeof(path), "%s/%s", folder, name));
        f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void make_function(const char *root, const char *place, unsigned number)
{
        char path[256];

        assert_true(text_format(path, sizeof(path), "%s/%s/0000:0%u:00.0", root, place, number));
        assert_int_equal(mkdir(path, 0755), 0);
        put_file(path, "class", "0x120000\n");
        put_file(path, "vendor", "0x19e5\n");
        put_file(path, "device", "0xd801\n");
}

/* Whatever the number of descriptors that are left, all functions are there or none is: one that could not be
 * read is not one that is gone. */
static void scan_with_few_descriptors(const char *root)
{
        struct rlimit before, few;
        struct tree *tree = NULL;
        size_t good = 0, refused = 0;
        int first = open("/dev/null", O_RDONLY | O_CLOEXEC);

        assert_int_equal(close(first), 0);
        assert_int_equal(tree_directory_open(root, &tree, NULL), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        for (rlim_t more = 0; more < 12; more++) {
                struct pci pci = { 0 };
                int r;

                few = (struct rlimit){ .rlim_cur = (rlim_t) first + more, .rlim_max = before.rlim_max };
                tree_budget(tree, 1000);
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
                r = pci_scan(tree, &pci);
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
                if (r == 0) {
                        assert_int_equal(pci.count, 3);
                        good++;
                } else {
                        assert_int_equal(r, -EMFILE);
                        assert_int_equal(pci.count, 0);
                        refused++;
                }
                pci_free(&pci);
        }
        assert_true(good > 0 && refused > 1);
        tree_close(tree);
}

static void no_chip_is_gone_for_want_of_descriptors(void **state)
{
        static const char *const places[][3] = {
                { "sys", "sys/bus", "sys/bus/pci" },
                { "sys", "sys/devices", NULL },
        };
        static const char *const deepest[] = { "sys/bus/pci/devices", "sys/devices/pci0000:00" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                char root[] = "/tmp/remuda-discovery-XXXXXX", path[128];

                assert_non_null(mkdtemp(root));
                for (size_t k = 0; k < ARRAY_SIZE(places[i]) && places[i][k] != NULL; k++) {
                        assert_true(text_format(path, sizeof(path), "%s/%s", root, places[i][k]));
                        assert_int_equal(mkdir(path, 0755), 0);
                }
                assert_true(text_format(path, sizeof(path), "%s/%s", root, deepest[i]));
                assert_int_equal(mkdir(path, 0755), 0);
                for (unsigned number = 1; number <= 3; number++)
                        make_function(root, deepest[i], number);
                scan_with_few_descriptors(root);
                private_folder_remove(root, "remuda-discovery-");
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_chip_is_gone_for_want_of_descriptors),
                cmocka_unit_test(recorded_machines_have_their_groups),
                cmocka_unit_test(an_empty_tree_has_nothing),
                cmocka_unit_test(what_is_no_accelerator_never_counts),
                cmocka_unit_test(a_virtual_function_is_part_of_its_physical_one),
                cmocka_unit_test(two_devices_with_one_id_are_both_kept_out),
                cmocka_unit_test(sunway_chips_show_their_core_groups),
                cmocka_unit_test(cpu_groups_are_numa_nodes_or_sockets),
                cmocka_unit_test(an_unbound_device_stays_in_its_group),
                cmocka_unit_test(an_unbound_device_takes_no_other_ones_index),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
