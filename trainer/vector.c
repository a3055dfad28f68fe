#include "trainer/vector.h"

void vector_scale(size_t count, float factor, float *x)
{
        for (size_t i = 0; i < count; i++)
                x[i] *= factor;
}

void vector_add(size_t count, const float *x, float *sum)
{
        for (size_t i = 0; i < count; i++)
                sum[i] += x[i];
}

size_t vector_largest(size_t count, const float *x)
{
        size_t best = 0;

        for (size_t i = 1; i < count; i++)
                if (x[i] > x[best])
                        best = i;
        return best;
}
