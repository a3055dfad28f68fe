/* The text format, family by family and line by line; numbers in the shortest form that reads back the
 * same. */
#include "base/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_scan.h"

static const char *const type_names[] = {
        [METRIC_GAUGE] = "gauge",
        [METRIC_COUNTER] = "counter",
        [METRIC_HISTOGRAM] = "histogram",
};

void metrics_family(struct text *page, const char *name, enum metric_type type, const char *help)
{
        text_append(page, "# HELP ");
        text_append(page, name);
        text_append_char(page, ' ');
        for (; *help != '\0'; help++) {
                if (*help == '\n')
                        text_append(page, "\\n");
                else if (*help == '\\')
                        text_append(page, "\\\\");
                else
                        text_append_char(page, *help);
        }
        text_append(page, "\n# TYPE ");
        text_append(page, name);
        text_append_char(page, ' ');
        text_append(page, type_names[type]);
        text_append_char(page, '\n');
}

/* What is no UTF-8 becomes a '?': a page with one such byte is refused as a whole. */
static void append_label_value(struct text *page, const char *value)
{
        for (const char *s = value; *s != '\0';) {
                size_t n = (signed char) *s >= 0 ? 1 : json_scan_utf8(s, s + strnlen(s, 4));

                if (n == 0) {
                        text_append_char(page, '?');
                        n = 1;
                } else if (*s == '\\')
                        text_append(page, "\\\\");
                else if (*s == '"')
                        text_append(page, "\\\"");
                else if (*s == '\n')
                        text_append(page, "\\n");
                else
                        text_append_bytes(page, s, n);
                s += n;
        }
}

/* {a="b",le="0.5"}; nothing at all when there are no labels. */
static void append_labels(struct text *page, const struct metric_label *labels, const char *le)
{
        bool any = false;

        for (; labels != NULL && labels->name != NULL; labels++) {
                text_append_char(page, any ? ',' : '{');
                any = true;
                text_append(page, labels->name);
                text_append(page, "=\"");
                append_label_value(page, labels->value != NULL ? labels->value : "");
                text_append_char(page, '"');
        }
        if (le != NULL) {
                text_append(page, any ? ",le=\"" : "{le=\"");
                text_append(page, le);
                text_append_char(page, '"');
                any = true;
        }
        if (any)
                text_append_char(page, '}');
}

/* The shortest decimal form that reads back as the same number. */
static void format_number(char *field, size_t field_bytes, double value)
{
        if (isnan(value))
                (void) text_copy(field, field_bytes, "NaN");
        else if (isinf(value))
                (void) text_copy(field, field_bytes, value > 0 ? "+Inf" : "-Inf");
        else if (value == floor(value) && fabs(value) < 9007199254740992.0)
                (void) text_format(field, field_bytes, "%.0f", value);
        else
                for (int digits = 6; digits <= 17; digits++) {
                        (void) text_format(field, field_bytes, "%.*g", digits, value);
                        if (strtod(field, NULL) == value)
                                break;
                }
}

static void append_line(struct text *page, const char *name, const char *suffix,
                        const struct metric_label *labels, const char *le, const char *value)
{
        text_append(page, name);
        text_append(page, suffix);
        append_labels(page, labels, le);
        text_append_char(page, ' ');
        text_append(page, value);
        text_append_char(page, '\n');
}

void metrics_sample(struct text *page, const char *name, const struct metric_label *labels, double value)
{
        char number[40];

        format_number(number, sizeof(number), value);
        append_line(page, name, "", labels, NULL, number);
}

static void append_count(struct text *page, const char *name, const char *suffix,
                         const struct metric_label *labels, const char *le, uint64_t value)
{
        char number[24];

        (void) text_format(number, sizeof(number), "%llu", (unsigned long long) value);
        append_line(page, name, suffix, labels, le, number);
}

void metrics_sample_uint64(struct text *page, const char *name, const struct metric_label *labels,
                           uint64_t value)
{
        append_count(page, name, "", labels, NULL, value);
}

void metrics_gauge(struct text *page, const char *name, const char *help, double value)
{
        metrics_family(page, name, METRIC_GAUGE, help);
        metrics_sample(page, name, NULL, value);
}

void metrics_counter(struct text *page, const char *name, const char *help, uint64_t value)
{
        metrics_family(page, name, METRIC_COUNTER, help);
        metrics_sample_uint64(page, name, NULL, value);
}

void metrics_histogram(struct text *page, const char *name, const struct metric_label *labels,
                       const struct histogram *histogram)
{
        uint64_t cumulative = 0;
        char number[40];

        for (size_t i = 0; i < histogram->bound_count; i++) {
                cumulative += histogram->counts[i];
                format_number(number, sizeof(number), histogram->bounds[i]);
                append_count(page, name, "_bucket", labels, number, cumulative);
        }
        cumulative += histogram->counts[histogram->bound_count];
        append_count(page, name, "_bucket", labels, "+Inf", cumulative);
        format_number(number, sizeof(number), histogram->sum);
        append_line(page, name, "_sum", labels, NULL, number);
        append_count(page, name, "_count", labels, NULL, cumulative);
}
