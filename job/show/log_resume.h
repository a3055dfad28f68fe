/* Log resume: a log is followed by a stream that may break off, and be asked for again from the time of the
 * last line that was read. Which lines that come then were read before is known by their times, and by their
 * places among those of one time. Pure.
 *
 *      read:   ..:01 a    ..:02 b    ..:02 c      then it breaks off, and is asked for since ..:02
 *      comes:  ..:02 b    ..:02 c    ..:02 d      of which d is new
 *
 * A line begins with its time and a blank, "2026-11-30T06:58:19.123456789Z it trains", as a kubelet writes
 * them: all digits of a nanosecond, so that times of one zone are in the order of their letters (its own
 * format, RFC3339NanoFixed). */
#pragma once

#include <stdbool.h>

#include "base/text.h"

#define LOG_RESUME_TIME_BYTES 40 /* "2026-11-30T06:58:19.123456789+01:00" */

/* All zero: nothing was read. */
struct log_resume {
        char last[LOG_RESUME_TIME_BYTES]; /* time of the last line; "" = none had one */
        unsigned count;                   /* lines of that time */
        unsigned repeats;                 /* of them, those that are still to come once more */
        bool repeating; /* no line behind the last one has come since it was asked for again */
};

/* log_resume_begin() - it is asked for again. log_resume_since() - from when: the second of the last line, as
 * a query's value. */
void log_resume_begin(struct log_resume *resume);
void log_resume_since(const struct log_resume *resume, struct text *query);

/* log_resume_line() - the line without its time; NULL = it was read before. What has no time, which no
 * container has written, is returned as it is. */
const char *log_resume_line(struct log_resume *resume, const char *line);
