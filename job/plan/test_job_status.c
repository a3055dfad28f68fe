/* The status that a job's state is kept in: whole again when read, refused when it does not fit its job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "job/plan/job_status.h"
#include "tests/support/job_fixture.h"

static void a_state_survives_its_status(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job =
                job_fixture_parse("  strategy: ps-sync\n  workers: [{model: H100, chips: 10}]\n  servers: "
                                  "{model: A100, chips: 1}\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 }, again;
        struct err err = { 0 };
        json_t *status, *second;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        plan.world = 2;
        plan.restarts = 1;
        plan.groups[1].incarnation = 3;
        plan.progress = (struct job_progress){ .epoch = 1,
                                               .samples = 5000,
                                               .samples_total = 60000,
                                               .samples_per_s = 123.5,
                                               .accuracy = NAN,
                                               .loss = 0.5,
                                               .time_usec = 7000000 };
        job_state_set(&plan, JOB_RUNNING, 5000000, "Running", "%d ranks", 11);
        (void) strcpy(plan.last_event, "2026-11-21T10:00:00.000001Z");
        {
                struct job_progress_rank *rank = job_state_make_rank(&plan, plan.groups[1].name, 0);

                assert_int_equal(job_state_rank_batch(&plan, &plan.groups[1], 0),
                                 job_group_rank_batch(&plan.groups[1], 0));
                rank->batch = 1; /* as it was shared while it ran */
                rank->restarts = 4;
                rank->before = 3;
        }
        status = job_status_encode(&job, "j", &plan);
        assert_int_equal(job_status_decode(status, &again), 0);
        assert_string_equal(again.last_event, plan.last_event);
        assert_int_equal(job_state_rank(&again, plan.groups[1].name, 0)->before, 3);
        assert_int_equal(job_state_rank_batch(&again, &plan.groups[1], 0), 1);
        assert_int_equal(json_integer_value(json_object_get(
                                 json_array_get(json_object_get(status, "ranks"), plan.groups[1].first_rank),
                                 "batch")),
                         1);
        assert_int_equal(job_status_check(status, &job, &again, &err), 0);
        second = job_status_encode(&job, "j", &again);
        assert_true(json_equal(status, second));
        assert_int_equal(json_array_size(json_object_get(status, "ranks")), 11);
        assert_int_equal(again.next_index, plan.next_index);
        json_decref(status);
        json_decref(second);
        job_state_free(&plan);
        job_state_free(&again);
        job_free(&job);
        ledger_life_free(l);
}

