/* Every vendor's row by one table: a device that is there and well, and all the ways in which it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "tests/support/machine_text.h"

#define KFD_NODE(vendor, device)                                                                             \
        "\n/sys/class/kfd/kfd/topology/nodes/1/properties |\n\tsimd_count 416\n\tvendor_id " vendor          \
        "\n\tdevice_id " device                                                                              \
        "\n\tlocation_id 4352\n\tdomain 0\n\tdrm_render_minor 128\n\thive_id 0\n\tunique_id 77"
#define DRM "@/drm/renderD128/\n@/drm/card0/"

/* clang-format off */
static const struct sample {
        const char *vendor;
        unsigned pci_vendor, pci_device, class_code;
        const char *driver, *extra, *model, *resource;
        const char *node;   /* NULL = none that must be there */
        const char *id;     /* NULL = the PCI address */
} samples[] = {
        { "nvidia", 0x10de, 0x2330, 0x030200, "nvidia",
          "/proc/driver/nvidia/gpus/0000:11:00.0/information |\n\tModel: \t\t NVIDIA H100 80GB HBM3\n"
          "\tGPU UUID: \t GPU-11112222-3333-4444-5555-666677778888\n\tDevice Minor: \t 3",
          "H100-SXM5-80GB", "nvidia.com/gpu", "/dev/nvidia3", "GPU-11112222-3333-4444-5555-666677778888" },
        { "nvidia", 0x10de, 0x1eb8, 0x030200, "nvidia", NULL, "T4", "nvidia.com/gpu", "/dev/nvidia0", NULL },
        { "nvidia", 0x10de, 0x2504, 0x030000, "nvidia", NULL, "10de:2504", "nvidia.com/gpu", "/dev/nvidia0", NULL },
        { "amd", 0x1002, 0x740f, 0x038000, "amdgpu", DRM KFD_NODE("4098", "29711"), "MI210", "amd.com/gpu",
          "/dev/dri/renderD128", "GPU-000000000000004d" },
        { "amd", 0x1002, 0x74a1, 0x120000, "amdgpu", DRM, "MI300X", "amd.com/gpu", "/dev/dri/renderD128", NULL },
        { "huawei", 0x19e5, 0xd801, 0x120000, "devdrv_device_driver", "@/dev_id = 5", "Ascend910A",
          "huawei.com/Ascend910", "/dev/davinci5", NULL },
        { "huawei", 0x19e5, 0xd802, 0x120000, "devdrv_device_driver", "@/dev_id = 0", "Ascend910B",
          "huawei.com/Ascend910", "/dev/davinci0", NULL },
        { "huawei", 0x19e5, 0xd803, 0x120000, "devdrv_device_driver", "@/dev_id = 1", "Ascend910C",
          "huawei.com/Ascend910", "/dev/davinci1", NULL },
        { "huawei", 0x19e5, 0xd500, 0x120000, "devdrv_device_driver", NULL, "Ascend310P", "huawei.com/Ascend310P",
          "/dev/davinci0", NULL },
        { "huawei", 0x19e5, 0xd100, 0x120000, "devdrv_device_driver", NULL, "Ascend310", "huawei.com/Ascend310",
          "/dev/davinci0", NULL },
        { "cambricon", 0xcabc, 0x0370, 0x120000, "cambricon-drv", NULL, "MLU370-S4", "cambricon.com/mlu",
          "/dev/cambricon_dev0", NULL },
        { "hygon", 0x1d94, 0x6210, 0x0b4000, "hycu", DRM KFD_NODE("7572", "25104"), "K100_AI", "hygon.com/dcu",
          "/dev/dri/renderD128", "GPU-000000000000004d" },
        { "mthreads", 0x1ed5, 0x0323, 0x030000, "mtgpu", DRM, "S4000", "mthreads.com/gpu", "/dev/mtgpu.0", NULL },
        { "metax", 0x9999, 0x4001, 0x030200, "metax", DRM, "C500", "metax-tech.com/gpu", "/dev/dri/renderD128",
          NULL },
        { "iluvatar", 0x1e3e, 0x0001, 0x120000, "iluvatar", NULL, "BI-V100", "iluvatar.com/gpu", "/dev/iluvatar0",
          NULL },
        { "enflame", 0x1e36, 0xc035, 0x120000, "enflame", "@/enflame/gcu4/dev = 241:4", "S60", "enflame.com/gcu",
          "/dev/gcu4", NULL },
        { "kunlunxin", 0x1d22, 0x3688, 0x120000, "kunlun", NULL, "P800", "kunlunxin.com/xpu", "/dev/xpu0", NULL },
        { "biren", 0x1ee0, 0x0100, 0x120000, "biren", NULL, "1ee0:0100", "birentech.com/gpu", "/dev/biren/card_0",
          NULL },
        { "thead", 0x1ded, 0x8000, 0x120000, "alixpu", NULL, "1ded:8000", "remuda.dev/thead", "/dev/alixpu_ppu0",
          NULL },
        { "habana", 0x1da3, 0x1020, 0x120000, "habanalabs", "@/accel/accel2/dev = 261:2", "Gaudi2",
          "habana.ai/gaudi", "/dev/accel/accel2", NULL },
        { "habana", 0x1da3, 0x1000, 0x120000, "habanalabs", "@/habanalabs/hl1/dev = 240:2", "Gaudi",
          "habana.ai/gaudi", "/dev/hl1", NULL },
        { "intel", 0x8086, 0x0bd5, 0x038000, "xe", DRM, "Max-1550", "gpu.intel.com/xe", "/dev/dri/renderD128",
          NULL },
        { "intel", 0x8086, 0x56c0, 0x038000, "i915", DRM, "Flex-170", "gpu.intel.com/i915", "/dev/dri/renderD128",
          NULL },
        { "intel", 0x8086, 0x643e, 0x120000, "intel_vpu", "@/accel/accel0/", "NPU-LNL", "npu.intel.com/accel",
          "/dev/accel/accel0", NULL },
        { "intel", 0x8086, 0x225c, 0x0b4000, "mic", "@/mic/mic0/", "Phi-7120", "remuda.dev/intel", NULL, NULL },
        { "aws", 0x1d0f, 0x7364, 0x088000, "neuron", "/sys/class/neuron_device/neuron0/core_count = 8", "Trainium2",
          "aws.amazon.com/neuron", "/dev/neuron0", NULL },
        { "google", 0x1ae0, 0x005e, 0x088000, "accel", "@/accel/accel1/", "TPU-v4", "google.com/tpu",
          "/dev/accel1", NULL },
        { "tenstorrent", 0x1e52, 0x401e, 0x120000, "tenstorrent",
          "@/tenstorrent/tenstorrent!3/\n/sys/class/tenstorrent/tenstorrent!3/tt_card_type = n300\n"
          "/sys/class/tenstorrent/tenstorrent!3/tt_serial = 0100014511", "n300", "tenstorrent.com/n300",
          "/dev/tenstorrent/3", "tenstorrent-0100014511" },
        { "rebellions", 0x1eff, 0x1250, 0x120000, "rebellions", NULL, "ATOM-Max", "rebellions.ai/ATOM",
          "/dev/rbln0", NULL },
        { "furiosa", 0x1ed2, 0x0001, 0x120000, "rngd", NULL, "RNGD", "furiosa.ai/rngd", "/dev/rngd/npu0pe0", NULL },
        { "graphcore", 0x1d95, 0x0001, 0x120000, "ipu", NULL, "GC2", "remuda.dev/graphcore", "/dev/ipu0", NULL },
        { "qualcomm", 0x17cb, 0xa100, 0x120000, "qaic", "@/accel/accel0/", "AI100", "qualcomm.com/qaic",
          "/dev/accel/accel0", NULL },
        { "nec", 0x1bcf, 0x001c, 0x0b4000, "ve_drv",
          "@/ve/ve6/dev = 238:6\n/sys/class/ve/ve6/serial = 32424a32333030343900000000000000", "VE-10",
          "nec.com/ve", "/dev/ve6", "nec-2BJ230049" },
        { "xilinx", 0x10ee, 0x5004, 0x120000, "xclmgmt", "@/VBNV = xilinx_u250_gen3x16\n@/drm/renderD130/", "U250",
          "amd.com/xilinx_u250_gen3x16", "/dev/dri/renderD130", NULL },
        { "unknown", 0x1f82, 0x0011, 0x120000, "dmx", NULL, "d-Matrix (1f82:0011)", "remuda.dev/unknown", NULL,
          NULL },
        { "unknown", 0x4242, 0x4243, 0x120000, "x", NULL, "4242:4243", "remuda.dev/unknown", NULL, NULL },
};
/* clang-format on */

