/* Job metrics: what the page says of each job by itself, labelled `namespace` and `job`: how fast it is, how
 * far, when it was heard of, how old its checkpoint is. Reads the controller's records and changes nothing.
 *
 * Series have an end: those of jobs that run, of JOB_METRICS_MAX of them at most; how many are left out
 * (which is not said, and may change) is a gauge of its own. Takes families x jobs. */
#pragma once

#include "base/text.h"

struct controller;

#define JOB_METRICS_MAX 500

void job_metrics_append(const struct controller *c, struct text *page);
