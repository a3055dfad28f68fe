/* A controller that begins where another one ended: what stands in the store is all that it has, in whatever
 * order it is told; and nothing is done before all of it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "tests/support/controller_bed.h"

#define GOES "{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:10:00Z\"}}"

static const struct controller_options plain;

static void tell(struct bed *b, bool pods)
{
        const char *name;
        json_t *object;

        json_object_foreach(b->store->objects, name, object)
        {
                if (text_starts_with(name, "Pod ") == pods)
                        (void) json_array_append_new(b->store->changed, json_string(name));
        }
        memory_store_tell(b->store);
}

/* Of one that was killed nothing is left but what it had written. */
static void begin_anew(struct bed *b, bool pods_first)
{
        struct controller_options options = b->controller->options;

        controller_free(b->controller);
        assert_int_equal(controller_new(b->loop, &options, &b->controller, NULL), 0);
        tell(b, pods_first);
        tell(b, !pods_first);
        controller_synced(b->controller, STORE_TRAINING_JOB);
        controller_synced(b->controller, STORE_POD);
        controller_lead(b->controller);
        bed_settle(b);
}

static void nothing_is_made_twice(void **state)
{
        (void) state;
        for (int pods_first = 0; pods_first < 2; pods_first++) {
                struct bed *b = bed_begin(plain);
                unsigned created;
                char *keys;

                bed_run_job(b, "j", BED_TWO_CHIPS ",\"restart\":{\"max\":2,\"migrate\":true}");
                bed_settle(b);
                created = memory_store_count(b->store, "create ");
                keys = strdup(bed_record(b, "j")->keys);
                begin_anew(b, pods_first);
                assert_int_equal(memory_store_count(b->store, "create "), created);
                assert_int_equal(memory_store_count(b->store, "delete "), 0);
                assert_string_equal(bed_record(b, "j")->keys, keys); /* the Secret's, as the pods say */
                assert_true(bed_is(b, "j", "Running", NULL));
                bed_merge(b, "Pod", "j-w0-0", BED_ENDED("Failed", "1", "bang")); /* and it goes on */
                BED_WAIT(b, bed_is_there(b, "j-w0-0-r1"));
                bed_merge(b, "Pod", "j-w0-0-r1", BED_RUNS);
                BED_WAIT(b, bed_is(b, "j", "Running", NULL));
                assert_int_equal(memory_store_count(b->store, "create Secret"), 1);
                free(keys);
                bed_end(b);
        }
}

