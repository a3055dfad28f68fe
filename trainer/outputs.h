/* Outputs: the files that a run will write at its end are tried at its beginning, so that hours of training
 * are not lost to a name that cannot be written. */
#pragma once

#include "trainer/training.h"

/* outputs_check() - what this rank will have to write: rank 0 weights, export and checkpoints, a server its
 * clock log. Leaves no file behind, but the checkpoint directory. Return: 0, or -EINVAL naming option and
 * file.
 */
int outputs_check(const struct training *t, struct err *err);

/* outputs_clock_log() - the file of this server. Return: false if the name is too long. */
bool outputs_clock_log(const struct training *t, char *path, size_t path_bytes);
