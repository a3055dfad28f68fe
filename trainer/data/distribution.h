/* Distribution: how samples reach the ranks when the manager (rank 0) alone reads them (--distribute
 * manager), and how new files join (--poll).
 *
 * Before an epoch the manager goes through the workers, which say whether they need data, and sends each the
 * samples of its shard of that epoch, in the order of their use, with their number and a CRC that the worker
 * checks. Nothing else of the training data ever is on a worker. Samples of new files join at the epoch that
 * is about to begin, on all ranks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "trainer/data/preprocess.h"
#include "trainer/data/seen.h"

struct training;

struct distribution {
        uint64_t epochs_begun; /* with --distribute manager or --poll */
        uint64_t polled_usec;  /* when new files were looked for */
        struct text joined;    /* trainer/data/joined.h: what joined so far, with --checkpoint */
        struct seen later;     /* the files in it, until the run goes on */
        uint64_t sent_bytes, received_bytes; /* of samples */
};

void distribution_close(struct distribution *d);

/* distribution_remember() - collective, before the data are opened: what an earlier run with these
 * checkpoints joined, if this one goes on. */
int distribution_remember(struct training *t, struct err *err);

/* distribution_resume() - joins what had joined before the step at which this run goes on. */
int distribution_resume(struct training *t, struct err *err);

/* distribution_open() - collective, in place of reading the data on every rank. */
int distribution_open(struct training *t, const struct preprocess_steps *p, struct err *err);

/* distribution_epoch() - the epoch of `step` is about to begin on this rank; does nothing if it has begun.
 * The manager serves all workers, a worker waits for its shard; a process alone only looks for new files. */
int distribution_epoch(struct training *t, uint64_t step, struct err *err);

/* distribution_begun() - has this rank the data of that step's epoch? Always, without --distribute manager or
 * --poll. */
bool distribution_begun(const struct training *t, uint64_t step);
