/* Jobs from their object to their end, on a store in memory: what it refuses, and whatever it answers,
 * nothing is done twice and nothing is left undone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/support/controller_bed.h"

#define MANAGER_OF_GROUP "metadata|annotations|remuda.dev/manager"
#define GOES             "{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:10:00Z\"}}"

static const struct controller_options plain;

static void a_job_comes_to_its_end(void **state)
{
        struct bed *b = bed_begin(plain);
        const struct job_state *s;

        (void) state;
        bed_put_job(b, "j", BED_TWO_CHIPS ",\"epochs\":2,\"data\":{\"path\":\"/d\"}");
        BED_WAIT(b, bed_is(b, "j", "Starting", NULL) && bed_is_there(b, "j-m0"));
        assert_int_equal(memory_store_count(b->store, "create Secret default/j-"), 1);
        bed_merge(b, "Pod", "j-w0-0", BED_RUNS);
        bed_merge(b, "Pod", "j-m0", BED_RUNS);
        bed_merge(b, "Pod", "j-m0", "{\"status\":{\"podIP\":\"fd00::7\"}}");
        BED_WAIT(b, bed_is(b, "j", "Running", NULL));
        BED_WAIT(b, strcmp(bed_text(b, "Pod", "j-w0-0", MANAGER_OF_GROUP), "1 [fd00::7]:7000") == 0);
        bed_merge(b, "Pod", "j-m0",
                  BED_ENDED("Succeeded", "0",
                            "{\\\"state\\\":\\\"Succeeded\\\",\\\"samples\\\":128,\\\"step\\\":2,"
                            "\\\"loss\\\":0.5,\\\"samples_per_s\\\":64,\\\"accuracy\\\":0.75}"));
        BED_WAIT(b, bed_is(b, "j", "Succeeded", "Completed"));
        BED_WAIT(b, strcmp(bed_text(b, "Pod", "j-w0-0", MANAGER_OF_GROUP), "end") == 0);
        s = &bed_record(b, "j")->state;
        assert_int_equal(s->progress.samples, 128);
        assert_int_equal(s->progress.epoch, 2);
        assert_true(s->progress.accuracy == 0.75 && s->progress.loss == 0.5);
        BED_WAIT(b,
                 bed_text(b, "Pod", "j-m0", "metadata|deletionTimestamp")[0] != '\0'); /* is kept for 0 s */
        assert_int_equal(memory_store_count(b->store, "delete Pod default/j-w0-0"), 0);
        bed_record(b, "j")->ended_usec -= 30000000; /* and has not ended by itself */
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "delete Pod default/j-w0-0"), 1);
        bed_merge(b, "TrainingJob", "j", GOES);
        bed_settle(b);
        assert_string_equal(bed_text(b, "TrainingJob", "j", "kind"), "TrainingJob"); /* before its pods did */
        bed_drop(b, "Pod", "j-w0-0");
        bed_drop(b, "Pod", "j-m0");
        BED_WAIT(b, bed_text(b, "TrainingJob", "j", "kind")[0] == '\0' && bed_record(b, "j") == NULL);
        bed_end(b);
}

/* May the pod of the job's group be on its node alone? */
static bool is_only_there(struct bed *b, const struct job_group *group)
{
        char key[64], words[64];
        CLEANUP(free_p) char *spec = NULL;

        (void) text_format(key, sizeof(key), "Pod default/j-%s", group->name);
        (void) text_format(words, sizeof(words), "\"metadata.name\",\"operator\":\"In\",\"values\":[\"%s\"]",
                           group->node);
        spec = json_dumps(json_object_get(json_object_get(b->store->objects, key), "spec"), JSON_COMPACT);
        return spec != NULL && strstr(spec, words) != NULL;
}

#define BED_SPLIT                                                                                            \
        "\"strategy\":\"split\",\"args\":[],\"workers\":[{\"model\":\"H100|A100\",\"chips\":2}],"            \
        "\"profile\":{\"layers\":[{\"ms\":{\"H100\":1,\"A100\":9}},{\"ms\":{\"H100\":9,\"A100\":1}}]}"

