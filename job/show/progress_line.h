/* Progress line: what a rank says of itself after each step, a line of JSON in rank-N.progress and
 * rank-N.history. Pure. */
#pragma once

#include <stdbool.h>

struct progress_line {
        double step, epoch, seconds, samples, loss, accuracy; /* NAN = not said */
        double begins_seconds; /* said alone: a new world began then, and counts from 0 again */
};

/* progress_line_read() - Return: false for what is no object, such as the end of a line that was cut. */
bool progress_line_read(const char *line, struct progress_line *ret);
