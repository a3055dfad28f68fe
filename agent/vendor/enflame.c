/* Enflame GCU. The function's directory enflame/gcuN (zixiao/gcuN with one OEM) tells N. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0001, "T10",       16, NULL }, { 0x0002, "T11",       16, NULL }, { 0x0003, "T10-QSFP", 16, NULL },
        { 0x0021, "T20-32GB",  32, NULL }, { 0x0022, "T20-64GB",  64, NULL }, { 0x0023, "T21",      32, NULL },
        { 0x0024, "T21",       32, NULL }, { 0x8001, "I20",       16, NULL }, { 0x8011, "I10",      16, NULL },
        { 0x8012, "I10",       16, NULL }, { 0x8031, "S6",         0, NULL }, { 0x8032, "S6",        0, NULL },
        { 0xc031, "S30",        0, NULL }, { 0xc032, "S90",        0, NULL }, { 0xc033, "S60G",     48, NULL },
        { 0xc035, "S60",       48, NULL }, { 0xc041, "L300",       0, NULL }, { 0xc042, "L600",      0, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_enflame = {
        .name = "enflame",
        .runtime = "enflame",
        .resource = "enflame.com/gcu",
        .unsure = "the class and some memory sizes from memory; GCU-LARE links cannot be seen in sysfs",
        .pci_vendors = { 0x1e36 },
        .classes = { 0x1200 },
        .models = models,
        .classes_of_number = { { "enflame", "gcu" }, { "zixiao", "gcu" } },
        .nodes = { { "/dev/gcu{n}", false } },
        .index_is_number = true,
        .control_nodes = { "/dev/gcuctl" },
        .container = { "ENFLAME_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        .program = { "TOPS_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
};
