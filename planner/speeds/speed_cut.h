/* Speed cut: the cut of a job's batch over its ranks. Every door has them in an order of its own (as chips
 * were chosen, as launchers want them, as pods are bound) and has to come to the same integers.
 *
 * The exact plan (shards_cut()) leaves a choice wherever a sample more or less does not make the step longer:
 * earlier workers have the larger share. So the ranks are put in one order first: by the entry of the job
 * that they serve, then by the names of node and device group, then as they come. Example: the batch of 64
 * over three like chips is 22, 22, 20, and the 20 are those of the last node by name, whoever asks. Pure but
 * for the heap; as shards_cut(). */
#pragma once

#include "base/err.h"
#include "planner/shards/shards.h"

struct speed_cut_place {
        uint32_t entry;           /* of spec.workers */
        const char *node, *group; /* borrowed; "" = not known */
};

/* speed_cut() - @workers: as chip_speed_find() gives them; @places: [count], or NULL = of none; the others as
 * of shards_cut(), and so is what it returns. */
int speed_cut(const struct shard_worker *workers, const struct speed_cut_place *places, size_t count,
              uint64_t batch, bool by_speed, struct shard *ret_shards, double *ret_step_ms, struct err *err);
