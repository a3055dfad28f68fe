/* Device ids: what the id of a partition says of its chip. Pure. */
#pragma once

#include <stdbool.h>

/* device_ids_overlap() - are they of one device, or of a chip and a partition of it? The id of a partition
 * has that of its chip in it, and ends or goes on with what is no letter or digit: "MIG-GPU-5e/7/0" of
 * "GPU-5e", "GPU-9f-p0" of "GPU-9f". Two partitions of one chip do not overlap. */
bool device_ids_overlap(const char *a, const char *b);