/* The pods of a split go where its plan is shortest, and nowhere else; with a policy of the job's own not. */
static void a_splits_pods_go_where_its_plan_is_shortest(void **state)
{
        struct bed *b = bed_begin(plain);
        const struct job_state *s;

        (void) state;
        bed_put_node(b, "z", "A100", 4);
        bed_put_job(b, "j", BED_SPLIT);
        BED_WAIT(b, bed_is(b, "j", "Starting", NULL) && bed_is_there(b, "j-m0"));
        s = &bed_record(b, "j")->state;
        assert_int_equal(s->group_count, 2);
        assert_string_equal(s->groups[0].node, "a");
        assert_string_equal(s->groups[0].layers, "0:0");
        assert_string_equal(s->groups[1].node, "z");
        assert_string_equal(s->groups[1].layers, "1:1");
        assert_true(is_only_there(b, &s->groups[0]) && is_only_there(b, &s->groups[1]));
        bed_put_job(b, "k", BED_SPLIT ",\"placement\":\"packed\"");
        BED_WAIT(b, bed_is(b, "k", "Starting", NULL));
        s = &bed_record(b, "k")->state;
        assert_int_equal(s->group_count, 1);
        bed_end(b);
}

/* clang-format off */
static const struct { const char *write, *sentence, *says; } refusals[] = {
        { "create Secret", "secrets is forbidden: cannot create resource \"secrets\"", "kubectl create rolebinding remuda-controller" },
        { "create Pod",    "exceeded quota: chips",                                     "exceeded quota: chips" },
};
/* clang-format on */

static void pods_that_are_refused_are_made_later(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                struct bed *b = bed_begin(plain);
                struct record *record;

                memory_store_refuse(b->store, refusals[i].write, -EPERM, refusals[i].sentence);
                bed_put_job(b, "j", BED_TWO_CHIPS);
                BED_WAIT(b, bed_is(b, "j", "Starting", "PodNotCreated"));
                assert_non_null(strstr(bed_text(b, "TrainingJob", "j", "status|message"), refusals[i].says));
                record = bed_record(b, "j");
                record->refused_usec -= 1000000000; /* long ago */
                bed_look(b, "j");                   /* the same once more is no news, and more seldom */
                assert_int_equal(memory_store_count(b->store, "event PodNotCreated"), 1);
                assert_true(record->retry_usec > controller_monotonic(b->controller) + 20000000);
                memory_store_refuse(b->store, NULL, 0, NULL);
                bed_look(b, "j");
                if (!bed_is(b, "j", "Starting", "Created") || !bed_is_there(b, "j-m0"))
                        fail_msg("%s %s", bed_text(b, "TrainingJob", "j", "status|reason"), b->said.data);
                assert_int_equal(record->refused_usec, 0);
                bed_end(b);
        }
}

static void what_is_refused_for_too_long_has_no_lease(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .pods_wait_sec = 600 });
        static const unsigned pauses[] = { 600, 1200, 2400, 3600, 3600, 3600, 3600, 3600 };
        struct record *record;

        (void) state;
        memory_store_refuse(b->store, "create Pod", -EPERM, "exceeded quota");
        bed_put_job(b, "j", BED_TWO_CHIPS);
        for (unsigned i = 0; i < ARRAY_SIZE(pauses); i++) { /* they double up to an hour */
                uint64_t before;

                BED_WAIT(b, (record = bed_record(b, "j")) != NULL && record->refused_usec != 0);
                BED_WAIT(b, bed_is(b, "j", NULL, "PodNotCreated"));
                record->refused_usec -= 600000000;
                before = controller_monotonic(b->controller);
                controller_queue(record);
                BED_WAIT(b, record->refusals == i + 1);
                assert_true(record->plan_after_usec >= before + pauses[i] * UINT64_C(1000000) &&
                            record->plan_after_usec < before + (pauses[i] + 60) * UINT64_C(1000000));
                assert_int_equal(record->state.group_count, 0);
                BED_WAIT(b, bed_is(b, "j", "Pending", "PodNotCreated"));
                bed_look(b, "j");
        }
        assert_true(bed_said(b, "no pods after 600 s, its chips are given back for 1200 s: exceeded quota"));
        bed_end(b);
}

