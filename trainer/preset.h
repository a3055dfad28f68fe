/* Preset: what is known to be good for a model on a device, so that nobody needs to tune: a setting
 * of its tunables, gradient segments, fusion, load segment. Shipped rows come first, what was tuned on this
 * machine replaces their setting. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/json_line.h"
#include "trainer/operators/tunable.h"

#define PRESET_SEGMENTS_MAX 16
#define PRESET_LOAD_AUTO    SIZE_MAX
#define PRESET_TUNED_HERE   "--tune, in the cache"

struct preset {
        const char *tuned;                    /* as in the cache, "" = nothing */
        const char *tuned_by;                 /* command, date and device, "" = nobody */
        size_t segments[PRESET_SEGMENTS_MAX]; /* last tensors in backward order */
        size_t segment_count;                 /* 0 = one segment */
        const char *segments_by;
        size_t load_segment; /* 0 = whole chunks, PRESET_LOAD_AUTO as --load-segment auto */
        bool fuse;
};

/* preset_find() - what is shipped for the model and the device, each by itself. preset_none() - of nothing.
 */
struct preset preset_find(const char *model, const char *device);
struct preset preset_none(void);

/* The cache: one line a device, its model's name, a tab, and a setting as text ("tile_rows=128
 * tile_cols=64").
 * @path: NULL = $XDG_CACHE_HOME/remuda/tuned or ~/.cache/remuda/tuned
 * preset_remembered() returns false when there is no line for this device, or one that is not of these
 * tunables; preset_remember() replaces it by rename, with none where nothing is tuned. */
bool preset_remembered(const char *path, const char *device, const struct tunable_rows *t,
                       const struct backend_options *o, size_t *ret);
int preset_remember(const char *path, const char *device, const struct tunable_rows *t, const size_t *setting,
                    struct err *err);

/* preset_write_tuned() - "tuned":{"tile_rows":128,...}, what is untuned left out. */
void preset_write_tuned(const struct tunable_rows *t, const size_t *setting, struct json_line *line);
