/* What an exchange costs is measured call by call, the planner cuts by it, and trial steps verify its cut. */
#include "trainer/strategies/segment_choice.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "planner/segments/segment_neighbours.h"
#include "planner/segments/segments.h"
#include "trainer/strategies/segment_calls.h"
#include "trainer/strategies/segment_trials.h"

#define TRIAL_USEC 600000 /* for each of: trials before, calls; half of it for each trial after */
#define NOISE      0.02   /* of a step: what two medians may differ by */
#define NEAR       0.05   /* of a step: what is foretold no later is tried beside the plan */
#define STEPS_MAX  50     /* that all of it takes where steps are slow: three rounds each */

enum { NOTHING, ONE, PLANNED, CUTS = SEGMENT_TRIALS_MAX - PLANNED };

_Static_assert(SEGMENT_CHOICE_MAX <= SEGMENT_NEIGHBOURS_CUTS, "a plan is such a cut");

struct choice {
        struct training *t;
        struct segment_trials trials;
        struct segment_calls calls;
        struct segment_neighbour cuts[CUTS]; /* the plan, and what lies beside it */
        size_t cut_count;
};

/* What segments can save, in every step to come, is at most what an exchange of everything at once adds to
 * one. Example: 20 ms a step, 19 ms without an exchange: 2.1 s of measuring pay from 2100
 * steps on. The same answer on every rank. */
static bool may_pay(const struct choice *c)
{
        const struct segment_trial *of = c->trials.of;
        double steps = (double) (c->t->last_step - c->t->step), ms = of[ONE].step_ms - of[NOTHING].step_ms;
        double takes_ms = (1 + SEGMENT_TRIALS_MAX / 2.0) * TRIAL_USEC / 1e3,
               slow_ms = STEPS_MAX * of[ONE].step_ms;

        return ms * steps > (takes_ms > slow_ms ? takes_ms : slow_ms);
}

static void describe(const struct choice *c, struct segment_tensor *ret)
{
        const struct model *m = &c->t->model;
        double computed_ms = c->trials.of[NOTHING].step_ms, latest_ms = 0;

        for (size_t i = 0; i < m->tensor_count; i++) {
                double ms = c->trials.ready_ms[i];

                latest_ms = ms > latest_ms ? ms : latest_ms;
                ret[i].bytes = m->tensors[m->tensor_count - 1 - i].count * sizeof(float);
                ret[i].ready_ms = latest_ms < computed_ms ? latest_ms : computed_ms;
        }
        ret[m->tensor_count - 1].ready_ms = computed_ms;
}

/* By rank 0. Return: 0 or a negative errno. */
static int plan(struct choice *c, struct err *err)
{
        const struct segment_calls *calls = &c->calls;
        size_t count = c->t->model.tensor_count;
        struct segment_tensor tensors[MODEL_NODES_MAX] = { 0 };
        struct segment_tail tail = { calls->last, calls->count, calls->delay };
        struct segment_cost cost = { .points = calls->beside, .point_count = calls->count, .tail = &tail };
        struct segments_plan best;
        int r;

        describe(c, tensors);
        r = segments_plan(tensors, count, &cost, SEGMENT_CHOICE_MAX, &best, err);
        if (r < 0)
                return r;
        c->cuts[0].count = best.segment_count;
        for (size_t i = 0; i < best.segment_count; i++)
                c->cuts[0].last[i] = best.segments[i].last;
        c->cuts[0].end_ms = best.end_ms;
        r = segment_neighbours(tensors, count, &cost, &best, best.end_ms * (1 + NEAR), c->cuts + 1, CUTS - 1,
                               err);
        c->cut_count = 1 + (size_t) (r > 0 ? r : 0);
        segments_plan_free(&best);
        return r < 0 ? r : 0;
}

