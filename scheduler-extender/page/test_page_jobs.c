/* What the page says of jobs: of their status, and of what was seen to change in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/page/page_kept.h"

#define SECOND   UINT64_C(1000000)
#define NOW_USEC UINT64_C(1795255200000000)

static json_t *object(const char *status)
{
        json_error_t where;
        json_t *json = json_pack_ex(&where, 0, "{s:{s:s}, s:{}, s:o}", "metadata", "name", "j", "spec",
                                    "status", json_loads(status, 0, NULL));

        if (json == NULL)
                fail_msg("%s in %s", where.text, status);
        return json;
}

static void take(struct page_kept *kept, const char *status, uint64_t now_usec)
{
        json_t *json = object(status);

        page_kept_job(kept, "default/j", json, now_usec);
        json_decref(json);
}

static json_t *shown(const struct page_kept *kept)
{
        const struct page_kept_job *job =
                (const struct page_kept_job *) name_map_find(&kept->jobs, "default/j");
        json_t *json;

        assert_non_null(job);
        json = json_loads(job->text, 0, NULL);
        if (json == NULL)
                fail_msg("no JSON: %s", job->text);
        return json;
}

static void a_job_of_which_nothing_is_said_waits(void **state)
{
        struct page_kept kept = { .dirty = NULL };
        const struct page_kept_job *job;

        (void) state;
        take(&kept, "{}", NOW_USEC);
        job = (const struct page_kept_job *) name_map_find(&kept.jobs, "default/j");
        assert_string_equal(job->text,
                            "{\"job\":\"default/j\",\"phase\":\"Pending\",\"strategy\":\"allreduce\","
                            "\"events\":[]}");
        page_kept_job(&kept, "default/j", NULL, NOW_USEC);
        assert_null(name_map_find(&kept.jobs, "default/j"));
        page_kept_free(&kept);
}

/* Of the wrong kind, of absurd size, from whoever may write a status. */
static void what_makes_no_sense_is_not_shown(void **state)
{
        static const char *const statuses[] = {
                "{\"phase\": 7, \"samplesPerSecond\": \"fast\", \"progress\": []}",
                "{\"progress\": {\"step\": \"x\", \"samples\": -5, \"secondsLeft\": -1}}",
                "{\"ranks\": {\"a\": 1}, \"history\": [1, 2], \"subtasks\": \"none\", \"conditions\": 3}",
                "{\"ranks\": [7, null, {\"rank\": 1e300, \"subtask\": \"s\"}], \"subtasks\": [{\"name\": "
                "\"s\", "
                "\"firstRank\": 5, \"layers\": \",,,,\"}]}",
                "{\"ranks\": [{\"rank\": 9223372036854775807}], \"history\": [{\"busy\": [200, \"x\"]}]}",
        };
        struct page_kept kept = { .dirty = NULL };

        (void) state;
        for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
                json_t *json;

                take(&kept, statuses[i], NOW_USEC + i);
                json = shown(&kept);
                assert_null(json_object_get(json, "rate"));
                assert_null(json_object_get(json, "left"));
                json_decref(json);
        }
        page_kept_free(&kept);
}

