/* DRA share: what there is of a device for several claims, and what one of them has that does not say how
 * much. Pure. */
#pragma once

#include <stdint.h>

/* Of one device. */
struct dra_share_room {
        uint64_t memory_bytes; /* 0 = not known */
        unsigned shares;       /* so many claims at once; 1 = one alone */
};

/* dra_share_memory() - the part that a share has whose claim says nothing of memory: an equal one; 0 = not
 * known. A slice has it as the default of its policy, so that a scheduler counts the same. */
uint64_t dra_share_memory(const struct dra_share_room *room);
