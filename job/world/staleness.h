/* Staleness: how many steps a worker of a parameter server without a common step (ps-async, ps-ssp) is behind
 * the one that has most. Pure.
 *
 *     workers at 12, 10 and 5 steps: 0, 2 and 7 behind; 3 in the mean, 7 at most
 * It is as exact as what the workers say of their steps is new. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All 0: of no workers. */
struct staleness {
        uint64_t most, least; /* steps of a worker */
        double sum;
        size_t workers;
};

/* staleness_is_told() - of a job of this strategy (job_strategy_names)? staleness_counts() - does one that is
 * no server have a place in it? Who has said nothing yet is not behind, it is not known. */
bool staleness_is_told(const char *strategy);
bool staleness_counts(uint64_t steps, uint64_t samples);

/* staleness_add() - one worker more, with so many steps. */
void staleness_add(struct staleness *staleness, uint64_t steps);

uint64_t staleness_behind(const struct staleness *staleness, uint64_t steps); /* of one that was added */
uint64_t staleness_max(const struct staleness *staleness);
double staleness_mean(const struct staleness *staleness); /* to a hundredth */
