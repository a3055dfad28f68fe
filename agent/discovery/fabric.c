/* Fabric: links, what joins two devices directly, and how fat it is: KFD's xGMI links, what a vendor's
 * library said (NVLink by NVML), and the PCIe switch that two functions share. For the device plugin's choice
 * of neighbours.
 *
 * Where a library told of links, they also decide the fabric: devices that links join, through others or
 * through switches, are one domain. What the library did not tell of stays as its vendor's row has it; a
 * board that by its form belongs to a domain and has no link that works stays with the only domain of its
 * like: that its links are down is its health, not another group. */
#include "agent/discovery/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "agent/inventory/link_report_line.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"

#define NO_DOMAIN        SIZE_MAX
#define LINKS_FILE_BYTES ((size_t) 256 << 10)

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

static void copy_last(const char *way, size_t size_bytes, char *ret, size_t ret_bytes)
{
        size_t begin = size_bytes;

        while (begin > 0 && way[begin - 1] != '/')
                begin--;
        (void) text_format(ret, ret_bytes, "%.*s", (int) (size_bytes - begin), way + begin);
}

/* A card with a bridge of its own hangs on no switch that joins anything. */
static void find_switch(const struct scan *scan, size_t i)
{
        struct device *device = &scan->inventory->devices[i];
        const char *bridges = scan->placements[i].bridges;
        size_t nearest = 0;

        for (size_t j = 0; j < scan->inventory->device_count; j++) {
                size_t shared;

                if (strcmp(scan->inventory->devices[j].vendor, device->vendor) != 0 ||
                    strcmp(scan->inventory->devices[j].pci, device->pci) == 0)
                        continue;
                shared = pci_common_switch(bridges, scan->placements[j].bridges);
                nearest = shared > nearest ? shared : nearest;
        }
        if (nearest == 0)
                return;
        copy_last(bridges, nearest, device->pci_switch, sizeof(device->pci_switch));
        copy_last(bridges, pci_root_port(bridges), device->pci_port, sizeof(device->pci_port));
}

/* Those of the tree: of a machine file, or left by the agent of a live one. */
static void read_tree(const struct scan *scan, const struct vendor *row, struct link_report_list *ret)
{
        CLEANUP(free_p) char *bytes = NULL;
        char path[128];
        ssize_t size;

        if (!text_format(path, sizeof(path), LINK_REPORT_LINE_FOLDER "/%s", row->name) ||
            tree_kind(scan->tree, path) != TREE_FILE)
                return;
        bytes = malloc(LINKS_FILE_BYTES);
        if (bytes == NULL)
                return;
        size = tree_read(scan->tree, path, bytes, LINKS_FILE_BYTES);
        if (size > 0 && (size_t) size < LINKS_FILE_BYTES) /* one that is no such file says nothing */
                (void) link_report_line_decode_all(row->name, bytes, (size_t) size, ret, NULL);
}

static bool tells_of(const struct link_report_list *reports, const struct vendor *row)
{
        for (size_t i = 0; reports != NULL && i < reports->count; i++)
                if (strcmp(reports->reports[i].vendor, row->name) == 0)
                        return true;
        return false;
}

/* Can it be in a domain? A partition cannot use the links of the whole. */
static bool can_join(const struct scan *scan, const struct vendor *row, size_t i)
{
        const struct device *device = &scan->inventory->devices[i];

        return scan->placements[i].grouped && device->partition[0] == '\0' && device->pci[0] != '\0' &&
               strcmp(device->vendor, row->name) == 0;
}

static ssize_t member_at(const struct scan *scan, const struct vendor *row, const char *pci)
{
        for (size_t i = 0; i < scan->inventory->device_count; i++)
                if (can_join(scan, row, i) && strcmp(scan->inventory->devices[i].pci, pci) == 0)
                        return (ssize_t) i;
        return -1;
}

/* A library that is too old to say what the other end is: a bridge of the same vendor is its switch. */
static bool is_switch(const struct scan *scan, const struct vendor *row, const char *pci)
{
        const struct pci_function *function = pci_find(&scan->pci, pci);

        return function != NULL && function->class_code >> 8 == 0x0680 &&
               function->vendor == row->pci_vendors[0];
}