/* How long pods were refused is the object's to say, by clocks that may differ. */
static void chips_are_not_kept_longer_for_every_controller(void **state)
{
        static const struct {
                const char *since;
                int at; /* -1: as long ago as can be; 1: just now */
        } rows[] = { { "1990-01-01T00:00:00Z", -1 }, { "2999-01-01T00:00:00Z", 1 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct bed *b = bed_begin(plain);
                char name[] = "TrainingJob default/j";
                json_t *conditions, *condition;
                size_t index;
                uint64_t now;

                memory_store_refuse(b->store, "create Pod", -EPERM, "exceeded quota");
                bed_put_job(b, "j", BED_TWO_CHIPS);
                BED_WAIT(b, bed_is(b, "j", "Starting", "PodNotCreated"));
                bed_settle(b);
                conditions = json_object_get(
                        json_object_get(json_object_get(b->store->objects, name), "status"), "conditions");
                json_array_foreach(conditions, index, condition)(void)
                        json_object_set_new(condition, "lastTransitionTime", json_string(rows[i].since));
                now = controller_monotonic(b->controller);
                begin_anew(b, false);
                if (rows[i].at < 0)
                        assert_int_equal(bed_record(b, "j")->refused_usec, 1);
                else
                        assert_true(bed_record(b, "j")->refused_usec >= now);
                bed_end(b);
        }
}

static void nothing_is_done_before_all_is_read(void **state)
{
        (void) state;
        for (int what = 0; what < 3; what++) {
                struct bed *b = bed_begin(plain);
                size_t lines = json_array_size(b->store->lines);

                b->controller->jobs_synced = what != 0;
                b->controller->pods_synced = what != 1;
                b->cluster->synced = what != 2 ? ~0u : 0;
                bed_put_job(b, "j", BED_TWO_CHIPS);
                for (int turns = 0; turns < 20; turns++) {
                        memory_store_tell(b->store);
                        (void) sd_event_run(b->loop, 0);
                }
                assert_int_equal(json_array_size(b->store->lines), lines);
                b->cluster->synced = ~0u;
                controller_synced(b->controller, STORE_TRAINING_JOB);
                controller_synced(b->controller, STORE_POD);
                BED_WAIT(b, bed_is_there(b, "j-m0"));
                bed_end(b);
        }
}

/* Pods of jobs that nobody knows, of other namespaces, of a job of the name that was there before. */
static void pods_are_known_by_namespace_and_owner(void **state)
{
        static const char *const namespaces[] = { "other", "longer-one", "defauls" };
        struct bed *b = bed_begin(plain);
        char name[80], json[400];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
                (void) text_format(name, sizeof(name), "Pod %s/j-w0-0", namespaces[i]);
                (void) text_format(
                        json, sizeof(json),
                        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"j-w0-0\",\"namespace\":\"%s\","
                        "\"uid\":\"1\",\"labels\":{\"remuda.dev/job\":\"j\"},\"ownerReferences\":[{"
                        "\"kind\":\"TrainingJob\",\"uid\":\"u-x\"}]}}",
                        namespaces[i]);
                memory_store_merge(b->store, name, json);
        }
        bed_settle(b);
        bed_run_job(b, "j", BED_TWO_CHIPS);
        bed_merge(
                b, "Pod", "j-w0-7",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"j-w0-7\",\"namespace\":\"default\",\"uid\":\"2\","
                "\"labels\":{\"remuda.dev/"
                "job\":\"j\"},\"ownerReferences\":[{\"kind\":\"TrainingJob\",\"uid\":"
                "\"u-old\"}]}}");
        bed_settle(b);
        assert_null(record_find_pod(bed_record(b, "j"), "j-w0-7")); /* the garbage collector's */
        assert_non_null(controller_find(b->controller, "other/j"));
        bed_drop(b, "Pod", "j-w0-0");
        bed_drop(b, "TrainingJob", "nobody");
        BED_WAIT(b, record_find_pod(bed_record(b, "j"), "j-w0-0") == NULL);
        for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
                (void) text_format(name, sizeof(name), "%s/j", namespaces[i]);
                assert_non_null(record_find_pod(controller_find(b->controller, name), "j-w0-0"));
                (void) text_format(json, sizeof(json), "Pod %s-w0-0", name);
                memory_store_drop(b->store, json);
        }
        BED_WAIT(b, controller_find(b->controller, "other/j") == NULL); /* whose job never came */
        bed_end(b);
}

/* What /metrics says of the jobs. */
static void jobs_are_counted_by_phase(void **state)
{
        struct bed *b = bed_begin(plain);
        struct text page = { 0 };

        (void) state;
        controller_metrics(NULL, &page); /* of a process without one: nothing */
        assert_int_equal(page.size_bytes, 0);
        bed_merge(b, "Pod", "early-w0-0",
                  "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"early-w0-0\",\"namespace\":\"default\",\"uid\":"
                  "\"1\","
                  "\"labels\":{\"remuda.dev/job\":\"early\"},\"ownerReferences\":[{\"kind\":\"TrainingJob\","
                  "\"uid\":\"u\"}]}}"); /* whose job is not told yet */
        bed_run_job(b, "running", BED_TWO_CHIPS);
        bed_run_job(b, "gone", BED_TWO_CHIPS);
        bed_merge(b, "TrainingJob", "gone", "{\"metadata\":{\"finalizers\":null}}");
        bed_drop(b, "TrainingJob", "gone"); /* by force: its pods are there still */
        bed_run_job(b, "cancelled", BED_TWO_CHIPS);
        bed_merge(b, "TrainingJob", "cancelled",
                  "{\"metadata\":{\"annotations\":{\"remuda.dev/cancel\":\"true\"}}}");
        BED_WAIT(b, bed_is(b, "cancelled", "Cancelled", NULL));
        memory_store_refuse(b->store, "create Pod", -EPERM, "exceeded quota");
        bed_put_job(b, "refused", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "refused", "Starting", "PodNotCreated"));
        bed_record(b, "refused")->state.conditions[JOB_CONDITION_PLANNED].since_usec -= UINT64_C(7000000000);
        controller_metrics(b->controller, &page);
        assert_non_null(strstr(page.data, "remuda_jobs_starting_seconds 7"));
        assert_non_null(strstr(page.data, "remuda_job_stragglers_total 0"));
        assert_non_null(strstr(page.data, "remuda_jobs{phase=\"Running\"} 1"));
        assert_non_null(strstr(page.data, "remuda_jobs{phase=\"Cancelled\"} 1"));
        assert_non_null(strstr(page.data, "remuda_jobs{phase=\"Starting\"} 1"));
        assert_non_null(strstr(page.data, "remuda_jobs_refused 1"));
        assert_non_null(
                strstr(page.data, "remuda_job_world_restarts{namespace=\"default\",job=\"running\"} 0"));
        assert_null(strstr(page.data, "job=\"cancelled\"")); /* series have an end */
        assert_null(strstr(page.data, "job=\"refused\""));
        assert_non_null(strstr(page.data, "remuda_job_series_left_out 0"));
        assert_non_null(strstr(page.data, "remuda_jobs_ended_total{phase=\"Cancelled\"} 1"));
        text_free(&page);
        b->controller->leading = false;
        controller_metrics(b->controller, &page);
        assert_non_null(strstr(page.data, "remuda_jobs_starting_seconds 0\n"));
        text_free(&page);
        bed_end(b);
}

