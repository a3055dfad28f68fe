/* Rank: one rank of a run, opened from its options and closed again. */
#pragma once

#include "trainer/training.h"

/* rank_open() - collective: every rank goes through the same steps, and none goes on alone. Return: 0 or a
 * negative errno, the same on every rank; to be closed either way. */
int rank_open(struct training *t, const struct train_options *o, const struct world *w, struct err *err);
void rank_close(struct training *t);
