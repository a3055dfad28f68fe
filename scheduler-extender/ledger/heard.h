/* Heard: when each node was last heard of, by its kubelet's Lease. Kept apart from the ledger: a Lease may be
 * told of before its node, and a node that is dead renews none. Zero-initialised. */
#pragma once

#include <stdint.h>

#include "base/name_map.h"

struct heard {
        struct name_map times;
};

int heard_note(struct heard *heard, const char *node, uint64_t usec); /* 0 or -ENOMEM */
void heard_forget(struct heard *heard, const char *node);
uint64_t heard_usec(const struct heard *heard, const char *node); /* 0 = never */
void heard_free(struct heard *heard);
