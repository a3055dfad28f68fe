/* Report trace: what the ranks of a job did when as one trace of Chrome's format, which Perfetto opens: the
 * files that the reference trainer wrote, one a rank (trainer/record.h), behind each other and with the
 * ranks' names; or, of a cluster's job, the moments of its history. */
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "job/show/report.h"

/* report_trace() - Return: 0; -ENOENT: the job has left nothing that happened at a time; -EIO, -ENOMEM. */
int report_trace(const struct report *report, FILE *to, struct err *err);
