/* Intel Gaudi (Habana). From kernel 6.2 on in the accel class, before in one of its own; the driver tells the
 * state of the device in words. The chips of a box are joined all to all by their own Ethernet ports (OAM
 * boards). */
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x0001, "Goya",    16, "goya" }, { 0x0030, "Greco",  16, "greco" },
        { 0x1000, "Gaudi",   32, NULL },   { 0x1010, "Gaudi",  32, NULL },
        { 0x1020, "Gaudi2",  96, NULL },
        { 0x1060, "Gaudi3", 128, NULL },   { 0x1063, "Gaudi3", 128, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

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
                        device_judge(&sighting->device, HEALTH_UNKNOWN, "Resetting", "habana-status",
                                     "its driver says '%s'", status);
                else
                        device_judge(&sighting->device, HEALTH_UNHEALTHY, "NotOperational", "habana-status",
                                     "its driver says '%s'", status);
                return;
        }
}

static void use_legacy(struct scan *scan, struct sighting *sighting)
{
        unsigned number;

        if (!vendor_class_number(scan, sighting->function, "habanalabs", "hl", &number))
                return;
        vendor_set_number(sighting, number);
        vendor_add_node(scan, &sighting->device, true, "/dev/hl%u", number);
        vendor_add_node(scan, &sighting->device, false, "/dev/hl_controlD%u", number);
        judge_status(scan, sighting, "habanalabs", "hl");
}

static int add(struct scan *scan, struct sighting *sighting)
{
        if (!sighting->number_known)
                use_legacy(scan, sighting);
        else
                judge_status(scan, sighting, "accel", "accel");
        if (sighting->device.node_count == 0) {
                vendor_add_node(scan, &sighting->device, true, "/dev/accel/accel%u", sighting->number);
                vendor_add_node(scan, &sighting->device, false, "/dev/accel/accel_controlD%u",
                                sighting->number);
        }
        if (strncmp(sighting->device.model, "Gaudi", 5) == 0) {
                vendor_set_fabric(&sighting->placement, "roce", "rule", -1, "%s", "node");
                sighting->placement.needs_company = true;
        } else if (sighting->kind[0] != '\0')
                (void) text_format(sighting->placement.resource, sizeof(sighting->placement.resource),
                                   "habana.ai/%s", sighting->kind);
        return vendor_add_one(scan, sighting);
}

const struct vendor vendor_habana = {
        .name = "habana",
        .runtime = "habana",
        .resource = "habana.ai/gaudi",
        .unsure = "that Gaudi boards are joined all to all follows from the OAM form; PCIe cards may not be",
        .pci_vendors = { 0x1da3 },
        .classes = { 0x1200 },
        .models = models,
        .class_name = "accel",
        .class_prefix = "accel",
        .node = "/dev/accel/accel{n}",
        .visible_variable = "HABANA_VISIBLE_DEVICES",
        .add = add,
        .add_others = vendor_add_none,
};
