/* Reserve: borrowers of the reserve are evicted for emergencies that do not fit, for which chips are then
 * kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler-extender/ledger/ledger_pods.h"

struct extender;

/* Of a look at pods that are emergencies, some 5 ms, after which no more is begun: with the last one's plan
 * (TAKE_BACK_STEPS) the event loop is kept for less than 50. Plans of jobs have as much. */
#define RESERVE_STEPS 1000000

/* reserve_update() - after backfill_update(), whose holds for emergencies it puts where they will start;
 * counts extender.emergencies. Return: false = there were more of them than there was time for: call it again
 * soon. */
bool reserve_update(struct extender *x, uint64_t now_usec);

/* reserve_plan_waits() - does a TrainingJob's plan wait for its chips? NULL = there is no such job. */
bool reserve_plan_waits(const struct ledger_job *job);
