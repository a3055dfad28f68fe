/* Jitter: a part of a wait that programs which failed together do not share. Not for secrets. */
#pragma once

#include <stdint.h>
#include <sys/random.h>

/* jitter_below() - any of 0 .. limit - 1, limit > 0; 0 where nothing is random yet: no jitter does no harm.
 */
static inline uint64_t jitter_below(uint64_t limit)
{
        uint32_t value = 0;

        (void) !getrandom(&value, sizeof(value), GRND_NONBLOCK);
        return value % limit;
}
