/* Verdict: what is to be done about a running job, and the words for it. The only place that knows which
 * faults of ranks and places end a job, which are repaired, and how; for pods pods.h decides.
 *
 *      for (v = verdict_on(world, now); v.kind != VERDICT_GO_ON; v = verdict_on(world, now))
 *              say v.reason and v.message, do v.kind
 *
 * A verdict with a reason is an event, whatever its kind. Pure; the world keeps what was said and ordered
 * already, so that nothing is twice. Asked a few times a second, and after every fact. */
#pragma once

#include "job/world/world.h"

enum verdict_kind {
        VERDICT_GO_ON,     /* nothing, for now */
        VERDICT_SAY,       /* the event alone */
        VERDICT_ASSIGN,    /* the next world: cut it, lay out its ranks, assign the used places their parts */
        VERDICT_START,     /* all of them are ready: start mpirun */
        VERDICT_TERMINATE, /* SIGTERM for every rank: a checkpoint may be written */
        VERDICT_RESTART,   /* end all that runs; then from the last checkpoint, or from the beginning */
        VERDICT_RESHARD,   /* the same, with shares by recut_line(), and no fault */
        VERDICT_SHARE,     /* tell the ranks new shares while they run: world.ranks[].batch_next, from
                              world.progress.live.step on */
        VERDICT_SHARED,    /* they have taken them: world.ranks[].batch */
        VERDICT_MOVE,      /* .place gives its ranks to .stand_in */
        VERDICT_LEAVE_OUT, /* the job goes on without .place */
        VERDICT_END        /* end all that runs: the job is over */
};

enum verdict_end { VERDICT_SUCCEEDED, VERDICT_FAILED, VERDICT_CANCELLED };

struct verdict {
        enum verdict_kind kind;
        size_t place;
        int stand_in;
        double gain; /* of new shares */
        enum verdict_end end;
        int exit_code; /* of the end */
        char reason[32], message[WORLD_TEXT_BYTES + 64];
};

struct verdict verdict_on(struct world *world, uint64_t now_usec);

/* verdict_is_final() - would a program that ended with this code do so again? It refuses its options or its
 * data, or it cannot be started. */
bool verdict_is_final(int exit_code);