/* A machine with one of them, changed as the caller wishes. */
static void build(const struct sample *sample, struct machine_function change, const char *node,
                  struct inventory *ret)
{
        struct text machine;

        change.address = "0000:11:00.0";
        change.vendor = sample->pci_vendor;
        change.device = sample->pci_device;
        change.extra = sample->extra;
        machine_begin(&machine);
        machine_line(&machine, "/sys/devices/system/node/node0/cpulist = 0-3");
        machine_function(&machine, &change);
        machine_line(&machine, "/dev/null char 1 3");
        if (node != NULL)
                machine_line(&machine, "%s char 200 0", node);
        machine_discover(&machine, NULL, ret);
        text_free(&machine);
}

static struct machine_function well(const struct sample *sample)
{
        return (struct machine_function){
                .class_code = sample->class_code, .driver = sample->driver, .width = 16, .max_width = 16
        };
}

static void expect(const struct sample *sample, const struct inventory *inventory, enum device_health health,
                   const char *reason)
{
        const struct device *device = machine_first(inventory, sample->vendor);

        if (device->health != health || strcmp(device->reason, reason) != 0)
                fail_msg("%s %s: want %s '%s', got %s '%s' (%s)", sample->vendor, sample->model,
                         device_health_name(health), reason, device_health_name(device->health),
                         device->reason, device->message);
        assert_int_equal(device->usable, health == HEALTH_HEALTHY || health == HEALTH_DEGRADED);
}

