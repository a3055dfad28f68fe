/* Each reader, row by row: what a machine's files say, and what is made of it. What cannot be made sense of
 * stays as the vendor's row has it, and the device counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/inventory/link_report_line.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "tests/support/machine_text.h"

#define KFD(number, properties)                                                                              \
        "/sys/class/kfd/kfd/topology/nodes/" number                                                          \
        "/properties |\n\tsimd_count 304\n\tdevice_id 29857\n" properties
#define LINK(node, link, properties)                                                                         \
        "/sys/class/kfd/kfd/topology/nodes/" node "/io_links/" link "/properties |\n" properties
#define AMD_GPU      "F 0000:11:00.0 1002:74a1 120000 amdgpu\n"
#define AT_11        "\tvendor_id 4098\n\tlocation_id 4352\n"
#define NVIDIA_GPU   "F 0000:11:00.0 10de:20b2 030200 nvidia\n"
#define NVIDIA_OTHER "F 0000:11:00.0 10de:9999 030200 nvidia\n"
#define INFORMATION  "/proc/driver/nvidia/gpus/0000:11:00.0/information |\n"
#define MIG(of)      "/proc/driver/nvidia/capabilities/gpu0/mig/" of "/access |\n"
#define SXM(bus)     "F 0000:" bus ":00.0 10de:20b2 030200 nvidia\n"
#define LINKS        "/" LINK_REPORT_LINE_FOLDER "/nvidia |\n\t"
#define TRAINIUM     "F 0000:10:00.0 1d0f:7364 088000 neuron\n"
#define NEURON       "/sys/class/neuron_device/neuron"
#define GAUDI        "F 0000:11:00.0 1da3:1020 120000 habanalabs\n"
#define GAUDI_3                                                                                              \
        GAUDI "@/accel/accel3/\n/sys/class/accel/accel3/device -> "                                          \
              "../../../devices/pci0000:11/0000:11:00.0\n"
#define VE       "F 0000:11:00.0 1bcf:001c 0b4000 ve_drv\n@/ve/ve1/\n"
#define WORMHOLE "F 0000:11:00.0 1e52:401e 120000 tenstorrent\n@/tenstorrent/tenstorrent!0/\n"
#define CARD     "/sys/class/tenstorrent/tenstorrent!0/"
#define PHI      "F 0000:11:00.0 8086:225c 0b4000 mic\n@/mic/mic0/\n"

/* clang-format off */
/* A line "F ADDRESS VENDOR:DEVICE CLASS [DRIVER]" is a PCI function, and '@' its directory from there on. A device is told
 * as "ID MODEL GIB INDEX NODE,... {PARTITION} !REASON RESOURCE FABRIC:SOURCE;". */
