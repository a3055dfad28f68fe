/* Captions follow from what a job's data say. */
#include "job/show/report_captions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"

#define WORKER(BATCH, SOURCE)                                                                                \
        "{\"role\":\"worker\",\"runtime\":\"cpu\",\"batch\":" BATCH ",\"speed_source\":\"" SOURCE "\"}"

/* clang-format off */
static const struct { const char *what, *plan, *says; } rows[] = {
        { "two speeds", "{\"shards\":\"auto\",\"ranks\":[" WORKER("24", "measured") "," WORKER("8", "measured") "]}",
          "Each batch is cut by the ranks' speeds (measured), so that all are done at the same time." },
        { "of two sources", "{\"shards\":\"auto\",\"ranks\":[" WORKER("24", "measured") "," WORKER("8", "table") "]}",
          "Each batch is cut by the ranks' speeds (measured of 1, from the table of device models of 1), so that all are done at the same "
          "time." },
        { "equal ones", "{\"shards\":\"auto\",\"ranks\":[" WORKER("16", "measured") "," WORKER("15", "measured") "]}",
          "Each batch is cut into equal shares, for the ranks are equally fast (measured)." },
        { "as asked", "{\"shards\":\"equal\",\"ranks\":[" WORKER("16", "measured") "," WORKER("16", "measured") "]}",
          "Each batch is cut into equal shares, as the job asks." },
        { "nothing known", "{\"shards\":\"auto\",\"ranks\":[" WORKER("16", "assumed") "," WORKER("16", "assumed") "]}",
          "Each batch is cut into equal shares: nothing is known of the ranks' speeds, which are assumed to be alike." },
        { "one worker", "{\"ranks\":[{\"role\":\"server\",\"batch\":0}," WORKER("32", "assumed") "]}", "One worker has every batch." },
        { "an idle one", "{\"shards\":\"auto\",\"ranks\":[" WORKER("32", "measured") "," WORKER("0", "measured") "," WORKER("16", "measured") "]}",
          "Each batch is cut by the ranks' speeds (measured), so that all are done at the same time. 1 worker has no share." },
        { "layers", "{\"strategy\":\"split\",\"ranks\":[" WORKER("32", "measured") "," WORKER("32", "measured") "]}",
          "Each rank has layers of the model, and every batch goes through all of them." },
        { "taking turns", "{\"shards\":\"equal\",\"cores\":1,\"ranks\":[" WORKER("16", "measured") "," WORKER("16", "measured") "]}",
          "Each batch is cut into equal shares, as the job asks. 2 ranks share 1 processor and take turns on it: they are slower together "
          "than each is alone." },
        { "processors enough", "{\"shards\":\"equal\",\"cores\":2,\"ranks\":[" WORKER("16", "measured") "," WORKER("16", "measured") "]}",
          "Each batch is cut into equal shares, as the job asks." },
        { "no ranks", "{\"ranks\":[]}", "No shares are known." },
};
/* clang-format on */

static void shares_are_told_as_they_are(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
                CLEANUP(text_free) struct text said = { 0 };
                struct job_view *view = job_view_list_add(&views);
                json_t *plan = json_loads(rows[i].plan, 0, NULL);

                assert_non_null(plan);
                job_view_read_plan(plan, view);
                json_decref(plan);
                report_captions_shares(view, &said);
                if (strcmp(said.data, rows[i].says) != 0)
                        fail_msg("%s: %s", rows[i].what, said.data);
        }
}

/* Of a TrainingJob the layers stand with its subtasks, for their ranks in order. */
static void layers_are_each_ranks_own(void **state)
{
        static const char object[] =
                "{\"status\":{\"ranks\":[{\"role\":\"worker\",\"subtask\":\"a\"},"
                "{\"role\":\"worker\",\"subtask\":\"b\"},{\"role\":\"worker\",\"subtask\":\"a\"},"
                "{\"role\":\"worker\",\"subtask\":\"a\"}],\"subtasks\":[{\"name\":\"a\",\"layers\":\"0:1,2:"
                "3\"},"
                "{\"name\":\"b\",\"layers\":\"4:4\"}]}}";
        static const int firsts[] = { 0, 4, 2 };
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        CLEANUP(text_free) struct text said = { 0 };
        struct job_view *view = job_view_list_add(&views);
        json_t *value = json_loads(object, 0, NULL);

        (void) state;
        assert_non_null(value);
        job_view_read_object(value, view, 0);
        json_decref(value);
        assert_int_equal(view->rank_count, 4);
        for (size_t i = 0; i < ARRAY_SIZE(firsts); i++)
                assert_int_equal(json_integer_value(json_array_get(view->ranks[i].layers, 0)), firsts[i]);
        assert_null(view->ranks[3].layers); /* the subtask says two */
        report_captions_shares(view, &said);
        assert_string_equal(said.data,
                            "Each rank has layers of the model, and every batch goes through all of them.");
}

static void a_rate_says_its_time(void **state)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        struct job_view *view = job_view_list_add(&views);

        (void) state;
        job_view_set(&view->phase, "Running");
        assert_string_equal(report_captions_rate(view), "the last half minute");
        job_view_set(&view->phase, "Succeeded");
        assert_string_equal(report_captions_rate(view), "mean while its ranks ran");
}

static void the_time_left_has_its_spread(void **state)
{
        static const char *const said[] = { "", "12s left", "12s left, between 9s and 15s", "" };
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        struct job_view *view = job_view_list_add(&views);

        (void) state;
        job_view_set(&view->phase, "Running");
        for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
                CLEANUP(text_free) struct text out = { 0 };

                if (i == 1)
                        view->seconds_left = 12;
                if (i == 2) {
                        view->seconds_left_least = 9;
                        view->seconds_left_most = 15;
                }
                if (i == 3)
                        job_view_set(&view->phase, "Failed");
                report_captions_left(view, &out);
                assert_string_equal(out.data == NULL ? "" : out.data, said[i]);
        }
}

static void workers_that_do_not_go_in_step_are_told_of(void **state)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        CLEANUP(text_free) struct text out = { 0 };
        struct job_view *view = job_view_list_add(&views);

        (void) state;
        report_captions_staleness(view, &out);
        assert_int_equal(out.size_bytes, 0);
        view->steps_behind_mean = 1.25;
        view->steps_behind_max = 4;
        report_captions_staleness(view, &out);
        assert_string_equal(out.data, "workers are 1.25 steps behind the first in the mean, 4 at most");
        text_reset(&out);
        job_view_set(&view->phase, "Succeeded");
        report_captions_staleness(view, &out);
        assert_int_equal(out.size_bytes, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(shares_are_told_as_they_are),
                cmocka_unit_test(layers_are_each_ranks_own),
                cmocka_unit_test(a_rate_says_its_time),
                cmocka_unit_test(the_time_left_has_its_spread),
                cmocka_unit_test(workers_that_do_not_go_in_step_are_told_of),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
