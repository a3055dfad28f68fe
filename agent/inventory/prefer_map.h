/* Prefer map: the topology of one resource's devices, in small numbers: which are in one group, on one
 * switch, on one NUMA node, and how fat the links between them are. Learned once a snapshot; a choice reads
 * it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/inventory.h"

#define PREFER_MAP_LINKS_MAX 128 /* devices of one resource beyond which links are not told apart */

/* What the choice needs to know of a device, in small numbers. */
struct prefer_map_device {
        uint16_t group;      /* index; 0 = none */
        uint16_t pci_switch; /* 0 = none that another of its vendor hangs on */
        uint16_t pci_port;   /* root port above such a switch; 0 = none */
        int16_t numa;        /* -1 = not known */
        bool fabric;         /* its group is joined by a fabric of its own: NVLink, HCCS, xGMI... */
};

struct prefer_map {
        struct prefer_map_device *devices;
        size_t count;
        uint32_t *weights; /* count x count, prefer_map_weight() of each pair; NULL above PREFER_MAP_LINKS_MAX
                              devices */
        uint16_t *group_sizes; /* by group: devices that belong to it, whatever their health */
        size_t group_count;
        unsigned shares; /* ids per device; 1 = not shared */
        bool linked;     /* some pairs are told apart by their links */
};

/* prefer_map_init() - learn `members` (indexes into the inventory, in canonical order). Release with
 * prefer_map_free(). Return: 0 or -ENOMEM. */
int prefer_map_init(struct prefer_map *map, const struct inventory *inventory, const size_t *members,
                    size_t count, unsigned shares);
void prefer_map_free(struct prefer_map *map);

/* prefer_map_order() - the canonical order of a resource's members (`a`, `b`: size_t indexes into the
 * inventory, the argument): by index on the node, then by id. For qsort_r(). */
int prefer_map_order(const void *a, const void *b, void *inventory);

/* prefer_map_weight() - how well two different devices of the map talk: 1, and
 * 50 in one group of whatever kind, 1000 more if a fabric joins it; 500 per unit of link width (30 units at
 * most; the wider of what both ends report); 300 under one PCIe switch, or 200 under one root port where
 * switches hang on each other; 100 on one NUMA node. A fatter link counts for more than switch and node. */
uint32_t prefer_map_weight(const struct prefer_map *map, size_t a, size_t b);