static const struct {
        const char *what, *machine, *read;
} rows[] = {
        /* AMD, Hygon */
        { "errors that were corrected, or are none",
          AMD_GPU "@/ras/umc_err_count |\n\tue: 0\n\tce: 3\n@/ras/sdma_err_count = ce: 1\n@/ras/gfx_err_count = ue: x\n"
          "@/ras/a_err_count = ue: 999999999999999999999999\n@/ras/b_err_count = ue: 18446744073709551616\n"
          "@/ras/c_err_count = \n@/ras/features = ue: 1",
          "0000:11:00.0 MI300X 192 0  {} ! amd.com/gpu numa:sysfs;" },
        { "an error that was not corrected", AMD_GPU "@/ras/umc_err_count |\n\tue:\t3", "0000:11:00.0 MI300X 192 0  {} !UncorrectableErrors amd.com/gpu numa:sysfs;" },
        { "without KFD by its own id", AMD_GPU "@/unique_id = 12ab\n@/drm/renderD128/\n@/drm/card1/", "GPU-00000000000012ab MI300X 192 0 /dev/dri/renderD128,/dev/dri/card1 {} ! amd.com/gpu numa:sysfs;" },
        { "an id that is none", AMD_GPU "@/unique_id = none", "0000:11:00.0 MI300X 192 0  {} ! amd.com/gpu numa:sysfs;" },
        { "an id of zero", AMD_GPU "@/unique_id = 0", "0000:11:00.0 MI300X 192 0  {} ! amd.com/gpu numa:sysfs;" },
        { "KFD at another address, by its render node",
          AMD_GPU "@/drm/renderD130/\n" KFD("1", "\tvendor_id 4098\n\tlocation_id 9\n\tdrm_render_minor 130\n\tunique_id 7"), "GPU-0000000000000007 MI300X 192 0 /dev/dri/renderD130 {} ! amd.com/gpu numa:sysfs;" },
        { "KFD at another address, of another render node",
          AMD_GPU "@/drm/renderD130/\n" KFD("1", "\tvendor_id 4098\n\tlocation_id 9\n\tdrm_render_minor 131\n\tunique_id 7"), "0000:11:00.0 MI300X 192 0 /dev/dri/renderD130 {} ! amd.com/gpu numa:sysfs;" },
        { "KFD of another vendor at the address",
          AMD_GPU "@/drm/renderD130/\n" KFD("1", "\tvendor_id 7572\n\tlocation_id 4352\n\tdrm_render_minor 130\n\tunique_id 7"), "0000:11:00.0 MI300X 192 0 /dev/dri/renderD130 {} ! amd.com/gpu numa:sysfs;" },
        { "parts share what the function has",
          AMD_GPU "@/mem_info_vram_total = 68719476736\n" KFD("1", AT_11) KFD("2", AT_11), "0000:11:00.0-p0 MI300X 32 0  {part-0} ! amd.com/gpu package:kfd;0000:11:00.0-p1 MI300X 32 1  {part-1} ! amd.com/gpu package:kfd;" },
        { "memory that is no number", AMD_GPU "@/mem_info_vram_total = much", "0000:11:00.0 MI300X 192 0  {} ! amd.com/gpu numa:sysfs;" },
        { "memory by its banks, those of the device alone",
          AMD_GPU KFD("1", AT_11)
          "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties |\n\theap_type 1\n\tsize_in_bytes 34359738368\n"
          "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/1/properties |\n\theap_type 4\n\tsize_in_bytes 34359738368\n"
          "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/2/properties |\n\tsize_in_bytes 34359738368\n"
          "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/3/properties |\n\theap_type 2\n\tsize_in_bytes 34359738368", "0000:11:00.0 MI300X 96 0  {} ! amd.com/gpu numa:sysfs;" },
        { "KFD alone: two parts, and a node of Hygon's",
          KFD("1", AT_11 "\tlocal_mem_size 34359738368\n") KFD("2", AT_11 "\tlocal_mem_size 34359738368\n")
          KFD("3", "\tvendor_id 7572\n\tlocation_id 4608"), "0000:11:00.0-p0 MI300X 32 0  {part-0} ! amd.com/gpu package:kfd;0000:11:00.0-p1 MI300X 32 1  {part-1} ! amd.com/gpu package:kfd;0000:12:00.0 1d94:74a1 0 0  {} ! hygon.com/dcu none:none;" },
        { "KFD alone: the processor at the other end of a link is a NUMA node",
          KFD("2", AT_11) LINK("2", "0", "\ttype 2\n\tnode_to 1") "\n"
          KFD("3", "\tvendor_id 4098\n\tlocation_id 4608\n") LINK("3", "0", "\ttype 2\n\tnode_to 65536") "\n"
          KFD("4", "\tvendor_id 4098\n\tlocation_id 4864\n") LINK("4", "x", "\n"), "0000:11:00.0 MI300X 192 0  {} ! amd.com/gpu numa:sysfs;0000:12:00.0 MI300X 192 1  {} ! amd.com/gpu none:none;0000:13:00.0 MI300X 192 2  {} ! amd.com/gpu none:none;" },
        { "links of all widths join an island; one that is not xGMI joins none",
          KFD("2", AT_11) LINK("2", "0", "\ttype 11\n\tnode_to 3\n\tmax_bandwidth 100000") "\n"
          KFD("3", "\tvendor_id 4098\n\tlocation_id 4608\n") LINK("3", "0", "\ttype 11\n\tnode_to 2\n\tmax_bandwidth 99999999") "\n"
          KFD("4", "\tvendor_id 4098\n\tlocation_id 4864\n") LINK("4", "0", "\ttype 2\n\tnode_to 3"), "0000:11:00.0 MI300X 192 0  {} ! amd.com/gpu xgmi:kfd;0000:12:00.0 MI300X 192 1  {} ! amd.com/gpu xgmi:kfd;0000:13:00.0 MI300X 192 2  {} ! amd.com/gpu none:none;" },
        { "what is no node of a GPU",
          "/sys/class/kfd/kfd/topology/nodes/x/properties = simd_count 8\n"
          "/sys/class/kfd/kfd/topology/nodes/65536/properties = simd_count 8\n"
          "/sys/class/kfd/kfd/topology/nodes/1/properties = simd_count 0\n"
          "/sys/class/kfd/kfd/topology/nodes/2/properties = simd_count x\n"
          "/sys/class/kfd/kfd/topology/nodes/3/properties = simd_count 123456789012345678901234567\n"
          "/sys/class/kfd/kfd/topology/nodes/4/properties = simd_count 18446744073709551616\n"
          "/sys/class/kfd/kfd/topology/nodes/5/properties = simd_count_max 8\n"
          "/sys/class/kfd/kfd/topology/nodes/6/properties = ", "" },
        /* NVIDIA */
        { "the driver's words for a board that no table knows",
          NVIDIA_OTHER "/proc/driver/nvidia/gpus/00000000:11:00.0/information |\n\tModel: \t NVIDIA Foo 9000\n\tGPU UUID: \t GPU-????\n"
          "\tDevice Minor: \t 7\n\tGPU Excluded: \t No", "0000:11:00.0 Foo-9000 0 0 /dev/nvidia7 {} ! nvidia.com/gpu numa:sysfs;" },
        { "another name, a number beyond its range, an id of another form, kept out by the driver",
          NVIDIA_OTHER INFORMATION "\tModel: \t Quadro Foo\n\tGPU UUID: \t 1234\n\tDevice Minor: \t 65536\n\tGPU Excluded: \t Yes", "0000:11:00.0 Quadro-Foo 0 0 /dev/nvidia0 {} !Excluded;" },
        { "words without a value, or with one that is too long",
          NVIDIA_OTHER INFORMATION "\tModel:\n\tDevice Minor: \t x\n\tGPU UUID: \t "
          "GPU-0123456789012345678901234567890123456789012345678901234567890123456789", "0000:11:00.0 10de:9999 0 0 /dev/nvidia0 {} ! nvidia.com/gpu numa:sysfs;" },
        { "information of other boards",
          NVIDIA_OTHER "/proc/driver/nvidia/gpus/x/information = Model: X\n/proc/driver/nvidia/gpus/0000:12:00.0/information = Model: Y", "0000:11:00.0 10de:9999 0 0 /dev/nvidia0 {} ! nvidia.com/gpu numa:sysfs;" },
        { "an NVSwitch joins boards of its form and those that no table knows",
          "F 0000:05:00.0 10de:22a3 068000\nF 0000:11:00.0 10de:2330 030200 nvidia\nF 0000:12:00.0 10de:2330 030200 nvidia\n"
          "F 0000:13:00.0 10de:26b9 030200 nvidia\nF 0000:14:00.0 10de:9999 030200 nvidia\nF 0000:15:00.0 10de:9999 030200 nvidia", "0000:11:00.0 H100-SXM5-80GB 80 0 /dev/nvidia0 {} ! nvidia.com/gpu nvlink:pci;0000:12:00.0 H100-SXM5-80GB 80 1 /dev/nvidia1 {} ! nvidia.com/gpu nvlink:pci;0000:13:00.0 L40S 48 2 /dev/nvidia2 {} ! nvidia.com/gpu numa:sysfs;0000:14:00.0 10de:9999 0 3 /dev/nvidia3 {} ! nvidia.com/gpu nvlink:pci;0000:15:00.0 10de:9999 0 4 /dev/nvidia4 {} ! nvidia.com/gpu nvlink:pci;" },
        { "slices of every size",
          NVIDIA_GPU MIG("gi0") "\tDeviceFileMode: 292\n" MIG("gi0/ci0") "\tDeviceFileMinor: 2\n" MIG("gi1/ci0") "\tDeviceFileMinor: x\n"
          MIG("gi3") "\tDeviceFileMinor: 70000\n" MIG("gi3/ci0") "\tDeviceFileMinor: 4\n" MIG("gi3/ci1") "\tDeviceFileMinor: 5\n"
          MIG("gi7") "\tDeviceFileMinor: 6\n" MIG("gi7/ci0") "\tDeviceFileMinor: 7\n" MIG("gi15/ci0") "\tDeviceFileMinor: 8", "MIG-0000:11:00.0/0/0 A100-SXM4-80GB 80 0 /dev/nvidia0,/dev/nvidia-caps/nvidia-cap2 {7g.80gb} ! nvidia.com/mig-7g.80gb none:rule;MIG-0000:11:00.0/1/0 A100-SXM4-80GB 40 0 /dev/nvidia0 {gi1} ! nvidia.com/mig none:rule;MIG-0000:11:00.0/3/0 A100-SXM4-80GB 20 0 /dev/nvidia0,/dev/nvidia-caps/nvidia-cap4 {2g.20gb} ! nvidia.com/mig-2g.20gb none:rule;MIG-0000:11:00.0/3/1 A100-SXM4-80GB 20 0 /dev/nvidia0,/dev/nvidia-caps/nvidia-cap5 {2g.20gb.ci1} ! nvidia.com/mig-2g.20gb none:rule;MIG-0000:11:00.0/7/0 A100-SXM4-80GB 10 0 /dev/nvidia0,/dev/nvidia-caps/nvidia-cap6,/dev/nvidia-caps/nvidia-cap7 {1g.10gb} ! nvidia.com/mig-1g.10gb none:rule;MIG-0000:11:00.0/15/0 A100-SXM4-80GB 10 0 /dev/nvidia0,/dev/nvidia-caps/nvidia-cap8 {gi15} ! nvidia.com/mig none:rule;" },
        { "a slice of a board whose memory is not known", NVIDIA_OTHER MIG("gi7/ci0") "\tDeviceFileMinor: 3", "MIG-0000:11:00.0/7/0 10de:9999 0 0 /dev/nvidia0,/dev/nvidia-caps/nvidia-cap3 {gi7} ! nvidia.com/mig none:rule;" },
        /* links that NVML told of, in the file that the agent has left */
        { "links join two pairs; a board whose links are down cannot say which it belongs to",
          SXM("11") SXM("12") SXM("13") SXM("14") SXM("15")
          LINKS "{\"pci\":\"0000:11:00.0\",\"links\":[{\"peer\":\"0000:12:00.0\",\"width\":2},{\"peer\":\"0000:99:00.0\"}]}\n"
          "\t{\"pci\":\"0000:12:00.0\",\"links\":[{\"peer\":\"0000:11:00.0\",\"width\":2}]}\n"
          "\t{\"pci\":\"0000:13:00.0\",\"links\":[{\"peer\":\"0000:14:00.0\"}]}\n\t{\"pci\":\"0000:15:00.0\",\"links\":[]}", "0000:11:00.0 A100-SXM4-80GB 80 0 /dev/nvidia0 {} ! nvidia.com/gpu nvlink:nvml;0000:12:00.0 A100-SXM4-80GB 80 1 /dev/nvidia1 {} ! nvidia.com/gpu nvlink:nvml;0000:13:00.0 A100-SXM4-80GB 80 2 /dev/nvidia2 {} ! nvidia.com/gpu nvlink:nvml;0000:14:00.0 A100-SXM4-80GB 80 3 /dev/nvidia3 {} ! nvidia.com/gpu nvlink:nvml;0000:15:00.0 A100-SXM4-80GB 80 4 /dev/nvidia4 {} ! nvidia.com/gpu numa:sysfs;" },
        { "links join a chain; a board whose links are down stays with its likes",
          SXM("11") SXM("12") SXM("13") SXM("14")
          LINKS "{\"pci\":\"0000:12:00.0\",\"links\":[{\"peer\":\"0000:13:00.0\"}]}\n\t{\"pci\":\"0000:11:00.0\",\"links\":[{\"peer\":\"0000:13:00.0\"}]}", "0000:11:00.0 A100-SXM4-80GB 80 0 /dev/nvidia0 {} ! nvidia.com/gpu nvlink:nvml;0000:12:00.0 A100-SXM4-80GB 80 1 /dev/nvidia1 {} ! nvidia.com/gpu nvlink:nvml;0000:13:00.0 A100-SXM4-80GB 80 2 /dev/nvidia2 {} ! nvidia.com/gpu nvlink:nvml;0000:14:00.0 A100-SXM4-80GB 80 3 /dev/nvidia3 {} ! nvidia.com/gpu nvlink:nvml;" },
        { "links that end at switches are one domain",
          SXM("11") SXM("12") "F 0000:05:00.0 10de:22a3 068000\n"
          LINKS "{\"pci\":\"0000:11:00.0\",\"links\":[{\"peer\":\"0000:05:00.0\"}]}\n\t{\"pci\":\"0000:12:00.0\",\"links\":[],\"switched\":18}", "0000:11:00.0 A100-SXM4-80GB 80 0 /dev/nvidia0 {} ! nvidia.com/gpu nvlink:nvml;0000:12:00.0 A100-SXM4-80GB 80 1 /dev/nvidia1 {} ! nvidia.com/gpu nvlink:nvml;" },
        { "a file that is none says nothing", SXM("11") SXM("12") LINKS "{\"pci\":", "0000:11:00.0 A100-SXM4-80GB 80 0 /dev/nvidia0 {} ! nvidia.com/gpu nvlink:rule;0000:12:00.0 A100-SXM4-80GB 80 1 /dev/nvidia1 {} ! nvidia.com/gpu nvlink:rule;" },
        /* AWS */
        { "memory errors", TRAINIUM NEURON "0/stats/hardware/mem_ecc_uncorrected = 1\n" NEURON "0/info/serial_number = 0123456789abcdef", "aws-0123456789abcdef Trainium2 96 0 /dev/neuron0 {} !UncorrectableErrors aws.amazon.com/neuron numa:sysfs;" },
        { "counters at zero, or no numbers",
          TRAINIUM NEURON "0/stats/hardware/mem_ecc_uncorrected = 0\n" NEURON "0/stats/hardware/sram_ecc_uncorrected = x\n"
          NEURON "0/neuron_core0/stats/status/hw_error/total = 0\n" NEURON "0/info/serial_number = 0000000000000000", "0000:10:00.0 Trainium2 96 0 /dev/neuron0 {} ! aws.amazon.com/neuron numa:sysfs;" },
        { "a core's errors", TRAINIUM NEURON "0/neuron_core0/info = x\n" NEURON "0/neuron_core1/stats/status/hw_hbm_ue_error/total = 2", "0000:10:00.0 Trainium2 96 0 /dev/neuron0 {} !HardwareError aws.amazon.com/neuron numa:sysfs;" },
        { "chips that hear of each other",
          TRAINIUM "F 0000:11:00.0 1d0f:7364 088000 neuron\nF 0000:12:00.0 1d0f:7364 088000 neuron\n"
          NEURON "1/connected_devices = 2, 99 x 2\n" NEURON "2/connected_devices = 1", "0000:10:00.0 Trainium2 96 0 /dev/neuron0 {} ! aws.amazon.com/neuron numa:sysfs;0000:11:00.0 Trainium2 96 1 /dev/neuron1 {} ! aws.amazon.com/neuron neuronlink:sysfs;0000:12:00.0 Trainium2 96 2 /dev/neuron2 {} ! aws.amazon.com/neuron neuronlink:sysfs;" },
        { "the class alone, with names that are no chips",
          NEURON "3/info/architecture/device_name = Trainium9\n" NEURON "x/core_count = 2\n" NEURON "64/core_count = 2\n"
          "/sys/class/neuron_device/other/core_count = 2", "aws-neuron3 Trainium9 0 3 /dev/neuron3 {} ! aws.amazon.com/neuron numa:sysfs;" },
        /* Google */
        { "passed to a guest", "F 0000:00:04.0 1ae0:005e ff0000 vfio-pci", "0000:00:04.0 TPU-v4 32 0  {} !Assigned;" },
        { "its own VFIO, in a class", "F 0000:00:04.0 1ae0:0063 ff0000 vfio-pci\n@/vfio-dev/vfio7/", "0000:00:04.0 TPU-v5e 16 0 /dev/vfio/devices/vfio7 {} ! google.com/tpu numa:sysfs;" },
        { "its own VFIO, by number", "F 0000:00:04.0 1ae0:0063 ff0000 vfio-pci", "0000:00:04.0 TPU-v5e 16 0 /dev/vfio/0 {} ! google.com/tpu numa:sysfs;" },
        { "a driver of its own", "F 0000:00:04.0 1ae0:0063 ff0000 gasket", "0000:00:04.0 TPU-v5e 16 0 /dev/accel0 {} ! google.com/tpu numa:sysfs;" },
        { "two chips of a host", "F 0000:00:04.0 1ae0:005e ff0000 gasket\nF 0000:00:05.0 1ae0:005e ff0000 gasket", "0000:00:04.0 TPU-v4 32 0 /dev/accel0 {} ! google.com/tpu ici:rule;0000:00:05.0 TPU-v4 32 1 /dev/accel1 {} ! google.com/tpu ici:rule;" },
        /* Habana */
        { "works", GAUDI_3 "/sys/class/accel/accel3/status = Operational", "0000:11:00.0 Gaudi2 96 0 /dev/accel/accel3,/dev/accel/accel_controlD3 {} ! habana.ai/gaudi numa:sysfs;" },
        { "is reset", GAUDI_3 "/sys/class/accel/accel3/status = In reset", "0000:11:00.0 Gaudi2 96 0 /dev/accel/accel3,/dev/accel/accel_controlD3 {} !Resetting habana.ai/gaudi numa:sysfs;" },
        { "is made", GAUDI_3 "@/status = in device creation", "0000:11:00.0 Gaudi2 96 0 /dev/accel/accel3,/dev/accel/accel_controlD3 {} !Resetting habana.ai/gaudi numa:sysfs;" },
        { "is broken", GAUDI_3 "/sys/class/accel/accel3/status = Malfunction", "0000:11:00.0 Gaudi2 96 0 /dev/accel/accel3,/dev/accel/accel_controlD3 {} !NotOperational habana.ai/gaudi numa:sysfs;" },
        { "says nothing", GAUDI_3 "/sys/class/accel/accel3/status = ", "0000:11:00.0 Gaudi2 96 0 /dev/accel/accel3,/dev/accel/accel_controlD3 {} ! habana.ai/gaudi numa:sysfs;" },
        { "the older class", GAUDI "@/habanalabs/hl2/\n/sys/class/habanalabs/hl2/status = Malfunction", "0000:11:00.0 Gaudi2 96 0 /dev/hl2,/dev/hl_controlD2 {} !NotOperational habana.ai/gaudi numa:sysfs;" },
        { "no class", GAUDI, "0000:11:00.0 Gaudi2 96 0 /dev/accel/accel0,/dev/accel/accel_controlD0 {} ! habana.ai/gaudi numa:sysfs;" },
        { "the others of the vendor", "F 0000:11:00.0 1da3:0001 120000 habanalabs\nF 0000:12:00.0 1da3:0030 120000 habanalabs", "0000:11:00.0 Goya 16 0 /dev/accel/accel0,/dev/accel/accel_controlD0 {} ! habana.ai/goya numa:sysfs;0000:12:00.0 Greco 16 1 /dev/accel/accel1,/dev/accel/accel_controlD1 {} ! habana.ai/greco numa:sysfs;" },
        /* Huawei */
        { "two functions of one card", "F 0000:11:00.0 19e5:d500 120000 devdrv\nF 0000:11:00.1 19e5:d500 120000 devdrv", "0000:11:00.0 Ascend310P 24 0 /dev/davinci0 {} ! huawei.com/Ascend310P numa:sysfs;" },
        { "two dies", "F 0000:11:00.0 19e5:d803 120000 devdrv\nF 0000:11:00.1 19e5:d803 120000 devdrv", "0000:11:00.0 Ascend910C 64 0 /dev/davinci0 {} ! huawei.com/Ascend910 hccs:rule;0000:11:00.1 Ascend910C 64 1 /dev/davinci1 {} ! huawei.com/Ascend910 hccs:rule;" },
        { "a second function alone", "F 0000:11:00.1 19e5:d500 120000 devdrv", "0000:11:00.1 Ascend310P 24 0 /dev/davinci0 {} ! huawei.com/Ascend310P numa:sysfs;" },
        { "ids that are none leave the others' to be guessed",
          "F 0000:11:00.0 19e5:d801 120000 devdrv\n@/dev_id = 2\nF 0000:12:00.0 19e5:d801 120000 devdrv\n@/dev_id = x\n"
          "F 0000:13:00.0 19e5:d801 120000 devdrv\n@/dev_id = 70000\nF 0000:14:00.0 19e5:d801 120000 devdrv\n@/dev_id = 0", "0000:14:00.0 Ascend910A 32 0 /dev/davinci0 {} ! huawei.com/Ascend910 hccs:rule;0000:12:00.0 Ascend910A 32 1 /dev/davinci1 {} ! huawei.com/Ascend910 hccs:rule;0000:11:00.0 Ascend910A 32 2 /dev/davinci2 {} ! huawei.com/Ascend910 hccs:rule;0000:13:00.0 Ascend910A 32 3 /dev/davinci3 {} ! huawei.com/Ascend910 hccs:rule;" },
        /* Intel Phi, NEC, Tenstorrent, Xilinx */
        { "online", PHI "/sys/class/mic/mic0/state = online", "0000:11:00.0 Phi-7120 16 0 /dev/mic0 {} ! remuda.dev/intel numa:sysfs;" },
        { "lost", PHI "/sys/class/mic/mic0/state = lost", "0000:11:00.0 Phi-7120 16 0 /dev/mic0 {} !NotOperational remuda.dev/intel numa:sysfs;" },
        { "its reset failed", PHI "/sys/class/mic/mic0/state = reset failed", "0000:11:00.0 Phi-7120 16 0 /dev/mic0 {} !NotOperational remuda.dev/intel numa:sysfs;" },
        { "in error", PHI "/sys/class/mic/mic0/state = error", "0000:11:00.0 Phi-7120 16 0 /dev/mic0 {} !NotOperational remuda.dev/intel numa:sysfs;" },
        { "no state", "F 0000:11:00.0 8086:225c 0b4000 mic", "0000:11:00.0 Phi-7120 16 0 /dev/mic0 {} ! remuda.dev/intel numa:sysfs;" },
        { "an engine", VE "/sys/class/ve/ve1/serial = 3132333435360000\n/sys/class/ve/ve1/memory_size = 24\n/sys/class/ve/ve1/ve_state = 1", "nec-123456 VE-10 24 1 /dev/ve1 {} ! nec.com/ve numa:sysfs;" },
        { "an engine that is not online", VE "/sys/class/ve/ve1/serial = 31zz\n/sys/class/ve/ve1/memory_size = 0\n/sys/class/ve/ve1/ve_state = 2", "0000:11:00.0 VE-10 48 1 /dev/ve1 {} !NotOperational nec.com/ve numa:sysfs;" },
        { "an engine with odd words", VE "/sys/class/ve/ve1/serial = 3132333435367f\n/sys/class/ve/ve1/memory_size = 65536\n/sys/class/ve/ve1/ve_state = x", "nec-123456 VE-10 48 1 /dev/ve1 {} ! nec.com/ve numa:sysfs;" },
        { "an engine without its number", "F 0000:11:00.0 1bcf:001c 0b4000 ve_drv", "0000:11:00.0 VE-10 48 0 /dev/ve0 {} ! nec.com/ve numa:sysfs;" },
        { "an engine with text for memory, and half a letter", VE "/sys/class/ve/ve1/serial = 3132333435363\n/sys/class/ve/ve1/memory_size = x", "nec-123456 VE-10 48 1 /dev/ve1 {} ! nec.com/ve numa:sysfs;" },
        { "a card's type and id", WORMHOLE CARD "tt_card_type = n150\n" CARD "tt_asic_id = 0123-4567", "tenstorrent-0123-4567 n150 12 0 /dev/tenstorrent/0 {} ! tenstorrent.com/n150 numa:sysfs;" },
        { "a type that is none", WORMHOLE CARD "tt_card_type = n 150\n" CARD "tt_serial = abc_1.2", "tenstorrent-abc_1.2 Wormhole 12 0 /dev/tenstorrent/0 {} ! tenstorrent.com/wormhole numa:sysfs;" },
        { "serials that are none: zeros", WORMHOLE CARD "tt_serial = 00-00", "0000:11:00.0 Wormhole 12 0 /dev/tenstorrent/0 {} ! tenstorrent.com/wormhole numa:sysfs;" },
        { "serials that are none: ones", WORMHOLE CARD "tt_serial = ffFF", "0000:11:00.0 Wormhole 12 0 /dev/tenstorrent/0 {} ! tenstorrent.com/wormhole numa:sysfs;" },
        { "serials that are none: a word", WORMHOLE CARD "tt_serial = Unknown", "0000:11:00.0 Wormhole 12 0 /dev/tenstorrent/0 {} ! tenstorrent.com/wormhole numa:sysfs;" },
        { "serials that are none: another word", WORMHOLE CARD "tt_serial = NONE", "0000:11:00.0 Wormhole 12 0 /dev/tenstorrent/0 {} ! tenstorrent.com/wormhole numa:sysfs;" },
        { "serials that are none: too short", WORMHOLE CARD "tt_serial = a/b:c", "0000:11:00.0 Wormhole 12 0 /dev/tenstorrent/0 {} ! tenstorrent.com/wormhole numa:sysfs;" },
        { "no number, no card", "F 0000:11:00.0 1e52:faca 120000 tenstorrent", "0000:11:00.0 Grayskull 8 0 /dev/tenstorrent/0 {} ! tenstorrent.com/grayskull numa:sysfs;" },
        { "a golden image", "F 0000:65:00.0 10ee:d004 120000 xclmgmt\n@/serial_num = 21760394A012", "xilinx-21760394A012 U250-golden 0 0 /dev/xclmgmt25856 {} !NotOperational remuda.dev/xilinx numa:sysfs;" },
        { "a shell on the second function",
          "F 0000:65:00.0 10ee:5004 120000 xclmgmt\nF 0000:65:00.1 10ee:5005 120000 xocl\n@/VBNV = xilinx_u250 gen3.x16\n"
          "F 0000:66:00.0 10ee:5004 120000 xclmgmt\n@/VBNV = \n", "0000:65:00.0 U250 64 0 /dev/xclmgmt25856 {} ! amd.com/xilinx_u250-gen3.x16 numa:sysfs;0000:66:00.0 U250 64 1 /dev/xclmgmt26112 {} ! remuda.dev/xilinx numa:sysfs;" },
        /* what no row claims */
        { "known by its id alone", "F 0000:11:00.0 1e60:2864 048000 hailo\n@/accel/accel0/", "0000:11:00.0 Hailo-8 (1e60:2864) 0 0 /dev/accel/accel0 {} ! remuda.dev/unknown numa:sysfs;" },
        { "without a driver", "F 0000:11:00.0 1e60:2864 048000", "0000:11:00.0 Hailo-8 (1e60:2864) 0 0  {} !DriverMissing remuda.dev/unknown numa:sysfs;" },
        { "passed through", "F 0000:11:00.0 1e60:2864 048000 pci-stub\n@/accel/accel0/", "0000:11:00.0 Hailo-8 (1e60:2864) 0 0  {} !Assigned;" },
        { "fallen off", "L 0000:11:00.0 1e60:2864 048000 hailo", "0000:11:00.0 Hailo-8 (1e60:2864) 0 0  {} !FallenOffBus remuda.dev/unknown numa:sysfs;" },
        { "by its class, with a part that is none of its own",
          "F 0000:11:00.0 1234:5678 120000 acme\nF 0000:11:00.1 1234:5679 120000 acme\n@/physfn -> ../0000:11:00.0\n"
          "F 0000:12:00.0 1234:5678 120100 acme", "0000:11:00.0 1234:5678 0 0  {} ! remuda.dev/unknown numa:sysfs;" },
        { "by the accel class",
          "F 0000:11:00.0 1234:5678 048000 acme\nF 0000:12:00.0 1da3:1020 120000 habanalabs\n"
          "/sys/class/accel/accel0/device -> ../../../devices/pci0000:11/0000:11:00.0\n"
          "/sys/class/accel/accel1/device -> ../../../devices/pci0000:12/0000:12:00.0\n"
          "/sys/class/accel/accel_controlD0/device -> ../../../devices/pci0000:11/0000:11:00.0\n"
          "/sys/class/accel/other/device -> ../../../devices/pci0000:11/0000:11:00.0\n"
          "/sys/class/accel/accel2/device/vendor = 0xabcd\n/sys/class/accel/accel2/device/device = 0x0001", "0000:12:00.0 Gaudi2 96 0 /dev/accel/accel1,/dev/accel/accel_controlD1 {} ! habana.ai/gaudi numa:sysfs;0000:11:00.0 1234:5678 0 0 /dev/accel/accel0 {} ! remuda.dev/unknown numa:sysfs;unknown-accel2 abcd:0001 0 1 /dev/accel/accel2 {} ! remuda.dev/unknown numa:sysfs;" },
        /* what every device has */
        { "bound to what its runtime cannot use", "F 0000:11:00.0 10de:2330 030200 nouveau", "0000:11:00.0 H100-SXM5-80GB 80 0 /dev/nvidia0 {} !WrongDriver nvidia.com/gpu numa:sysfs;" },
        { "its link is down", NVIDIA_GPU "@/current_link_width = 255\n@/max_link_width = 16", "0000:11:00.0 A100-SXM4-80GB 80 0 /dev/nvidia0 {} !LinkDown nvidia.com/gpu numa:sysfs;" },
        { "its link has no lanes", NVIDIA_GPU "@/current_link_width = 0\n@/max_link_width = 16", "0000:11:00.0 A100-SXM4-80GB 80 0 /dev/nvidia0 {} !LinkDown nvidia.com/gpu numa:sysfs;" },
        { "its link is narrow", NVIDIA_GPU "@/current_link_width = 8\n@/max_link_width = 16", "0000:11:00.0 A100-SXM4-80GB 80 0 /dev/nvidia0 {} !LinkDegraded nvidia.com/gpu numa:sysfs;" },
        { "pciback", "F 0000:11:00.0 10de:2330 030200 pciback", "0000:11:00.0 H100-SXM5-80GB 80 0  {} !Assigned;" },
        { "xen-pciback", "F 0000:11:00.0 10de:2330 030200 xen-pciback", "0000:11:00.0 H100-SXM5-80GB 80 0  {} !Assigned;" },
        { "uio_pci_generic", "F 0000:11:00.0 10de:2330 030200 uio_pci_generic", "0000:11:00.0 H100-SXM5-80GB 80 0  {} !Assigned;" },
        { "its file is not there", NVIDIA_GPU "/dev/null char 1 3", "0000:11:00.0 A100-SXM4-80GB 80 0 /dev/nvidia0 {} !NodeMissing nvidia.com/gpu numa:sysfs;" },
        { "its file is a block device", NVIDIA_GPU "/dev/nvidia0 block 1 3", "0000:11:00.0 A100-SXM4-80GB 80 0 /dev/nvidia0 {} ! nvidia.com/gpu numa:sysfs;" },
        { "a file that may lack, and places that are no devices",
          "F 0000:11:00.0 8086:225c 0b4000 mic\n@/mic/mic0/\n/dev/biren/card_1/\n/dev/biren/card_x char 1 1\n/dev/biren/other char 1 1", "0000:11:00.0 Phi-7120 16 0  {} ! remuda.dev/intel numa:sysfs;" },
};
/* clang-format on */

