/* Pages as Prometheus reads them; promtool judges one where it is installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metrics.h"
#include "io/process_metrics.h"

static void label_values_are_escaped(void **state)
{
        struct text page = { 0 };

        (void) state;
        metrics_sample(&page, "m", METRIC_LABELS({ "a", "quote \" slash \\ line\nend" }, { "b", "" }), 1);
        assert_string_equal(page.data, "m{a=\"quote \\\" slash \\\\ line\\nend\",b=\"\"} 1\n");
        text_reset(&page);
        metrics_sample(&page, "m",
                       METRIC_LABELS({ "a", "\xff"
                                            "x\xc3\xa9\xed\xa0\x80\xc3" }),
                       1);
        assert_string_equal(page.data, "m{a=\"?x\xc3\xa9????\"} 1\n");
        text_reset(&page);
        metrics_family(&page, "m", METRIC_GAUGE, "slash \\ line\nend");
        metrics_sample(&page, "m", METRIC_LABELS({ "a", NULL }), 1);
        assert_string_equal(page.data, "# HELP m slash \\\\ line\\nend\n# TYPE m gauge\nm{a=\"\"} 1\n");
        text_free(&page);
}

static void numbers_are_short_and_read_back(void **state)
{
        /* clang-format off */
        static const struct { double value; const char *text; } rows[] = {
                { 0, "m 0\n" },                       { -3, "m -3\n" },         { 0.1, "m 0.1\n" },
                { 1e-7, "m 1e-07\n" },                { 9007199254740991.0, "m 9007199254740991\n" },
                { 1.0 / 3, "m 0.3333333333333333\n" },{ 1e300, "m 1e+300\n" },
                { INFINITY, "m +Inf\n" },             { -INFINITY, "m -Inf\n" }, { NAN, "m NaN\n" },
        };
        /* clang-format on */
        struct text page = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                text_reset(&page);
                metrics_sample(&page, "m", NULL, rows[i].value);
                assert_string_equal(page.data, rows[i].text);
        }
        text_reset(&page);
        metrics_sample_uint64(&page, "m", NULL, UINT64_MAX);
        assert_string_equal(page.data, "m 18446744073709551615\n");
        text_free(&page);
}

static void a_histogram_is_cumulative(void **state)
{
        static const double bounds[] = { 0.1, 1 };
        struct histogram h = { .bounds = bounds, .bound_count = 2 };
        struct text page = { 0 };

        (void) state;
        histogram_observe(&h, 0.1);
        histogram_observe(&h, 0.5);
        histogram_observe(&h, 7);
        metrics_histogram(&page, "h_seconds", METRIC_LABELS({ "verb", "x" }), &h);
        assert_string_equal(page.data, "h_seconds_bucket{verb=\"x\",le=\"0.1\"} 1\n"
                                       "h_seconds_bucket{verb=\"x\",le=\"1\"} 2\n"
                                       "h_seconds_bucket{verb=\"x\",le=\"+Inf\"} 3\n"
                                       "h_seconds_sum{verb=\"x\"} 7.6\n"
                                       "h_seconds_count{verb=\"x\"} 3\n");
        text_free(&page);
}

/* Prometheus' own lint reads a page that holds one of everything. */
static void promtool_finds_nothing_to_say(void **state)
{
        struct histogram h = { .bounds = histogram_duration_bounds,
                               .bound_count = HISTOGRAM_DURATION_BOUNDS };
        struct text page = { 0 };
        FILE *lint;

        (void) state;
        if (system("command -v promtool >/dev/null") != 0) {
                print_message("promtool is not installed (package prometheus)\n");
                skip();
        }
        histogram_observe(&h, 0.003);
        metrics_gauge(&page, "remuda_sample_bytes", "A gauge\nof two lines", 1);
        metrics_counter(&page, "remuda_sample_total", "A counter", 2);
        metrics_family(&page, "remuda_sample_duration_seconds", METRIC_HISTOGRAM, "A histogram");
        metrics_histogram(&page, "remuda_sample_duration_seconds", METRIC_LABELS({ "x", "\"\\\n\xfe" }), &h);
        process_metrics_append(&page);
        lint = popen("promtool check metrics", "w");
        assert_non_null(lint);
        assert_int_equal(fwrite(page.data, 1, page.size_bytes, lint), page.size_bytes);
        assert_int_equal(pclose(lint), 0);
        text_free(&page);
}

static void the_process_shows_itself(void **state)
{
        static const char *const names[] = { "process_resident_memory_bytes ", "process_open_fds ",
                                             "process_max_fds ", "process_cpu_seconds_total ",
                                             "process_start_time_seconds " };
        struct text page = { 0 };

        (void) state;
        process_metrics_append(&page);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char line[80];

                (void) text_format(line, sizeof(line), "\n%s", names[i]);
                if (strstr(page.data, line) == NULL)
                        fail_msg("no sample of %s", names[i]);
        }
        text_free(&page);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(label_values_are_escaped),
                cmocka_unit_test(numbers_are_short_and_read_back),
                cmocka_unit_test(a_histogram_is_cumulative),
                cmocka_unit_test(promtool_finds_nothing_to_say),
                cmocka_unit_test(the_process_shows_itself),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
