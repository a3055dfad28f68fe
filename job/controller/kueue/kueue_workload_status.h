/* What is written into a Workload's status (kueue_workload.h). In memory only. */
#pragma once

#include "job/controller/kueue/kueue_workload.h"

/* Patches of its status, all conditions and the version that they were read in. A new reference; NULL = out
 * of memory. kueue_workload_status_release() - its quota is free: admission goes. */
json_t *kueue_workload_status_release(const struct kueue_workload *workload, const char *message,
                                      uint64_t now_usec);
json_t *kueue_workload_status_condition(const struct kueue_workload *workload, const char *type, bool holds,
                                        const char *reason, const char *message, uint64_t now_usec);
