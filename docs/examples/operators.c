/* Operators of one's own for the reference trainer: another kernel for the ReLU, an activation that the
 * trainer lacks, and that activation fused with the bias before it, and with the add in which a branch of a
 * model comes together. At its end the library says how often it was called.
 *
 *     cc -shared -fPIC -I. docs/examples/operators.c -o liboperators.so -lm
 *     remuda-train-cpu --operator ramp=./liboperators.so --conformance      # judged
 *     remuda-train-cpu --activation silu=./liboperators.so ...              # trained with
 *     remuda-train-cpu --activation silu=./liboperators.so --fusion docs/examples/fusion.json ... */
#include <math.h>
#include <stdio.h>

#include "trainer/operators/kernels.h"
#include "trainer/operators/relu.h"

const int remuda_kernel_version = 1;

static unsigned long calls;

/* The ReLU, of the type that struct kernels gives it. */
void remuda_kernel_ramp(void *state, size_t count, const float *x, float *y)
{
        (void) state;
        calls++;
        for (size_t i = 0; i < count; i++)
                y[i] = relu_of(x[i]);
}

/* SiLU: x / (1 + e^-x), with its gradient, and in double precision for --conformance. */
void remuda_activation_silu(void *state, size_t rows, size_t cols, const float *x, float *y)
{
        (void) state;
        calls++;
        for (size_t i = 0; i < rows * cols; i++)
                y[i] = x[i] / (1 + expf(-x[i]));
}

void remuda_activation_silu_gradient(void *state, size_t rows, size_t cols, const float *x, const float *y,
                                     const float *dy, float *dx)
{
        (void) state;
        for (size_t i = 0; i < rows * cols; i++) {
                float part = 1 / (1 + expf(-x[i]));

                dx[i] = dy[i] * (part + y[i] * (1 - part));
        }
}

void remuda_activation_silu_reference(size_t rows, size_t cols, const double *x, double *y)
{
        for (size_t i = 0; i < rows * cols; i++)
                y[i] = x[i] / (1 + exp(-x[i]));
}

/* The bias and the SiLU in one pass over the numbers, and back: what docs/examples/fusion.json names. */
static unsigned long fused_calls, added_calls;

static float slope(float x)
{
        float part = 1 / (1 + expf(-x));

        return part * (1 + x * (1 - part));
}

void remuda_fused_bias_silu(void *state, struct kernels_fused_call *c)
{
        size_t rows = c->count * c->in_height * c->in_width, cols = c->in_channels;

        (void) state;
        fused_calls++;
        for (size_t r = 0; r < rows; r++)
                for (size_t k = 0; k < cols; k++) {
                        float x = c->x[r * cols + k] + c->bias[k];

                        c->y[r * cols + k] = x / (1 + expf(-x));
                }
}

void remuda_fused_bias_silu_gradient(void *state, struct kernels_fused_call *c)
{
        size_t rows = c->count * c->in_height * c->in_width, cols = c->in_channels;

        (void) state;
        for (size_t r = 0; r < rows; r++)
                for (size_t k = 0; k < cols; k++) {
                        float d = c->dy[r * cols + k] * slope(c->x[r * cols + k] + c->bias[k]);

                        c->dbias[k] += d;
                        if (c->dx != NULL)
                                c->dx[r * cols + k] = d;
                }
}

/* The sum of both branches and the SiLU in one pass; dx is the gradient of both. */
void remuda_fused_add_silu(void *state, struct kernels_fused_call *c)
{
        size_t total = c->count * c->in_height * c->in_width * c->in_channels;

        (void) state;
        added_calls++;
        for (size_t i = 0; i < total; i++) {
                float x = c->x[i] + c->other[i];

                c->y[i] = x / (1 + expf(-x));
        }
}

void remuda_fused_add_silu_gradient(void *state, struct kernels_fused_call *c)
{
        size_t total = c->count * c->in_height * c->in_width * c->in_channels;

        (void) state;
        for (size_t i = 0; i < total; i++)
                c->dx[i] = c->dy[i] * slope(c->x[i] + c->other[i]);
}

__attribute__((destructor)) static void say(void)
{
        (void) fprintf(stderr, "operators.c: called %lu times, fused %lu times, branches added %lu times\n",
                       calls, fused_calls, added_calls);
}
