/* Strategy: how the ranks work together, one file each in trainer/strategies/, one row each. */
#pragma once

#include "trainer/training.h"

struct strategy {
        const char *name;
        bool served; /* ranks 0..N-1 only serve */
        bool whole;  /* no shares: the batch goes through all ranks */
        bool live;   /* takes new shares between two steps */
        int (*run)(struct training *t, struct err *err);
};

extern const struct strategy strategy_serial, strategy_allreduce, strategy_split, strategy_ps_sync,
        strategy_ps_async, strategy_ps_ssp;

/* strategy_find() - NULL if there is none of that name. */
const struct strategy *strategy_find(const char *name);

/* For those in which all ranks go in step. strategy_in_step() - steps until the last one, or until any rank
 * has been told to stop (trainer/stop.h). @step: does step t->step, which ends with strategy_end_step().
 * Return: 0, or the first error of a step. */
int strategy_in_step(struct training *t, int (*step)(void *context, struct err *err), void *context,
                     struct err *err);

/* strategy_end_step() - progress, evaluation and checkpoint, where they are due. */
int strategy_end_step(struct training *t, struct err *err);