struct domains {
        const struct scan *scan;
        const struct vendor *row;
        size_t *of; /* per device: the first device of its domain, or NO_DOMAIN */
        size_t switched;
};

static void join(struct domains *d, size_t a, size_t b)
{
        size_t x = d->of[a] == NO_DOMAIN ? a : d->of[a], y = d->of[b] == NO_DOMAIN ? b : d->of[b];
        size_t first = x < y ? x : y;

        d->of[a] = x;
        d->of[b] = y;
        for (size_t i = 0; i < d->scan->inventory->device_count; i++)
                if (d->of[i] == x || d->of[i] == y)
                        d->of[i] = first;
}

/* All that hang on switches are one domain: a node has one such fabric. */
static void join_switched(struct domains *d, size_t i)
{
        if (d->switched == NO_DOMAIN)
                d->switched = i;
        join(d, i, d->switched);
}

static void use_report(struct domains *d, size_t i, const struct link_report *report)
{
        struct device *device = &d->scan->inventory->devices[i];

        if (report->switched > 0)
                join_switched(d, i);
        for (size_t l = 0; l < report->link_count; l++) {
                ssize_t peer = member_at(d->scan, d->row, report->links[l].peer);

                if (peer >= 0) {
                        join(d, i, (size_t) peer);
                        if (device->link_count < DEVICE_LINKS_MAX)
                                device->links[device->link_count++] = report->links[l];
                } else if (is_switch(d->scan, d->row, report->links[l].peer))
                        join_switched(d, i);
        }
}

/* The only domain of the device's like; NO_DOMAIN when there is none or another. */
static size_t only_domain(const struct domains *d, size_t i)
{
        const struct inventory *inventory = d->scan->inventory;
        size_t only = NO_DOMAIN;

        for (size_t j = 0; j < inventory->device_count; j++) {
                if (d->of[j] == NO_DOMAIN ||
                    strcmp(inventory->devices[j].model, inventory->devices[i].model) != 0)
                        continue;
                if (only != NO_DOMAIN && only != d->of[j])
                        return NO_DOMAIN;
                only = d->of[j];
        }
        return only;
}

static void use_reports(struct scan *scan, const struct vendor *row, const struct link_report_list *reports)
{
        size_t count = scan->inventory->device_count;
        CLEANUP(free_p) size_t *of = calloc(count + 1, sizeof(*of));
        struct domains d = { .scan = scan, .row = row, .of = of, .switched = NO_DOMAIN };

        if (of == NULL)
                return;
        for (size_t i = 0; i < count; i++)
                of[i] = NO_DOMAIN;
        for (size_t i = 0; i < count; i++) {
                const struct link_report *report =
                        can_join(scan, row, i)
                                ? link_report_list_find(reports, row->name, scan->inventory->devices[i].pci)
                                : NULL;

                if (report != NULL)
                        use_report(&d, i, report);
        }
        for (size_t i = 0; i < count; i++) {
                struct scan_placement *placement = &scan->placements[i];
                bool by_form = strcmp(placement->fabric, row->link_fabric) == 0;
                size_t domain =
                        of[i] == NO_DOMAIN && by_form && can_join(scan, row, i) ? only_domain(&d, i) : of[i];

                if (domain == NO_DOMAIN)
                        continue;
                scan_set_fabric(placement, row->link_fabric, row->link_source, -1, "links-%s",
                                scan->inventory->devices[domain].pci);
                placement->needs_company = true;
        }
}

void fabric_link(struct scan *scan)
{
        for (size_t i = 0; i < scan->kfd.count; i++)
                link_kfd_node(scan, &scan->kfd.nodes[i]);
        for (size_t i = 0; i < scan->inventory->device_count; i++)
                find_switch(scan, i);
        for (size_t v = 0; vendors[v] != NULL; v++) {
                CLEANUP(link_report_list_free) struct link_report_list read = { 0 };
                const struct link_report_list *reports = scan->links;

                if (vendors[v]->link_fabric == NULL || !scan_has_devices(scan, vendors[v]->name))
                        continue;
                if (!tells_of(reports, vendors[v])) {
                        read_tree(scan, vendors[v], &read);
                        reports = &read;
                }
                use_reports(scan, vendors[v], reports);
        }
}

