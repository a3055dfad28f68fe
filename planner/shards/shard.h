/* Shard: a worker as the planners see it: how long so many samples take, and what it may be given. Types
 * alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARDS_MAX_WORKERS ((size_t) 1 << 20)
#define SHARDS_MAX_BATCH   ((uint64_t) 1 << 40) /* also of an epoch's samples, and of a table's */
#define SHARDS_MAX_STEPS   ((uint64_t) 1 << 28) /* workers x batch, where `min` or `multiple` make it hard */

enum shard_model {
        SHARD_SPEED,  /* b samples take b / speed seconds */
        SHARD_AFFINE, /* alpha_ms + beta_ms b; 0 for b = 0 */
        SHARD_TABLE   /* measured: linear between the points, [0, 0] understood, nothing beyond the last */
};

struct shard_point {
        uint64_t samples; /* >= 1, rising */
        double ms;        /* >= 0, not falling */
};

/* Numbers are finite, and 0 or within 1e-30 ... 1e30. Zero-initialise: absent limits are then no limits. */
struct shard_worker {
        const char *name, *source; /* for people (source: of the speed); may be NULL, and are not looked at */
        enum shard_model model;
        double speed;                     /* samples a second, > 0 */
        double alpha_ms, beta_ms;         /* >= 0 */
        const struct shard_point *points; /* borrowed for the call */
        size_t point_count;
        uint64_t min, max; /* a share is 0 or min <= share <= max; max counts only where has_max */
        bool has_max;
        uint64_t multiple; /* divides the share; 0 = 1 */
};
