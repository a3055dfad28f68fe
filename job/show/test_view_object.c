/* What a TrainingJob that was made of a view says is what the view says. */
#include "job/show/view_object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"

static const char plan[] = "{\"job\": \"j\", \"model\": \"mlp\", \"strategy\": \"split\", \"samples\": 600, "
                           "\"epochs\": 1, \"ranks\": ["
                           "{\"rank\": 0, \"role\": \"worker\", \"runtime\": \"cuda\", \"device_model\": "
                           "\"H100\", \"node\": \"a\", \"group\": \"g\", "
                           "\"weight\": 0.75, \"layers\": [0, 2], \"speed\": {\"source\": \"measured\"}}, "
                           "{\"rank\": 1, \"role\": \"worker\", \"runtime\": \"cpu\", \"node\": \"b\", "
                           "\"weight\": 0.25, \"layers\": [3, 5]}]}";

static struct job_view *view_of(struct job_view_list *views)
{
        struct job_view *view = job_view_list_add(views);
        json_t *document = json_loads(plan, 0, NULL);

        assert_non_null(view);
        assert_non_null(document);
        job_view_read_plan(document, view);
        json_decref(document);
        job_view_set(&view->job, "j");
        job_view_set(&view->phase, "Running");
        job_view_set(&view->started, "2026-11-30T07:00:00Z");
        view->step = 9;
        view->samples = 300;
        view->samples_per_s = 12.5;
        view->seconds_left = 24;
        view->loss = 0.5;
        return view;
}

static void it_is_read_as_the_view_was(void **state)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        struct job_view *view = view_of(&views), *back;
        json_t *object = view_object_make(view);

        (void) state;
        assert_non_null(object);
        back = job_view_list_add(&views);
        assert_non_null(back);
        view = &views.items[0]; /* the list has grown */
        job_view_read_object(object, back, 0);
        json_decref(object);
        assert_string_equal(back->job, "j");
        assert_string_equal(back->phase, "Running");
        assert_string_equal(back->strategy, "split");
        assert_true(back->step == view->step && back->samples == view->samples &&
                    back->samples_total == view->samples_total && back->seconds_left == view->seconds_left &&
                    back->loss == view->loss);
        assert_int_equal(back->rank_count, 2);
        for (size_t i = 0; i < 2; i++) {
                const struct job_view_rank *a = &view->ranks[i], *b = &back->ranks[i];

                assert_true(b->rank == a->rank && b->weight == a->weight);
                assert_string_equal(job_view_word(b->node), job_view_word(a->node));
                assert_string_equal(job_view_word(b->runtime), job_view_word(a->runtime));
                assert_true(json_equal(b->layers, a->layers));
        }
}

static void one_that_was_killed_has_no_end(void **state)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        struct job_view *view = view_of(&views);
        static const struct {
                const char *reason, *ended;
                double seconds;
        } cases[] = {
                { "Completed", "2026-11-30T07:01:00Z", 60 },
                { "Killed", NULL, 60 },
                { "Completed", NULL, 1e300 },
                { "Completed", NULL, -1 },
        };

        (void) state;
        job_view_set(&view->phase, "Failed");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                json_t *object, *ended;

                job_view_set(&view->reason, cases[i].reason);
                view->seconds = cases[i].seconds;
                object = view_object_make(view);
                assert_non_null(object);
                ended = json_object_get(json_object_get(object, "status"), "completionTime");
                if (cases[i].ended == NULL)
                        assert_null(ended);
                else
                        assert_string_equal(json_string_value(ended), cases[i].ended);
                json_decref(object);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_is_read_as_the_view_was),
                cmocka_unit_test(one_that_was_killed_has_no_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