/* As long as it may be a moment, nobody is told that he was refused; then he is. And pauses that begin beyond
 * an hour stay as long as they were asked for. */
static void who_is_never_answered_is_told_in_the_end(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .pods_wait_sec = 7200 });
        struct record *record;

        (void) state;
        memory_store_refuse(b->store, "create Pod", -ETIMEDOUT, "no answer");
        bed_put_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, (record = bed_record(b, "j")) != NULL && record->unanswered_usec != 0);
        bed_settle(b);
        assert_int_equal(record->refused_usec, 0);
        record->unanswered_usec = 1; /* as long as there is a clock */
        bed_look(b, "j");
        BED_WAIT(b, bed_is(b, "j", "Starting", "PodNotCreated"));
        record->refused_usec -= UINT64_C(7200000000);
        bed_look(b, "j");
        assert_int_equal(record->refusals, 1);
        record->plan_after_usec = UINT64_MAX; /* it pauses */
        controller_want_plan(b->controller);
        bed_settle(b);
        assert_int_equal(record->state.group_count, 0);
        assert_true(bed_said(b, "no pods after 7200 s, its chips are given back for 7200 s"));
        bed_end(b);
}

/* Whatever a write is answered with, what it was for is done in the end. */
static void writes_that_fail_are_made_again(void **state)
{
        static const struct {
                const char *write;
                int result;
                size_t again; /* times that it is planned once more */
        } rows[] = {
                { "patch TrainingJob", -EACCES, 1 }, /* its finalizer */
                { "patch TrainingJob", -ESTALE, 0 },
                { "put TrainingJob", -EIO, 0 },

                { "patch Pod", -EIO, 0 },
                { "create Secret", -ETIMEDOUT, 0 },
                { "create Pod", -ETIMEDOUT, 0 },
                { "create Secret", -EEXIST, 0 }, /* the reply was lost, and it was asked for again below us */
                { "create Secret", -EIO, 0 },    /* a server that starts answers with 500 for a moment */
                { "create Pod", -EBUSY, 0 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct bed *b = bed_begin(plain);
                const char *group = rows[i].again > 0 ? "j-w0-1" : "j-w0-0"; /* of another plan */

                memory_store_refuse(b->store, rows[i].write, rows[i].result, "not now");
                bed_put_job(b, "j", BED_TWO_CHIPS);
                bed_settle(b);
                if (bed_is_there(b, "j-m0")) {
                        bed_merge(b, "Pod", group, BED_RUNS);
                        bed_merge(b, "Pod", "j-m0", BED_RUNS);
                }
                BED_WAIT(b, memory_store_count(b->store, rows[i].write) > 0);
                bed_settle(b);
                memory_store_refuse(b->store, NULL, 0, NULL);
                while (!bed_is_there(b, "j-m0"))
                        bed_look(b, "j");
                bed_merge(b, "Pod", group, BED_RUNS);
                bed_merge(b, "Pod", "j-m0", BED_RUNS);
                bed_settle(b);
                bed_look(b, "j");
                if (!bed_is(b, "j", "Running", NULL) ||
                    bed_text(b, "Pod", group, MANAGER_OF_GROUP)[0] == '\0' ||
                    bed_said(b, "job-write-failed") != (rows[i].result != -EEXIST) ||
                    memory_store_count(b->store, "event PodNotCreated") != 0 ||
                    memory_store_count(b->store, "event Planned") != 1 + rows[i].again)
                        fail_msg("%s answered with %d: %s %s %s", rows[i].write, rows[i].result,
                                 bed_text(b, "TrainingJob", "j", "status|phase"),
                                 bed_text(b, "Pod", group, MANAGER_OF_GROUP), b->said.data);
                bed_end(b);
        }
}

/* A tenant's own pod has the name of a job's pod: that is said, and mended by whoever takes it away. */
static void a_name_that_is_taken_is_told(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_merge(b, "Pod", "j-w0-0",
                  "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"j-w0-0\",\"namespace\":\"default\","
                  "\"uid\":\"1\"}}");
        bed_put_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "j", "Starting", NULL) && bed_is_there(b, "j-m0"));
        bed_settle(b);
        assert_int_equal(memory_store_count(b->store, "event PodNotCreated"), 0); /* a reply that was lost? */
        record_find_pod(bed_record(b, "j"), "j-w0-0")->asked_usec -= 6000000;
        bed_look(b, "j");
        BED_WAIT(b, bed_is(b, "j", "Starting", "PodNotCreated"));
        assert_non_null(strstr(bed_text(b, "TrainingJob", "j", "status|message"),
                               "pod default/j-w0-0 is there and is not this job's: delete it"));
        bed_look(b, "j");
        bed_look(b, "j");
        assert_true(memory_store_count(b->store, "create Pod default/j-w0-0") > 2);
        assert_int_equal(memory_store_count(b->store, "event PodNotCreated"), 1);
        assert_int_equal(memory_store_count(b->store, "delete Pod"), 0);
        bed_drop(b, "Pod", "j-w0-0");
        bed_look(b, "j");
        bed_settle(b);
        bed_merge(b, "Pod", "j-w0-0", BED_RUNS);
        bed_merge(b, "Pod", "j-m0", BED_RUNS);
        BED_WAIT(b, bed_is(b, "j", "Running", NULL));
        assert_string_equal(bed_record(b, "j")->taken, "");
        bed_end(b);
}

