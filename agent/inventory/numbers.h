/* Numbers: a device's `index` is given once, and stays while the node is up.
 *
 * Discovery counts what is there (`ordinal`: so its driver and its runtime count, too), and all that come
 * after a device that was lost would be renumbered: their series would change their names, and one of them
 * would take over the history of another. So the number that a device had first is remembered by its id, and
 * by its PCI slot: what comes into a slot under another id (partitioned anew, exchanged) has the slot's.
 * Pure.
 *
 * Example: GPUs 0 to 3; 1 is lost, and 2 and 3 are still 2 and 3, of ordinals 1 and 2. A GPU in a new slot
 * is 4.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/inventory.h"

#define NUMBERS_MAX ((size_t) 2 * DEVICES_MAX)

/* Devices of one vendor that have an ordinal in common (MIG devices of a GPU) have the number in common. */
struct numbers_entry {
        char vendor[24];
        char id[DEVICE_ID_BYTES]; /* of one of them */
        char pci[20];
        unsigned index;
};

struct numbers {
        struct numbers_entry *entries; /* in the order in which they came */
        size_t count;
        bool moved; /* a look that knows nothing of before would number otherwise */
};

void numbers_free(struct numbers *numbers); /* accepts NULL; leaves it empty */

/* numbers_keep() - give every device of @inventory the number that it had, or one that nobody has or had, its
 * ordinal where that is one; and remember it. Past NUMBERS_MAX new ones are not remembered.
 * Return: 0 or -ENOMEM, and then nothing is changed. O(devices x (devices + entries)). */
int numbers_keep(struct numbers *numbers, struct inventory *inventory);

/* numbers_hash() - changes exactly when what is remembered does. */
uint64_t numbers_hash(const struct numbers *numbers);