static void a_device_that_is_there_is_found_and_well(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                const struct sample *sample = &samples[i];
                const struct device_group *group;
                const struct device *device;
                struct inventory inventory;

                build(sample, well(sample), sample->node, &inventory);
                expect(sample, &inventory, HEALTH_HEALTHY, "");
                device = machine_first(&inventory, sample->vendor);
                group = inventory_find_group(&inventory, device->group);
                if (machine_count(&inventory, NULL) != 1 || group == NULL)
                        fail_msg("%s %s: %u devices", sample->vendor, sample->model,
                                 machine_count(&inventory, NULL));
                assert_string_equal(device->model, sample->model);
                assert_string_equal(device->id, sample->id != NULL ? sample->id : "0000:11:00.0");
                assert_string_equal(device->pci, "0000:11:00.0");
                assert_int_equal(device->numa, 0);
                assert_string_equal(group->resource, sample->resource);
                assert_string_equal(group->model, sample->model);
                assert_int_equal(group->total, 1);
                assert_int_equal(group->healthy, 1);
                if (sample->node != NULL)
                        assert_string_equal(device->nodes[0], sample->node);
                inventory_free(&inventory);
        }
}

/* The driver is loaded, its device files are there, and another function of the same maker is: no device. */
static void what_is_absent_is_not_told(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                const struct machine_function nic = { .address = "0000:12:00.0",
                                                      .vendor = samples[i].pci_vendor,
                                                      .device = 0xfff0,
                                                      .class_code = 0x020000,
                                                      .driver = "some_nic" };
                struct inventory inventory;
                struct text machine;

                machine_begin(&machine);
                machine_line(&machine, "/sys/devices/system/node/node0/cpulist = 0-3");
                machine_line(&machine, "/sys/bus/pci/drivers/%s/", samples[i].driver);
                machine_line(&machine, "/sys/module/%s/refcnt = 0", samples[i].driver);
                machine_function(&machine, &nic);
                machine_line(&machine, "/dev/null char 1 3");
                machine_discover(&machine, NULL, &inventory);
                if (machine_count(&inventory, NULL) != 0)
                        fail_msg("%s %s: %u devices where there is none", samples[i].vendor, samples[i].model,
                                 machine_count(&inventory, NULL));
                inventory_free(&inventory);
                text_free(&machine);
        }
}