/* It went while it was written: there is nothing more to do, and nothing to say. */
static void a_job_that_has_gone_is_not_written_again(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        memory_store_refuse(b->store, "put TrainingJob", -ENOENT, "it is not there");
        bed_put_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, memory_store_count(b->store, "put TrainingJob") == 1);
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "put TrainingJob"), 1);
        assert_false(bed_said(b, "job-write-failed"));
        bed_end(b);
}

static void a_refused_delete_is_asked_again(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        memory_store_refuse(b->store, "delete Pod", -EIO, "not now");
        bed_merge(b, "TrainingJob", "j", GOES);
        bed_settle(b);
        assert_int_equal(memory_store_count(b->store, "delete Pod default/j-w0-0"), 1); /* not in a circle */
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "delete Pod default/j-w0-0"), 2);
        memory_store_refuse(b->store, NULL, 0, NULL);
        BED_WAIT(b, bed_text(b, "Pod", "j-w0-0", "metadata|deletionTimestamp")[0] != '\0');
        bed_drop(b, "Pod", "j-w0-0");
        bed_drop(b, "Pod", "j-m0");
        BED_WAIT(b, bed_record(b, "j") == NULL);
        bed_end(b);
}

/* The end of this process: what is under way is answered, and nothing follows from it. */
static void the_end_answers_what_is_under_way(void **state)
{
        (void) state;
        for (unsigned turns = 0; turns < 30; turns++) {
                struct bed *b = bed_begin(plain);

                bed_put_job(b, "j", BED_TWO_CHIPS);
                for (unsigned i = 0; i < turns; i++) {
                        memory_store_tell(b->store);
                        (void) sd_event_run(b->loop, 0);
                }
                memory_store_refuse(b->store, " ", -ECANCELED, "closed");
                for (unsigned i = 0; i < 4; i++)
                        (void) sd_event_run(b->loop, 0);
                assert_false(bed_said(b, "job-write-failed"));
                bed_end(b);
        }
}