/* A plan that somebody else wrote is never acted on; what is wrong with it is said. */
static void epochs_that_nobody_gave_are_not_said(void **state)
{
        static const struct {
                const char *spec;
                int epochs; /* 0 = nothing */
        } cases[] = {
                { "  args: []\n", 0 },
                { "  args: []\n  epochs: 3\n", 3 },
                { "", 0 },
                { "  data: {path: /data}\n", 1 }, /* the reference trainer's */
                { "  data: {path: /data}\n  args: []\n", 0 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct job_state running = { .progress = { .time_usec = 1, .step = 5 } };
                struct job job;
                json_t *status, *progress;
                char spec[128];

                assert_true(text_format(spec, sizeof(spec), "  workers: [{model: H100, chips: 1}]\n%s",
                                        cases[i].spec));
                job = job_fixture_parse(spec);
                status = job_status_encode(&job, "j", &running);
                progress = json_object_get(status, "progress");
                assert_non_null(json_object_get(progress, "step"));
                assert_int_equal(json_integer_value(json_object_get(progress, "epochs")), cases[i].epochs);
                assert_true((json_object_get(progress, "epochs") == NULL) == (cases[i].epochs == 0));
                json_decref(status);
                job_free(&job);
        }
}

static void a_status_that_does_not_fit_its_job_is_refused(void **state)
{
        static const struct {
                const char *field, *value, *says;
        } wrongs[] = {
                { "batch", "7", "weight: not its part of spec.globalBatch" },
                { "weight", "0.9", "weight: not its part" },
                { "name", "\"w0-0\"", "name: another one has it, too" },
                { "name", "\"../x\"", "status.subtasks: not a list" },
                { "firstRank", "0", "firstRank: another one has these ranks" },
                { "entry", "5", "entry: spec.workers has no such entry" },
                { "ranks", "0", "status.subtasks: not a list" },
                { "chips", "9", "ranks: fewer than its chips" },
                { "ranks", "3", "chips: with those before it more than its role asks for" },
                { "role", "\"server\"", "chips: with those before it more than its role asks for" },
                { "runtime", "\"\"", "runtime: missing" },
                { "resource", "7", "resource: missing" },
        };
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  globalBatch: 64\n  workers: [{model: H100, chips: 10}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 }, got;
        struct err err = { 0 };
        json_t *status;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.group_count, 2);
        for (size_t i = 0; i <= ARRAY_SIZE(wrongs); i++) {
                status = job_status_encode(&job, "j", &plan);
                if (i < ARRAY_SIZE(wrongs))
                        (void) json_object_set_new(json_array_get(json_object_get(status, "subtasks"), 1),
                                                   wrongs[i].field,
                                                   json_loads(wrongs[i].value, JSON_DECODE_ANY, NULL));
                assert_int_equal(job_status_decode(status, &got), 0);
                err = (struct err){ 0 };
                assert_int_equal(job_status_check(status, &job, &got, &err),
                                 i < ARRAY_SIZE(wrongs) ? -EBADMSG : 0);
                if (i < ARRAY_SIZE(wrongs) && strstr(err.msg, wrongs[i].says) == NULL)
                        fail_msg("%s %s: %s", wrongs[i].field, wrongs[i].value, err.msg);
                job_state_free(&got);
                json_decref(status);
        }
        status = json_pack("{s:s}", "phase", "Dancing");
        assert_int_equal(job_status_decode(status, &got), 0);
        assert_int_equal(job_status_check(status, &job, &got, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "status.phase: 'Dancing'"));
        job_state_free(&got);
        json_decref(status);
        status = job_status_encode(&job, "j", &plan); /* one group fewer: the rest does not make a batch */
        (void) json_array_remove(json_object_get(status, "subtasks"), 1);
        assert_int_equal(job_status_decode(status, &got), 0);
        assert_int_equal(job_status_check(status, &job, &got, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "spec.globalBatch is 64"));
        job_state_free(&got);
        json_decref(status);
        assert_int_equal(job_status_check(NULL, &job, &plan, &err), 0);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static const char *status_of_condition(const struct job_state *state, const char *type, json_t **ret)
{
        json_t *list;

        *ret = job_status_encode(NULL, "j", state);
        list = json_object_get(*ret, "conditions");
        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *entry = json_array_get(list, i);

                if (strcmp(json_string_value(json_object_get(entry, "type")), type) == 0)
                        return json_string_value(json_object_get(entry, "status"));
        }
        return "";
}

/* Another plan's pods say nothing of this one's; what was said once is said again when it is known. */
static void a_doubted_condition_is_unknown_until_it_is_set(void **state)
{
        static const char *const said[] = { "", "False", "Unknown", "True" };
        struct job_state s = job_state_new();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
                struct job_state again;
                json_t *status;

                if (i == 2)
                        job_state_doubt_condition(&s, JOB_CONDITION_PODS_CREATED, 7000000, "Planned", "anew");
                else if (i > 0)
                        job_state_set_condition(&s, JOB_CONDITION_PODS_CREATED, i == 3, i * 1000000, "R",
                                                "m");
                assert_string_equal(status_of_condition(&s, "PodsCreated", &status), said[i]);
                assert_int_equal(job_status_decode(status, &again), 0);
                json_decref(status);
                assert_string_equal(status_of_condition(&again, "PodsCreated", &status), said[i]);
                json_decref(status);
                assert_int_equal(job_state_awaits_condition(&again, JOB_CONDITION_PODS_CREATED),
                                 i == 1 || i == 2);
                assert_int_equal(again.conditions[JOB_CONDITION_PODS_CREATED].known, i % 2);
                job_state_free(&again);
        }
        job_state_free(&s);
}

/* What is no status of ours is that of a new job. */
static void a_foreign_status_is_a_new_job(void **state)
{
        static const char *const texts[] = {
                "{}",
                "[]",
                "{\"phase\": 7, \"subtasks\": [{}], \"world\": -1}",
                "{\"subtasks\": [{\"name\": \"../x\", \"chips\": 1, \"ranks\": 1}], \"conditions\": {}}",
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                json_t *status = json_loads(texts[i], 0, NULL);
                struct job_state got;

                assert_int_equal(job_status_decode(status, &got), 0);
                assert_int_equal(got.group_count, 0);
                assert_int_equal(got.phase, JOB_PENDING);
                assert_int_equal(got.world, 0);
                job_state_free(&got);
                json_decref(status);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_state_survives_its_status),
                cmocka_unit_test(a_foreign_status_is_a_new_job),
                cmocka_unit_test(a_doubted_condition_is_unknown_until_it_is_set),
                cmocka_unit_test(epochs_that_nobody_gave_are_not_said),
                cmocka_unit_test(a_status_that_does_not_fit_its_job_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
