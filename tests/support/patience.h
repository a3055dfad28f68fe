/* Patience: how long a test waits for what has to come. A busy machine is given much; where a place is
 * refused (tests/torture) it may never come, and each such wait would cost as much. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t patience_usec(void)
{
        return getenv("TORTURE") != NULL ? 4000000 : 20000000;
}