/* Another one leads by now, whatever was begun here: nothing is written any more. */
static void who_leads_no_more_writes_nothing(void **state)
{
        static const char *const changes[][3] = {
                { "Pod", "j-w0-0", BED_ENDED("Failed", "1", "bang") },
                { "Pod", "j-m0", BED_ENDED("Succeeded", "0", "{}") },
                { "TrainingJob", "j", GOES },
        };

        (void) state;
        for (unsigned turns = 0; turns < 30; turns++) {
                struct bed *b = bed_begin(plain);
                size_t lines;

                memory_store_refuse(b->store, turns % 2 == 0 ? "create Pod" : NULL, -EPERM, "exceeded quota");
                bed_put_job(b, "j", BED_TWO_CHIPS);
                for (unsigned i = 0; i < turns; i++) {
                        memory_store_tell(b->store);
                        (void) sd_event_run(b->loop, 0);
                }
                b->leads = false;
                lines = json_array_size(b->store->lines);
                bed_settle(b);
                bed_look(b, "j");
                assert_int_equal(json_array_size(b->store->lines), lines);
                bed_end(b);
        }
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                struct bed *b = bed_begin(plain);
                size_t lines;

                bed_run_job(b, "j", BED_TWO_CHIPS ",\"restart\":{\"max\":2}");
                bed_settle(b);
                b->leads = false;
                lines = json_array_size(b->store->lines);
                bed_merge(b, changes[i][0], changes[i][1], changes[i][2]);
                bed_settle(b);
                bed_look(b, "j");
                assert_int_equal(json_array_size(b->store->lines), lines);
                bed_end(b);
        }
}

/* The object is replaced while this one writes: an answer that was the old one's is not the new one's. */
static void another_job_of_the_name_is_no_continuation(void **state)
{
        (void) state;
        for (unsigned turns = 1; turns < 30; turns++) {
                struct bed *b = bed_begin(plain);
                struct record *record;

                bed_put_job(b, "j", BED_TWO_CHIPS);
                for (unsigned i = 0; i < turns; i++) {
                        memory_store_tell(b->store);
                        (void) sd_event_run(b->loop, 0);
                }
                bed_merge(b, "TrainingJob", "j",
                          "{\"metadata\":{\"uid\":\"u-2\",\"finalizers\":null},\"status\":null}");
                BED_WAIT(b, (record = bed_record(b, "j")) != NULL && strcmp(record->uid, "u-2") == 0);
                bed_settle(b);
                bed_drop(b, "Pod", "j-w0-0"); /* the garbage collector's */
                bed_drop(b, "Pod", "j-m0");
                bed_settle(b);
                for (struct job_pod *pod = record->pods; pod != NULL; pod = pod->next)
                        pod->asked_usec = pod->asked ? 1 : pod->asked_usec; /* not seen for long */
                bed_look(b, "j");
                BED_WAIT(b, bed_is(b, "j", "Starting", NULL) && bed_is_there(b, "j-m0"));
                assert_string_equal(record_find_pod(record, "j-m0")->owner, "u-2");
                bed_end(b);
        }
}

/* What was written meanwhile is seen in a moment; else it is tried again after a while. */
static void a_finalizer_that_cannot_be_taken_away_is_tried_again(void **state)
{
        static const int results[] = { -ESTALE, -EIO };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
                struct bed *b = bed_begin(plain);
                struct record *record;

                bed_run_job(b, "j", BED_TWO_CHIPS);
                bed_merge(b, "TrainingJob", "j", GOES);
                BED_WAIT(b, bed_text(b, "Pod", "j-w0-0", "metadata|deletionTimestamp")[0] != '\0');
                memory_store_refuse(b->store, "patch TrainingJob", results[i], "not now");
                bed_drop(b, "Pod", "j-w0-0");
                bed_drop(b, "Pod", "j-m0");
                BED_WAIT(b, bed_said(b, "finalizer"));
                record = bed_record(b, "j");
                assert_true((record->retry_usec > 0) == (results[i] == -EIO));
                memory_store_refuse(b->store, NULL, 0, NULL);
                bed_look(b, "j");
                BED_WAIT(b, bed_record(b, "j") == NULL);
                bed_end(b);
        }
}

