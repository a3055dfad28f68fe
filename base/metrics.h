/* Metrics: what `GET /metrics` answers, in the Prometheus text format 0.0.4.
 *
 * In memory only. A page is a struct text to which families are appended, each with its HELP and TYPE line
 * once and its samples after them. Names are literals of the program and must follow promlint (snake_case,
 * base units, counters end in _total); label values may be anything: they are escaped, and bytes that are not
 * UTF-8 become '?'. A value that is not known is left out by the caller, never written as 0 or -1. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/text.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

struct metric_label {
        const char *name; /* a list of labels ends with name == NULL */
        const char *value;
};

/* METRIC_LABELS({"verb", "filter"}, {"code", "200"}) - a list of labels for one call. */
#define METRIC_LABELS(...) ((const struct metric_label[]){ __VA_ARGS__, { NULL, NULL } })

/* metrics_family() - begin a family. @help: a sentence without its full stop. */
void metrics_family(struct text *page, const char *name, enum metric_type type, const char *help);

/* metrics_sample() - one line of the family. @labels: may be NULL. */
void metrics_sample(struct text *page, const char *name, const struct metric_label *labels, double value);
void metrics_sample_uint64(struct text *page, const char *name, const struct metric_label *labels,
                           uint64_t value);

/* metrics_gauge(), metrics_counter() - a family of one sample without labels. */
void metrics_gauge(struct text *page, const char *name, const char *help, double value);
void metrics_counter(struct text *page, const char *name, const char *help, uint64_t value);

/* metrics_histogram() - _bucket, _sum and _count of one label set; the family is begun by the caller. */
void metrics_histogram(struct text *page, const char *name, const struct metric_label *labels,
                       const struct histogram *histogram);
