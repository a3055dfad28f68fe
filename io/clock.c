/* The system's clocks as whole numbers. */
#include "io/clock.h"

uint64_t clock_nsec(clockid_t clock)
{
        struct timespec now = { 0 };

        (void) clock_gettime(clock, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

uint64_t clock_usec(clockid_t clock)
{
        return clock_nsec(clock) / 1000;
}

uint64_t clock_monotonic_usec(void)
{
        return clock_usec(CLOCK_MONOTONIC);
}

uint64_t clock_monotonic_nsec(void)
{
        return clock_nsec(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_usec(void)
{
        return clock_usec(CLOCK_REALTIME);
}

uint64_t clock_steady_usec(void)
{
        static uint64_t began;

        if (began == 0)
                began = clock_realtime_usec() - clock_monotonic_usec();
        return began + clock_monotonic_usec();
}
