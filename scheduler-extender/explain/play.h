/* Play: time that passes on a cluster in which nobody comes. Pods end when they say, leases and holds when
 * they are over, and pauses; what others may count on later is found with it, by whatif and by remedies.
 * Played is on a fork (ledger/cluster.h), since nothing is undone. Pure but for the heap: time is an
 * argument. */
#pragma once

#include "scheduler-extender/ledger/cluster.h"

struct play_end {
        uint64_t usec;    /* not before the play's beginning: what is overdue ends at once */
        const char *what; /* "ends" of a pod... */
        const char *name;
        struct ledger_pod *pod; /* NULL: of something else */
};

struct play {
        struct cluster *cluster; /* borrowed */
        struct play_end *ends;   /* in the order of time; owned */
        size_t count, gone;
};

/* play_begin() - O(pods log pods). Return: 0 or -ENOMEM. play_finish() in any case. */
int play_begin(struct cluster *cluster, uint64_t now_usec, struct play *ret);
void play_finish(struct play *play);

/* play_next() - when something ends next; UINT64_MAX = nothing does as far as anybody knows. */
uint64_t play_next(const struct play *play);

/* play_advance() - what ends by then has ended. Holds are as they were: backfill_renew(). */
void play_advance(struct play *play, uint64_t usec);
