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
        plan.launcher_crashes = 2;
        plan.groups[1].incarnation = 3;
        plan.progress = (struct job_progress){ .epoch = 1,
                                               .samples = 5000,
                                               .samples_total = 60000,
                                               .samples_per_s = 123.5,
                                               .accuracy = NAN,
                                               .loss = 0.5,
                                               .seconds_left = 100,
                                               .seconds_left_least = 90,
                                               .seconds_left_most = 110.5,
                                               .steps_behind_mean = 0,
                                               .steps_behind_max = 0,
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
                rank->samples_per_s = 61.5;
                rank->steps_behind = 2;
        }
        status = job_status_encode(&job, "j", &plan);
        assert_int_equal(job_status_decode(status, &again), 0);
        assert_string_equal(again.last_event, plan.last_event);
        assert_int_equal(job_state_rank(&again, plan.groups[1].name, 0)->before, 3);
        assert_true(job_state_rank(&again, plan.groups[1].name, 0)->samples_per_s == 61.5);
        assert_int_equal(job_state_rank(&again, plan.groups[1].name, 0)->steps_behind, 2);
        assert_true(again.progress.seconds_left_least == 90 && again.progress.seconds_left_most == 110.5 &&
                    again.progress.steps_behind_mean == 0 && again.progress.steps_behind_max == 0);
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
                status = job_status_encode(NULL, "j", &running); /* of a spec that is not understood */
                progress = json_object_get(status, "progress");
                assert_true(json_object_get(progress, "step") != NULL &&
                            json_object_get(progress, "epochs") == NULL);
                json_decref(status);
                job_free(&job);
        }
}

/* A plan that somebody else wrote is never acted on; what is wrong with it is said. */
struct wrong {
        const char *field, *value, *says;
};

/* @subtask: the one in which each of them stands; without any the status is good */
static void refuse(const char *spec, size_t subtask, const struct wrong *wrongs, size_t count)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(spec);
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 }, got;
        struct err err = { 0 };

        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        for (size_t i = 0; i <= count; i++) {
                json_t *status = job_status_encode(&job, "j", &plan);

                if (i < count)
                        (void) json_object_set_new(
                                json_array_get(json_object_get(status, "subtasks"), subtask), wrongs[i].field,
                                json_loads(wrongs[i].value, JSON_DECODE_ANY, NULL));
                assert_int_equal(job_status_decode(status, &got), 0);
                err = (struct err){ 0 };
                if (job_status_check(status, &job, &got, &err) != (i < count ? -EBADMSG : 0) ||
                    (i < count && strstr(err.msg, wrongs[i].says) == NULL))
                        fail_msg("%s %s: %s", i < count ? wrongs[i].field : "as it was",
                                 i < count ? wrongs[i].value : "", err.msg);
                job_state_free(&got);
                json_decref(status);
        }
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void a_status_that_does_not_fit_its_job_is_refused(void **state)
{
        static const struct wrong workers[] = {
                { "batch", "7", "weight: not its part of spec.globalBatch" },
                { "weight", "0.9", "weight: not its part" },
                { "name", "\"w0-0\"", "name: another one has it, too" },
                { "name", "\"../x\"", "status.subtasks: not a list" },
                { "firstRank", "0", "firstRank: another one has these ranks" },
                { "entry", "5", "entry: spec.workers has no such entry" },
                { "ranks", "0", "status.subtasks: not a list" },
                { "chips", "0", "status.subtasks: not a list" },
                { "chips", "9", "ranks: fewer than its chips" },
                { "ranks", "3", "chips: with those before it more than its role asks for" },
                { "role", "\"server\"", "chips: with those before it more than its role asks for" },
                { "runtime", "\"\"", "runtime: missing" },
                { "resource", "7", "resource: missing" },
        };
        static const struct wrong servers[] = {
                { "batch", "7", "status.subtasks[0].batch: not its part of spec.globalBatch" },
                { "ranks", "2", "chips: with those before it more than its role asks for" },
                { "firstRank", "3", "firstRank: another one has these ranks" },
                { "role", "\"worker\"", "chips: with those before it more than its role asks for" },
        };

        (void) state;
        refuse("  globalBatch: 64\n  workers: [{model: H100, chips: 10}]\n", 1, workers, ARRAY_SIZE(workers));
        refuse("  globalBatch: 64\n  strategy: ps-sync\n  workers: [{model: H100, chips: 8}, {model: A100, "
               "chips: 2}]\n  servers: {model: A100, chips: 1}\n",
               0, servers, ARRAY_SIZE(servers)); /* they come first */
}

