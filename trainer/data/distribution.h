/* Distribution: who reads the data (--distribute), and how new files join (--poll).
 *
 * With --distribute manager rank 0 alone reads: what the others must know of the data they are told at the
 * beginning, and samples come to them as they need them (trainer/data/stream.h), or once
 * (trainer/data/ring.h). With --poll rank 0 looks for new files before an epoch, and tells all ranks how many
 * samples it has, and those that read themselves which files joined; their samples join at that epoch on all
 * ranks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "trainer/data/preprocess.h"
#include "trainer/data/seen.h"

struct training;

struct distribution {
        uint64_t epochs_begun; /* with --poll */
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

/* distribution_step() - before that step: with --poll its epoch begins, on all ranks; the manager serves the
 * workers, and a worker waits for its samples. */
int distribution_step(struct training *t, uint64_t step, struct err *err);

/* distribution_known() - does this rank know how many samples that step's epoch has? distribution_begun() -
 * has it those of the step, too? */
bool distribution_known(const struct training *t, uint64_t step);
bool distribution_begun(const struct training *t, uint64_t step);
