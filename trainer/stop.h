/* Stop: a rank that is told to end by SIGTERM does not leave the others in the middle of a step. All ranks
 * stop after the same step, rank 0 writes a checkpoint of it, and every program ends with 128 + SIGTERM.
 *
 * Every step the ranks exchange one number, beside the work of the next one. Only with --checkpoint, and for
 * the strategies whose ranks all hold the parameters (serial, allreduce); elsewhere SIGTERM ends a program at
 * once. */
#pragma once

#include <stdbool.h>

#include "trainer/training.h"

#define STOP_EXIT_CODE (128 + 15)

struct stop {
        bool listens, asking;
        int told, anybody; /* of the exchange under way */
        void *request;     /* an MPI_Request; allocated */
};

/* stop_open() - SIGTERM is noted from here on. */
void stop_open(struct stop *stop, const struct training *t);
void stop_close(struct stop *stop, const struct training *t); /* collective */

/* stop_now() - collective, after a step is done: has any rank been told, a step ago? The same on all. */
bool stop_now(struct stop *stop, const struct training *t);

/* stop_with_checkpoint() - t->step steps are done: write what there is to write. 0 or checkpoint_write()'s.
 */
int stop_with_checkpoint(struct training *t, struct err *err);
