/* Xilinx and AMD FPGA cards. A card has a management function (.0) and a user function (.1): one device, told
 * by the first of them, with the nodes of both. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x5000, "U200", 64, NULL },  { 0x5001, "U200", 64, NULL },  { 0x5004, "U250", 64, NULL },
        { 0x5005, "U250", 64, NULL },  { 0x500c, "U280",  8, NULL },  { 0x500d, "U280",  8, NULL },
        { 0x5020, "U50",   8, NULL },  { 0x5021, "U50",   8, NULL },  { 0x505c, "U55C", 16, NULL },
        { 0x505d, "U55C", 16, NULL },  { 0x5074, "X3522", 0, NULL },  { 0x5084, "X3522", 0, NULL },
        { 0xd000, "U200-golden", 0, "golden" }, { 0xd004, "U250-golden", 0, "golden" },
        { 0xd00c, "U280-golden", 0, "golden" }, { 0xd020, "U50-golden", 0, "golden" },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_xilinx = {
        .name = "xilinx",
        .runtime = "xilinx",
        .resource = "remuda.dev/xilinx",
        .unsure = "the user function's ids follow a pattern",
        .pci_vendors = { 0x10ee },
        .classes = { 0x1200 },
        .models = models,
        .more_resources = { "xilinx.com/fpga" }, /* of older plugins */
};
