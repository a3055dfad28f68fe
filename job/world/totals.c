/* One pass over the ranks. */
#include "job/world/totals.h"

#include <math.h>

struct totals totals_of(const struct world *world)
{
        struct totals all = { 0 };
        uint64_t batch = 0;

        for (size_t i = 0; i < world->rank_count; i++) {
                const struct progress_rank *seen = &world->seen[i];

                all.samples += progress_samples(seen, world->ranks[i].batch);
                all.step = seen->step > all.step ? seen->step : all.step;
                all.epoch = seen->epoch > all.epoch ? seen->epoch : all.epoch;
                if (seen->epoch_samples > 0)
                        all.epoch_samples = seen->epoch_samples;
                all.loss += seen->loss * (double) world->ranks[i].batch;
                batch += isnormal(seen->loss) ? world->ranks[i].batch : 0;
        }
        all.loss = batch > 0 ? all.loss / (double) batch : 0;
        /* what others say is of the test data, or nothing: a mean with them would be of no data at all */
        if (world->rules.staged && world->rank_count > 0)
                all.loss = world->seen[world->rank_count - 1].loss;
        return all;
}
