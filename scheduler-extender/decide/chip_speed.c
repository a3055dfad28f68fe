/* Workers of the shard planner from measured rows, the device table or nothing; and the cut that needs none.
 */
#include "scheduler-extender/decide/chip_speed.h"

#include <math.h>

#define SAMPLES_PER_TFLOPS 1000 /* what a chip of the device table is taken to do a second: ratios matter */

const char *chip_speed_name(enum chip_speed source)
{
        static const char *const names[] = {
                [CHIP_SPEED_ASSUMED] = "assumed",
                [CHIP_SPEED_TABLE] = "table",
                [CHIP_SPEED_MEASURED] = "measured",
        };

        return names[source];
}

struct shard_worker chip_speed_worker(enum chip_speed source, const struct ledger_speed *measured,
                                      double tflops)
{
        if (source == CHIP_SPEED_MEASURED)
                return (struct shard_worker){ .model = SHARD_AFFINE,
                                              .alpha_ms = measured->alpha_ms,
                                              .beta_ms = measured->beta_ms };
        return (struct shard_worker){ .model = SHARD_SPEED,
                                      .speed = source == CHIP_SPEED_TABLE ? tflops * SAMPLES_PER_TFLOPS
                                                                          : SAMPLES_PER_TFLOPS };
}

double chip_speed_cut_equally(const struct shard_worker *workers, size_t count, uint64_t batch,
                              struct shard *shards)
{
        double slowest = 0;

        shards_equal(shards, count, batch);
        for (size_t i = 0; i < count; i++) {
                shards[i].step_ms = shards_ms(&workers[i], (double) shards[i].batch);
                slowest = fmax(slowest, shards[i].step_ms);
        }
        return slowest;
}
