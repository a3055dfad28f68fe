/* Rounds of steps, one of each kind, between barriers. */
#include "trainer/strategies/segment_trials.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/median.h"

#define WARM_UP    2 /* rounds */
#define ROUNDS_MIN 3
#define ROUNDS_MAX SEGMENT_TRIALS_ROUNDS

/* When each tensor was ready, of one step. */
struct clocked {
        uint64_t begin_usec;
        size_t next;
        double ready_ms[MODEL_NODES_MAX];
};

static void node_done(void *context, const struct model_node *node)
{
        struct clocked *c = context;
        double ms = (double) (record_now() - c->begin_usec) / 1e3;

        if (node->weight_count > 0)
                c->ready_ms[c->next++] = ms;
        if (node->bias_count > 0)
                c->ready_ms[c->next++] = ms;
}

void segment_trials_add(struct segment_trials *s, const char *name, const size_t *last, size_t count)
{
        struct segment_trial *one = &s->of[s->count++];

        *one = (struct segment_trial){ .name = name,
                                       .segmented = { .t = s->t,
                                                      .mover = s->mover,
                                                      .count = count,
                                                      .ends = one->ends,
                                                      .requests = s->requests } };
        for (size_t i = 0; i < count; i++)
                one->ends[i] = s->t->model.tensor_count - 1 - last[i];
}

/* Return: ms from the common beginning until this rank has its sums. */
static double trial_step(struct segment_trials *s, struct segment_trial *one, struct clocked *clocked)
{
        struct training *t = s->t;
        bool plain = one->segmented.count == 0;
        struct runner_ready ready = { plain ? node_done : segmented_ready,
                                      plain ? (void *) clocked : &one->segmented };
        struct slow_moment begin;

        backend_to_host(&t->backend, t->gradients);
        memset(t->gradients, 0, t->part.count * sizeof(*t->gradients));
        backend_to_device(&t->backend, t->gradients);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = slow_begin(&t->slow);
        *clocked = (struct clocked){ .begin_usec = begin.usec };
        (void) runner_forward(t->runner, t->parameters, s->samples);
        segmented_begin(&one->segmented);
        training_backward(t, s->samples, 1.0F / (float) s->samples, &ready, SLOW_TRIED, &begin);
        /* a device with memory of its own is done by now: its copies have come. To bring the gradients once
         * more would give what is under way time that no step gives it */
        slow_end(&t->slow, SLOW_TRIED, s->samples, begin);
        segmented_wait(&one->segmented);
        return (double) (record_now() - begin.usec) / 1e3;
}

/* The medians of what was measured; each is that of the slowest rank. */
static void sum_up(struct segment_trials *s, double *ms, double *ready_ms)
{
        size_t tensors = s->t->model.tensor_count;

        MPI_Allreduce(MPI_IN_PLACE, ms, (int) (s->count * ROUNDS_MAX), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, ready_ms, (int) (tensors * ROUNDS_MAX), MPI_DOUBLE, MPI_MAX,
                      MPI_COMM_WORLD);
        for (size_t i = 0; i < s->count; i++)
                s->of[i].step_ms = median(ms + i * ROUNDS_MAX, s->rounds);
        for (size_t i = 0; i < tensors; i++)
                s->ready_ms[i] = median(ready_ms + i * ROUNDS_MAX, s->rounds);
}

int segment_trials_run(struct segment_trials *s, uint64_t usec, struct err *err)
{
        size_t tensors = s->t->model.tensor_count;
        CLEANUP(free_p) double *ms = calloc(s->count * ROUNDS_MAX, sizeof(*ms));
        CLEANUP(free_p) double *ready_ms = calloc(tensors * ROUNDS_MAX, sizeof(*ready_ms));
        bool whole = ms != NULL && ready_ms != NULL;
        uint64_t begin = record_now();
        int more = world_agree(&s->t->world, whole ? 0 : err_set(err, -ENOMEM, "no memory"), err) == 0;

        if (!more || ms == NULL || ready_ms == NULL)
                return err->code;
        s->rounds = 0;
        for (int warm = WARM_UP; more; warm -= warm > 0) {
                for (size_t i = 0; i < s->count; i++) { /* no one always comes after the same other one */
                        size_t k = (s->rounds & 1) != 0 ? s->count - 1 - i : i;
                        struct clocked clocked;

                        ms[k * ROUNDS_MAX + s->rounds] = trial_step(s, &s->of[k], &clocked);
                        for (size_t n = 0; s->of[k].segmented.count == 0 && n < tensors; n++)
                                ready_ms[n * ROUNDS_MAX + s->rounds] = clocked.ready_ms[n];
                }
                s->rounds += warm == 0;
                more = s->rounds < ROUNDS_MAX && (s->rounds < ROUNDS_MIN || record_now() - begin < usec);
                MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        sum_up(s, ms, ready_ms);
        return 0;
}
