/* Plain loops in index order. */
#include "trainer/operators/vector.h"

void vector_add(size_t count, const float *x, float *sum)
{
        for (size_t i = 0; i < count; i++)
                sum[i] += x[i];
}

void vector_update(size_t count, float rate, float momentum, const float *g, float *velocity, float *w)
{
        for (size_t i = 0; velocity == NULL && i < count; i++)
                w[i] -= rate * g[i];
        for (size_t i = 0; velocity != NULL && i < count; i++) {
                velocity[i] = momentum * velocity[i] + g[i];
                w[i] -= rate * velocity[i];
        }
}

size_t vector_largest(size_t count, const float *x)
{
        size_t best = 0;

        for (size_t i = 1; i < count; i++)
                if (x[i] > x[best])
                        best = i;
        return best;
}
