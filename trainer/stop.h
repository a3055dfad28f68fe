/* Stop: a rank that is asked to end by SIGTERM does not leave the others in the middle of a step. All ranks
 * stop after the same step, a checkpoint of it is written, and every program ends with 128 + SIGTERM. Only
 * with --checkpoint; elsewhere SIGTERM ends a program at once.
 *
 * Where all go in step, trainer/in_step/in_step.h tells the others. Where they do not (ps-async, ps-ssp),
 * server 0 names the step after which all stop, see strategies/parameter_server.c. */
#pragma once

#include <stdbool.h>

#include "trainer/training.h"

#define STOP_EXIT_CODE (128 + 15)

struct stop {
        bool listens; /* the same on every rank */
};

/* stop_open() - SIGTERM is noted from here on, until stop_close(). */
void stop_open(struct stop *stop, const struct training *t);
void stop_close(const struct stop *stop);

/* stop_requested() - was this rank asked to stop? */
bool stop_requested(const struct stop *stop);

/* stop_with_checkpoint() - t->step steps are done: write what there is to write. 0 or checkpoint_write()'s.
 */
int stop_with_checkpoint(struct training *t, struct err *err);
