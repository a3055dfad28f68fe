#include "plugin/environment.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* clang-format off */
static const struct vendor_environment rows[] = {
        { .vendor = "nvidia", .variable = "NVIDIA_VISIBLE_DEVICES", .by = VISIBLE_BY_UUID,
          .files = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset" } },
        { .vendor = "amd", .variable = "AMD_VISIBLE_DEVICES", .by = VISIBLE_BY_INDEX, .files = { "/dev/kfd" } },
        { .vendor = "huawei", .variable = "ASCEND_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER,
          .files = { "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc", "/dev/dvpp_cmdlist" },
          .mounts = { { "/usr/local/Ascend/driver/lib64", true }, { "/usr/local/Ascend/driver/include", true },
                      { "/usr/local/Ascend/driver/version.info", true }, { "/usr/local/dcmi", true },
                      { "/usr/local/bin/npu-smi", true }, { "/etc/ascend_install.info", true } } },
        { .vendor = "cambricon", .variable = "CAMBRICON_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER,
          .files = { "/dev/cambricon_ctl", "/dev/cambricon_gdr" } },
        { .vendor = "hygon", .variable = "HYGON_VISIBLE_DEVICES", .by = VISIBLE_BY_INDEX,
          .files = { "/dev/kfd", "/dev/mkfd" }, .mounts = { { "/opt/hyhal", true } } },
        { .vendor = "mthreads", .variable = "MTHREADS_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER },
        { .vendor = "metax", .files = { "/dev/mxcd", "/dev/mxnd", "/dev/mxgd" } },
        { .vendor = "iluvatar", .variable = "IX_VISIBLE_DEVICES", .by = VISIBLE_BY_UUID, .files = { "/dev/itrctl" } },
        { .vendor = "enflame", .variable = "ENFLAME_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER,
          .files = { "/dev/gcuctl" } },
        { .vendor = "kunlunxin", .variable = "XPU_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER,
          .files = { "/dev/xpuctrl" } },
        { .vendor = "biren", .variable = "BR_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER },
        { .vendor = "thead", .variable = "NVIDIA_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER,
          .files = { "/dev/alixpu", "/dev/alixpu_ctl" } },
        { .vendor = "habana", .variable = "HABANA_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER },
        { .vendor = "aws", .variable = "AWS_NEURON_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER },
        { .vendor = "google", .variable = "TPU_VISIBLE_CHIPS", .by = VISIBLE_BY_INDEX, .files = { "/dev/vfio/vfio" } },
        { .vendor = "tenstorrent", .variable = "TT_VISIBLE_DEVICES", .by = VISIBLE_BY_NUMBER,
          .mounts = { { "/dev/hugepages-1G", false } } },
        { .vendor = "rebellions", .variable = "RBLN_DEVICES", .by = VISIBLE_BY_NUMBER },
};
/* clang-format on */

const struct vendor_environment *vendor_environment_find(const char *vendor)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (strcmp(rows[i].vendor, vendor) == 0)
                        return &rows[i];
        return NULL;
}

/* UUIDs begin with a word of the vendor's ("GPU-8f2c...", "MIG-..."); PCI addresses and serials do not. */
static bool is_uuid(const char *id)
{
        return text_starts_with(id, "GPU-") || text_starts_with(id, "MIG-");
}

static bool number_of_file(const struct device *device, char *ret, size_t ret_bytes)
{
        for (size_t i = 0; i < device->node_count; i++) {
                const char *path = device->nodes[i], *end = path + strlen(path), *digits = end;

                while (digits > path && isdigit((unsigned char) digits[-1]))
                        digits--;
                if (digits < end)
                        return text_copy(ret, ret_bytes, digits);
        }
        return false;
}

void visible_name(const struct vendor_environment *row, const struct device *device, char *ret,
                  size_t ret_bytes)
{
        if (row->by == VISIBLE_BY_UUID && is_uuid(device->id))
                (void) text_copy(ret, ret_bytes, device->id);
        else if (row->by == VISIBLE_BY_INDEX || !number_of_file(device, ret, ret_bytes))
                (void) text_format(ret, ret_bytes, "%u", device->index);
}
