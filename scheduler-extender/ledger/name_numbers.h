/* Name numbers: a number for each name: when a node was last seen by its kubelet's Lease (kept apart from the
 * ledger, since a Lease may be told of before its node), or the hash of what was last said of an object.
 * Zero-initialised; owns its names. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/name_map.h"

struct name_numbers {
        struct name_map map;
};

int name_numbers_set(struct name_numbers *numbers, const char *name, uint64_t number); /* 0 or -ENOMEM */
void name_numbers_drop(struct name_numbers *numbers, const char *name);
uint64_t name_numbers_get(const struct name_numbers *numbers, const char *name); /* 0 = there is none */

/* name_numbers_say() - is `sentence` another than the last that was said of `name`? "" takes it back, and is
 * no news. Without memory it is said again. */
bool name_numbers_say(struct name_numbers *said, const char *name, const char *sentence);
void name_numbers_free(struct name_numbers *numbers);
