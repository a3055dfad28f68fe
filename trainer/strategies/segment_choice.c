/* What an exchange costs is measured call by call, the planner cuts by it, and trial steps verify its cut. */
#include "trainer/strategies/segment_choice.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "planner/segments/segments.h"
#include "trainer/strategies/segment_calls.h"
#include "trainer/strategies/segment_trials.h"

#define TRIAL_USEC 600000 /* for each of: trials before, calls, trials after */
#define NOISE      0.02   /* of a step: what two medians may differ by */
#define STEPS_MAX  50     /* that all of it takes where steps are slow: three rounds each */

enum { NOTHING, ONE, PLANNED };

struct choice {
        struct training *t;
        struct segment_trials trials;
        struct segment_calls calls;
        size_t last[MODEL_NODES_MAX]; /* of the plan */
        size_t count;
        double foretold_ms; /* a step of the plan */
};

/* What segments can save, in every step to come, is at most what an exchange of everything at once adds to
 * one. Example: 20 ms a step, 19 ms without an exchange: 1.2 s of measuring pay from 1200
 * steps on. The same answer on every rank. */
static bool may_pay(const struct choice *c)
{
        const struct segment_trial *of = c->trials.of;
        double steps = (double) (c->t->last_step - c->t->step), ms = of[ONE].step_ms - of[NOTHING].step_ms;
        double takes_ms = 2 * TRIAL_USEC / 1e3, slow_ms = STEPS_MAX * of[ONE].step_ms;

        return ms * steps > (takes_ms > slow_ms ? takes_ms : slow_ms);
}

/* By rank 0. Return: 0 or a negative errno. */
static int plan(struct choice *c, struct err *err)
{
        const struct model *m = &c->t->model;
        const struct segment_calls *calls = &c->calls;
        double computed_ms = c->trials.of[NOTHING].step_ms, latest_ms = 0;
        struct segment_tensor tensors[MODEL_NODES_MAX] = { 0 };
        struct segment_tail tail = { calls->alone, calls->count, calls->delay };
        struct segment_cost cost = { .points = calls->beside, .point_count = calls->count, .tail = &tail };
        struct segments_plan best;
        int r;

        for (size_t i = 0; i < m->tensor_count; i++) {
                double ms = c->trials.ready_ms[i];

                latest_ms = ms > latest_ms ? ms : latest_ms;
                tensors[i].bytes = m->tensors[m->tensor_count - 1 - i].count * sizeof(float);
                tensors[i].ready_ms = latest_ms < computed_ms ? latest_ms : computed_ms;
        }
        tensors[m->tensor_count - 1].ready_ms = computed_ms;
        r = segments_plan(tensors, m->tensor_count, &cost, SEGMENT_CHOICE_MAX, &best, err);
        if (r < 0)
                return r;
        c->count = best.segment_count;
        for (size_t i = 0; i < c->count; i++)
                c->last[i] = best.segments[i].last;
        c->foretold_ms = best.end_ms;
        segments_plan_free(&best);
        return 0;
}

