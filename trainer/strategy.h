/* Strategy: how the ranks work together, one file each in trainer/strategies/, one row each in strategy.c. */
#pragma once

#include "trainer/training.h"

struct strategy {
        const char *name;
        bool served; /* ranks 0..N-1 only serve */
        bool whole;  /* no shares: the batch goes through all ranks */
        int (*run)(struct training *t, struct err *err);
};

/* strategy_find() - NULL if there is none of that name. */
const struct strategy *strategy_find(const char *name);

int strategy_serial(struct training *t, struct err *err);
int strategy_allreduce(struct training *t, struct err *err);
int strategy_split(struct training *t, struct err *err);
int strategy_ps_sync(struct training *t, struct err *err);
int strategy_ps_async(struct training *t, struct err *err);
int strategy_ps_ssp(struct training *t, struct err *err);
