/* Claims, planned: devices that no slice has, so that nobody can be allocated one but by who plans it.
 *
 * kube-scheduler allocates what is in slices, whatever classes and tolerations say; it takes a claim that has
 * its devices already as it is. So a node whose agent offers its devices in no slice (`offer: planned`) has
 * them for remuda-controller alone, and no race is lost to a scheduler. Its inventory says which they are:
 * they are kept as a slice of the node's pool, which a real one of that pool is stronger than. Pure but for
 * the heap. */
#pragma once

#include "agent/inventory/inventory.h"
#include "scheduler-extender/claims/claims.h"

/* claims_planned_set() - the node's inventory, or NULL: it is gone, and with it what it said. 0 or -ENOMEM.
 */
int claims_planned_set(struct claims *claims, const char *node, const struct inventory *inventory);

/* claims_planned_free() - devices of a group of a node for planned claims that may be used, that no claim has
 * and that @taken does not name, in the inventory's order.
 * @ret: room for @max names; borrowed until an inventory changes. Return: how many */
size_t claims_planned_free(const struct claims *claims, const char *node, const char *group,
                           bool (*taken)(void *userdata, const char *device), void *userdata,
                           const char **ret, size_t max);

/* claims_planned_rival() - the key of another allocated claim that has a device of the one of this key; NULL
 * = it has its devices alone, or has none. Borrowed until a claim changes. */
const char *claims_planned_rival(const struct claims *claims, const char *key);
