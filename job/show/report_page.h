/* Report page: one job as one self-contained HTML page: how its ranks spent their time, what overlapped, how
 * the loss fell, who got which share and why, what happened. No script, nothing is fetched: it can be mailed.
 * Text from jobs is escaped. Pure. */
#pragma once

#include "base/text.h"
#include "job/show/report.h"

void report_page(const struct report *report, struct text *out);
