/* Speed of one rank by itself: whole steps without exchange, at its own share of the batch and at fractions
 * of it. */
#include <errno.h>
#include <stdio.h>

#include "trainer/training.h"

#define POINTS 4

/* Runs steps of `count` samples for `usec`. Return: seconds a step. */
static double time_steps(struct training *t, float *x, int32_t *labels, size_t count, uint64_t usec)
{
        uint64_t begin, steps = 0;

        for (size_t i = 0; i < count; i++)
                t->ids[i] = (uint32_t) (i % dataset_count(t->data, DATASET_TRAIN));
        runner_use(t->runner, x, labels);
        for (begin = 0; steps < 3 || record_now() - begin < usec; steps++) {
                if (steps == 2) /* the first two warm the caches */
                        begin = record_now();
                dataset_load(t->data, DATASET_TRAIN, 0, t->ids, count, x, labels);
                (void) runner_forward(t->runner, t->parameters, count);
                runner_backward(t->runner, t->parameters, t->gradients, count, 1.0F / (float) count, NULL,
                                NULL);
                t->backend.kernels.update(t->backend.state, t->model.parameter_count, 1e-6F, 0, t->gradients,
                                          NULL, t->parameters);
        }
        return (double) (record_now() - begin) / 1e6 / (double) (steps - 2);
}

int training_measure(struct training *t, struct err *err)
{
        static const size_t fractions[POINTS] = { 1, 2, 4, 8 };
        uint64_t usec = (uint64_t) (t->options->measure_seconds * 1e6 / POINTS);
        size_t whole = t->own_share > 0 ? t->own_share : 1;
        float *x = t->backend.allocate(t->backend.state, whole * shape_size(&t->model.input) * sizeof(*x));
        int32_t *labels = t->backend.allocate(t->backend.state, whole * sizeof(*labels));
        double seconds[POINTS];

        if (x == NULL || labels == NULL)
                return err_set(err, -ENOMEM, "no memory for a batch of %zu", whole);
        for (size_t i = 0; i < POINTS; i++)
                seconds[i] =
                        time_steps(t, x, labels, whole / fractions[i] > 0 ? whole / fractions[i] : 1, usec);
        printf("{\"runtime\":\"%s\",\"rank\":%d,\"model\":\"%s\",\"batch\":%zu,\"samples_per_s\":%.1f,"
               "\"points\":[",
               t->backend.runtime, t->world.rank, t->model.name, whole, (double) whole / seconds[0]);
        for (size_t i = 0; i < POINTS; i++) {
                size_t count = whole / fractions[i] > 0 ? whole / fractions[i] : 1;

                printf("%s{\"batch\":%zu,\"step_ms\":%.4f,\"samples_per_s\":%.1f}", i > 0 ? "," : "", count,
                       seconds[i] * 1e3, (double) count / seconds[i]);
        }
        printf("]}\n");
        t->backend.release(t->backend.state, x);
        t->backend.release(t->backend.state, labels);
        return t->backend.trouble != NULL ? t->backend.trouble(t->backend.state, err) : 0;
}
