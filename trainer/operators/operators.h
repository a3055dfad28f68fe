/* Operators: what the nodes of a model do, in terms of a backend's kernels. One row of functions per kind.
 *
 * Pure arithmetic over borrowed buffers; the gradient of a node's parameters is added to dweight and dbias.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trainer/model.h"
#include "trainer/operators/backend.h"

struct operator_call {
        const struct backend *backend;
        const struct node *node;
        size_t count; /* samples */
        const float *x;
        float *y;
        float *dx; /* NULL: nobody wants it */
        float *dy; /* may be overwritten */
        const float *weight, *bias;
        float *dweight, *dbias;
        uint8_t *which;
        const int32_t *labels;
        float *scratch;
        float scale;
        double loss; /* written by a loss */
};

void operator_forward(struct operator_call *call);
void operator_backward(struct operator_call *call);

/* operator_scratch() - floats of scratch memory that a node wants for `count` samples. */
size_t operator_scratch(const struct node *n, size_t count);
