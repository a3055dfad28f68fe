/* Backoff: how long to wait before something that failed is tried again. Pure. */
#pragma once

#include <stdint.h>

/* backoff_usec() - `first_usec` after the first failure, twice as long after each more, at most `most_usec`.
 * Who may meet others that failed at the same time adds a random part. */
static inline uint64_t backoff_usec(unsigned failures, uint64_t first_usec, uint64_t most_usec)
{
        for (; failures > 1 && first_usec < most_usec; failures--)
                first_usec *= 2;
        return first_usec < most_usec ? first_usec : most_usec;
}
