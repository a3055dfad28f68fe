/* DRA name: what a device of the inventory is called in a ResourceSlice: a DNS label that stays the same
 * while its id does. Pure. */
#pragma once

#include <stddef.h>

#include "agent/inventory/inventory.h"
#include "base/object_name.h"

#define DRA_NAME_DRIVER "remuda.dev" /* of the driver, and the domain of its attributes and taints */

struct dra_name {
        char label[OBJECT_NAME_LABEL_BYTES];
};

/* dra_name_all() - a name for each device of the inventory, at its place: the id in lower case, a '-' for
 * what a label cannot have ("GPU-5E" is gpu-5e, "0000:18:00.0" is 0000-18-00-0). Where that is too long, or
 * would be the name of two ids, it is cut and ends with eight digits of the id's digest. Of devices with one
 * id the first has a name; the others, and those without an id, have "". */
void dra_name_all(const struct inventory *inventory, struct dra_name *ret);

/* dra_name_alone() - of an id: what dra_name_all() calls it on a node where no other id would have its name.
 */
void dra_name_alone(const char *id, struct dra_name *ret);

/* dra_name_beside() - likewise of what is no device of the inventory; no device has the name. */
void dra_name_beside(const struct inventory *inventory, const struct dra_name *names, const char *text,
                     struct dra_name *ret);

/* dra_name_slice() - of a node's slice: "remuda.dev-NODE-INDEX", an object's name. dra_name_counters() - of
 * one with counters: "remuda.dev-NODE-counters-INDEX". */
void dra_name_slice(const char *node, size_t index, char ret[OBJECT_NAME_DNS_BYTES]);
void dra_name_counters(const char *node, size_t index, char ret[OBJECT_NAME_DNS_BYTES]);
