/* Measured: the file in which `remuda devices --measure --save` keeps what it measured, and from which the
 * agent publishes it: {"version": 1, "measured": [{"group", "vendor", "model", "kernel",
 * "precision", "gflops", "time"}]}.
 *
 * In memory only. Strict: a file that is not whole, or says what cannot be, is refused as a whole. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "agent/inventory/inventory.h"
#include "base/err.h"

#define MEASURED_FILE_MAX_BYTES ((size_t) 1 << 18)
#define MEASURED_PATH           "/var/lib/remuda/measured.json"

struct measured_json_list {
        struct device_group *groups; /* name, vendor, model and measured_* alone are set */
        size_t count;
};

/* measured_json_encode() - the groups of an inventory that are measured. A new reference; NULL = no memory.
 */
json_t *measured_json_encode(const struct inventory *inventory);

/* measured_json_decode() - Return: 0 and *ret (release with measured_json_free()), -EBADMSG and the place,
 * -ENOMEM. */
int measured_json_decode(const json_t *value, struct measured_json_list *ret, struct err *err);
void measured_json_free(struct measured_json_list *list);

/* measured_json_apply() - a group is given what was measured of the group of its name, if vendor and model
 * are the same: after a change of cards an old figure is nobody's. */
void measured_json_apply(const struct measured_json_list *list, struct inventory *inventory);
