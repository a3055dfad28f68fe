/* Tune work: what a setting of tunables is measured on: the work of the shipped models, in three kinds. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "trainer/operators/backend.h"

#define TUNE_WORK_MAX 8 /* of a kind */

/* tune_work_count() - 1..TUNE_WORK_MAX. tune_work_name() - "matmul 128 x 784 by 784 x 256". */
size_t tune_work_count(enum tunable_work kind);
void tune_work_name(enum tunable_work kind, size_t work, char *name, size_t name_bytes);

/* tune_work_time() - opens the linked backend with these options and does each work of the kind once, for
 * what is compiled or woken up, then `repeats` times.
 * @usec: of each the least so far, which becomes less
 * @device: its model's name, 96 bytes
 * Return: 0 or a negative errno. */
int tune_work_time(const struct backend_options *options, enum tunable_work kind, int repeats, double *usec,
                   char *device, struct err *err);
