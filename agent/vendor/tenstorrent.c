/* Tenstorrent. The class device tenstorrent!N carries the card's type, serial and more, where the firmware
 * reports them. */
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0xfaca, "Grayskull", 8, NULL }, { 0x401e, "Wormhole", 12, NULL }, { 0xb140, "Blackhole", 32, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

static ssize_t read_card(const struct scan *scan, unsigned number, const char *name, char *text,
                         size_t text_bytes)
{
        char path[128];

        (void) text_format(path, sizeof(path), "sys/class/tenstorrent/tenstorrent!%u/%s", number, name);
        return tree_read_text(scan->tree, path, text, text_bytes);
}

static int add(struct scan *scan, struct sighting *sighting)
{
        char text[64];

        (void) text_format(sighting->placement.resource, sizeof(sighting->placement.resource),
                           "tenstorrent.com/%s",
                           sighting->device.model[0] == 'G'   ? "grayskull"
                           : sighting->device.model[0] == 'B' ? "blackhole"
                                                              : "wormhole");
        if (sighting->number_known &&
            read_card(scan, sighting->number, "tt_card_type", text, sizeof(text)) > 0 &&
            strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == strlen(text)) {
                sighting->device.memory_bytes = 0;
                vendor_set_model_name(sighting, text);
                (void) text_format(sighting->placement.resource, sizeof(sighting->placement.resource),
                                   "tenstorrent.com/%s", text);
        }
        if (sighting->number_known &&
            (read_card(scan, sighting->number, "tt_asic_id", text, sizeof(text)) > 0 ||
             read_card(scan, sighting->number, "tt_serial", text, sizeof(text)) > 0))
                vendor_set_serial(sighting, text);
        return vendor_add_one(scan, sighting);
}

const struct vendor vendor_tenstorrent = {
        .name = "tenstorrent",
        .runtime = "tenstorrent",
        .resource = "tenstorrent.com/wormhole",
        .unsure = "the Ethernet between chips cannot be seen in sysfs",
        .pci_vendors = { 0x1e52 },
        .classes = { 0x1200 },
        .models = models,
        .class_name = "tenstorrent",
        .class_prefix = "tenstorrent!",
        .node = "/dev/tenstorrent/{n}",
        .index_is_number = true,
        .visible_variable = "TT_VISIBLE_DEVICES",
        .add = add,
        .add_others = vendor_add_none,
};
