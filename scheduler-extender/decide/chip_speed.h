/* Chip speed: by which figure the chips of one job are compared, and the shard planner's worker made of it.
 *
 * Figures of two sources never mix: measured ones if every chip has one, else the device table's if every
 * model is in it, else all chips are taken to be alike. Pure. */
#pragma once

#include "planner/shards/shards.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

enum chip_speed {
        CHIP_SPEED_ASSUMED,
        CHIP_SPEED_TABLE,
        CHIP_SPEED_MEASURED
}; /* what says more comes later */

/* chip_speed_known() - the sources that have a figure for a chip, a bit each; those of all chips are their
 * AND. chip_speed_best() - the one of them that says most. */
unsigned chip_speed_known(const struct ledger_speed *measured, double tflops);
enum chip_speed chip_speed_best(unsigned known);

const char *chip_speed_name(enum chip_speed source); /* "assumed", "table", "measured" */

/* chip_speed_worker() - one chip. @measured: read with CHIP_SPEED_MEASURED alone; @tflops: with
 * CHIP_SPEED_TABLE. */
struct shard_worker chip_speed_worker(enum chip_speed source, const struct ledger_speed *measured,
                                      double tflops);