/* Each job that runs has figures of its own: what is known of them. */
static void a_job_that_runs_has_series(void **state)
{
        struct bed *b = bed_begin(plain);
        struct text page = { 0 };
        struct record *record;
        uint64_t now;

        (void) state;
        bed_run_job(b, "running", BED_TWO_CHIPS);
        controller_metrics(b->controller, &page);
        assert_null(strstr(page.data, "remuda_job_samples_per_second{")); /* nothing was heard yet */
        assert_null(strstr(page.data, "remuda_job_loss{"));
        text_reset(&page);
        record = bed_record(b, "running");
        now = controller_monotonic(b->controller);
        job_rate_add(&record->rate, (struct job_rate_point){ now - 10000000, 1000, 10 });
        job_rate_add(&record->rate, (struct job_rate_point){ now, 3500, 35 });
        record->state.progress =
                (struct job_progress){ .step = 35,
                                       .samples = 3500,
                                       .samples_total = 14000,
                                       .samples_per_s = 1e9, /* of the whole world: not shown */
                                       .loss = 0.5,
                                       .accuracy = NAN,
                                       .time_usec = controller_now(b->controller) };
        record->state.restarts = 3;
        record->stragglers = 2;
        controller_metrics(b->controller, &page);
#define SERIES(name) "remuda_job_" name "{namespace=\"default\",job=\"running\"} "
        assert_non_null(strstr(page.data, SERIES("samples_per_second") "250\n"));
        assert_non_null(strstr(page.data, SERIES("step_seconds") "0.4\n"));
        assert_non_null(strstr(page.data, SERIES("progress_ratio") "0.25\n"));
        assert_non_null(strstr(page.data, SERIES("loss") "0.5\n"));
        assert_non_null(strstr(page.data, SERIES("report_age_seconds") "0"));
        assert_null(strstr(page.data, "remuda_job_checkpoint_age_seconds{")); /* it has none */
        assert_non_null(strstr(page.data, SERIES("world_restarts") "3\n"));
        assert_non_null(strstr(page.data, SERIES("stragglers") "2\n"));
        text_free(&page);
        bed_end(b);
}

/* Ended pods stay for their logs as long as was asked for; what never started has no need of a long farewell.
 */
static void pods_go_when_they_have_said_goodbye(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .keep_pods_sec = 3600 });

        (void) state;
        bed_run_job(b, "kept", BED_TWO_CHIPS);
        bed_merge(b, "Pod", "kept-w0-0", BED_ENDED("Succeeded", "0", ""));
        bed_merge(b, "Pod", "kept-m0", BED_ENDED("Succeeded", "0", "{\\\"state\\\":\\\"Succeeded\\\"}"));
        BED_WAIT(b, bed_is(b, "kept", "Succeeded", NULL));
        bed_look(b, "kept");
        assert_int_equal(memory_store_count(b->store, "delete Pod"), 0);
        bed_record(b, "kept")->ended_usec -= 3600000000;
        bed_look(b, "kept");
        assert_int_equal(memory_store_count(b->store, "delete Pod default/kept-"), 2);
        bed_put_job(b, "young", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is_there(b, "young-m0"));
        bed_merge(b, "Pod", "young-w0-0", "{\"spec\":{\"nodeName\":\"a\"}}");
        bed_merge(b, "Pod", "young-m0", "{\"spec\":{\"nodeName\":\"a\"}}");
        memory_store_refuse(b->store, "delete Pod default/young-m0", -ENOENT, "not found");
        bed_merge(b, "TrainingJob", "young", GOES);
        BED_WAIT(b, memory_store_count(b->store, "delete Pod default/young-") == 2);
        bed_settle(b);
        assert_false(bed_said(b, "job-write-failed")); /* what is not there is gone */
        bed_end(b);
}

