/* Reference: every operator in double precision, as plainly as it can be written: what comes out, and its
 * gradients. The gradients share no formula with what they judge and are held to differences of what comes
 * out themselves (test_train_reference.c). Pure but for the heap. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trainer/model.h"

struct reference_call {
        const struct model_node *node;
        size_t count;
        const double *x, *weight, *bias;
        const double *other; /* of an add */
        const int32_t *labels;
        void (*activation)(size_t rows, size_t cols, const double *x, double *y); /* of OP_ACTIVATION */
        double *y;                                                                /* forward writes it */
        double loss; /* of the cross-entropy; both write it */
        const double *dy;
        double scale;            /* of the loss; in its place dy counts nothing */
        double *dx;              /* backward overwrites it; of an add: `other` has the same */
        double *dweight, *dbias; /* backward adds to them */
};

/* reference_forward() - fused operators run as their parts. Return: 0, or -ENOMEM. */
int reference_forward(struct reference_call *call);

/* reference_backward() - the gradients of the weighted sum of the outputs (dy), or of the scaled loss. y is
 * not touched. O(the operations of forward). Return: 0, or -ENOMEM. */
int reference_backward(struct reference_call *call);
