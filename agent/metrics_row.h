/* Metrics row: a device as the families of the agent's metrics page show it, under our names (metrics.c) and
 * under others' (metrics_otel.h). Made for one page; what it points at is the agent's. */
#pragma once

#include <string.h>

#include "agent/health/judge.h"
#include "agent/inventory/device.h"
#include "agent/kubelet.h"
#include "agent/probe/probe_sample.h"
#include "base/text.h"

/* What of a record the families show, with its numbers as text. */
struct metrics_row {
        const struct judge_record *record;
        const struct probe_sample *sample; /* NULL = none that is fresh */
        const struct holder *holder;       /* the first that holds it; NULL = nobody, or nobody knows */
        struct device device;
        char index[12], numa[12];
};

/* As dcgm-exporter names them; a label without a value is none to Prometheus. */
#define HOLDER_LABELS(h)                                                                                     \
        { "namespace", (h) != NULL ? (h)->pod_namespace : "" }, { "pod", (h) != NULL ? (h)->pod : "" },      \
        {                                                                                                    \
                "container", (h) != NULL ? (h)->container : ""                                               \
        }

/* metrics_row_file() - "nvidia0", the device's first file; "" = it has none. */
static inline const char *metrics_row_file(const struct metrics_row *row)
{
        const char *node = row->device.nodes[0];

        return text_starts_with(node, "/dev/") ? node + strlen("/dev/") : node;
}