/* Rows whose devices are no PCI functions, in the ways that they can be there or not. */
static void devices_that_are_nodes_alone(void **state)
{
        /* clang-format off */
        static const struct { const char *what, *lines; unsigned devices; } cases[] = {
                { "present",      "/dev/bpu0 char 10 0\n/dev/bpu1 char 10 1",  2 },
                { "absent",       "/dev/null char 1 3",                        0 },
                { "renamed",      "/dev/bpu0_ char 10 0\n/dev/xbpu0 char 10 0", 0 },
                { "no number",    "/dev/bpux char 10 0",                       0 },
                { "a block device", "/dev/bpu0 block 10 0",                    0 },
                { "a folder",     "/dev/bpu0/x char 10 0",                     0 },
        };
        /* clang-format on */

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct inventory inventory;
                struct text machine;

                machine_begin(&machine);
                machine_line(&machine, "%s", cases[i].lines);
                machine_discover(&machine, NULL, &inventory);
                if (machine_count(&inventory, "horizon") != cases[i].devices)
                        fail_msg("horizon, %s: want %u devices, got %u", cases[i].what, cases[i].devices,
                                 machine_count(&inventory, "horizon"));
                inventory_free(&inventory);
                text_free(&machine);
        }
}

static void without_its_driver_a_device_is_unhealthy(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                struct machine_function change = well(&samples[i]);
                struct inventory inventory;

                change.driver = NULL;
                build(&samples[i], change, samples[i].node, &inventory);
                expect(&samples[i], &inventory, HEALTH_UNHEALTHY, "DriverMissing");
                inventory_free(&inventory);
        }
}

static void a_device_that_fell_off_the_bus_is_unhealthy(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                struct machine_function change = well(&samples[i]);
                struct inventory inventory;

                change.lost = true;
                build(&samples[i], change, samples[i].node, &inventory);
                expect(&samples[i], &inventory, HEALTH_UNHEALTHY, "FallenOffBus");
                inventory_free(&inventory);
        }
}

static void a_renamed_node_is_missing(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                struct inventory inventory;
                char renamed[128];

                if (samples[i].node == NULL)
                        continue;
                (void) text_format(renamed, sizeof(renamed), "%s_", samples[i].node);
                build(&samples[i], well(&samples[i]), renamed, &inventory);
                expect(&samples[i], &inventory, HEALTH_UNHEALTHY, "NodeMissing");
                inventory_free(&inventory);
        }
}

static void another_class_is_another_function(void **state)
{
        static const unsigned classes[] = { 0x020000, 0x040300, 0x060400, 0x068000, 0x010802, 0x0c0330 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
                for (size_t j = 0; j < ARRAY_SIZE(classes); j++) {
                        struct machine_function change = well(&samples[i]);
                        struct inventory inventory;

                        /* an accel or KFD device of its own would rightly be told */
                        if (strcmp(samples[i].vendor, "unknown") == 0 ||
                            (samples[i].extra != NULL && strstr(samples[i].extra, "neuron") != NULL))
                                continue;
                        change.class_code = classes[j];
                        build(&samples[i], change, NULL, &inventory);
                        if (machine_count(&inventory, NULL) != 0)
                                fail_msg("%s %s counts with class %06x", samples[i].vendor, samples[i].model,
                                         classes[j]);
                        inventory_free(&inventory);
                }
}

static void a_passed_through_device_is_assigned(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                struct machine_function change = well(&samples[i]);
                struct inventory inventory;

                change.driver = "vfio-pci";
                build(&samples[i], change, samples[i].node, &inventory);
                expect(&samples[i], &inventory, HEALTH_UNKNOWN, "Assigned");
                assert_string_equal(machine_first(&inventory, samples[i].vendor)->group, "");
                inventory_free(&inventory);
        }
}

