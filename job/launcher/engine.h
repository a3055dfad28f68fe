/* Engine: one running job, whoever runs its ranks: a loop in which what is seen becomes facts, job/world
 * judges, and hands do what the verdict says.
 *
 *      remuda-launch --manage   the ranks are those of device groups elsewhere      (manager.h)
 *      remuda run               they are on the chips of this machine               (job/run/run_train.c)
 *
 * It alone asks verdict_on() and carries out what follows, waits for mpirun and for signals, and knows when
 * to leave. What a hand finds impossible it tells with engine_fail(). */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "job/launcher/rendezvous.h"
#include "job/world/job_rate.h"
#include "job/world/verdict.h"

struct engine_hands {
        uint64_t tick_usec;     /* between two looks when nothing happens */
        uint64_t farewell_usec; /* from the end to leaving */
        /* In any order and at any time; what they do may have consequences at once, which are judged after.
         */
        void (*look)(void *userdata); /* facts that nobody brings; NULL = there are none */
        void (*tell)(void *userdata); /* at every tick, how it is; NULL = nobody asks */
        void (*event)(void *userdata, const char *reason, const char *message);
        void (*assign)(void *userdata); /* the next world: cut it, lay out its ranks, tell them; NULL = there
                                           is one world alone, which nobody judges */
        void (*start)(void *userdata);  /* mpirun: sets engine.mpirun */
        void (*terminate)(void *userdata); /* SIGTERM for every rank */
        /* The speeds that were seen become the plan's. @anew: the shares of the next world are cut by them
         * also where its ranks are the same; else those of now stand as long as they are. */
        void (*adopt)(void *userdata, bool anew);
        void (*share)(void *userdata);  /* tell the ranks new shares (verdict.h); engine_observe() a
                                           WORLD_UNTOLD where that fails */
        void (*shared)(void *userdata); /* they have them: the shares become the plan's */
        void (*stop)(void *userdata);   /* all that runs beside mpirun, which is killed */
        void (*change)(void *userdata,
                       const struct verdict *v);      /* a move, or a place less; NULL = the world knows */
        void (*ended)(void *userdata, int exit_code); /* mpirun has; it will be a fact; NULL = so what */
        void (*end)(void *userdata, const struct verdict *v); /* the job is over: say it, release all */
};

struct engine {
        const struct engine_hands *hands;
        void *userdata;
        struct world *world; /* the caller's, who fills it and frees it */
        struct rendezvous_loop loop;
        sd_event_source *tick;
        uint32_t *lines;      /* of each rank, that were taken in */
        pid_t mpirun;         /* its supervisor; 0 = it does not run */
        double accuracy;      /* of the last evaluation; 0 = not known */
        struct job_rate rate; /* of late */
        bool judging, ending;
        struct verdict last;             /* once it is ending */
        uint64_t began_usec, leave_usec; /* CLOCK_MONOTONIC: of the loop; not before */
};

/* engine_open() - the loop; signals are blocked from here on. Released with engine_close(), also after an
 * error. */
int engine_open(struct engine *engine, struct err *err);
void engine_close(struct engine *engine);

/* engine_run() - until the job is over and mpirun gone. 0, or a negative errno of the loop. */
int engine_run(struct engine *engine);

/* engine_observe() - a fact. Its consequences come with engine_judge(), once all facts are told. */
void engine_observe(struct engine *engine, struct world_fact fact);
void engine_judge(struct engine *engine);
void engine_look(struct engine *engine); /* look, then judge */

/* engine_fail() - what a verdict asks for cannot be done: the job ends. */
void engine_fail(struct engine *engine, int exit_code, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* engine_lay_out() - world_lay_out(), and no line of theirs is known. */
int engine_lay_out(struct engine *engine, size_t rank_count, struct err *err);

/* engine_take() - what a rank says, as facts. */
void engine_take(struct engine *engine, const Rendezvous__RankSeen *said);

void engine_kill(const struct engine *engine); /* mpirun; its keeper then kills what it started */

/* engine_rate() - samples a second of all ranks together: over the last half minute while they run
 * (*ret_seconds: what there is of it), else over their whole time; 0 = not known. */
double engine_rate(const struct engine *engine, uint64_t now_usec, double *ret_seconds);

/* engine_state() - how the job is, JSON (docs/reference/rendezvous.md), without groups, programs and events.
 * @number: of the world at hand; @epoch_samples: as planned, 0 = not known. A new reference; NULL = no
 * memory. */
json_t *engine_state(const struct engine *engine, const char *job, uint64_t number, uint64_t epoch_samples);
