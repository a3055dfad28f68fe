/* World: what is known of one training job that runs: its places, its ranks, and what became of them.
 *
 *      facts --world_observe()--> world --verdict_on()--> what is done next        (job/world/verdict.h)
 *
 * A place is where ranks run and what can be lost: a chip of this machine, one rank each (`remuda run`), or a
 * device group of another host (the manager). The controller, who sees pods, asks pods.h. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "job/world/doubts.h"
#include "job/world/restarts.h"
#include "job/world/split_state.h"

#define WORLD_NAME_BYTES 96
#define WORLD_TEXT_BYTES 400
#define WORLD_NOBODY     (-1)

enum world_phase {
        WORLD_GATHERING, /* for the places of the first world */
        WORLD_STARTING,  /* they are assigned their parts */
        WORLD_RUNNING,   /* mpirun runs, or its last words are waited for */
        WORLD_STOPPING,  /* a fault, or new shares: all that runs is being ended */
        WORLD_ENDED
};

enum world_kind { WORLD_CHIPS, WORLD_GROUPS };
/* Of the job, and of who runs it; the same all its life. */
struct world_rules {
        enum world_kind kind;
        uint64_t restart_max, hang_usec, grace_usec;
        uint64_t wait_usec;     /* for the places of the first world; 0 = as long as it takes */
        uint64_t patience_usec; /* for lost places to come back, before the job does without them */
        uint64_t global_batch;
        uint64_t last_step;       /* what follows it is evaluation, which says nothing; 0 = not known */
        bool speaks, checkpoints; /* the program is known to report its steps; the job writes some */
        bool recut, staged; /* shares follow the speeds; the ranks are stages: the last one has the loss */
        bool resplit;       /* layers may move: the program stops with a checkpoint that any split can read */
        bool migrate;       /* what is lost may be replaced by others */
        const char *log, *address; /* of mpirun's own words; where lost groups are waited for, or NULL */
};

enum world_loss {
        WORLD_NOT_LOST,
        WORLD_GONE, /* its connection, its pod, its process */
        WORLD_LEFT, /* it was asked to end, and did */
        WORLD_SICK, /* the chip cannot be used */
        WORLD_NODE_LOST
};

struct world_place {
        char name[WORLD_NAME_BYTES]; /* of the chip or the group */
        char runtime[16];
        bool server, spare;
        uint64_t chips;
        size_t role;       /* places of one role stand for each other */
        uint64_t role_min; /* the fewest chips that the role can do with */
        bool there, leaving, ready;
        bool used, used_before; /* in the world at hand; in the one that was ended */
        enum world_loss loss;
        char why[WORLD_TEXT_BYTES];
        int stand_in; /* who could take its place, as the starter numbers them; WORLD_NOBODY */
        char stand_in_name[2 * WORLD_NAME_BYTES];
        bool halting, loss_unsaid, settled; /* of the verdict */
};

struct world_rank {
        size_t place;
        uint64_t batch, batch_before, batch_next; /* of now; of before that; told for later (live.h) */
        double alpha_ms, beta_ms; /* what the plan takes a step of b samples for; 0, 0 = not known */
        bool ended, asked;        /* asked to end, by who started it, before it did */
        int exit_code;
        uint64_t ended_usec;   /* of the clock of who tells facts */
        uint64_t stopped_usec; /* since when it is stopped; 0 = it is not */
        bool stuck;            /* in the kernel, where it may be but for a moment */
};

struct world_fault {
        char message[WORLD_TEXT_BYTES];
        int exit_code;
};

struct world {
        struct world_rules rules;
        enum world_phase phase;
        struct world_place *places;
        size_t place_count, rank_count;
        struct world_rank *ranks;
        struct progress_rank *seen; /* of each rank */
        struct progress progress;
        struct doubts doubts;
        struct split_state split;
        uint64_t restarts, reshards, recuts, worlds, launcher_crashes; /* recuts: while one ran */
        bool checkpoint;                                               /* there is one to go on from */
        char words[WORLD_TEXT_BYTES]; /* the ranks' last ones, of who failed; "" = not known */
        struct world_fault fault;
        struct restarts_pace pace;
        /* of the verdict */
        bool mpirun_runs, cancelled, terminating, restarting_unsaid;
        int mpirun_code, cancel_signal;
        const struct world_place *evicting; /* the place that was asked to end; NULL = none */
        uint64_t phase_usec, terminated_usec, mpirun_usec, fault_usec, reshard_usec, failed_usec;
};

enum world_fact_kind {
        WORLD_LINE,     /* .index: a rank; .line: what it said since the last look, all in one */
        WORLD_EXIT,     /* .index: a rank; it ended with .code, at .usec; .asked: as it was asked to */
        WORLD_STOPPED,  /* .index: a rank; .code 1: stopped by a signal; 2: stuck in the kernel; 0: neither */
        WORLD_WORDS,    /* .text: the last words of those that ended badly */
        WORLD_HERE,     /* .index: a place; it is there, or again */
        WORLD_READY,    /* .index: a place; it knows its part */
        WORLD_LEAVING,  /* .index: a place; it is asked to end, its ranks run yet */
        WORLD_HALTED,   /* .index: a place; it has ended all that it ran */
        WORLD_LOST,     /* .index: a place; .code: enum world_loss; .text: why, "" = no more is known */
        WORLD_STAND_IN, /* .index: a place; .code: who could take its place, WORLD_NOBODY; .text: its name */
        WORLD_MPIRUN,   /* mpirun has ended with .code */
        WORLD_SAVED,    /* there is a checkpoint to go on from */
        WORLD_UNTOLD,   /* new shares could not be told */
        WORLD_CANCEL    /* the job is cancelled by signal .code */
};

struct world_fact {
        enum world_fact_kind kind;
        size_t index;
        int code;
        bool asked;
        uint64_t usec;
        const char *text;
        const struct progress_line *line;
};

/* world_init() - a job of so many places, none of which is there yet; the caller fills in what they are.
 * @rules: its texts are borrowed. Return: 0, -ENOMEM. Released by world_free(). */
int world_init(struct world *world, const struct world_rules *rules, size_t place_count, uint64_t now_usec,
               struct err *err);
void world_free(struct world *world);

/* world_lay_out() - the ranks of the next world, of which nothing is known; the caller fills in their places,
 * shares and planned steps. Return: 0, -ENOMEM. */
int world_lay_out(struct world *world, size_t rank_count, struct err *err);

/* world_drop() - a place is no more of the job; those after it move up. Not while it has ranks. */
void world_drop(struct world *world, size_t place);
void world_observe(struct world *world, const struct world_fact *fact, uint64_t now_usec);
bool world_is_worker(const struct world *world, size_t rank); /* else it serves */
bool world_is_there(const struct world_place *place);         /* and not leaving */
bool world_has_ended(const struct world *world);              /* every rank has */
