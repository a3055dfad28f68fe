/* Queue: several jobs of one file, one after the other. */
#pragma once

#include "job/run/run.h"

/* run_queue() - in the order that the controller would start them (job/plan/job_order.h). Return: the exit
 * code of the first that did not succeed. */
int run_queue(const struct run_options *options, const char *job_path, const json_t *documents);
