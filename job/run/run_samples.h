/* What is in the weights: the sample logs ("epoch step rank sample", of the reference trainer) and the
 * checkpoints that a run goes on from. */
#pragma once

#include "job/run/run.h"

void run_samples_remove(const struct run *run); /* the logs of a run that begins anew */

/* run_samples_count() - of every rank, by its log, or by its own count where there is none. */
void run_samples_count(struct run *run);

/* run_samples_leave() - a rank is left out: of its log stays what is in the newest checkpoint, which is
 * counted. */
void run_samples_leave(struct run *run);

/* run_samples_saved() - is there a checkpoint of this run to go on from? */
bool run_samples_saved(const struct run *run);