static void what_changes_is_an_event(void **state)
{
        static const char *const kinds[] = { "phase", "repair", "plan" };
        struct page_kept kept = { .dirty = NULL };
        json_t *json, *events;

        (void) state;
        take(&kept, "{\"phase\": \"Starting\", \"restarts\": 1}", NOW_USEC);
        take(&kept, "{\"phase\": \"Running\", \"restarts\": 1, \"message\": \"all ranks run\"}",
             NOW_USEC + SECOND);
        take(&kept, "{\"phase\": \"Running\", \"restarts\": 2, \"recuts\": 1}", NOW_USEC + 2 * SECOND);
        take(&kept, "{\"phase\": \"Running\", \"restarts\": 2, \"recuts\": 1}", NOW_USEC + 3 * SECOND);
        json = shown(&kept);
        events = json_object_get(json, "events");
        assert_int_equal(json_array_size(events), 3);
        for (size_t i = 0; i < 3; i++)
                assert_string_equal(json_string_value(json_object_get(json_array_get(events, i), "kind")),
                                    kinds[i]);
        assert_string_equal(json_string_value(json_object_get(json_array_get(events, 0), "message")),
                            "Running: all ranks run");
        json_decref(json);
        for (int i = 0; i < 100; i++) /* the latest are kept */
                take(&kept, i % 2 == 0 ? "{\"phase\": \"Restarting\"}" : "{\"phase\": \"Running\"}",
                     NOW_USEC);
        json = shown(&kept);
        assert_int_equal(json_array_size(json_object_get(json, "events")), PAGE_JOBS_EVENTS_MAX);
        json_decref(json);
        page_kept_free(&kept);
}

static void the_rate_is_of_the_last_half_minute(void **state)
{
        struct page_kept kept = { .dirty = NULL };
        json_t *json, *rate;

        (void) state;
        take(&kept, "{\"samplesPerSecond\": 9, \"progress\": {\"step\": 0, \"samples\": 0}}", NOW_USEC);
        json = shown(&kept);
        rate = json_object_get(json, "rate");
        assert_true(json_number_value(json_object_get(rate, "samplesPerSec")) == 9);
        assert_null(json_object_get(rate, "windowSec")); /* the status' own word: nobody knows of when */
        json_decref(json);
        take(&kept, "{\"samplesPerSecond\": 9, \"progress\": {\"step\": 9, \"samples\": 2000}}",
             NOW_USEC + 20 * SECOND);
        json = shown(&kept);
        rate = json_object_get(json, "rate");
        assert_true(json_number_value(json_object_get(rate, "samplesPerSec")) == 100);
        assert_int_equal(json_integer_value(json_object_get(rate, "windowSec")), 30);
        json_decref(json);
        page_kept_free(&kept);
}

/* As the status says them; half a spread is none. */
static void figures_of_the_status_are_shown(void **state)
{
        static const struct {
                const char *status, *shown; /* a part of the text */
        } rows[] = {
                { "{\"progress\":{\"secondsLeft\":61.5,\"secondsLeftLeast\":55.9,\"secondsLeftMost\":70.1}}",
                  "\"left\":{\"sec\":61,\"fromSec\":55,\"toSec\":71}" },
                { "{\"progress\":{\"secondsLeft\":61.5,\"secondsLeftLeast\":55.9}}",
                  "\"left\":{\"sec\":61}" },
                { "{\"progress\":{\"stepsBehindMean\":1.25,\"stepsBehindMax\":4}}",
                  "\"stepsBehind\":{\"mean\":1.25,\"max\":4}" },
                { "{\"ranks\":[{\"rank\":0,\"samplesPerSecond\":31.25,\"stepsBehind\":0}]}",
                  "\"ranks\":[{\"rank\":0,\"samplesPerSec\":31.25,\"stepsBehind\":0}]" },
                { "{\"ranks\":[{\"rank\":0,\"samplesPerSecond\":-1,\"stepsBehind\":\"x\"}]}",
                  "[{\"rank\":0}]" },
        };
        struct page_kept kept = { .dirty = NULL };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const struct page_kept_job *job;

                take(&kept, rows[i].status, NOW_USEC + i);
                job = (const struct page_kept_job *) name_map_find(&kept.jobs, "default/j");
                assert_non_null(job);
                if (strstr(job->text, rows[i].shown) == NULL)
                        fail_msg("%s: %s", rows[i].status, job->text);
        }
        page_kept_free(&kept);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_job_of_which_nothing_is_said_waits),
                cmocka_unit_test(what_makes_no_sense_is_not_shown),
                cmocka_unit_test(what_changes_is_an_event),
                cmocka_unit_test(the_rate_is_of_the_last_half_minute),
                cmocka_unit_test(figures_of_the_status_are_shown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
