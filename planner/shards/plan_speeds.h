/* Plan speeds: workers of a `remuda plan shards` file that name a device instead of a speed get theirs from a
 * store.
 *
 *      {"name": "a", "device": "H100-SXM5-80GB", "program": SHA256, "shared_by": 2}
 *
 * is a chip of that model; "program" and "shared_by" may be left out. Where all workers name one, their
 * speeds are compared as everywhere (planner/speeds/chip_speed.h): "measured", "kernel", "table" or
 * "assumed". A speed that stands in the file is the caller's, "measured": beside such, only the SpeedTable's
 * rows compare, and a device that it does not have is taken for the mean of those that are known, "assumed".
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "planner/shards/shard.h"
#include "planner/speeds/chip_speed.h"

struct plan_speeds_chip { /* what a store's inventories say of a model */
        char model[SPEED_TABLE_MODEL_BYTES];
        struct chip_speed_figures figures;
};

struct plan_speeds_known {
        struct speed_table table;
        struct plan_speeds_chip *chips; /* the first of a model counts */
        size_t chip_count;
};

struct plan_speeds_device {
        const char *device, *program; /* borrowed; NULL = not given */
        uint64_t shared_by;           /* ranks on it; 0 = 1 */
};

struct plan_speeds_found {
        const char *precision; /* of the figures that were compared; NULL = of none */
        bool ranks;            /* all workers name a device: they are ranks of a job */
        bool untimed;          /* they are no times: what follows from them are ratios, not milliseconds */
        const char *word;      /* of what people have to be told (chip_speed_remark()); NULL = nothing */
        char sentence[CHIP_SPEED_REMARK_BYTES];
};

void plan_speeds_known_free(struct plan_speeds_known *known);

/* plan_speeds_fill() - the workers whose device is given and that have no speed get one; all get a source.
 * @devices: [count]; @model: of the job
 * Return: 0, -ENOMEM. */
int plan_speeds_fill(struct shard_worker *workers, const struct plan_speeds_device *devices, size_t count,
                     const struct plan_speeds_known *known, const char *model, struct plan_speeds_found *ret);
