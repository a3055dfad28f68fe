/* Stop: a rank that is asked to end by SIGTERM does not leave the others in the middle of a step. All ranks
 * stop after the same step, a checkpoint of it is written, and every program ends with 128 + SIGTERM. Only
 * with --checkpoint; elsewhere SIGTERM ends a program at once.
 *
 * Where all go in step (serial, allreduce, split, ps-sync), the ranks exchange one number every step, beside
 * the work of the next one. Where they do not (ps-async, ps-ssp), server 0 names the step after which all
 * stop, see strategies/parameter_server.c. */
#pragma once

#include <stdbool.h>

#include "trainer/training.h"

#define STOP_EXIT_CODE (128 + 15)

struct stop {
        bool listens, exchanging;
        int requested, anybody; /* of the exchange under way */
        void *request;          /* an MPI_Request; allocated */
};

/* stop_open() - SIGTERM is noted from here on. */
void stop_open(struct stop *stop, const struct training *t);
void stop_close(struct stop *stop, const struct training *t); /* collective */

/* stop_now() - collective, after a step is done: was any rank asked to stop, a step ago? The same on all. */
bool stop_now(struct stop *stop, const struct training *t);

/* stop_listen() - the same as stop_open() for ranks that do not go in step; SIGTERM is noted, nothing is
 * exchanged. stop_requested() - was this rank asked to stop? */
void stop_listen(struct stop *stop, const struct training *t);
bool stop_requested(const struct stop *stop);

/* stop_with_checkpoint() - t->step steps are done: write what there is to write. 0 or checkpoint_write()'s.
 */
int stop_with_checkpoint(struct training *t, struct err *err);
