/* Plan speeds: workers of a `remuda plan shards` file that name a device instead of a speed get theirs from a
 * SpeedTable.
 *
 *      {"name": "a", "device": "H100-SXM5-80GB", "program": SHA256, "shared_by": 2}
 *
 * is a worker of the table's alpha_ms and beta_ms, source "table"; "program" and "shared_by" may be left out.
 * A device that the table does not have is taken for the mean of those it has (of one speed if it has none),
 * "assumed"; a speed that stands in the file is the caller's, "measured". Pure. */
#pragma once

#include <stddef.h>

#include "planner/shards/shard.h"
#include "planner/speeds/speed_table.h"

struct plan_speeds_device {
        const char *device, *program; /* borrowed; NULL = not given */
        uint64_t shared_by;           /* ranks on it; 0 = 1 */
};

/* plan_speeds_fill() - the workers whose device is given and that have no speed get one; all get a source.
 * @devices: [count]; @model: of the job */
void plan_speeds_fill(struct shard_worker *workers, const struct plan_speeds_device *devices, size_t count,
                      const struct speed_table *table, const char *model);
