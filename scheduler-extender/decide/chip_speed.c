/* Workers of the shard planner from measured rows, the device table or nothing. */
#include "scheduler-extender/decide/chip_speed.h"

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

unsigned chip_speed_known(const struct ledger_speed *measured, double tflops)
{
        return 1U << CHIP_SPEED_ASSUMED | (unsigned) (tflops > 0) << CHIP_SPEED_TABLE |
               (unsigned) (measured != NULL) << CHIP_SPEED_MEASURED;
}

enum chip_speed chip_speed_best(unsigned known)
{
        enum chip_speed best = CHIP_SPEED_MEASURED;

        while (best > CHIP_SPEED_ASSUMED && (known & 1U << best) == 0)
                best--;
        return best;
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
