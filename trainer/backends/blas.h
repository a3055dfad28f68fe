/* BLAS: a matrix product of the table as one call of the library. */
#pragma once

#include <cblas.h>

#include "trainer/operators/kernels.h"

static inline void blas_matmul(const struct kernels_matmul *m)
{
        cblas_sgemm(CblasRowMajor, m->transpose_a ? CblasTrans : CblasNoTrans,
                    m->transpose_b ? CblasTrans : CblasNoTrans, (int) m->rows, (int) m->cols, (int) m->inner,
                    1.0F, m->a, (int) (m->transpose_a ? m->rows : m->inner), m->b,
                    (int) (m->transpose_b ? m->inner : m->cols), m->accumulate ? 1.0F : 0.0F, m->c,
                    (int) m->cols);
}