/* A job can go without a controller as soon as no pod of it may use chips, and before one does. */
static void the_finalizer_stays_as_long_as_pods_do(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .keep_pods_sec = 3600 });

        (void) state;
        bed_put_job(b, "wide", "\"workers\":[{\"model\":\"H100\",\"chips\":9}]");
        BED_WAIT(b, bed_is(b, "wide", "Pending", "Unschedulable"));
        bed_settle(b);
        assert_int_equal(memory_store_count(b->store, "patch TrainingJob default/wide"), 0);
        bed_run_job(b, "j", BED_TWO_CHIPS);
        assert_true(bed_record(b, "j")->has_finalizer);
        bed_merge(b, "TrainingJob", "j",
                  "{\"metadata\":{\"annotations\":{\"" JOB_ANNOTATION_CANCEL "\":\"true\"}}}");
        BED_WAIT(b, bed_is(b, "j", "Cancelled", NULL));
        bed_merge(b, "Pod", "j-m0", BED_ENDED("Succeeded", "0", ""));
        bed_look(b, "j");
        assert_true(bed_record(b, "j")->has_finalizer); /* a group's pod runs still */
        bed_merge(b, "Pod", "j-w0-0", BED_ENDED("Succeeded", "0", ""));
        BED_WAIT(b, !bed_record(b, "j")->has_finalizer);
        assert_true(bed_is_there(b, "j-w0-0")); /* with its logs */
        bed_end(b);
}

/* Given up, it has pods for a while still; of another plan it carries one again. */
static void a_plan_that_is_given_up_leaves_no_finalizer(void **state)
{
        struct bed *b = bed_begin(plain);
        struct record *record;

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        record = bed_record(b, "j");
        record->plan_after_usec = UINT64_MAX;
        record_give_up(record, "PlaceLost", "somebody else has them");
        BED_WAIT(b, bed_text(b, "Pod", "j-w0-0", "metadata|deletionTimestamp")[0] != '\0');
        bed_settle(b);
        assert_true(record->has_finalizer);
        bed_drop(b, "Pod", "j-w0-0");
        bed_drop(b, "Pod", "j-m0");
        BED_WAIT(b, !record->has_finalizer);
        bed_look(b, "j");
        assert_true(record->has_finalizer);
        BED_WAIT(b, bed_is_there(b, "j-m1"));
        bed_end(b);
}

/* Until this has been asked of the store, and is not answered yet. */
static void wait_for(struct bed *b, const char *line)
{
        uint64_t end = clock_monotonic_usec() + patience_usec();

        while (memory_store_count(b->store, line) == 0) {
                if (clock_monotonic_usec() > end)
                        fail_msg("'%s' never came; said:\n%s", line, b->said.data);
                memory_store_tell(b->store);
                (void) sd_event_run(b->loop, 10000);
        }
}

/* What was refused was of a plan that is not there any more. */
static void a_refusal_of_another_plan_is_no_news(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        memory_store_refuse(b->store, "create Pod", -EPERM, "exceeded quota");
        bed_put_job(b, "j", BED_TWO_CHIPS);
        wait_for(b, "create Pod");
        memory_store_refuse(b->store, NULL, 0, NULL);
        record_give_up(bed_record(b, "j"), "PlaceLost", "somebody else has them");
        BED_WAIT(b, bed_is_there(b, "j-m1"));
        assert_int_equal(memory_store_count(b->store, "event PodNotCreated"), 0);
        bed_end(b);
}