/* The plan and its neighbours from rank 0 to all. */
static int plan_for_all(struct choice *c, struct err *err)
{
        const struct world *w = &c->t->world;
        uint64_t cuts = 0;
        int r = w->rank == 0 ? plan(c, err) : 0;

        r = world_agree(w, r, err);
        if (r < 0)
                return r;
        cuts = c->cut_count;
        MPI_Bcast(&cuts, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        MPI_Bcast(c->cuts, (int) sizeof(c->cuts), MPI_BYTE, 0, MPI_COMM_WORLD); /* bytes: one kind of host */
        c->cut_count = (size_t) cuts;
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
        (void) fprintf(stderr,
                       "remuda-train: sums of %.1f and %.1f kB take %.3f and %.3f ms behind a pass, beside "
                       "computing %.3f and "
                       "%.3f ms and put that off by %.3f and %.3f ms; %zu segment%s planned, %.3f ms a step "
                       "foretold\n",
                       (double) calls->last[0].bytes / 1e3, (double) calls->last[end].bytes / 1e3,
                       calls->last[0].ms, calls->last[end].ms, calls->beside[0].ms, calls->beside[end].ms,
                       delay_ms(calls, 0), delay_ms(calls, end), c->cuts[0].count,
                       c->cuts[0].count == 1 ? "" : "s", c->cuts[0].end_ms);
}

/* Of those that were tried, all of more than one segment, the one whose step was the shortest. Where the plan
 * is one segment, what lies beside it must be shorter than that by more than chance. NULL = nothing was
 * tried. Return: of which the trial is number PLANNED + its place among them, by *ret_trial. */
static const struct segment_neighbour *fastest(const struct choice *c, size_t *ret_trial)
{
        const struct segment_neighbour *best = NULL;
        size_t trial = PLANNED;

        for (size_t i = 0; i < c->cut_count && c->trials.count > PLANNED; i++) {
                if (c->cuts[i].count == 1)
                        continue;
                if (best == NULL || c->trials.of[trial].step_ms < c->trials.of[*ret_trial].step_ms) {
                        best = &c->cuts[i];
                        *ret_trial = trial;
                }
                trial++;
        }
        return best;
}

static void say_choice(const struct choice *c, const struct segment_neighbour *cut, double cut_ms,
                       double saved_ms, bool holds)
{
        const struct segment_trial *of = c->trials.of;

        (void) fprintf(stderr,
                       "remuda-train: in trial steps without an exchange %.3f ms, one segment %.3f ms",
                       of[NOTHING].step_ms, of[ONE].step_ms);
        if (cut == NULL)
                return;
        (void) fprintf(stderr, ", planned %.3f ms (%.3f foretold", cut_ms, cut->end_ms);
        if (c->trials.count > PLANNED + 1)
                (void) fprintf(stderr, ", best of %zu near the plan", c->trials.count - PLANNED);
        (void) fprintf(stderr, "): %.3f ms a step hidden", saved_ms);
        if (!holds)
                (void) fprintf(stderr, "%s all goes at once",
                               c->cuts[0].count > 1 ? ", the plan does not hold," : ",");
}

/* Every rank has the same figures and comes to the same answer. Return: how many segments. */
static int settle(const struct choice *c, size_t *ret_last, double *ret_saved_ms)
{
        size_t trial = ONE, end = c->t->model.tensor_count - 1;
        const struct segment_neighbour *cut = fastest(c, &trial);
        double one_ms = c->trials.of[ONE].step_ms, cut_ms = c->trials.of[trial].step_ms;
        double noise_ms = (c->cuts[0].count > 1 ? -NOISE : NOISE) * one_ms;
        bool holds = cut != NULL && one_ms - cut_ms >= noise_ms;
        size_t count = holds ? cut->count : 1;

        *ret_saved_ms = holds && one_ms > cut_ms ? one_ms - cut_ms : 0;
        for (size_t i = 0; i < count; i++)
                ret_last[i] = holds ? cut->last[i] : end;
        if (c->t->world.rank != 0)
                return (int) count;
        say_choice(c, cut, cut_ms, *ret_saved_ms, holds);
        for (size_t i = 0; i < count; i++)
                (void) fprintf(stderr, "%s%zu", i == 0 ? "; last tensors " : ",", ret_last[i]);
        (void) fputc('\n', stderr);
        return (int) count;
}

/* Measured, planned, and verified where there is more than one segment. */
static int choose(struct choice *c, struct err *err)
{
        size_t end = c->t->model.tensor_count - 1, tried;
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
        for (size_t i = 0; i < c->cut_count; i++)
                if (c->cuts[i].count > 1)
                        segment_trials_add(&c->trials, "near the plan", c->cuts[i].last, c->cuts[i].count);
        tried = c->trials.count - PLANNED;
        return tried > 0 ? segment_trials_run(&c->trials, (2 + tried) * TRIAL_USEC / 2, err) : 0;
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
        record_paused(&t->record, RECORD_MEASURE, t->step, begin);
        return r;
}