static void a_narrow_link_is_degraded(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                struct machine_function change = well(&samples[i]);
                struct inventory inventory;

                if (strcmp(samples[i].vendor, "unknown") == 0)
                        continue;
                change.width = 8;
                build(&samples[i], change, samples[i].node, &inventory);
                expect(&samples[i], &inventory, HEALTH_DEGRADED, "LinkDegraded");
                inventory_free(&inventory);
        }
}

/* A list that is full has no end. */
#define ENDS(list) assert_null((list)[ARRAY_SIZE(list) - 1])
static void every_list_ends(const struct vendor *vendor)
{
        ENDS(vendor->serves);
        ENDS(vendor->more_resources);
        ENDS(vendor->foreign_drivers);
        ENDS(vendor->control_nodes);
        ENDS(vendor->passed_on);
        ENDS(vendor->loads);
        ENDS(vendor->subsystems);
        ENDS(vendor->watched);
        ENDS(vendor->char_devices);
        ENDS(vendor->monitors);
        assert_null(vendor->nodes[ARRAY_SIZE(vendor->nodes) - 1].path);
        assert_null(vendor->places[ARRAY_SIZE(vendor->places) - 1].directory);
        assert_null(vendor->classes_of_number[ARRAY_SIZE(vendor->classes_of_number) - 1].directory);
        assert_int_equal(vendor->classes[ARRAY_SIZE(vendor->classes) - 1], 0);
        assert_int_equal(vendor->never[ARRAY_SIZE(vendor->never) - 1], 0);
        assert_int_equal(vendor->pci_vendors[ARRAY_SIZE(vendor->pci_vendors) - 1], 0);
}

static void every_row_is_complete(void **state)
{
        (void) state;
        for (size_t i = 0; vendors[i] != NULL; i++) {
                const struct vendor *vendor = vendors[i];
                /* these have no PCI functions */
                bool sampled = vendor->pci_vendors[0] == 0;

                assert_non_null(vendor->runtime);
                assert_non_null(vendor->unsure);
                assert_non_null(strchr(vendor->resource, '/'));
                every_list_ends(vendor);
                for (size_t j = 0; j < ARRAY_SIZE(samples); j++)
                        sampled = sampled || strcmp(samples[j].vendor, vendor->name) == 0;
                if (!sampled)
                        fail_msg("no sample of vendor %s", vendor->name);
        }
}

/* What a vendor's container runtime or device plugin sets, a program may see: the launcher lets it pass. */
static void visible_devices_pass_the_launcher(void **state)
{
        static const char *const more[] = {
                "IX_VISIBLE_DEVICES",     "HYGON_VISIBLE_DEVICES",   "AWS_NEURON_VISIBLE_DEVICES",
                "HABANA_VISIBLE_MODULES", "TPU_VISIBLE_DEVICES",     "ONEAPI_DEVICE_SELECTOR",
                "BR_VISIBLE_DEVICES",     "TT_VISIBLE_DEVICES",      "RBLN_DEVICES",
                "FURIOSA_DEVICES",        "NEURON_RT_VISIBLE_CORES", "GPU_DEVICE_ORDINAL"
        };

        (void) state;
        for (size_t i = 0; vendors[i] != NULL; i++) {
                const char *names[] = { vendors[i]->container.name, vendors[i]->program.name };

                for (size_t j = 0; j < ARRAY_SIZE(names); j++)
                        if (names[j] != NULL && !vendor_is_variable(names[j]))
                                fail_msg("%s of %s does not pass", names[j], vendors[i]->name);
        }
        for (size_t i = 0; i < ARRAY_SIZE(more); i++)
                if (!vendor_is_variable(more[i]))
                        fail_msg("%s does not pass", more[i]);
}

/* What says which devices is not what brings code: the launcher lets every one of the former pass. */
static void what_loads_code_is_no_visible_device(void **state)
{
        (void) state;
        for (size_t i = 0; vendors[i] != NULL; i++)
                for (size_t j = 0; vendors[i]->loads[j] != NULL; j++)
                        if (!vendor_loads(vendors[i]->loads[j]) || vendor_is_variable(vendors[i]->loads[j]))
                                fail_msg("%s of %s", vendors[i]->loads[j], vendors[i]->name);
        assert_false(vendor_loads("CUDA_VISIBLE_DEVICES"));
        assert_false(vendor_loads(""));
}

