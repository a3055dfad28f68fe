/* Intel Gaudi (Habana). From kernel 6.2 on in the accel class, before in one of its own; the driver tells the
 * state of the device in words. The chips of a box are joined all to all by their own Ethernet ports (OAM
 * boards). */
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

static void judge_status(const struct scan *scan, struct sighting *sighting, const char *class_name,
                         const char *prefix)
{
        static const char *const places[] = { "", "device/" };
        char path[128], status[64];

        for (size_t i = 0; i < 2; i++) {
                (void) text_format(path, sizeof(path), "sys/class/%s/%s%u/%sstatus", class_name, prefix,
                                   sighting->number, places[i]);
                if (tree_read_text(scan->tree, path, status, sizeof(status)) <= 0)
                        continue;
                if (strncasecmp(status, "operational", 11) == 0)
                        return;
                if (strncasecmp(status, "in reset", 8) == 0 ||
                    strncasecmp(status, "in device creation", 18) == 0)
                        sighting_judge(sighting, HEALTH_UNKNOWN, "Resetting", "habana-status",
                                       "its driver says '%s'", status);
                else
                        sighting_judge(sighting, HEALTH_UNHEALTHY, "NotOperational", "habana-status",
                                       "its driver says '%s'", status);
                return;
        }
}

static void use_legacy(struct scan *scan, struct sighting *sighting)
{
        unsigned number;

        if (!scan_class_number(scan, sighting->function, "habanalabs", "hl", &number))
                return;
        sighting_set_number(sighting, number);
        sighting_add_node(scan, sighting, true, "/dev/hl%u", number);
        sighting_add_node(scan, sighting, false, "/dev/hl_controlD%u", number);
        judge_status(scan, sighting, "habanalabs", "hl");
}

static int add(struct scan *scan, struct sighting *sighting)
{
        if (!sighting->number_known)
                use_legacy(scan, sighting);
        else
                judge_status(scan, sighting, "accel", "accel");
        return sighting_add(scan, sighting);
}

const struct reader reader_habana = {
        .vendor = &vendor_habana,
        .add = add,
};
