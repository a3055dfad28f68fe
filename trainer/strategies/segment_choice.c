/* Trial steps measure what each cut costs, the planner cuts by them, and its cut must beat the rules of
 * thumb. */
#include "trainer/strategies/segment_choice.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/median.h"
#include "planner/segments/segments.h"
#include "trainer/strategies/segmented.h"

#define WARM_UP    2 /* rounds */
#define ROUNDS_MIN 3
#define ROUNDS_MAX 41
#define TRIAL_USEC 600000
#define RIVALS     6 /* at most: lay_out_rivals() */

/* A trial: steps with the gradients cut in one way. */
struct trial {
        const char *name;
        size_t ends[MODEL_NODES_MAX]; /* forward tensors where the segments begin */
        struct segmented segmented;
        double ms;      /* that it keeps everybody waiting */
        uint64_t bytes; /* of the last segment */
};

struct trials {
        struct training *t;
        size_t count;
        struct trial of[MODEL_NODES_MAX];
        MPI_Request requests[MODEL_NODES_MAX];
        uint64_t begin_usec;
        double *ready_ms; /* by backward tensor */
        size_t next;
        size_t rounds; /* that the last trials took */
};

/* Takes down when each tensor was ready. */
static void node_done(void *context, const struct model_node *node)
{
        struct trials *s = context;
        double ms = (double) (record_now() - s->begin_usec) / 1e3;

        if (node->weight_count > 0)
                s->ready_ms[s->next++] = ms;
        if (node->bias_count > 0)
                s->ready_ms[s->next++] = ms;
}

/* When each gradient is ready in a step of this rank's share, on made-up samples: the parameters stay. */
static void measure_backward(struct trials *s, size_t samples)
{
        const struct training *t = s->t;

        for (int i = 0; i < 3; i++) { /* the last one counts */
                (void) runner_forward(t->runner, t->parameters, samples);
                s->next = 0;
                s->begin_usec = record_now();
                runner_backward(t->runner, t->parameters, t->gradients, samples, 0,
                                &(struct runner_ready){ node_done, s });
        }
}

/* @last: tensors in backward order with which the segments end, as the command line has them. The same cut is
 * tried once. */
static void add_trial(struct trials *s, const char *name, const size_t *last, size_t count)
{
        const struct model *m = &s->t->model;
        struct trial *one = &s->of[s->count];

        *one = (struct trial){
                .name = name,
                .segmented = { .t = s->t, .count = count, .ends = one->ends, .requests = s->requests }
        };
        for (size_t i = 0; i < count; i++)
                one->ends[i] = m->tensor_count - 1 - last[i];
        for (size_t i = 0; i < s->count; i++)
                if (s->of[i].segmented.count == count &&
                    memcmp(s->of[i].ends, one->ends, count * sizeof(*one->ends)) == 0)
                        return;
        for (size_t k = 0; k < (count > 1 ? one->ends[count - 2] : m->tensor_count); k++)
                one->bytes += m->tensors[k].count * sizeof(float);
        s->count++;
}

/* Is this tensor, in backward order, the last one of its layer? */
static bool ends_layer(const struct model *m, size_t tensor)
{
        size_t forward = m->tensor_count - 1 - tensor;

        return forward == 0 || m->tensors[forward].layer != m->tensors[forward - 1].layer;
}

/* Everything at once, and a cut after each layer but the last: the same on every rank, whatever it fuses.
 * What comes after the cut is the last segment; what came before travels while the backward pass goes on. */
static void lay_out(struct trials *s)
{
        size_t end = s->t->model.tensor_count - 1;

        add_trial(s, "one", &end, 1);
        for (size_t i = 0; i < end; i++)
                if (ends_layer(&s->t->model, i))
                        add_trial(s, "two", (size_t[]){ i, end }, 2);
}

/* The planned cut and the rules of thumb that it has to stand beside. */
static void lay_out_rivals(struct trials *s, const size_t *planned, size_t planned_count)
{
        const struct model *m = &s->t->model;
        size_t end = m->tensor_count - 1, all[MODEL_NODES_MAX], layers[MODEL_NODES_MAX], layer_count = 0;

        for (size_t i = 0; i <= end; i++) {
                all[i] = i;
                if (ends_layer(m, i))
                        layers[layer_count++] = i;
        }
        s->count = 0;
        add_trial(s, "planned", planned, planned_count);
        add_trial(s, "one", &end, 1);
        add_trial(s, "per layer", layers, layer_count);
        add_trial(s, "per tensor", all, end + 1);
        if (end > 0)
                add_trial(s, "the last tensor apart", (size_t[]){ end - 1, end }, 2);
        if (layer_count > 1)
                add_trial(s, "the last layer apart", (size_t[]){ layers[layer_count - 2], end }, 2);
}

/* A step as the training makes it, but for loading and updating. Return: ms that this rank gave to the
 * exchange, during the backward pass and after it. */
