/* NEC Vector Engine (SX-Aurora). The class device veN carries serial, memory and state. */
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x001c, "VE-10", 48, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

static ssize_t read_engine(const struct scan *scan, unsigned number, const char *name, char *text,
                           size_t text_bytes)
{
        char path[96];

        (void) text_format(path, sizeof(path), "sys/class/ve/ve%u/%s", number, name);
        return tree_read_text(scan->tree, path, text, text_bytes);
}

/* The serial is told as the hexadecimal codes of its letters, padded with zeros. */
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
        vendor_set_serial(sighting, serial);
}

static int add(struct scan *scan, struct sighting *sighting)
{
        char text[128];
        uint64_t value;

        if (!sighting->number_known)
                return vendor_add_one(scan, sighting);
        if (read_engine(scan, sighting->number, "serial", text, sizeof(text)) > 0)
                set_serial(sighting, text);
        if (read_engine(scan, sighting->number, "memory_size", text, sizeof(text)) > 0 &&
            text_parse_uint64(text, &value) == 0 && value > 0 && value < 65536)
                sighting->device.memory_bytes = value << 30;
        /* 1 is online; the others (offline, maintenance, unavailable) run no program */
        if (read_engine(scan, sighting->number, "ve_state", text, sizeof(text)) > 0 &&
            text_parse_uint64(text, &value) == 0 && value != 1)
                device_judge(&sighting->device, HEALTH_UNHEALTHY, "NotOperational", "ve-state",
                             "its driver says that it is not online (ve_state %s)", text);
        return vendor_add_one(scan, sighting);
}

const struct vendor vendor_nec = {
        .name = "nec",
        .runtime = "nec",
        .resource = "nec.com/ve",
        .unsure =
                "that ve_state 1 alone is online follows from recordings; ids of later engines are not known",
        .pci_vendors = { 0x1bcf },
        .classes = { 0x0b40, 0x1200 },
        .models = models,
        .class_name = "ve",
        .class_prefix = "ve",
        .node = "/dev/ve{n}",
        .index_is_number = true,
        .visible_variable = "VE_NODE_NUMBER",
        .add = add,
        .add_others = vendor_add_none,
};
