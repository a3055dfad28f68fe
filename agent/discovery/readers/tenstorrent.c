/* Tenstorrent. The class device tenstorrent!N carries the card's type, serial and more, where the firmware
 * reports them. */
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

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

        if (sighting->number_known &&
            read_card(scan, sighting->number, "tt_card_type", text, sizeof(text)) > 0 &&
            strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == strlen(text)) {
                sighting->device.memory_bytes = 0;
                sighting_set_model_name(sighting, text);
                (void) text_format(sighting->placement.resource, sizeof(sighting->placement.resource),
                                   "tenstorrent.com/%s", text);
        }
        if (sighting->number_known &&
            (read_card(scan, sighting->number, "tt_asic_id", text, sizeof(text)) > 0 ||
             read_card(scan, sighting->number, "tt_serial", text, sizeof(text)) > 0))
                sighting_set_serial(sighting, text);
        return sighting_add(scan, sighting);
}

const struct reader reader_tenstorrent = {
        .vendor = &vendor_tenstorrent,
        .add = add,
};
