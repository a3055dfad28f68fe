/* Link report: what a vendor's library said of one device's direct links (NVLink...). Pure data.
 *
 * The agent's probe children make them, the agent remembers them, discovery draws groups from them
 * (discovery_run_linked()). Where none is reported, the system tree and the vendor's rules decide. */
#pragma once

#include "agent/inventory/device.h"

struct link_report {
        char vendor[24];
        char pci[20]; /* of the device that was asked about */
        struct device_link links[DEVICE_LINKS_MAX];
        size_t link_count;
        unsigned switched; /* links that end at a switch, which joins all of its devices alike */
};

struct link_report_list {
        struct link_report *reports; /* one a device */
        size_t count;
};

void link_report_list_free(struct link_report_list *reports); /* accepts NULL; leaves it empty */

/* link_report_list_find() - NULL = nothing is known. */
struct link_report *link_report_list_find(const struct link_report_list *reports, const char *vendor,
                                          const char *pci);

/* link_report_list_put() - replace the report about that device, or add it. Return: 0; -ENOMEM also past
 * DEVICES_MAX. */
int link_report_list_put(struct link_report_list *reports, const struct link_report *report);

bool link_report_same(const struct link_report *a, const struct link_report *b);

/* link_report_add() - one more link between the device and `peer`. Return: false when it has too many peers.
 */
bool link_report_add(struct link_report *report, const char *peer, unsigned width);