/* clang-format off */
#define AGAIN(FIELDS) BED_TWO_CHIPS "," FIELDS
static const struct { const char *what, *fields, *phase, *reason, *says; } waiting[] = {
        { "more than there is",         "\"workers\":[{\"model\":\"H100\",\"chips\":9}]", "Pending", "Unschedulable", "H100" },
        { "a class that is not there",  AGAIN("\"priorityClassName\":\"none\""), "Pending", "NoPriorityClass", "there is no PriorityClass 'none'" },
        { "a parent nobody knows",      AGAIN("\"dependsOn\":[\"who\"]"), "Pending", "WaitsForDependency", "job 'who', which is not there" },
        { "no image",                   AGAIN("\"programs\":{\"cpu\":{\"image\":\"x\",\"command\":[\"/x\"]}}"), "Failed", "ProgramMissing", "spec.programs.cuda.image: missing" },
        { "no command",                 AGAIN("\"programs\":{\"cuda\":{\"image\":\"img\"}}"), "Failed", "ProgramMissing", "spec.programs.cuda.command: missing" },
        { "a relative command",         AGAIN("\"programs\":{\"cuda\":{\"image\":\"img\",\"command\":[\"t\"]}}"), "Failed", "ProgramMissing", "not an absolute path" },
        { "fewer samples than ranks",   AGAIN("\"globalBatch\":1"), "Failed", "InvalidSpec", "spec.globalBatch: 1 is fewer than one sample" },
        { "no workers",                 "\"workers\":7", "Failed", "InvalidSpec", "spec.workers" },
};
/* clang-format on */

static void who_waits_or_never_starts_is_told_why(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(waiting); i++) {
                struct bed *b = bed_begin(plain);

                bed_put_job(b, "j", waiting[i].fields);
                BED_WAIT(b, !bed_is(b, "j", NULL, ""));
                bed_look(b, "j");
                bed_look(b, "j"); /* the same is not said anew */
                if (!bed_is(b, "j", waiting[i].phase, waiting[i].reason) ||
                    strstr(bed_text(b, "TrainingJob", "j", "status|message"), waiting[i].says) == NULL ||
                    memory_store_count(b->store, "event") != 1)
                        fail_msg("%s: %s %s: %s\n%s", waiting[i].what,
                                 bed_text(b, "TrainingJob", "j", "status|phase"),
                                 bed_text(b, "TrainingJob", "j", "status|reason"),
                                 bed_text(b, "TrainingJob", "j", "status|message"), b->said.data);
                bed_end(b);
        }
}

static void children_wait_for_their_parents(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "parent", BED_TWO_CHIPS);
        bed_put_job(b, "child", BED_TWO_CHIPS ",\"dependsOn\":[\"parent\"]");
        bed_put_job(b, "grandchild", BED_TWO_CHIPS ",\"dependsOn\":[\"child\"]");
        bed_put_job(b, "x", BED_TWO_CHIPS ",\"dependsOn\":[\"y\"]");
        bed_put_job(b, "y", BED_TWO_CHIPS ",\"dependsOn\":[\"x\"]");
        BED_WAIT(b, bed_is(b, "child", "Pending", "WaitsForDependency"));
        BED_WAIT(b,
                 bed_is(b, "x", "Failed", "DependencyCycle") && bed_is(b, "y", "Failed", "DependencyCycle"));
        assert_non_null(strstr(bed_text(b, "TrainingJob", "x", "status|message"), "x -> y -> x"));
        bed_merge(b, "TrainingJob", "parent",
                  "{\"metadata\":{\"annotations\":{\"remuda.dev/cancel\":\"true\"}}}");
        BED_WAIT(b, bed_is(b, "parent", "Cancelled", "Cancelled"));
        BED_WAIT(b, bed_is(b, "child", "Failed", "DependencyFailed"));
        BED_WAIT(b, bed_is(b, "grandchild", "Failed", "DependencyFailed"));
        assert_non_null(strstr(bed_text(b, "TrainingJob", "child", "status|message"), "'parent'"));
        bed_end(b);
}

