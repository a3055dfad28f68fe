/* Fragmentation: how many free chips typical pods can no longer use.
 *
 * After fragmentation gradient descent (USENIX ATC'23 "Beware of Fragmentation"): a node's fragmentation is
 * the expected number of its free chips that a typical pod could not use; the best place for a pod is where
 * that number grows least. Typical pods of a live cluster ask for 1, 2, 4 ... chips, equally often, as far as
 * the node's class takes them. Pure. */
#pragma once

#include <stdint.h>

#include "core/device.h"

#define FRAGMENTATION_SIZES 8 /* 1, 2, 4 ... 128 chips */

/* fragmentation_growth() - of placing `chips` on a node of `open` free ones (chips <= open); may be negative.
 * In chips, times the number of typical pods. */
int64_t fragmentation_growth(enum node_class node_class, uint32_t open, uint32_t chips);
