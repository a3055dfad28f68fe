/* Vector: the few sums over whole parameter arrays that must come out the same bit for bit wherever they are
 * done (in one process, on a server, on a worker). Plain loops, one rounding per operation, in index order.
 * Pure. */
#pragma once

#include <stddef.h>

void vector_add(size_t count, const float *x, float *sum);
/* w -= rate * g; with velocity (not NULL) velocity = momentum * velocity + g; w -= rate * velocity. */
void vector_update(size_t count, float rate, float momentum, const float *g, float *velocity, float *w);
size_t vector_largest(size_t count, const float *x); /* index of the first largest; count > 0 */