/* The plan from rank 0 to all. */
static int plan_for_all(struct choice *c, struct err *err)
{
        const struct world *w = &c->t->world;
        double said[SEGMENT_CHOICE_MAX + 2] = { 0 };
        int r = w->rank == 0 ? plan(c, err) : 0;

        said[0] = (double) c->count;
        said[1] = c->foretold_ms;
        for (size_t i = 0; i < c->count; i++)
                said[2 + i] = (double) c->last[i];
        r = world_agree(w, r, err);
        if (r < 0)
                return r;
        MPI_Bcast(said, SEGMENT_CHOICE_MAX + 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        c->count = (size_t) said[0];
        c->foretold_ms = said[1];
        for (size_t i = 0; i < c->count; i++)
                c->last[i] = (size_t) said[2 + i];
        return 0;
}

static double delay_ms(const struct segment_calls *calls, size_t size)
{
        return calls->delay.alpha_ms + calls->delay.beta_ms_per_byte * (double) calls->beside[size].bytes;
}

static void say_plan(const struct choice *c)
{
        const struct segment_calls *calls = &c->calls;
        size_t end = calls->count - 1;

        if (c->t->world.rank != 0)
                return;
        (void) fprintf(
                stderr,
                "remuda-train: sums of %.1f and %.1f kB take %.3f and %.3f ms, beside computing %.3f and "
                "%.3f ms and put that off by %.3f and %.3f ms; %zu segment%s planned, %.3f ms a step "
                "foretold\n",
                (double) calls->alone[0].bytes / 1e3, (double) calls->alone[end].bytes / 1e3,
                calls->alone[0].ms, calls->alone[end].ms, calls->beside[0].ms, calls->beside[end].ms,
                delay_ms(calls, 0), delay_ms(calls, end), c->count, c->count == 1 ? "" : "s", c->foretold_ms);
}

/* Every rank has the same figures and comes to the same answer. Return: how many segments. */
static int settle(const struct choice *c, size_t *ret_last, double *ret_saved_ms)
{
        const struct segment_trial *of = c->trials.of;
        size_t end = c->t->model.tensor_count - 1, count = c->trials.count > PLANNED ? c->count : 1;
        double saved_ms = count > 1 ? of[ONE].step_ms - of[PLANNED].step_ms : 0;
        bool holds = saved_ms >= -NOISE * of[ONE].step_ms;

        *ret_saved_ms = holds && saved_ms > 0 ? saved_ms : 0;
        count = holds ? count : 1;
        for (size_t i = 0; i < count; i++)
                ret_last[i] = count > 1 ? c->last[i] : end;
        if (c->t->world.rank != 0)
                return (int) count;
        (void) fprintf(stderr,
                       "remuda-train: in trial steps without an exchange %.3f ms, one segment %.3f ms",
                       of[NOTHING].step_ms, of[ONE].step_ms);
        if (c->trials.count > PLANNED)
                (void) fprintf(stderr, ", planned %.3f ms: %.3f ms a step hidden%s", of[PLANNED].step_ms,
                               *ret_saved_ms, holds ? "" : ", the plan does not hold, all goes at once");
        for (size_t i = 0; i < count; i++)
                (void) fprintf(stderr, "%s%zu", i == 0 ? "; last tensors " : ",", ret_last[i]);
        (void) fputc('\n', stderr);
        return (int) count;
}

/* Measured, planned, and verified where there is more than one segment. */
static int choose(struct choice *c, struct err *err)
{
        size_t end = c->t->model.tensor_count - 1;
        int r;

        segment_trials_add(&c->trials, "nothing", NULL, 0);
        segment_trials_add(&c->trials, "one", &end, 1);
        r = segment_trials_run(&c->trials, TRIAL_USEC, err);
        if (r < 0 || !may_pay(c))
                return r;
        r = segment_calls_measure(c->t, c->trials.mover, c->trials.samples, TRIAL_USEC, &c->calls, err);
        if (r == 0)
                r = plan_for_all(c, err);
        if (r < 0)
                return r;
        say_plan(c);
        if (c->count == 1)
                return 0;
        segment_trials_add(&c->trials, "planned", c->last, c->count);
        return segment_trials_run(&c->trials, TRIAL_USEC, err);
}

int segment_choice(struct training *t, struct mover *mover, size_t *ret_last, double *ret_saved_ms,
                   struct err *err)
{
        size_t share = t->shares.own > 0 ? t->shares.own : 1;
        CLEANUP(free_p) struct choice *c = calloc(1, sizeof(*c));
        float *x = backend_allocate(&t->backend, share * shape_size(&t->model.input) * sizeof(*x));
        int32_t *labels = backend_allocate(&t->backend, share * sizeof(*labels));
        uint64_t begin = record_now();
        int r = c != NULL && x != NULL && labels != NULL ? 0 : err_set(err, -ENOMEM, "no memory");

        r = world_agree(&t->world, r, err);
        if (r == 0 && c != NULL) {
                c->t = t;
                c->trials.t = t;
                c->trials.mover = mover;
                c->trials.samples = share;
                runner_use(t->runner, x, labels);
                r = choose(c, err);
                if (r == 0)
                        r = settle(c, ret_last, ret_saved_ms);
        }
        backend_release(&t->backend, x);
        backend_release(&t->backend, labels);
        t->record.start_usec += record_now() - begin; /* measuring is no training */
        return r;
}
