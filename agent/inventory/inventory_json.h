/* Inventory JSON: struct inventory <-> the NodeAccelerators object ("remuda.dev/v1alpha1") of
 * docs/reference/inventory.md.
 *
 * In memory only. Encoding is canonical: equal inventories give equal bytes. Decoding is lenient to unknown
 * fields and strict to wrong types and absurd counts. */
#pragma once

#include <jansson.h>

#include "agent/inventory/inventory.h"
#include "agent/inventory/summary.h"

/* inventory_json_encode() - a new reference, or NULL when out of memory. */
json_t *inventory_json_encode(const struct inventory *inventory);

/* inventory_json_tell() - the same as an agent writes it to a store: with its summary, its conditions, and
 * when it was told (a condition of which it is not known since when has this time).
 * @conditions: SUMMARY_CONDITIONS; @heard_usec: CLOCK_REALTIME */
json_t *inventory_json_tell(const struct inventory *inventory, const struct summary_condition *conditions,
                            uint64_t heard_usec);

/* inventory_json_decode() - @ret initialised by the call, released with inventory_free(). 0 or negative
 * errno, *err says which field. */
int inventory_json_decode(const json_t *object, struct inventory *ret, struct err *err);