static void add_line(struct text *machine, const char *line, char directory[96])
{
        char address[16], driver[32] = "";
        struct machine_function f = { .address = address, .lost = line[0] == 'L' };

        if (sscanf(line + 1, " %15s %x:%x %x %31s", address, &f.vendor, &f.device, &f.class_code, driver) >=
                    4 &&
            (line[0] == 'F' || line[0] == 'L')) {
                f.driver = driver[0] != '\0' ? driver : NULL;
                machine_function(machine, &f);
                (void) text_format(directory, 96, "/sys/devices/pci%.7s/%s", address, address);
        } else if (line[0] == '@')
                machine_line(machine, "%s%s", directory, line + 1);
        else if (line[0] != '\0')
                machine_line(machine, "%s", line);
}

static void tell(const struct inventory *inventory, struct text *ret)
{
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *d = &inventory->devices[i];

                if (strcmp(d->vendor, "cpu") == 0)
                        continue;
                text_printf(ret, "%s %s %llu %u ", d->id, d->model,
                            (unsigned long long) d->memory_bytes >> 30, d->index);
                for (size_t n = 0; n < d->node_count; n++)
                        text_printf(ret, "%s%s", n > 0 ? "," : "", d->nodes[n]);
                text_printf(ret, " {%s} !%s", d->partition, d->reason);
                for (size_t g = 0; g < inventory->group_count; g++)
                        if (strcmp(inventory->groups[g].name, d->group) == 0)
                                text_printf(ret, " %s %s:%s", inventory->groups[g].resource,
                                            inventory->groups[g].fabric, inventory->groups[g].fabric_source);
                text_append(ret, ";");
        }
}

static void every_row_is_read(void **state)
{
        size_t wrong = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(text_free) struct text machine = { 0 }, read = { 0 };
                char directory[96] = "";
                struct inventory inventory;

                machine_begin(&machine);
                for (const char *at = rows[i].machine; *at != '\0';) {
                        size_t length = strcspn(at, "\n");
                        char line[512];

                        assert_true(text_format(line, sizeof(line), "%.*s", (int) length, at));
                        add_line(&machine, line, directory);
                        at += length + (at[length] == '\n');
                }
                machine_discover(&machine, NULL, &inventory);
                text_append(&read, "");
                tell(&inventory, &read);
                inventory_free(&inventory);
                if (strcmp(read.data != NULL ? read.data : "", rows[i].read) != 0) {
                        print_error("%s:\n  read '%s'\n  want '%s'\n", rows[i].what, read.data, rows[i].read);
                        wrong++;
                }
        }
        assert_int_equal(wrong, 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_row_is_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
