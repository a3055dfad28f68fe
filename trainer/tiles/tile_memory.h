/* Tile memory: what a rank's image operators may take before they go through an image in tiles
 * (trainer/tiles/tiling.h): what --tile-memory says, or half of the device's memory, over the ranks of this
 * machine. A device that uses the host's memory has what the machine has, or the process's control group if
 * that is less. */
#pragma once

#include <stdint.h>

#include "trainer/operators/backend.h"
#include "trainer/train_options.h"

/* tile_memory_bytes() - Return: 0 = no limit. */
uint64_t tile_memory_bytes(const struct train_options *o, const struct backend *b, int local_ranks);

/* tile_memory_of_group() - the least limit of a control group that these files say. @root: of the file
 * system, "" for this machine's. Return: UINT64_MAX = none says any. */
uint64_t tile_memory_of_group(const char *root);
