/* Links: what joins two devices directly, and how fat it is, where the system tree says so: KFD's xGMI links
 * and the PCIe switch that two functions share. For the device plugin's choice of neighbours; groups are made
 * without it. */
#include <string.h>

#include "core/text.h"
#include "discovery/vendor.h"

static struct device *device_at(const struct scan *scan, uint64_t order)
{
        char address[20];

        pci_format_address(order, address, sizeof(address));
        for (size_t i = 0; i < scan->inventory->device_count; i++)
                if (strcmp(scan->inventory->devices[i].pci, address) == 0)
                        return &scan->inventory->devices[i];
        return NULL;
}

static void link_kfd_node(const struct scan *scan, const struct kfd_node *node)
{
        struct device *device = device_at(scan, node->order);

        for (size_t i = 0; device != NULL && device->link_count < DEVICE_LINKS_MAX && i < node->link_count;
             i++) {
                struct device_link *link = &device->links[device->link_count++];

                pci_format_address(node->links[i].order, link->peer, sizeof(link->peer));
                link->width = node->links[i].width;
        }
}

void scan_links(struct scan *scan)
{
        for (size_t i = 0; i < scan->kfd.count; i++)
                link_kfd_node(scan, &scan->kfd.nodes[i]);
        for (size_t i = 0; i < scan->inventory->device_count; i++) {
                const char *port = scan->placements[i].root_port, *slash = strrchr(port, '/');

                (void) text_copy(scan->inventory->devices[i].pci_switch,
                                 sizeof(scan->inventory->devices[i].pci_switch),
                                 slash == NULL ? port : slash + 1);
        }
}
