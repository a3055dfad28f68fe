/* Conditions: AcceleratorsHealthy of each Node (node_condition.h), written with --node-conditions on, where
 * this replica leads, when it is another than the Node has: CONDITIONS_PER_MINUTE writes at most, and none
 * for a minute after one that was refused. An Event says when a device broke or recovered.
 *
 * With --taint-all-bad a Node none of whose devices is healthy has a taint as well (node_taint.h), and
 * without it none of ours, by the same leader and within the same limits.
 *
 * Of a store in a directory Node objects are somebody's files: there Events alone are written. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/name_map.h"

#define CONDITIONS_PER_MINUTE 60
#define CONDITIONS_LOOKED_AT  1000 /* nodes a second: a larger cluster takes some */

struct extender;

struct conditions {
        struct name_map nodes; /* what each Node has */
        uint32_t next;         /* of the ledger's nodes: where the next look begins */
        uint64_t minute_usec;  /* since when writes are counted (monotonic) */
        unsigned written;      /* since then */
        uint64_t not_before_usec, taint_not_before_usec; /* after one that was refused (monotonic) */
};

/* conditions_seen() - a Node object as the store has it; NULL: it is gone. conditions_look() - called every
 * second. conditions_free() - after the store has given its answers. */
void conditions_seen(struct extender *x, const char *node, const json_t *object);
void conditions_look(struct extender *x);
void conditions_free(struct extender *x);
