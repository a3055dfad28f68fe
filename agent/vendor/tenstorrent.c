/* Tenstorrent. The class device tenstorrent!N carries the card's type, serial and more, where the firmware
 * reports them. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0xfaca, "Grayskull", 8, "grayskull" }, { 0x401e, "Wormhole", 12, NULL }, { 0xb140, "Blackhole", 32, "blackhole" },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_tenstorrent = {
        .name = "tenstorrent",
        .runtime = "tenstorrent",
        .resource = "tenstorrent.com/wormhole",
        .unsure = "the Ethernet between chips cannot be seen in sysfs",
        .pci_vendors = { 0x1e52 },
        .classes = { 0x1200 },
        .models = models,
        .classes_of_number = { { "tenstorrent", "tenstorrent!" } },
        .nodes = { { "/dev/tenstorrent/{n}", false } },
        .index_is_number = true,
        .more_resources = { "tenstorrent.com/n150" },
        .kinds = (const struct vendor_kind[]){ { "grayskull", "tenstorrent.com/grayskull", NULL, 0, false },
                                               { "blackhole", "tenstorrent.com/blackhole", NULL, 0, false },
                                               { 0 } },
        .mounts = (const struct vendor_mount[]){ { "/dev/hugepages-1G", true }, { 0 } },
        .container = { "TT_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        .program = { "TT_VISIBLE_DEVICES", VENDOR_BY_INDEX, false },
        .char_devices = { "tenstorrent" },
};
