#include "trainer/segment_choice.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/cleanup.h"
#include "core/segments.h"

#define REPEATS 7
#define SIZES   6

struct readiness {
        struct training *t;
        uint64_t begin_usec;
        double *ready_ms; /* by backward tensor */
        size_t next;
};

static void node_done(void *context, const struct node *node)
{
        struct readiness *r = context;
        double ms = (double) (record_now() - r->begin_usec) / 1e3;

        if (node->weight_count > 0)
                r->ready_ms[r->next++] = ms;
        if (node->bias_count > 0)
                r->ready_ms[r->next++] = ms;
}

/* When each gradient is ready in a step of this rank's share, on made-up samples: the parameters stay. */
static void measure_backward(struct training *t, double *ready_ms, float *x, int32_t *labels)
{
        size_t count = t->own_share > 0 ? t->own_share : 1;

        runner_use(t->runner, x, labels);
        for (int i = 0; i < 3; i++) { /* the last one counts */
                struct readiness r = { .t = t, .ready_ms = ready_ms };

                (void) runner_forward(t->runner, t->parameters, count);
                r.begin_usec = record_now();
                runner_backward(t->runner, t->parameters, t->gradients, count, 0, node_done, &r);
        }
}

static double time_exchange(float *values, size_t count)
{
        double best = 1e9;

        for (int i = 0; i < REPEATS; i++) {
                double begin, took;

                MPI_Barrier(MPI_COMM_WORLD);
                begin = MPI_Wtime();
                MPI_Allreduce(MPI_IN_PLACE, values, (int) count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                took = (MPI_Wtime() - begin) * 1e3;
                best = took < best ? took : best;
        }
        return best;
}

/* Least squares of a + b x through the best times of sizes that halve, relative errors alike. */
static struct segment_level fit_cost(float *values, size_t count)
{
        double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
        struct segment_level cost;

        for (int i = 0; i < SIZES; i++) {
                size_t n = count >> i > 0 ? count >> i : 1;
                double x = (double) n * sizeof(float), y = time_exchange(values, n), w = 1 / (y * y);

                s += w;
                sx += w * x;
                sy += w * y;
                sxx += w * x * x;
                sxy += w * x * y;
        }
        cost.beta_ms_per_byte = (s * sxy - sx * sy) / (s * sxx - sx * sx);
        cost.beta_ms_per_byte = cost.beta_ms_per_byte > 0 ? cost.beta_ms_per_byte : 0;
        cost.alpha_ms = (sy - cost.beta_ms_per_byte * sx) / s;
        cost.alpha_ms = cost.alpha_ms > 0 ? cost.alpha_ms : 0;
        return cost;
}

static int plan(const struct training *t, const double *ready_ms, const struct segment_level *level,
                size_t *ret_last, struct err *err)
{
        CLEANUP(free_p) struct segment_tensor *tensors = calloc(t->model.tensor_count, sizeof(*tensors));
        struct segment_cost cost = { .levels = level, .level_count = 1 };
        struct segments_plan best;
        int r;

        if (tensors == NULL)
                return err_set(err, -ENOMEM, "no memory for the segments");
        for (size_t i = 0; i < t->model.tensor_count; i++) {
                tensors[i].bytes = t->model.tensors[t->model.tensor_count - 1 - i].count * sizeof(float);
                tensors[i].ready_ms = ready_ms[i];
        }
        r = segments_plan(tensors, t->model.tensor_count, &cost, SEGMENT_CHOICE_MAX, &best, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < best.segment_count; i++)
                ret_last[i] = best.segments[i].last;
        (void) fprintf(
                stderr,
                "remuda-train: exchange costs %.3f ms + %.3f ms/MB, %zu segments planned, %.3f ms exposed "
                "(one segment: %.3f ms); last tensors ",
                level->alpha_ms, level->beta_ms_per_byte * 1e6, best.segment_count, best.exposed_ms,
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
        struct segment_level cost;
        unsigned long long chosen[SEGMENT_CHOICE_MAX + 1] = { 0 };
        int r = ready_ms != NULL && x != NULL && labels != NULL ? 0 : err_set(err, -ENOMEM, "no memory");

        r = world_agree(&t->world, r, err);
        if (r < 0)
                return r;
        measure_backward(t, ready_ms, x, labels);
        /* the slowest rank decides when a gradient may travel */
        MPI_Allreduce(MPI_IN_PLACE, ready_ms, (int) tensors, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        backend_to_host(&t->backend, t->gradients);
        cost = fit_cost(t->gradients, t->model.parameter_count);
        if (t->world.rank == 0) {
                r = plan(t, ready_ms, &cost, ret_last, err);
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
        return (int) chosen[0];
}
