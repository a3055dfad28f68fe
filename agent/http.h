/* HTTP: what the agent answers to everyone: /v1/inventory, /metrics, /healthz, /readyz. From memory alone. */
#pragma once

#include "core/err.h"

struct agent;

/* http_open() - listen as the options say ("none": do not). */
int http_open(struct agent *agent, struct err *err);
