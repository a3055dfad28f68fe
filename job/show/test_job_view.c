/* What is shown of a job: what its shares gain, by plans, summaries and TrainingJobs. */
#include "job/show/job_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"

enum { PLAN, SUMMARY, OBJECT };

/* clang-format off */
static const struct {
        const char *what;
        int kind;
        const char *document;
        double gain;
} documents[] = {
        { "a plan's lines", PLAN, "{\"ranks\":[{\"role\":\"worker\",\"batch\":24,\"speed\":{\"alpha_ms\":8,\"beta_ms\":3,\"source\":\"measured\"}},"
          "{\"role\":\"worker\",\"batch\":8,\"speed\":{\"alpha_ms\":0,\"beta_ms\":10,\"source\":\"measured\"}}]}", 2 },
        { "a summary's speeds", SUMMARY, "{\"ranks\":[{\"role\":\"worker\",\"batch\":24,\"speed_source\":\"measured\",\"speed_samples_per_s\":300},"
          "{\"role\":\"worker\",\"batch\":8,\"speed_source\":\"measured\",\"speed_samples_per_s\":100}]}", 2 },
        { "a server has none", SUMMARY, "{\"ranks\":[{\"role\":\"server\",\"batch\":0},{\"role\":\"worker\",\"batch\":24,\"speed_source\":\"measured\","
          "\"speed_samples_per_s\":300},{\"role\":\"worker\",\"batch\":8,\"speed_source\":\"measured\",\"speed_samples_per_s\":100}]}", 2 },
        { "an idle chip", SUMMARY, "{\"ranks\":[{\"role\":\"worker\",\"batch\":32,\"speed_source\":\"measured\",\"speed_samples_per_s\":1000},"
          "{\"role\":\"worker\",\"batch\":0,\"speed_source\":\"measured\",\"speed_samples_per_s\":10}]}", 50 },
        { "a data sheet is no measurement", SUMMARY, "{\"ranks\":[{\"role\":\"worker\",\"batch\":24,\"speed_source\":\"table\",\"precision\":\"bf16\"},"
          "{\"role\":\"worker\",\"batch\":8,\"speed_source\":\"measured\",\"speed_samples_per_s\":100}]}", NAN },
        { "one worker", SUMMARY, "{\"ranks\":[{\"role\":\"worker\",\"batch\":24,\"speed_source\":\"measured\",\"speed_samples_per_s\":300}]}", NAN },
        { "no speed", SUMMARY, "{\"ranks\":[{\"role\":\"worker\",\"batch\":24,\"speed_source\":\"measured\",\"speed_samples_per_s\":0},"
          "{\"role\":\"worker\",\"batch\":8,\"speed_source\":\"measured\",\"speed_samples_per_s\":100}]}", NAN },
        { "a TrainingJob's subtasks", OBJECT, "{\"status\":{\"ranks\":[{\"role\":\"worker\",\"batch\":24,\"subtask\":\"a\"},{\"role\":\"worker\",\"batch\":4,"
          "\"subtask\":\"b\"},{\"role\":\"worker\",\"batch\":4,\"subtask\":\"b\"}],\"subtasks\":[{\"name\":\"a\",\"ranks\":1,\"speedSource\":\"measured\","
          "\"samplesPerSecond\":300},{\"name\":\"b\",\"ranks\":2,\"speedSource\":\"measured\",\"samplesPerSecond\":100}]}}", 32.0 / 3 * 20 / 80 },
};
/* clang-format on */

static void gains_are_of_measured_speeds(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
                CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
                struct job_view *view = job_view_list_add(&views);
                json_t *document = json_loads(documents[i].document, 0, NULL), *value;
                double gain;

                assert_non_null(document);
                if (documents[i].kind == PLAN)
                        job_view_read_plan(document, view);
                else if (documents[i].kind == SUMMARY)
                        job_view_read_summary(document, view);
                else
                        job_view_read_object(document, view, 0);
                gain = job_view_gain(view);
                if (isnan(gain) != isnan(documents[i].gain) || fabs(gain - documents[i].gain) > 1e-9)
                        fail_msg("%s: got %g", documents[i].what, gain);
                value = job_view_encode(view);
                assert_true(isnan(gain) ? json_is_null(json_object_get(value, "gain"))
                                        : json_real_value(json_object_get(value, "gain")) == gain);
                json_decref(value);
                json_decref(document);
        }
}

/* clang-format off */
static const struct { const char *what, *object; bool says; } unseen[] = {
        { "made a minute ago",   "{\"metadata\":{\"creationTimestamp\":\"1970-01-01T00:00:00Z\"}}", true },
        { "made just now",       "{\"metadata\":{\"creationTimestamp\":\"1970-01-01T00:00:40Z\"}}", false },
        { "nobody knows when",   "{}", false },
        { "a controller has",    "{\"metadata\":{\"creationTimestamp\":\"1970-01-01T00:00:00Z\"},\"status\":{\"phase\":\"Pending\"}}", false },
};
/* clang-format on */

static void a_job_that_no_controller_has_seen_says_so(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(unseen); i++) {
                CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
                struct job_view *view = job_view_list_add(&views);
                json_t *object = json_loads(unseen[i].object, 0, NULL);

                job_view_read_object(object, view, 60000000);
                if ((strstr(view->message, "no controller has looked at it yet") != NULL) != unseen[i].says)
                        fail_msg("%s: '%s'", unseen[i].what, view->message);
                json_decref(object);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(gains_are_of_measured_speeds),
                cmocka_unit_test(a_job_that_no_controller_has_seen_says_so),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