/* The variables that a container and a program are given, where the tables of old disagreed. */
static void each_variable_is_the_vendors_own(void **state)
{
        /* clang-format off */
        static const struct { const char *vendor, *container, *program, *why; } cases[] = {
                { "hygon",       "HYGON_VISIBLE_DEVICES",      "HIP_VISIBLE_DEVICES",  "its runtime's and HIP's differ" },
                { "thead",       "NVIDIA_VISIBLE_DEVICES",     "CUDA_VISIBLE_DEVICES", "it plays NVIDIA in both" },
                { "metax",       NULL,                         "CUDA_VISIBLE_DEVICES", "it has no container runtime" },
                { "furiosa",     NULL,                         NULL,                   "what it calls a device is not sure" },
                { "nec",         NULL,                         "VE_NODE_NUMBER",       "one engine, for a program" },
                { "intel",       NULL,                         "ZE_AFFINITY_MASK",     "Level Zero's, for a program" },
                { "habana",      "HABANA_VISIBLE_DEVICES",     NULL,                   "a program counts modules" },
                { "aws",         "AWS_NEURON_VISIBLE_DEVICES", NULL,                   "a program counts cores" },
                { "tenstorrent", "TT_VISIBLE_DEVICES",         "TT_VISIBLE_DEVICES",   "N in both" },
        };
        /* clang-format on */

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct vendor *row = vendor_find(cases[i].vendor, NULL);

                assert_non_null(row);
                if ((row->container.name == NULL) != (cases[i].container == NULL) ||
                    (row->program.name == NULL) != (cases[i].program == NULL) ||
                    (cases[i].container != NULL && strcmp(row->container.name, cases[i].container) != 0) ||
                    (cases[i].program != NULL && strcmp(row->program.name, cases[i].program) != 0))
                        fail_msg("%s: got %s and %s: %s", cases[i].vendor,
                                 row->container.name != NULL ? row->container.name : "none",
                                 row->program.name != NULL ? row->program.name : "none", cases[i].why);
        }
}

/* What remuda-agent.service lets the agent open is what the rows say, and nothing else. */
static void the_unit_allows_what_the_rows_name(void **state)
{
        static const char *const everybodys[] = { "drm", "accel" };
        FILE *unit = fopen("packaging/systemd/remuda-agent.service", "re");
        char text[16384], line[96];
        size_t n, allowed = 0, named = 0;

        (void) state;
        assert_non_null(unit);
        n = fread(text, 1, sizeof(text) - 1, unit);
        text[n] = '\0';
        (void) fclose(unit);
        for (const char *at = text; (at = strstr(at, "DeviceAllow=char-")) != NULL; at++)
                allowed++;
        for (size_t i = 0; i < ARRAY_SIZE(everybodys); i++) {
                (void) text_format(line, sizeof(line), "\nDeviceAllow=char-%s rw\n", everybodys[i]);
                named += strstr(text, line) != NULL;
        }
        for (size_t v = 0; vendors[v] != NULL; v++)
                for (size_t i = 0; vendors[v]->char_devices[i] != NULL; i++) {
                        bool again = false;

                        for (size_t w = 0; w < v; w++)
                                for (size_t j = 0; vendors[w]->char_devices[j] != NULL; j++)
                                        again = again || strcmp(vendors[w]->char_devices[j],
                                                                vendors[v]->char_devices[i]) == 0;
                        (void) text_format(line, sizeof(line), "\nDeviceAllow=char-%s rw\n",
                                           vendors[v]->char_devices[i]);
                        if (strstr(text, line) == NULL)
                                fail_msg("the unit does not allow char-%s of %s", vendors[v]->char_devices[i],
                                         vendors[v]->name);
                        named += !again;
                }
        if (allowed != named)
                fail_msg("the unit allows %zu kinds of device files, the rows name %zu", allowed, named);
}

