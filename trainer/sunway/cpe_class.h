/* Rows of classes on a CPE (slave core): softmax and its gradient, an embedding and its gradient. CPE i of n
 * does the rows i, i + n, ...; of an embedding's gradient the words i, i + n, ..., so that no word has two
 * CPEs. */
#pragma once

#include "trainer/sunway/cpe.h"

struct cpe_class {
        size_t rows, cols;
        const float *x, *x2;
        float *y;
};

void cpe_class_softmax(struct cpe *core, const void *argument);
void cpe_class_softmax_gradient(struct cpe *core, const void *argument);
void cpe_class_embed(struct cpe *core, const void *argument);          /* x: table, x2: ids */
void cpe_class_embed_gradient(struct cpe *core, const void *argument); /* x: dy, x2: ids, y: dtable */
