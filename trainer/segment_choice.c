#include "trainer/segment_choice.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/segments.h"
#include "trainer/segmented.h"

#define WARM_UP    2 /* rounds */
#define ROUNDS_MIN 3
#define ROUNDS_MAX 41
#define TRIAL_USEC 600000

/* A trial: the gradients are cut before one tensor, so that what comes from there on is the last segment and
 * what came before travels while the backward pass goes on. */
struct trial {
        size_t first; /* tensor in backward order, 0 = everything is the last segment */
        size_t ends[2];
        struct segmented segmented;
        double ms; /* that the last segment of so many bytes keeps everybody waiting */
        uint64_t bytes;
};

struct trials {
        struct training *t;
        size_t count;
        struct trial of[MODEL_NODES_MAX];
        MPI_Request requests[2];
        uint64_t begin_usec;
        double *ready_ms; /* by backward tensor */
        size_t next;
};

/* Takes down when each tensor was ready. */
static void node_done(void *context, const struct node *node)
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
                runner_backward(t->runner, t->parameters, t->gradients, samples, 0, node_done, s);
        }
}

/* A cut before each layer: the same on every rank, whatever it fuses. */
static void lay_out(struct trials *s)
{
        const struct tensor *all = s->t->model.tensors;
        size_t tensors = s->t->model.tensor_count;

        for (size_t first = 0; first < tensors; first++) {
                struct trial *one = &s->of[s->count];
                size_t begins = 0, forward = tensors - 1 - first;

                if (first > 0 && all[forward].layer == all[forward + 1].layer)
                        continue;
                s->count++;
                one->first = first;
                if (one->first > 0)
                        one->ends[begins++] =
                                tensors - one->first; /* of what came before, in forward order */
                one->ends[begins++] = 0;
                one->segmented = (struct segmented){
                        .t = s->t, .count = begins, .ends = one->ends, .requests = s->requests
                };
                for (size_t k = 0; k <= forward; k++)
                        one->bytes += all[k].count * sizeof(float);
        }
}

/* A step as the training makes it, but for loading and updating. Return: ms that this rank waited. */
static double trial_step(const struct trials *s, struct trial *one, size_t samples)
{
        struct training *t = s->t;
        uint64_t at;

        memset(t->gradients, 0, t->part.count * sizeof(*t->gradients));
        backend_to_device(&t->backend, t->gradients);
        (void) runner_forward(t->runner, t->parameters, samples);
        segmented_begin(&one->segmented);
        runner_backward(t->runner, t->parameters, t->gradients, samples, 1.0F / (float) samples,
                        t->backend.to_host == NULL ? segmented_ready : NULL, &one->segmented);
        if (t->backend.to_host != NULL) {
                backend_to_host(&t->backend, t->gradients);
                for (size_t i = t->model.node_count; i-- > 0;)
                        segmented_ready(&one->segmented, &t->model.nodes[i]);
        }
        at = record_now();
        segmented_wait(&one->segmented);
        return (double) (record_now() - at) / 1e3;
}

static int by_size(const void *a, const void *b)
{
        double left = *(const double *) a, right = *(const double *) b;

        return (left > right) - (left < right);
}

/* What each cut leaves to wait for: the trials take turns, the median round counts, and of the ranks the one
 * that came last, as the others wait for it and not for the exchange. */
static int run_trials(struct trials *s, size_t samples, struct err *err)
{
        CLEANUP(free_p) double *ms = calloc(s->count * ROUNDS_MAX, sizeof(*ms));
        uint64_t begin = record_now();
        size_t rounds = 0;
        int more = world_agree(&s->t->world, ms != NULL ? 0 : err_set(err, -ENOMEM, "no memory"), err) == 0;

        if (!more)
                return err->code;
        for (int warm = WARM_UP; more; warm -= warm > 0) {
                for (size_t i = 0; i < s->count; i++)
                        ms[i * ROUNDS_MAX + rounds] = trial_step(s, &s->of[i], samples);
                rounds += warm == 0;
                more = rounds < ROUNDS_MAX && (rounds < ROUNDS_MIN || record_now() - begin < TRIAL_USEC);
                MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        MPI_Allreduce(MPI_IN_PLACE, ms, (int) (s->count * ROUNDS_MAX), MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        for (size_t i = 0; i < s->count; i++) {
                qsort(ms + i * ROUNDS_MAX, rounds, sizeof(*ms), by_size);
                s->of[i].ms = ms[i * ROUNDS_MAX + rounds / 2];
        }
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
                "(one segment: %.3f ms); last tensors ",
                level.alpha_ms, level.beta_ms_per_byte * 1e6, best.segment_count, best.exposed_ms,
                best.baseline_exposed_ms[SEGMENTS_ONE]);
        for (size_t i = 0; i < best.segment_count; i++)
                (void) fprintf(stderr, "%s%zu", i == 0 ? "" : ",", ret_last[i]);
        (void) fputc('\n', stderr);
        r = (int) best.segment_count;
        segments_plan_free(&best);
        return r;
}

int segment_choice(struct training *t, size_t *ret_last, struct err *err)
{
        size_t tensors = t->model.tensor_count, share = t->own_share > 0 ? t->own_share : 1;
        CLEANUP(free_p) double *ready_ms = calloc(tensors, sizeof(*ready_ms));
        float *x = t->backend.allocate(t->backend.state, share * shape_size(&t->model.input) * sizeof(*x));
        int32_t *labels = t->backend.allocate(t->backend.state, share * sizeof(*labels));
        struct trials trials = { .t = t, .ready_ms = ready_ms };
        unsigned long long chosen[SEGMENT_CHOICE_MAX + 1] = { 0 };
        uint64_t begin = record_now();
        int r = ready_ms != NULL && x != NULL && labels != NULL ? 0 : err_set(err, -ENOMEM, "no memory");

        r = world_agree(&t->world, r, err);
        if (r < 0)
                return r;
        runner_use(t->runner, x, labels);
        measure_backward(&trials, share);
        /* the slowest rank decides when a gradient may travel */
        MPI_Allreduce(MPI_IN_PLACE, ready_ms, (int) tensors, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        lay_out(&trials);
        r = run_trials(&trials, share, err);
        if (r == 0 && t->world.rank == 0) {
                r = plan(&trials, ret_last, err);
                for (int i = 0; i < r; i++)
                        chosen[i + 1] = ret_last[i];
                chosen[0] = r > 0 ? (unsigned long long) r : 0;
        }
        t->backend.release(t->backend.state, x);
        t->backend.release(t->backend.state, labels);
        r = world_agree(&t->world, r < 0 ? r : 0, err);
        if (r < 0)
                return r;
        MPI_Bcast(chosen, SEGMENT_CHOICE_MAX + 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
        for (size_t i = 0; i < chosen[0]; i++)
                ret_last[i] = (size_t) chosen[i + 1];
        t->record.start_usec += record_now() - begin; /* measuring is no training */
        return (int) chosen[0];
}