/* Another controller made the keys meanwhile: its Secret is the job's, and ours nobody's. */
static void keys_that_another_one_made_are_taken(void **state)
{
        struct bed *b = bed_begin(plain);
        struct record *record;

        (void) state;
        bed_put_job(b, "j", BED_TWO_CHIPS);
        wait_for(b, "create Secret");
        b->leads = false;
        bed_merge(
                b, "Pod", "j-w0-0",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"j-w0-0\",\"namespace\":\"default\",\"uid\":\"p\","
                "\"labels\":{\"remuda.dev/job\":\"j\"},\"annotations\":{\"remuda.dev/keys\":"
                "\"{\\\"secret\\\":\\\"theirs\\\"}\"},\"ownerReferences\":[{\"kind\":\"TrainingJob\","
                "\"uid\":\"u-j\"}]}}");
        memory_store_tell(b->store);
        record = bed_record(b, "j");
        assert_string_equal(record->keys, "{\"secret\":\"theirs\"}");
        b->leads = true;
        BED_WAIT(b, bed_is_there(b, "j-m0"));
        assert_string_equal(record->keys, "{\"secret\":\"theirs\"}");
        assert_int_equal(memory_store_count(b->store, "create Secret"), 1);
        assert_int_equal(memory_store_count(b->store, "create Pod default/j-w0-0"), 0);
        bed_end(b);
}

/* It is gone by the time that it has been told where its manager is. */
static void an_answer_may_be_about_a_pod_that_is_gone(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS ",\"restart\":{\"max\":2,\"migrate\":true}");
        wait_for(b, "patch Pod default/j-w0-0");
        bed_drop(b, "Pod", "j-w0-0");
        memory_store_tell(b->store);
        BED_WAIT(b, bed_is_there(b, "j-w0-0-r1"));
        bed_end(b);
}

/* The API server deletes a pod on no node in two writes; whoever asked was killed between them. */
static void a_pod_on_no_node_is_deleted_to_the_end(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is_there(b, "j-m0"));
        bed_merge(b, "Pod", "j-m0", GOES);
        bed_merge(b, "TrainingJob", "j", GOES);
        BED_WAIT(b, bed_record(b, "j") == NULL);
        assert_int_equal(memory_store_count(b->store, "force Pod default/j-m0"), 1);
        assert_int_equal(memory_store_count(b->store, "delete Pod default/j-w0-0"), 1);
        bed_end(b);
}

/* One that goes counts no more among those whose pods are made first. */
static void who_goes_makes_room_for_others(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j1", BED_TWO_CHIPS);
        BED_WAIT(b, bed_record(b, "j1") != NULL && bed_record(b, "j1")->has_finalizer);
        memory_store_refuse(b->store, " default/j1", -EPERM, "not now");
        BED_WAIT(b, bed_record(b, "j1")->state.group_count > 0);
        bed_merge(b, "TrainingJob", "j1", GOES);
        bed_put_job(b, "j2", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "j2", "Starting", NULL));
        memory_store_refuse(b->store, NULL, 0, NULL);
        bed_look(b, "j1");
        BED_WAIT(b, bed_record(b, "j1") == NULL);
        bed_end(b);
}

static void options_are_those_of_the_command_line(void **state)
{
        static const struct settings settings;
        struct server_options options = { .programs = "/etc/programs.yaml",
                                          .kueue = "off",
                                          .planned_claims = "on" };
        struct controller_options made = controller_options_of(&options, &settings);

        (void) state;
        assert_ptr_equal(made.pods.programs, &settings.programs);
        assert_int_equal(made.pods.grace_sec, 1); /* 0 would be by force */
        assert_false(made.kueue);
        assert_true(made.planned_claims);
        options = (struct server_options){ .eviction_grace_sec = 30, .kueue = "on", .planned_claims = "off" };
        made = controller_options_of(&options, &settings);
        assert_null(made.pods.programs);
        assert_int_equal(made.pods.grace_sec, 30);
        assert_true(made.kueue);
        assert_false(made.planned_claims);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_made_twice),
                cmocka_unit_test(chips_are_not_kept_longer_for_every_controller),
                cmocka_unit_test(nothing_is_done_before_all_is_read),
                cmocka_unit_test(pods_are_known_by_namespace_and_owner),
                cmocka_unit_test(jobs_are_counted_by_phase),
                cmocka_unit_test(a_job_that_runs_has_series),
                cmocka_unit_test(pods_go_when_they_have_said_goodbye),
                cmocka_unit_test(the_finalizer_stays_as_long_as_pods_do),
                cmocka_unit_test(a_plan_that_is_given_up_leaves_no_finalizer),
                cmocka_unit_test(a_refusal_of_another_plan_is_no_news),
                cmocka_unit_test(keys_that_another_one_made_are_taken),
                cmocka_unit_test(an_answer_may_be_about_a_pod_that_is_gone),
                cmocka_unit_test(a_pod_on_no_node_is_deleted_to_the_end),
                cmocka_unit_test(who_goes_makes_room_for_others),
                cmocka_unit_test(options_are_those_of_the_command_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
