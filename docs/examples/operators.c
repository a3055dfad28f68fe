/* Operators of one's own for the reference trainer: another kernel for the ReLU, and an activation that the
 * trainer lacks. At its end the library says how often it was called.
 *
 *     cc -shared -fPIC -I. docs/examples/operators.c -o liboperators.so -lm
 *     remuda-train-cpu --operator ramp=./liboperators.so --conformance      # judged
 *     remuda-train-cpu --activation silu=./liboperators.so ...              # trained with */
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

__attribute__((destructor)) static void say(void)
{
        (void) fprintf(stderr, "operators.c: called %lu times\n", calls);
}