/* What was not asked of the controller alone: nothing follows from it. */
static void what_is_no_status_is_refused(void **state)
{
        static const struct {
                const char *status, *says; /* NULL = it may be one */
        } rows[] = {
                { "null", NULL },
                { "{}", NULL },
                { "{\"phase\":\"Pending\"}", NULL },
                { "[]", "status: an object is needed" },
                { "{\"phase\":7}", "status.phase: '' is not a phase" },
                { "{\"phase\":\"Dancing\"}", "status.phase: 'Dancing' is not a phase" },
                { "{\"subtasks\":{}}", "status.subtasks: not a list" },
                { "{\"subtasks\":[{}]}", "status.subtasks: not a list" },
        };
        struct job job = job_fixture_parse("  workers: [{model: H100, chips: 1}]\n");

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                json_t *status = json_loads(rows[i].status, JSON_DECODE_ANY, NULL);
                struct err err = { 0 };
                struct job_state got;

                assert_int_equal(job_status_decode(status, &got), 0);
                if (job_status_check(status, &job, &got, &err) != (rows[i].says == NULL ? 0 : -EBADMSG) ||
                    (rows[i].says != NULL && strstr(err.msg, rows[i].says) == NULL))
                        fail_msg("%s: %s", rows[i].status, err.msg);
                job_state_free(&got);
                json_decref(status);
        }
        job_free(&job);
}

static void shares_that_do_not_make_a_batch_are_refused(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  globalBatch: 64\n  workers: [{model: H100, chips: 10}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 }, got;
        struct err err = { 0 };
        json_t *status;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.group_count, 2);
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

static json_t *at(const json_t *status, const char *list, size_t index, const char *field)
{
        return json_object_get(json_array_get(json_object_get(status, list), index), field);
}

/* The second level: what its ranks said, what is known of those that said nothing, and no more of them than
 * an object has room for. */
