/* Liveness: which nodes have fallen silent, and when that may be believed.
 *
 * Another machine's clock says nothing here. What counts is when this process saw a sign of life change (a
 * Lease's renewTime, a file's time), by its own CLOCK_MONOTONIC; that the sign says 1980 is as good as any.
 *
 * Silence is only heard by who listens: while the watch does not work, or this process stood still, nobody
 * grows older, and afterwards a whole grace period passes before anybody is silent. A job is taken from a
 * silent node only where most of the others speak: when more than half of the nodes have said nothing for
 * half a grace period, the fault is not theirs (an API server that nobody can write to, say). Nobody is
 * lost then, and for a whole grace period after. Half a period, since nodes do not fall silent in the same
 * second: the first of them is not taken before the rest shows what it is.
 *
 *      grace 60 s, three nodes that renew every 10 s, nobody can write from 100 s to 500 s:
 *      at 130 s all three are doubtful: held; the first would be silent at 151 s, and is not lost
 *      at 510 s all have spoken; one that dies then is lost at 570 s, not before
 *
 * Pure but for the heap; time is an argument. Costs: a look O(nodes), the rest O(1). */
#pragma once

#include "base/name_map.h"
#include "scheduler-extender/ledger/roster.h"

#define LIVENESS_REMOVED UINT64_MAX /* as the time of a node: it is none of the cluster any more */

/* Signs of life by name, kept apart from nodes: a Lease may be told of before its node. Zero-initialised. */
struct liveness_signs {
        struct name_map map;
};

struct liveness_sign {
        struct name_map_entry entry;
        uint64_t sign, changed_usec; /* as it was seen last; when it was seen to change */
        uint64_t limit_usec;         /* how long the sign itself says that it lasts; 0 = it does not */
        char name[];
};

/* liveness_hear() - the sign of `name` is this one now. Return: NULL = no memory.
 * liveness_heard() - when it was seen to change; 0 = never. */
struct liveness_sign *liveness_hear(struct liveness_signs *signs, const char *name, uint64_t sign,
                                    uint64_t now_usec);
const struct liveness_sign *liveness_find(const struct liveness_signs *signs, const char *name); /* or NULL */
uint64_t liveness_heard(const struct liveness_signs *signs, const char *name);
void liveness_forget(struct liveness_signs *signs, const char *name);
void liveness_free_signs(struct liveness_signs *signs);

/* Zero-initialised: nobody is silent. All CLOCK_MONOTONIC. */
struct liveness {
        uint64_t silent_before_usec; /* a node not heard of since then is silent; 0 = none is */
        uint64_t lost_before_usec;   /* ... and its jobs go elsewhere; 0 = none do */
        uint64_t looked_usec, working_since_usec, trusted_since_usec;
        uint32_t judged, doubtful,
                silent; /* nodes whose age is known; not heard for half the grace; for all of it */
        bool held;      /* too many are doubtful: nobody is lost */
};

/* liveness_look() - once a second. @works: the watch of the signs does; @grace_usec: 0 = nobody is ever
 * silent. */
void liveness_look(struct liveness *liveness, const struct roster *roster, bool works, uint64_t grace_usec,
                   uint64_t now_usec);

/* liveness_silent(), liveness_lost() - of a node last heard of then (0 = its age is not known). */
static inline bool liveness_silent(const struct liveness *liveness, uint64_t seen_usec)
{
        return seen_usec == LIVENESS_REMOVED || (seen_usec > 0 && seen_usec < liveness->silent_before_usec);
}

static inline bool liveness_lost(const struct liveness *liveness, uint64_t seen_usec)
{
        return seen_usec == LIVENESS_REMOVED || (seen_usec > 0 && seen_usec < liveness->lost_before_usec);
}
