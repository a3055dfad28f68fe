/* Outputs: the files that a run will write at its end are tried at its beginning, so that hours of training
 * are not lost to a name that cannot be written. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "trainer/train_options.h"

/* outputs_check() - what this rank will have to write: rank 0 weights, export and checkpoints, a server its
 * clock log. Leaves no file behind, but the checkpoint directory. Return: 0, or -EINVAL naming option and
 * file.
 */
int outputs_check(const struct train_options *o, int rank, bool serves, struct err *err);

/* outputs_clock_log() - the file of this server. Return: false if the name is too long. */
bool outputs_clock_log(const struct train_options *o, int rank, char *path, size_t path_bytes);
