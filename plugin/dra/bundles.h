/* Bundles: what a slice offers of a chip or a fabric beside single devices, and what keeps them apart.
 *
 * A bundle is several devices of the inventory as one: a whole fabric group ("group"), or all partitions of a
 * chip that has partitions of one resource ("chip"). Devices that a bundle may take together, and partitions
 * of one chip, draw on one counter set: each device on a counter of its own, of which there is one, a bundle
 * on those of all its devices. So whoever has the bundle keeps the others out, and each of them the bundle.
 *
 *      nvlink: chips 0 1 2 3   set 0 = {c0, c1, c2, c3}   chip 2 takes c2; the group takes c0 c1 c2 c3
 *      two partitions of 4     set 4 = {c4, c5}           each takes its own
 *
 * A set has at most 32 counters, as the API has it: what would make a larger one is no bundle. Shared devices
 * are in none. Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/inventory/dra_name.h"
#include "agent/inventory/dra_share.h"
#include "agent/inventory/inventory.h"

#define BUNDLES_COUNTERS_MAX 32 /* of a set, and so the devices of a bundle */

enum bundle_kind { BUNDLE_GROUP, BUNDLE_CHIP };

struct bundle {
        enum bundle_kind kind;
        struct dra_name name;
        size_t devices[BUNDLES_COUNTERS_MAX]; /* in the inventory, ascending */
        size_t device_count;                  /* >= 2 */
};

struct bundles {
        struct bundle *items;
        size_t count;
        size_t *sets; /* one a device of the inventory: the first device of its set; BUNDLES_NO_SET */
};

#define BUNDLES_NO_SET ((size_t) -1)

/* bundles_offers() - is the device, sick or well, one that is offered at all? */
bool bundles_offers(const struct inventory *inventory, size_t index);

/* bundles_shares() - how many may have a device of the group at once; 1 = one alone. */
unsigned bundles_shares(const struct device_group *group);

/* bundles_room() - what there is of a device of the inventory; NULL = one that has gone: nobody shares it. */
struct dra_share_room bundles_room(const struct inventory *inventory, const struct device *device);

/* bundles_find() - @names: of the inventory's devices (dra_name.h). 0 or -ENOMEM; bundles_free() is due. */
int bundles_find(const struct inventory *inventory, const struct dra_name *names, struct bundles *ret);
void bundles_free(struct bundles *bundles); /* accepts NULL; it is empty then */

/* bundles_named() - the bundle of that name; NULL = there is none. */
const struct bundle *bundles_named(const struct bundles *bundles, const char *name);

/* bundles_sick() - the first of its devices that must not be used; NULL = all are well. */
const struct device *bundles_sick(const struct bundle *bundle, const struct inventory *inventory);
