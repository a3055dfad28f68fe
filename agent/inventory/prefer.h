/* Prefer: which of the available devices to give, so that they talk fast and whole groups stay whole. Pure.
 *
 * The best set is the first in this order (docs/reference/device-plugin.md says it for operators):
 *   1. fewest device groups touched;
 *   2. fewest whole groups broken (all of a group's devices available before, some left after): a request
 *      smaller than a group goes to a group that is broken already when one has room;
 *   3. most whole groups taken completely;
 *   4. largest sum of weights over the pairs (prefer_weight());
 *   5. fewest devices left over in the groups touched;
 *   6. the smallest positions, compared one by one.
 * Where devices are shared, 2, 3 and 5 give way to: the chips with the fewest shares taken.
 *
 * Exact (every set looked at, depth first) when that takes at most PREFER_WORK steps, which is always so up
 * to 16 devices; beyond, groups are chosen by the same order and filled greedily from every seed, then
 * improved by swaps, within the same bound on the work, whatever is asked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"

#define PREFER_KEEP_MAX 128    /* devices of one resource beyond which links are not told apart */
#define PREFER_WORK     200000 /* elementary steps; a fraction of a millisecond */
#define PREFER_GREEDY   80000  /* of them for trying further seeds */

/* What the choice needs to know of a device, in small numbers. */
struct prefer_device {
        uint16_t group;      /* index; 0 = none */
        uint16_t pci_switch; /* 0 = none that another of its vendor hangs on */
        uint16_t pci_port;   /* root port above such a switch; 0 = none */
        int16_t numa;        /* -1 = not known */
        bool fabric;         /* its group is joined by a fabric of its own: NVLink, HCCS, xGMI... */
};

struct prefer_map {
        struct prefer_device *devices;
        size_t count;
        uint32_t *
                weights; /* count x count, prefer_weight() of each pair; NULL above PREFER_KEEP_MAX devices */
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

/* prefer_order() - the canonical order of a resource's members (`a`, `b`: size_t indexes into the inventory,
 * the argument): by index on the node, then by id. For qsort_r(). */
int prefer_order(const void *a, const void *b, void *inventory);

/* prefer_weight() - how well two different devices of the map talk: 1, and
 * 50 in one group of whatever kind, 1000 more if a fabric joins it; 500 per unit of link width (30 units at
 * most; the wider of what both ends report); 300 under one PCIe switch, or 200 under one root port where
 * switches hang on each other; 100 on one NUMA node. A fatter link counts for more than switch and node. */
uint32_t prefer_weight(const struct prefer_map *map, size_t a, size_t b);

struct prefer_request {
        uint16_t *available; /* per device of the map: ids to choose from (0 or 1; up to `shares`), must
                                included */
        uint16_t *must;      /* per device: ids that the answer holds in any case, <= available */
        size_t size;         /* ids wanted in all */
};

struct prefer_answer {
        uint16_t *taken; /* per device of the map: ids to give; the caller's array of map->count */
        size_t size;     /* ids in it; less than wanted when not enough are available, more when must is */
        uint64_t score;  /* sum of prefer_weight() over the pairs of different devices in the answer */
        bool exact;      /* no other set comes before it in the order above */
};

/* prefer_choose() - always an answer that contains must and stays within available.
 * Return: 0, or -ENOMEM, and then the answer is valid but arbitrary. */
int prefer_choose(const struct prefer_map *map, const struct prefer_request *request,
                  struct prefer_answer *ret);
