/* Clock: what time it is. The only file that asks the system; pure code is given the time as an argument.
 *
 * A handler of a loop takes the loop's time (io/loop.h), which is the same for the whole iteration. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Of a clock of clock_gettime(2): CLOCK_BOOTTIME, CLOCK_PROCESS_CPUTIME_ID, a thread's, ... */
uint64_t clock_usec(clockid_t clock);
uint64_t clock_nsec(clockid_t clock);

uint64_t clock_monotonic_usec(void); /* for durations and deadlines; never goes back */
uint64_t clock_monotonic_nsec(void);
uint64_t clock_realtime_usec(void); /* since 1970, UTC; may jump */

/* clock_steady_usec() - CLOCK_REALTIME as it stood when this process first asked, carried on by
 * CLOCK_MONOTONIC: does not jump, and can be put beside the times that others wrote. For what is kept in
 * memory; what people read is clock_realtime_usec(). */
uint64_t clock_steady_usec(void);
