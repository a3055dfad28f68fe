/* Fabrics: what joins the devices of which their vendor's row knows no better: the PCIe switch that at least
 * two of them share, else the NUMA node. (A card with a bridge of its own is no switch that joins anything.)
 */
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

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
        struct placement *placement = &scan->placements[i];
        const struct device *device = &scan->inventory->devices[i];

        if (shares_switch(scan, i))
                vendor_set_fabric(placement, "pcie-switch", "pci", -1, "%.*s",
                                  (int) pci_root_port(placement->bridges), placement->bridges);
        else if (device->numa >= 0)
                vendor_set_fabric(placement, "numa", "sysfs", -1, "%d", device->numa);
        else
                vendor_set_fabric(placement, "none", "none", -1, "%s", "");
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

void scan_adopt(struct scan *scan)
{
        for (size_t i = 0; i < scan->inventory->device_count; i++) {
                struct device *device = &scan->inventory->devices[i];
                struct placement *placement = &scan->placements[i];
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

void scan_fabrics(struct scan *scan)
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
