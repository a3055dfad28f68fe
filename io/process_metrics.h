/* Process metrics: the process_* families that every Prometheus client shows, read from /proc/self.
 * What cannot be read is left out. */
#pragma once

#include "base/text.h"

/* process_metrics_append() - process_resident_memory_bytes, process_virtual_memory_bytes, process_open_fds,
 * process_max_fds, process_cpu_seconds_total, process_start_time_seconds. */
void process_metrics_append(struct text *page);