static void ranks_are_listed_with_what_they_said(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  strategy: ps-sync\n  workers: [{model: H100, chips: 2}]\n"
                                           "  servers: {model: A100, chips: 1}\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct job_progress_rank *rank;
        struct err err = { 0 };
        json_t *status;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        plan.samples = 1000;
        plan.groups[1].restarts = 3;
        plan.groups[1].state = JOB_GROUP_RUNNING;
        rank = job_state_make_rank(&plan, plan.groups[1].name, 0);
        rank->samples = 500;
        rank->restarts = 1;
        rank->exit_code = 7;
        job_state_make_rank(&plan, plan.groups[0].name, 0)->samples = 9;
        status = job_status_encode(&job, "j", &plan);
        assert_string_equal(json_string_value(json_object_get(status, "workers")), "2/2");
        assert_string_equal(json_string_value(json_object_get(status, "runtimes")), "cuda");
        assert_null(at(status, "subtasks", 0, "shard")); /* a server has none */
        assert_string_equal(json_string_value(at(status, "subtasks", 1, "shard")), "0:1000");
        assert_false(json_is_integer(at(status, "ranks", 0, "samples")));
        assert_string_equal(json_string_value(at(status, "ranks", 1, "shard")), "0:500");
        assert_int_equal(json_integer_value(at(status, "ranks", 1, "samples")), 500);
        assert_int_equal(json_integer_value(at(status, "ranks", 1, "restarts")), 1);
        assert_int_equal(json_integer_value(at(status, "ranks", 1, "exitCode")), 7);
        assert_int_equal(json_integer_value(at(status, "ranks", 2, "restarts")), 3); /* its group's */
        assert_false(json_is_integer(at(status, "ranks", 2, "samples")));
        assert_false(json_is_integer(at(status, "ranks", 2, "exitCode")));
        json_decref(status);
        job_state_set(&plan, JOB_SUCCEEDED, 1, "Completed", "all");
        plan.groups[1].ranks = 2 * JOB_STATUS_RANKS_MAX;
        status = job_status_encode(&job, "j", &plan);
        assert_int_equal(json_array_size(json_object_get(status, "ranks")), JOB_STATUS_RANKS_MAX);
        assert_int_equal(json_integer_value(at(status, "ranks", 1, "exitCode")), 0); /* whatever it said */
        json_decref(status);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* Read back: what makes no sense is as if it had not been said. */
static void what_ranks_and_conditions_say_is_read_again(void **state)
{
        static const char text[] =
                "{\"subtasks\":[{\"name\":\"w0-1\",\"index\":1,\"chips\":3,\"ranks\":3},{\"name\":\"w0-0\","
                "\"index\":0,\"chips\":1,\"ranks\":1}],"
                "\"ranks\":[{\"rank\":0},{\"subtask\":\"w0-1\",\"samples\":5,\"restarts\":2,"
                "\"restartsBefore\":7,\"exitCode\":1},{\"subtask\":\"w0-1\"},{\"subtask\":\"w0-1\","
                "\"samples\":9,\"restarts\":2,\"restartsBefore\":1},{\"subtask\":\"w0-0\",\"samples\":4}],"
                "\"conditions\":[{\"status\":\"True\"},{\"type\":\"Odd\",\"status\":\"True\"},"
                "{\"type\":\"Running\"},{\"type\":\"Failed\",\"status\":\"Unknown\",\"reason\":\"R\","
                "\"message\":\"m\"},{\"type\":\"Accepted\",\"status\":\"True\"}]}";
        json_t *status = json_loads(text, 0, NULL);
        const struct job_state_condition *c;
        struct job_state got;

        (void) state;
        assert_int_equal(job_status_decode(status, &got), 0);
        assert_int_equal(got.next_index, 2);
        assert_int_equal(got.rank_count, 3);
        assert_int_equal(job_state_rank(&got, "w0-1", 0)->samples, 5);
        assert_int_equal(job_state_rank(&got, "w0-1", 0)->exit_code, 1);
        assert_int_equal(job_state_rank(&got, "w0-1", 0)->before, 0); /* of 2 restarts there were no 7 */
        assert_null(job_state_rank(&got, "w0-1", 1));
        assert_int_equal(job_state_rank(&got, "w0-1", 2)->before, 1);
        assert_int_equal(job_state_rank(&got, "w0-0", 0)->samples, 4);
        c = got.conditions;
        assert_true(c[JOB_CONDITION_RUNNING].known && !c[JOB_CONDITION_RUNNING].holds);
        assert_true(!c[JOB_CONDITION_FAILED].known && !c[JOB_CONDITION_FAILED].holds);
        assert_string_equal(c[JOB_CONDITION_FAILED].reason, "R");
        assert_string_equal(c[JOB_CONDITION_FAILED].message, "m");
        assert_true(c[JOB_CONDITION_ACCEPTED].known && c[JOB_CONDITION_ACCEPTED].holds);
        assert_string_equal(c[JOB_CONDITION_ACCEPTED].reason, "");
        assert_false(c[JOB_CONDITION_PLANNED].known);
        job_state_free(&got);
        json_decref(status);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_state_survives_its_status),
                cmocka_unit_test(a_foreign_status_is_a_new_job),
                cmocka_unit_test(a_doubted_condition_is_unknown_until_it_is_set),
                cmocka_unit_test(epochs_that_nobody_gave_are_not_said),
                cmocka_unit_test(a_status_that_does_not_fit_its_job_is_refused),
                cmocka_unit_test(what_is_no_status_is_refused),
                cmocka_unit_test(shares_that_do_not_make_a_batch_are_refused),
                cmocka_unit_test(ranks_are_listed_with_what_they_said),
                cmocka_unit_test(what_ranks_and_conditions_say_is_read_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
