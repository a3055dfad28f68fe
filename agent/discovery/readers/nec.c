/* NEC Vector Engine (SX-Aurora). The class device veN carries serial, memory and state. */
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

static ssize_t read_engine(const struct scan *scan, unsigned number, const char *name, char *text,
                           size_t text_bytes)
{
        char path[96];

        (void) text_format(path, sizeof(path), "sys/class/ve/ve%u/%s", number, name);
        return tree_read_text(scan->tree, path, text, text_bytes);
}

/* The serial is written as the hexadecimal codes of its letters, padded with zeros. */
static void set_serial(struct sighting *sighting, const char *hex)
{
        char serial[40], pair[3] = "";
        size_t length = 0;
        uint64_t code;

        for (; hex[0] != '\0' && hex[1] != '\0' && length + 1 < sizeof(serial); hex += 2) {
                memcpy(pair, hex, 2);
                if (text_parse_hex64(pair, &code) < 0 || code < ' ' || code > '~')
                        break;
                serial[length++] = (char) code;
        }
        serial[length] = '\0';
        sighting_set_serial(sighting, serial);
}

static int add(struct scan *scan, struct sighting *sighting)
{
        char text[128];
        uint64_t value;

        if (!sighting->number_known)
                return sighting_add(scan, sighting);
        if (read_engine(scan, sighting->number, "serial", text, sizeof(text)) > 0)
                set_serial(sighting, text);
        if (read_engine(scan, sighting->number, "memory_size", text, sizeof(text)) > 0 &&
            text_parse_uint64(text, &value) == 0 && value > 0 && value < 65536)
                sighting->device.memory_bytes = value << 30;
        /* 1 is online; the others (offline, maintenance, unavailable) run no program */
        if (read_engine(scan, sighting->number, "ve_state", text, sizeof(text)) > 0 &&
            text_parse_uint64(text, &value) == 0 && value != 1)
                sighting_judge(sighting, HEALTH_UNHEALTHY, "NotOperational", "ve-state",
                               "its driver says that it is not online (ve_state %s)", text);
        return sighting_add(scan, sighting);
}

const struct reader reader_nec = {
        .vendor = &vendor_nec,
        .add = add,
};
