/* Reference: every operator's forward pass in double precision, as plainly as it can be written. Gradients
 * are had from it by differences, so that no formula is shared with what it judges. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trainer/model.h"

struct reference_call {
        const struct model_node *node;
        size_t count;
        const double *x, *weight, *bias;
        const int32_t *labels;
        double *y;
        double loss;
};

/* reference_forward() - fused operators run as their parts. Return: 0, or -ENOMEM. */
int reference_forward(struct reference_call *call);
