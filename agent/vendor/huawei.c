/* Huawei Ascend. dev_id of the function is the physical id, which names /dev/davinciN. The HCCS groups follow
 * from the chip: two rings of four (910A), a full mesh of eight (910B), one of all dies (910C). */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0xd100, "Ascend310",   8, "310" },
        { 0xd105, "Ascend310B",  0, "310" }, { 0xd107, "Ascend310B",  0, "310" },
        { 0xd500, "Ascend310P", 24, "310P" },
        { 0xd801, "Ascend910A", 32, "910A" },
        { 0xd802, "Ascend910B", 64, "910B" },
        { 0xd803, "Ascend910C", 64, "910C" },
        { 0xd807, "Ascend-d807", 0, "A5" },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_huawei = {
        .name = "huawei",
        .runtime = "cann",
        .resource = "huawei.com/Ascend910",
        .claimed = { { "ascend.project-hami.io", NULL } },
        .unsure = "d105 and d107 (310B) from memory, the name of d807 is not known; which 910B it is (B1-B4) "
                  "only "
                  "DCMI tells; HCCS groups follow from the chip, a card form of 910A or 910B has none",
        .pci_vendors = { 0x19e5 },
        .classes = { 0x1200 },
        .models = models,
        .nodes = { { "/dev/davinci{n}", false } },
        .index_is_number = true,
        .control_nodes = { "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc", "/dev/dvpp_cmdlist" },
        .kinds = (const struct vendor_kind[]){ { "310", "huawei.com/Ascend310", NULL, 0, false },
                                               { "310P", "huawei.com/Ascend310P", NULL, 0, false },
                                               { "910A", "huawei.com/Ascend910", "hccs", 4, false },
                                               { "910B", "huawei.com/Ascend910", "hccs", 8, false },
                                               { "910C", "huawei.com/Ascend910", "hccs", 16, false },
                                               { "A5", "huawei.com/npu", NULL, 0, false },
                                               { 0 } },
        .mounts = (const struct vendor_mount[]){ { "/usr/local/Ascend/driver/lib64", false },
                                                 { "/usr/local/Ascend/driver/include", false },
                                                 { "/usr/local/Ascend/driver/version.info", false },
                                                 { "/usr/local/dcmi", false },
                                                 { "/usr/local/bin/npu-smi", false },
                                                 { "/etc/ascend_install.info", false },
                                                 { 0 } },
        .container = { "ASCEND_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        .program = { "ASCEND_RT_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
        .loads = { "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH" }, /* CANN's operators, and one's own */
        .subsystems = { "davinci" },
        .char_devices = { "devdrv_manager", "davinci" },
        .monitors = { "npu-exporter" },
};
