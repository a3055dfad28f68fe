/* Metrics otel: the names that OpenTelemetry's semantic conventions for hardware give to what is known of a
 * GPU (version 1.44, all in development), as Prometheus spells them: dots are underscores, the unit and
 * _total stand at the end. Whatever accelerator it is, its hw_type is gpu: there is no other word. Pure. */
#pragma once

#include "agent/metrics_row.h"
#include "base/text.h"

/* metrics_otel_families() - what is not known is left out. @node: the host's name. */
void metrics_otel_families(struct text *page, const char *node, const struct metrics_row *rows, size_t n);
