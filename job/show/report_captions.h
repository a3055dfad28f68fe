/* Report captions: what a page says of how a job's work was cut and of its figures, by what its data say and
 * not by what usually is. Pure. */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "job/show/job_view.h"

/* report_captions_shares() - one or two sentences without markup: how each batch was cut among the workers
 * and by what, or that the layers were; and that ranks share processors, where they do. */
void report_captions_shares(const struct job_view *view, struct text *out);

/* report_captions_rate() - over which time view->samples_per_s is. */
const char *report_captions_rate(const struct job_view *view);

/* report_captions_columns() - is of any rank its own rate known, or how many steps it is behind? */
struct report_captions_columns {
        bool samples_per_s, steps_behind;
};
struct report_captions_columns report_captions_columns(const struct job_view *view);

/* report_captions_left() - "12s left, between 10s and 15s", without the latter where nobody knows; nothing of
 * a job that has ended. */
void report_captions_left(const struct job_view *view, struct text *out);

/* report_captions_staleness() - "workers are 1.5 steps behind the first in the mean, 4 at most"; nothing
 * where they go in step, and of a job that has ended. */
void report_captions_staleness(const struct job_view *view, struct text *out);