/* The large one of higher priority waits for chips: the small one after it must not take them, for a while.
 */
static void the_first_is_not_overtaken(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "running", BED_TWO_CHIPS);
        bed_put_job(b, "large", "\"workers\":[{\"model\":\"H100\",\"chips\":8}],\"priority\":5");
        BED_WAIT(b, bed_is(b, "large", "Pending", "Unschedulable"));
        bed_put_job(b, "small", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "small", "Pending", "WaitsForPriority"));
        assert_non_null(strstr(bed_text(b, "TrainingJob", "small", "status|message"), "job 'large'"));
        bed_put_job(b, "same", BED_TWO_CHIPS ",\"priority\":5"); /* no smaller priority than its own */
        BED_WAIT(b, bed_is(b, "same", "Starting", NULL));
        bed_record(b, "large")->blocks_usec -= cluster_rules(b->cluster)->hold_usec + 1000000;
        bed_look(b, "small");
        BED_WAIT(b, bed_is(b, "small", "Starting", NULL));
        bed_end(b);
}

static void who_can_never_run_holds_nobody_back(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "huge",
                    "\"workers\":[{\"model\":\"H100\",\"chips\":80}],\"priority\":5,\"globalBatch\":160");
        BED_WAIT(b, bed_is(b, "huge", "Pending", "Unschedulable"));
        bed_put_job(b, "small", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "small", "Starting", NULL));
        bed_end(b);
}

/* Of the world that it is in by now: a job whose chips another one was given meanwhile is in its second. */
static bool has_manager(struct bed *b, const char *job)
{
        char manager[JOB_POD_NAME_BYTES];

        job_state_manager_pod_name(job, bed_record(b, job)->state.world, manager);
        return bed_is_there(b, manager);
}

/* Four jobs of a namespace have chips and no pods: the fifth would fare as they do. */
static void who_would_be_refused_waits(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_node(b, "a", "H100", 16); /* who is refused holds none: room for all */
        memory_store_refuse(b->store, "create Pod", -EPERM, "exceeded quota");
        for (char name[] = "j1"; name[1] <= '5'; name[1]++) {
                bed_put_job(b, name, BED_TWO_CHIPS);
                BED_WAIT(b, bed_is(b, name, NULL, name[1] == '5' ? "WaitsForRefused" : "PodNotCreated"));
        }
        memory_store_refuse(b->store, NULL, 0, NULL);
        for (char name[] = "j1"; name[1] <= '5'; name[1]++) {
                bed_look(b, name);
                BED_WAIT(b, has_manager(b, name));
        }
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_job_comes_to_its_end),
                cmocka_unit_test(a_splits_pods_go_where_its_plan_is_shortest),
                cmocka_unit_test(pods_that_are_refused_are_made_later),
                cmocka_unit_test(what_is_refused_for_too_long_has_no_lease),
                cmocka_unit_test(who_is_never_answered_is_told_in_the_end),
                cmocka_unit_test(writes_that_fail_are_made_again),
                cmocka_unit_test(a_name_that_is_taken_is_told),
                cmocka_unit_test(a_job_that_has_gone_is_not_written_again),
                cmocka_unit_test(a_refused_delete_is_asked_again),
                cmocka_unit_test(the_end_answers_what_is_under_way),
                cmocka_unit_test(who_leads_no_more_writes_nothing),
                cmocka_unit_test(another_job_of_the_name_is_no_continuation),
                cmocka_unit_test(a_finalizer_that_cannot_be_taken_away_is_tried_again),
                cmocka_unit_test(who_waits_or_never_starts_is_told_why),
                cmocka_unit_test(children_wait_for_their_parents),
                cmocka_unit_test(the_first_is_not_overtaken),
                cmocka_unit_test(who_can_never_run_holds_nobody_back),
                cmocka_unit_test(who_would_be_refused_waits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
