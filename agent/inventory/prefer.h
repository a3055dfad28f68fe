/* Prefer: which of the available devices to give, so that they talk fast and whole groups stay whole. Pure.
 *
 * The best set is the first in this order (docs/reference/device-plugin.md says it for operators):
 *   1. fewest device groups touched;
 *   2. fewest whole groups broken (all of a group's devices available before, some left after): a request
 *      smaller than a group goes to a group that is broken already when one has room;
 *   3. most whole groups taken completely;
 *   4. largest sum of weights over the pairs (prefer_map_weight());
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

#include "agent/inventory/prefer_map.h"

#define PREFER_WORK   200000 /* elementary steps; a fraction of a millisecond */
#define PREFER_GREEDY 80000  /* of them for trying further seeds */

struct prefer_request {
        uint16_t *available; /* per device of the map: ids to choose from (0 or 1; up to `shares`), must
                                included */
        uint16_t *must;      /* per device: ids that the answer holds in any case, <= available */
        size_t size;         /* ids wanted in all */
};

struct prefer_answer {
        uint16_t *taken; /* per device of the map: ids to give; the caller's array of map->count */
        size_t size;     /* ids in it; less than wanted when not enough are available, more when must is */
        uint64_t score;  /* sum of prefer_map_weight() over the pairs of different devices in the answer */
        bool exact;      /* no other set comes before it in the order above */
};

/* prefer_choose() - always an answer that contains must and stays within available.
 * Return: 0, or -ENOMEM, and then the answer is valid but arbitrary. */
int prefer_choose(const struct prefer_map *map, const struct prefer_request *request,
                  struct prefer_answer *ret);
