/* Suggest classes: the split of nodes into single and multi that waits least (planner/traces/class_split.h),
 * from a trace or from the pods of a store. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "scheduler-extender/ledger/ledger.h"

/* Both: 0 and a new object
 * {"simulated":true,"source","resources":[{"resource","nodes","jobs","impossible","single":[NODE...],"multi":[NODE...],
 *  "waitSeconds","presentWaitSeconds","gainPercent"}]}; presentWaitSeconds null = some jobs would wait for
 * ever.
 * @load: 0 = arrivals as they were; else so close together that this share of all chips is asked for on
 * average. Return: 0; -ENODATA (no job has a beginning and an end); what reading says. */
int suggest_classes_of_trace(const char *nodes_path, const char *pods_path, double load, json_t **ret,
                             struct err *err);
int suggest_classes_of_ledger(const struct ledger *ledger, uint64_t now_usec, double load, json_t **ret,
                              struct err *err);