/* clang-format off */
static const struct {
        enum vendor_naming by;
        struct device device;
        const char *name;
} called[] = {
        { VENDOR_BY_UUID_OR_INDEX,  { .id = "GPU-1", .ordinal = 3 },                                       "GPU-1" },
        { VENDOR_BY_UUID_OR_INDEX,  { .id = "MIG-1", .partition = "1g.10gb", .ordinal = 3 },               "MIG-1" },
        { VENDOR_BY_UUID_OR_INDEX,  { .id = "GPU-1-p2", .partition = "CPX-2", .ordinal = 3 },              "3" },
        { VENDOR_BY_UUID_OR_INDEX,  { .id = "0000:18:00.0", .ordinal = 3, .nodes = { "/dev/x7" }, .node_count = 1 }, "3" },
        { VENDOR_BY_UUID_OR_NUMBER, { .id = "GPU-1", .nodes = { "/dev/x7" }, .node_count = 1 },          "GPU-1" },
        { VENDOR_BY_UUID_OR_NUMBER, { .id = "0000:18:00.0", .nodes = { "/dev/x7" }, .node_count = 1 },   "7" },
        { VENDOR_BY_NUMBER,         { .id = "GPU-1", .nodes = { "/dev/manager", "/dev/x17" }, .node_count = 2 }, "17" },
        { VENDOR_BY_NUMBER,         { .id = "GPU-1", .ordinal = 3, .nodes = { "/dev/manager" }, .node_count = 1 }, "3" },
        { VENDOR_BY_NUMBER,         { .id = "GPU-1", .ordinal = 3 },                                       "3" },
        { VENDOR_BY_NUMBER,         { .id = "GPU-1", .nodes = { "12" }, .node_count = 1 },               "12" },
};
/* clang-format on */

static void a_device_is_called_as_its_programs_know_it(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(called); i++) {
                char name[DEVICE_ID_BYTES];

                vendor_visible_name(called[i].by, &called[i].device, name, sizeof(name));
                if (strcmp(name, called[i].name) != 0)
                        fail_msg("row %zu: %s, not %s", i, name, called[i].name);
        }
}

static void a_rows_words_are_found(void **state)
{
        const struct vendor *last = NULL;

        (void) state;
        for (size_t i = 0; vendors[i] != NULL; i++) {
                const char *one[1];

                last = vendors[i];
                assert_int_equal(vendor_resources(vendors[i], one, 1),
                                 1); /* and no more than there is room */
                for (size_t j = 0; j < ARRAY_SIZE(vendors[i]->classes_of_number); j++)
                        if (vendors[i]->classes_of_number[j].directory != NULL)
                                assert_true(vendor_is_subsystem(vendors[i]->classes_of_number[j].directory));
                for (size_t j = 0;
                     j < ARRAY_SIZE(vendors[i]->subsystems) && vendors[i]->subsystems[j] != NULL; j++)
                        assert_true(vendor_is_subsystem(vendors[i]->subsystems[j]));
        }
        assert_false(vendor_is_subsystem("usb"));
        assert_null(vendor_find(vendors[0]->name, last));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_device_is_called_as_its_programs_know_it),
                cmocka_unit_test(a_rows_words_are_found),
                cmocka_unit_test(a_device_that_is_there_is_found_and_well),
                cmocka_unit_test(what_is_absent_is_not_told),
                cmocka_unit_test(devices_that_are_nodes_alone),
                cmocka_unit_test(without_its_driver_a_device_is_unhealthy),
                cmocka_unit_test(a_device_that_fell_off_the_bus_is_unhealthy),
                cmocka_unit_test(a_renamed_node_is_missing),
                cmocka_unit_test(another_class_is_another_function),
                cmocka_unit_test(a_passed_through_device_is_assigned),
                cmocka_unit_test(a_narrow_link_is_degraded),
                cmocka_unit_test(every_row_is_complete),
                cmocka_unit_test(visible_devices_pass_the_launcher),
                cmocka_unit_test(what_loads_code_is_no_visible_device),
                cmocka_unit_test(each_variable_is_the_vendors_own),
                cmocka_unit_test(the_unit_allows_what_the_rows_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
