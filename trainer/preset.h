/* Preset: what is known to be good for a model, so that nobody needs to choose: gradient segments, fusion,
 * load segment; and a setting of the device's tunables, where it was tuned on this machine. None is shipped:
 * the one that was did not come out of the tuner again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/json_line.h"
#include "trainer/operators/tunable.h"

#define PRESET_SEGMENTS_MAX 16
#define PRESET_LOAD_AUTO    SIZE_MAX
#define PRESET_BY_BYTES     128

struct preset {
        char tuned_by[PRESET_BY_BYTES];       /* command and date of the setting in use, "" = nobody */
        size_t segments[PRESET_SEGMENTS_MAX]; /* last tensors in backward order */
        size_t segment_count;                 /* 0 = one segment */
        const char *segments_by;              /* how they were chosen */
        size_t load_segment;                  /* 0 = whole chunks, PRESET_LOAD_AUTO as --load-segment auto */
        bool fuse;
};

/* preset_find() - what is shipped for the model. preset_none() - of nothing. */
struct preset preset_find(const char *model);
struct preset preset_none(void);

/* The cache: one line a device, its model's name, a tab, and a setting as text ("tile_rows=128
 * tile_cols=64"), a tab, and what found it when. A line of an older release ends with its setting.
 * @path: NULL = $XDG_CACHE_HOME/remuda/tuned or ~/.cache/remuda/tuned
 * @by, @ret_by (of PRESET_BY_BYTES): "remuda-train-cpu --tune of 1.0, 2026-11-21T10:00:00Z"
 * preset_remembered() returns false when there is no line for this device, or one that is not of these
 * tunables; preset_remember() replaces it by rename, with none where nothing is tuned. */
bool preset_remembered(const char *path, const char *device, const struct tunable_rows *t,
                       const struct backend_options *o, size_t *ret, char *ret_by);
int preset_remember(const char *path, const char *device, const struct tunable_rows *t, const size_t *setting,
                    const char *by, struct err *err);

/* preset_write_tuned() - "tuned":{"tile_rows":128,...}, what is untuned left out. */
void preset_write_tuned(const struct tunable_rows *t, const size_t *setting, struct json_line *line);
