/* Totals: what the ranks of a world say, taken together. Pure. */
#pragma once

#include "job/world/world.h"

struct totals {
        uint64_t samples, step, epoch;
        uint64_t epoch_samples; /* of all ranks; 0 = nobody says */
        double loss; /* of those who say one, by their batches; of stages the last one's; 0 = nobody does */
};

struct totals totals_of(const struct world *world);