/* Could the two be in one group, as far as kind goes? */
static bool alike(const struct scan *scan, size_t a, size_t b)
{
        return scan->placements[a].grouped && scan->placements[b].grouped &&
               strcmp(scan->inventory->devices[a].vendor, scan->inventory->devices[b].vendor) == 0 &&
               strcmp(scan->inventory->devices[a].model, scan->inventory->devices[b].model) == 0;
}

static bool has_company(const struct scan *scan, size_t i)
{
        for (size_t j = 0; j < scan->inventory->device_count; j++)
                if (j != i && alike(scan, i, j) &&
                    strcmp(scan->placements[j].fabric, scan->placements[i].fabric) == 0 &&
                    strcmp(scan->placements[j].key, scan->placements[i].key) == 0)
                        return true;
        return false;
}

static bool shares_switch(const struct scan *scan, size_t i)
{
        size_t port = pci_root_port(scan->placements[i].bridges);

        if (port == 0)
                return false;
        for (size_t j = 0; j < scan->inventory->device_count; j++)
                if (j != i && alike(scan, i, j) &&
                    strcmp(scan->inventory->devices[j].pci, scan->inventory->devices[i].pci) != 0 &&
                    pci_root_port(scan->placements[j].bridges) == port &&
                    strncmp(scan->placements[j].bridges, scan->placements[i].bridges, port) == 0)
                        return true;
        return false;
}

static void place_by_pci(struct scan *scan, size_t i)
{
        struct scan_placement *placement = &scan->placements[i];
        const struct device *device = &scan->inventory->devices[i];

        if (shares_switch(scan, i))
                scan_set_fabric(placement, "pcie-switch", "pci", -1, "%.*s",
                                (int) pci_root_port(placement->bridges), placement->bridges);
        else if (device->numa >= 0)
                scan_set_fabric(placement, "numa", "sysfs", -1, "%d", device->numa);
        else
                scan_set_fabric(placement, "none", "none", -1, "%s", "");
}

/* The first device with a driver and the same PCI ids; SIZE_MAX = none. */
static size_t find_like(const struct scan *scan, size_t i)
{
        for (size_t j = 0; j < scan->inventory->device_count; j++)
                if (scan->placements[j].grouped && scan->placements[j].bound &&
                    scan->placements[j].pci_ids == scan->placements[i].pci_ids &&
                    scan->inventory->devices[j].partition[0] == '\0')
                        return j;
        return SIZE_MAX;
}

void fabric_adopt(struct scan *scan)
{
        for (size_t i = 0; i < scan->inventory->device_count; i++) {
                struct device *device = &scan->inventory->devices[i];
                struct scan_placement *placement = &scan->placements[i];
                size_t like;

                if (!placement->grouped || placement->bound || placement->pci_ids == 0)
                        continue;
                like = find_like(scan, i);
                if (like == SIZE_MAX)
                        continue;
                (void) text_copy(device->model, sizeof(device->model), scan->inventory->devices[like].model);
                device->memory_bytes = scan->inventory->devices[like].memory_bytes;
                (void) text_copy(placement->resource, sizeof(placement->resource),
                                 scan->placements[like].resource);
                placement->tflops_bf16 = scan->placements[like].tflops_bf16;
                placement->tflops_fp16 = scan->placements[like].tflops_fp16;
                placement->tflops_fp32 = scan->placements[like].tflops_fp32;
        }
}

void fabric_place(struct scan *scan)
{
        /* All are asked before any is changed: a fabric without company goes for all its bearers or for none.
         */
        for (size_t i = 0; i < scan->inventory->device_count; i++)
                if (scan->placements[i].needs_company && !has_company(scan, i))
                        scan->placements[i].fabric[0] = '\0';
        for (size_t i = 0; i < scan->inventory->device_count; i++)
                if (scan->placements[i].fabric[0] == '\0')
                        place_by_pci(scan, i);
}
