/* Metrics port: where a pod of ours gives its metrics, as Prometheus finds it: the container's port named
 * `metrics`. Pure. */
#pragma once

#include <jansson.h>

#define METRICS_PORT_NAME "metrics"

unsigned metrics_port(const json_t *pod); /* 0 = it names none */
