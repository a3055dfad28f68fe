/* Rebellions. Physical functions have even ids, virtual ones (seen in virtual machines) the odd ones above.
 */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x1020, "ATOM-CA02",  0, "ATOM" },  { 0x1021, "ATOM-CA02",  0, "ATOM" },
        { 0x1110, "ATOM-CA11",  0, "ATOM" },  { 0x1111, "ATOM-CA11",  0, "ATOM" },
        { 0x1120, "ATOM-CA12", 16, "ATOM" },  { 0x1121, "ATOM-CA12", 16, "ATOM" },
        { 0x1210, "ATOM-CA21",  0, "ATOM" },  { 0x1211, "ATOM-CA21",  0, "ATOM" },
        { 0x1220, "ATOM-Plus", 16, "ATOM" },  { 0x1221, "ATOM-Plus", 16, "ATOM" },
        { 0x1250, "ATOM-Max",  64, "ATOM" },  { 0x1251, "ATOM-Max",  64, "ATOM" },
        { 0x2030, "REBEL-CR03", 144, "REBEL" }, { 0x2031, "REBEL-CR03", 144, "REBEL" },
        { 0x2130, "REBEL-CR13", 144, "REBEL" }, { 0x2131, "REBEL-CR13", 144, "REBEL" },
        { 0x2230, "REBEL-CR23", 144, "REBEL" }, { 0x2231, "REBEL-CR23", 144, "REBEL" },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_rebellions = {
        .name = "rebellions",
        .runtime = "rebellions",
        .resource = "rebellions.ai/npu",
        .claimed = { { "npu.rebellions.ai", NULL } },
        .unsure = "memory sizes from memory",
        .pci_vendors = { 0x1eff },
        .classes = { 0x1200 },
        .models = models,
        .classes_of_number = { { "rebellions", "rbln" } },
        .nodes = { { "/dev/rbln{n}", false } },
        .kinds = (const struct vendor_kind[]){ { "ATOM", "rebellions.ai/ATOM", NULL, 0, false },
                                               { "REBEL", "rebellions.ai/REBEL", NULL, 0, false },
                                               { 0 } },
        .container = { "RBLN_DEVICES", VENDOR_BY_NUMBER, false },
};
