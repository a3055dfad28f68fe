/* Preset: what is known to be good for a model on a device, so that nobody needs to tune: tile sizes,
 * gradient segments, fusion, load segment. Shipped rows come first, what was tuned on this machine replaces
 * its tiles. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/json_line.h"

#define PRESET_SEGMENTS_MAX 16
#define PRESET_LOAD_AUTO    SIZE_MAX

struct preset_tiles {
        size_t rows, cols, inner; /* in the local store; 0 = the backend's own choice */
        size_t lanes;             /* columns of them that are in registers at a time; 0 = its own choice */
};

struct preset {
        struct preset_tiles tiles;
        size_t segments[PRESET_SEGMENTS_MAX]; /* last tensors in backward order */
        size_t segment_count;                 /* 0 = one segment */
        size_t load_segment;                  /* 0 = whole chunks, PRESET_LOAD_AUTO as --load-segment auto */
        bool fuse;
};

/* preset_find() - the shipped row for (model, device), the one for any device, or nothing special. */
struct preset preset_find(const char *model, const char *device);

/* The cache: one line a device, its model's name, a tab, rows cols inner, and lanes where they were tuned.
 * @path: NULL = $XDG_CACHE_HOME/remuda/tiles or ~/.cache/remuda/tiles
 * preset_remembered() returns false when there is no line; preset_remember() replaces it by rename. */
bool preset_remembered(const char *path, const char *device, struct preset_tiles *ret);
int preset_remember(const char *path, const char *device, const struct preset_tiles *tiles, struct err *err);

/* preset_write_tiles() - "tiles":[rows,cols,inner,lanes]. */
void preset_write_tiles(const struct preset_tiles *t, struct json_line *line);