static double trial_step(const struct trials *s, struct trial *one, size_t samples)
{
        struct training *t = s->t;
        struct runner_ready ready = { segmented_ready, &one->segmented };
        uint64_t at;

        memset(t->gradients, 0, t->part.count * sizeof(*t->gradients));
        backend_to_device(&t->backend, t->gradients);
        (void) runner_forward(t->runner, t->parameters, samples);
        segmented_begin(&one->segmented);
        runner_backward(t->runner, t->parameters, t->gradients, samples, 1.0F / (float) samples,
                        backend_has_own_memory(&t->backend) ? NULL : &ready);
        if (backend_has_own_memory(&t->backend)) {
                backend_to_host(&t->backend, t->gradients);
                for (size_t i = t->model.node_count; i-- > 0;)
                        segmented_ready(&one->segmented, &t->model.nodes[i]);
        }
        at = record_now();
        segmented_wait(&one->segmented);
        return (double) (record_now() - at + one->segmented.called_usec) / 1e3;
}

/* What each cut leaves to wait for: the trials take turns, the median round counts, and of the ranks the one
 * that came last, as the others wait for it and not for the exchange. */
static int run_trials(struct trials *s, size_t samples, struct err *err)
{
        CLEANUP(free_p) double *ms = calloc(s->count * ROUNDS_MAX, sizeof(*ms));
        uint64_t begin = record_now();
        size_t rounds = 0;
        int more = world_agree(&s->t->world, ms != NULL ? 0 : err_set(err, -ENOMEM, "no memory"), err) == 0;

        if (!more || ms == NULL)
                return err->code;
        for (int warm = WARM_UP; more; warm -= warm > 0) {
                for (size_t i = 0; i < s->count; i++) { /* no one always comes after the same other one */
                        size_t k = (rounds & 1) != 0 ? s->count - 1 - i : i;

                        ms[k * ROUNDS_MAX + rounds] = trial_step(s, &s->of[k], samples);
                }
                rounds += warm == 0;
                more = rounds < ROUNDS_MAX && (rounds < ROUNDS_MIN || record_now() - begin < TRIAL_USEC);
                MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        MPI_Allreduce(MPI_IN_PLACE, ms, (int) (s->count * ROUNDS_MAX), MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        for (size_t i = 0; i < s->count; i++)
                s->of[i].ms = median(ms + i * ROUNDS_MAX, rounds);
        s->rounds = rounds;
        return 0;
}

/* What trials may save is at most what everything at once keeps everybody waiting, in every step to come;
 * what they take is so many steps. Example: 20 ms a step of which 1 ms is waited for, 45 trial steps: they
 * pay from 900 steps on. The same answer on every rank.
 * @ret_pay: is it worth it? Return: 0 or a negative errno. */
static int may_pay(struct trials *s, size_t samples, bool *ret_pay, struct err *err)
{
        size_t steps = (WARM_UP + ROUNDS_MIN) * (s->count + RIVALS), all = s->count;
        uint64_t begin = record_now();
        double step_ms;
        int r;

        s->count = 1; /* everything at once comes first */
        r = run_trials(s, samples, err);
        s->count = all;
        if (r < 0)
                return r;
        step_ms = (double) (record_now() - begin) / 1e3 / (double) (WARM_UP + s->rounds);
        MPI_Bcast(&step_ms, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        *ret_pay = s->of[0].ms * (double) (s->t->last_step - s->t->step) > step_ms * (double) steps;
        return 0;
}

/* Least squares of a + b x through what was measured, relative errors alike: for those who read along. */
static struct segment_level fit_cost(const struct trials *s)
{
        double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, spread;
        struct segment_level cost = { 0 };

        for (size_t i = 0; i < s->count; i++) {
                double x = (double) s->of[i].bytes, y = s->of[i].ms > 1e-3 ? s->of[i].ms : 1e-3,
                       w = 1 / (y * y);

                n += w;
                sx += w * x;
                sy += w * y;
                sxx += w * x * x;
                sxy += w * x * y;
        }
        spread = n * sxx - sx * sx;
        if (spread > 0 && n * sxy > sx * sy)
                cost.beta_ms_per_byte = (n * sxy - sx * sy) / spread;
        cost.alpha_ms = (sy - cost.beta_ms_per_byte * sx) / n;
        cost.alpha_ms = cost.alpha_ms > 0 ? cost.alpha_ms : 0;
        return cost;
}

/* By rank 0. Return: the number of segments or a negative errno. */
static int plan(const struct trials *s, size_t *ret_last, struct err *err)
{
        const struct training *t = s->t;
        CLEANUP(free_p) struct segment_tensor *tensors = calloc(t->model.tensor_count, sizeof(*tensors));
        struct segment_point points[MODEL_NODES_MAX];
        struct segment_cost cost = { .points = points, .point_count = s->count };
        struct segment_level level = fit_cost(s);
        struct segments_plan best;
        int r;

        if (tensors == NULL)
                return err_set(err, -ENOMEM, "no memory for the segments");
        for (size_t i = 0; i < t->model.tensor_count; i++) {
                tensors[i].bytes = t->model.tensors[t->model.tensor_count - 1 - i].count * sizeof(float);
                tensors[i].ready_ms = s->ready_ms[i];
        }
        for (size_t i = 0; i < s->count; i++) /* the later the cut, the less is left */
                points[s->count - 1 - i] = (struct segment_point){ s->of[i].bytes, s->of[i].ms };
        r = segments_plan(tensors, t->model.tensor_count, &cost, SEGMENT_CHOICE_MAX, &best, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < best.segment_count; i++)
                ret_last[i] = best.segments[i].last;
        (void) fprintf(
                stderr,
                "remuda-train: exchange costs %.3f ms + %.3f ms/MB, %zu segments planned, %.3f ms exposed "
                "(one segment: %.3f ms)\n",
                level.alpha_ms, level.beta_ms_per_byte * 1e6, best.segment_count, best.exposed_ms,
                best.baseline_exposed_ms[SEGMENTS_ONE]);
        r = (int) best.segment_count;
        segments_plan_free(&best);
        return r;
}

/* The planned cut from rank 0 to all. Return: the number of segments or a negative errno. */
static int plan_for_all(const struct trials *s, size_t *ret_last, struct err *err)
{
        const struct world *w = &s->t->world;
        unsigned long long chosen[SEGMENT_CHOICE_MAX + 1] = { 0 };
        int r = 0;

        if (w->rank == 0) {
                r = plan(s, ret_last, err);
                for (int i = 0; i < r; i++)
                        chosen[i + 1] = ret_last[i];
                chosen[0] = r > 0 ? (unsigned long long) r : 0;
        }
        r = world_agree(w, r < 0 ? r : 0, err);
        if (r < 0)
                return r;
        MPI_Bcast(chosen, SEGMENT_CHOICE_MAX + 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
        for (size_t i = 0; i < chosen[0]; i++)
                ret_last[i] = (size_t) chosen[i + 1];
        return (int) chosen[0];
}

/* Every rank has the same figures and comes to the same answer. Return: how many segments. */
static int keep_best(const struct trials *s, size_t *ret_last)
{
        const struct trial *best = &s->of[0];
        bool first = s->t->world.rank == 0;

        for (size_t i = 0; i < s->count; i++) {
                best = s->of[i].ms < best->ms ? &s->of[i] : best;
                if (first)
                        (void) fprintf(stderr, "%s %s %.3f ms", i == 0 ? "remuda-train: in trial steps" : ",",
                                       s->of[i].name, s->of[i].ms);
        }
        for (size_t i = 0; i < best->segmented.count; i++) {
                ret_last[i] = s->t->model.tensor_count - 1 - best->ends[i];
                if (first)
                        (void) fprintf(stderr, "%s%zu", i == 0 ? "; last tensors " : ",", ret_last[i]);
        }
        if (first)
                (void) fputc('\n', stderr);
        return (int) best->segmented.count;
}

/* The planned cut and its rivals, all tried. */
static int try_cuts(struct trials *s, size_t samples, size_t *ret_last, struct err *err)
{
        int r;

        measure_backward(s, samples);
        /* the slowest rank decides when a gradient may travel */
        MPI_Allreduce(MPI_IN_PLACE, s->ready_ms, (int) s->t->model.tensor_count, MPI_DOUBLE, MPI_MAX,
                      MPI_COMM_WORLD);
        r = run_trials(s, samples, err);
        if (r == 0)
                r = plan_for_all(s, ret_last, err);
        if (r < 0)
                return r;
        lay_out_rivals(s, ret_last, (size_t) r);
        return run_trials(s, samples, err);
}

int segment_choice(struct training *t, size_t *ret_last, struct err *err)
{
        size_t tensors = t->model.tensor_count, share = t->shares.own > 0 ? t->shares.own : 1;
        CLEANUP(free_p) double *ready_ms = calloc(tensors, sizeof(*ready_ms));
        CLEANUP(free_p) struct trials *trials = calloc(1, sizeof(*trials));
        float *x = backend_allocate(&t->backend, share * shape_size(&t->model.input) * sizeof(*x));
        int32_t *labels = backend_allocate(&t->backend, share * sizeof(*labels));
        uint64_t begin = record_now();
        bool pay = false;
        int r = ready_ms != NULL && trials != NULL && x != NULL && labels != NULL
                        ? 0
                        : err_set(err, -ENOMEM, "no memory");

        r = world_agree(&t->world, r, err);
        if (r < 0 || trials == NULL)
                return r;
        trials->t = t;
        trials->ready_ms = ready_ms;
        runner_use(t->runner, x, labels);
        lay_out(trials);
        r = may_pay(trials, share, &pay, err);
        if (r == 0 && pay)
                r = try_cuts(trials, share, ret_last, err);
        else
                trials->count = 1;
        if (r == 0)
                r = keep_best(trials, ret_last);
        backend_release(&t->backend, x);
        backend_release(&t->backend, labels);
        t->record.start_usec += record_now() - begin; /* measuring is no training */
        return r;
}
