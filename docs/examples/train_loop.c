/* A loop of one machine as ranks of a world: logistic regression on made-up points. The lines that differ are
 * marked.
 *
 *     cc -Itrainer/wrapper docs/examples/train_loop.c -Lbuild/lib -lremuda-train -lm -o train_loop
 *     mpirun -np 2 ./train_loop */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "remuda_train.h"

#define SAMPLES 1000
#define INPUTS  8

static float points[SAMPLES][INPUTS];
static int classes[SAMPLES];

static void make_points(void)
{
        unsigned state = 1;

        for (int i = 0; i < SAMPLES; i++) {
                float sum = 0;

                for (int k = 0; k < INPUTS; k++) {
                        state = state * 1664525U + 1013904223U;
                        sum += points[i][k] = (float) (state >> 8) / (float) (1 << 24) - 0.5F;
                }
                classes[i] = sum > 0;
        }
}

/* The mean gradient over these samples. */
static double gradient_of(const float *w, const uint32_t *ids, size_t count, float *gradient)
{
        double loss = 0;

        memset(gradient, 0, INPUTS * sizeof(*gradient));
        for (size_t i = 0; i < count; i++) {
                const float *x = points[ids[i]];
                float z = 0, p;

                for (int k = 0; k < INPUTS; k++)
                        z += w[k] * x[k];
                p = 1 / (1 + expf(-z));
                loss -= log(classes[ids[i]] ? p : 1 - p) / (double) count;
                for (int k = 0; k < INPUTS; k++)
                        gradient[k] += (p - (float) classes[ids[i]]) * x[k] / (float) count;
        }
        return loss;
}

int main(void)
{
        float w[INPUTS] = { 0 }, gradient[INPUTS];
        const uint32_t *ids;
        long count;
        double loss = 0;

        make_points();
        struct remuda_train *run = remuda_train_open(SAMPLES, 64, 1, 3); /* 1 */
        if (run == NULL)
                return 2;
        (void) remuda_train_broadcast(run, w, sizeof(w));     /* 2 */
        while ((count = remuda_train_next(run, &ids)) >= 0) { /* 3 */
                loss = gradient_of(w, ids, (size_t) count, gradient);
                (void) remuda_train_reduce(run, gradient, INPUTS); /* 4 */
                for (int k = 0; k < INPUTS; k++)
                        w[k] -= gradient[k];
                remuda_train_progress(run, loss);
        }
        for (int k = 0; remuda_train_rank(run) == 0 && k < INPUTS; k++)
                printf("%.9g\n", (double) w[k]);
        remuda_train_close(run);
        return 0;
}
