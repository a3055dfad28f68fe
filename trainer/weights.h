/* Weights: all parameters of a model, wherever its ranks hold them, in order: to a file, a checkpoint, an
 * export. */
#pragma once

#include "trainer/training.h"

/* weights_stream() - all values of `own` (t's parameters or velocity) in order to `take`, piece by piece.
 * Where the model is split, all ranks call it and rank 0 alone takes; of pipelines that are replicas the
 * first one's. */
void weights_stream(const struct training *t, const float *own,
                    void (*take)(void *context, const float *values, size_t count), void *context);

/* weights_write() - all parameters to FILE by rename, little-endian float32, by rank 0; collective where the
 * model is split. */
int weights_write(const struct training *t, const char *path, struct err *err);
