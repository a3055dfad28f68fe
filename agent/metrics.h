/* Metrics: the page of GET /metrics, written from memory alone. */
#pragma once

#include "base/text.h"

struct agent;

void metrics_page(struct agent *agent, struct text *page);
