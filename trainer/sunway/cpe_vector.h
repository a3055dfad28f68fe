/* Arrays and rows of matrices on a CPE (slave core): element by element, bias, column sums, and the merging
 * of gradients: a CPE's own columns of what the others have summed up (cpe_vector_merge()), or another rank's
 * array (CPE_VECTOR_ADD). Both add in the order that one core would, so that the sums are the same. */
#pragma once

#include <stdbool.h>

#include "trainer/sunway/cpe.h"

/* One array in, or two, one array out, piece by piece. */
enum cpe_vector_operation {
        CPE_VECTOR_SCALE,
        CPE_VECTOR_ADD,  /* y += x */
        CPE_VECTOR_PLUS, /* y = x + x2 */
        CPE_VECTOR_PLUS_RELU,
        CPE_VECTOR_RELU,
        CPE_VECTOR_RELU_GRADIENT,
        CPE_VECTOR_UPDATE,
        CPE_VECTOR_UPDATE_MOMENTUM
};

struct cpe_vector {
        enum cpe_vector_operation what;
        size_t count;
        float factor, momentum;
        const float *x, *x2;
        float *y, *y2;
};

void cpe_vector_work(struct cpe *core, const void *argument);

struct cpe_vector_rows {
        size_t rows, cols;
        const float *x, *b;
        float *y;
        float *partial; /* cols sums a core */
        bool relu;
        bool mask; /* y is the activation that decides whether dy (in x) passes */
        float *masked;
};

void cpe_vector_bias(struct cpe *core, const void *argument); /* y = x + b, ReLU of it */
void cpe_vector_sums(struct cpe *core, const void *argument); /* partial sums of the columns */

#define CPE_VECTOR_MERGE_LEAST                                                                               \
        32 /* columns that a core merges, where there are so many: a transfer's worth */

struct cpe_vector_merging {
        size_t parts, cols;
        const float *partial; /* parts x cols */
        float *y;             /* cols */
};

void cpe_vector_merge(struct cpe *core, const void *argument); /* y += part 0, += part 1, ... */
