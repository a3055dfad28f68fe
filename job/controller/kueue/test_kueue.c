/* When a job stands still for its queue, and when not: what the controller makes of Workloads, of nodes that
 * come and go, and of what it cannot read. Kueue is the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "job/controller/kueue/kueue.h"
#include "job/spec/labels.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "tests/support/controller_bed.h"

#define KIND   "Workload.kueue.x-k8s.io"
#define QUEUED "{\"metadata\":{\"labels\":{\"" LABELS_QUEUE "\":\"team\"}}}"
#define OF_Z9  "\"workers\":[{\"model\":\"Z9\",\"chips\":2}]"

static struct bed *begin(void)
{
        struct bed *b = bed_begin((struct controller_options){ .kueue = true });

        b->controller->kueue.workloads_synced = b->controller->kueue.flavors_synced = true;
        return b;
}

static void put(struct bed *b, const char *name, const char *fields)
{
        bed_put_job(b, name, fields);
        bed_merge(b, "TrainingJob", name, QUEUED);
        BED_WAIT(b, bed_record(b, name) != NULL);
        bed_settle(b);
}

static const char *workload_name(const char *job)
{
        static char name[KUEUE_NAME_BYTES];
        char uid[64];

        (void) text_format(uid, sizeof(uid), "u-%s", job);
        kueue_workload_name(job, uid, name);
        return name;
}

static const char *workload_text(struct bed *b, const char *job, const char *path)
{
        return bed_text(b, KIND, workload_name(job), path);
}

static void admit(struct bed *b, const char *job)
{
        bed_merge(b, KIND, workload_name(job),
                  "{\"status\":{\"admission\":{\"clusterQueue\":\"cq\",\"podSetAssignments\":[{\"name\":"
                  "\"w0\"},"
                  "{\"name\":\"manager\"}]},\"conditions\":[{\"type\":\"QuotaReserved\",\"status\":\"True\"},"
                  "{\"type\":\"Admitted\",\"status\":\"True\"}]}}");
        bed_settle(b);
}

static bool has_quota(struct bed *b, const char *job)
{
        return workload_text(b, job, "status|admission")[0] != '\0';
}

/* ... as after a while. */
static void look(struct bed *b, const char *job)
{
        bed_record(b, job)->queue.retry_usec = 0;
        bed_look(b, job);
}

static void nothing_is_asked_for_whose_name_is_not_known(void **state)
{
        struct bed *b = begin();

        (void) state;
        put(b, "j", OF_Z9);
        look(b, "j");
        assert_string_equal(workload_text(b, "j", ""), "");
        assert_true(bed_is(b, "j", "Suspended", "WorkloadRefused"));
        assert_non_null(strstr(bed_text(b, "TrainingJob", "j", "status|message"),
                               "spec.workers[0]: no node shows what chips of this kind are called"));
        bed_put_node(b, "z", "Z9", 8);
        bed_settle(b);
        look(b, "j");
        assert_non_null(strstr(bed_record(b, "j")->queue.reason, "WaitingForQueue"));
        assert_string_not_equal(workload_text(b, "j", "spec|queueName"), "");
        admit(b, "j");
        BED_WAIT(b, bed_is_there(b, "j-w0-0"));
        bed_end(b);
}

/* It was admitted with CPU and memory alone, by whoever wrote that: no node comes too soon for its chips. */
static void an_admission_without_its_chips_plans_nothing(void **state)
{
        struct bed *b = begin();
        char json[1500];

        (void) state;
        put(b, "j", OF_Z9);
        (void) text_format(json, sizeof(json),
                           "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"uid\":\"w\","
                           "\"ownerReferences\":[{"
                           "\"apiVersion\":\"remuda.dev/"
                           "v1alpha1\",\"kind\":\"TrainingJob\",\"name\":\"j\",\"uid\":\"u-j\","
                           "\"controller\":true}]},\"spec\":{\"queueName\":\"team\",\"podSets\":[{\"name\":"
                           "\"w0\",\"count\":2},"
                           "{\"name\":\"manager\",\"count\":1}]}}",
                           workload_name("j"));
        bed_merge(b, KIND, workload_name("j"), json);
        admit(b, "j");
        assert_true(bed_record(b, "j")->queue.holds);
        assert_string_equal(bed_record(b, "j")->queue.reason, "AdmissionUnusable");
        assert_true(has_quota(b, "j"));                    /* that no node shows it is no change of the job */
        bed_record(b, "j")->queue.retry_usec = UINT64_MAX; /* nothing is given back just yet */
        bed_put_node(b, "z", "Z9", 8);
        bed_settle(b);
        bed_look(b, "j");
        assert_false(bed_is_there(b, "j-w0-0") || bed_is_there(b, "j-m0"));
        assert_int_equal(bed_record(b, "j")->state.group_count, 0);
        look(b, "j");
        assert_false(has_quota(b, "j"));
        bed_end(b);
}

/* What was compared a moment ago may not hold any more. */
static void it_is_compared_again_before_it_is_planned(void **state)
{
        struct bed *b = begin();

        (void) state;
        put(b, "j", "\"workers\":[{\"model\":\"H100\",\"chips\":16}]");
        admit(b, "j");
        look(b, "j");
        assert_true(bed_is(b, "j", "Pending", "Unschedulable"));
        assert_true(bed_record(b, "j")->queue.admitted);
        bed_record(b, "j")->job.workers[0].spec_chips = 8; /* another job, of which nobody heard */
        bed_record(b, "j")->job.workers[0].chips = bed_record(b, "j")->job.workers[0].min_chips = 8;
        bed_look(b, "j");
        assert_false(bed_is_there(b, "j-w0-0") || bed_is_there(b, "j-m0"));
        assert_true(bed_is(b, "j", "Suspended", "WaitingForQueue"));
        assert_false(kueue_may_plan(bed_record(b, "j")));
        bed_end(b);
}

/* Another controller hears of jobs before it knows any node. */
static void quota_is_kept_until_the_cluster_is_read(void **state)
{
        struct bed *b = begin();
        unsigned before;

        (void) state;
        bed_put_node(b, "a", "Z9", 1);
        put(b, "j", "\"workers\":[{\"vendor\":\"nvidia\",\"chips\":2}]");
        assert_string_not_equal(workload_text(b, "j", "spec|queueName"), "");
        admit(b, "j");
        assert_true(has_quota(b, "j"));
        before = memory_store_count(b->store, "patch " KIND);
        b->cluster->synced = 0;
        bed_record(b, "j")->job.workers[0].spec_chips = 4; /* unlike, as it looks without nodes */
        bed_record(b, "j")->queue.compared_usec = 0;
        bed_record(b, "j")->queue.admitted = false;
        kueue_look(bed_record(b, "j"));
        assert_false(bed_record(b, "j")->queue.holds);
        assert_int_equal(bed_record(b, "j")->queue.compared_usec, 0);
        kueue_step(bed_record(b, "j"));
        assert_int_equal(memory_store_count(b->store, "patch " KIND), before);
        b->cluster->synced = ~0u;
        bed_record(b, "j")->queue.admitted = false;
        kueue_look(bed_record(b, "j"));
        assert_true(bed_record(b, "j")->queue.holds); /* that is a change */
        bed_end(b);
}

/* Quota for chips of one name is none for others that the entry may take. */
static void no_other_chips_are_taken_than_were_counted(void **state)
{
        struct bed *b = begin();
        char node[700];

        (void) state;
        put(b, "j", "\"workers\":[{\"model\":\"H100|Z9\",\"chips\":2}]");
        (void) text_format(
                node, sizeof(node),
                "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"NodeAccelerators\",\"metadata\":{"
                "\"name\":\"a\"},\"status\":{\"generation\":1,\"bootID\":\"b\",\"nodeClass\":\"any\","
                "\"pool\":\"regular\",\"devices\":[],\"groups\":[{\"name\":\"g\",\"vendor\":\"nvidia\","
                "\"runtime\":\"cuda\",\"model\":\"Z9\",\"resource\":\"acme.example/chip\",\"fabric\":"
                "\"none\",\"total\":8,\"healthy\":8,\"free\":0,\"tflopsBf16\":100,\"memoryBytes\":1}]}}");
        bed_put_node(b, "b", "H100", 1); /* too few, and so they are called */
        memory_store_merge(b->store, "NodeAccelerators a", node);
        bed_settle(b);
        admit(b, "j");
        look(b, "j");
        assert_true(has_quota(b, "j"));
        assert_string_equal(bed_record(b, "j")->job.workers[0].place.resource, "nvidia.com/gpu");
        assert_int_equal(bed_record(b, "j")->state.group_count, 0);
        assert_true(bed_is(b, "j", "Pending", "Unschedulable"));
        bed_put_node(b, "b", "H100", 2);
        bed_settle(b);
        look(b, "j");
        assert_string_equal(bed_record(b, "j")->state.groups[0].node, "b");
        bed_end(b);
}

static bool serves_others(const struct store *store, enum store_kind kind, const char *namespace_)
{
        (void) store;
        return kind != STORE_KUEUE_WORKLOAD || namespace_ == NULL || strcmp(namespace_, "default") != 0;
}

/* They can be read elsewhere: that says nothing of this one. */
static void who_runs_where_workloads_cannot_be_read_runs_on(void **state)
{
        struct bed *b = begin();
        struct store_backend backend = *b->store->store.backend;

        (void) state;
        bed_run_job(b, "r", BED_TWO_CHIPS);
        backend.serves = serves_others;
        b->store->store.backend = &backend;
        bed_merge(b, "TrainingJob", "r", QUEUED);
        bed_settle(b);
        look(b, "r");
        assert_false(bed_record(b, "r")->queue.holds);
        assert_true(bed_is(b, "r", "Running", NULL));
        put(b, "j", BED_TWO_CHIPS);
        look(b, "j");
        assert_true(bed_is(b, "j", "Suspended", "KueueMissing"));
        assert_int_equal(memory_store_count(b->store, KIND), 0);
        bed_end(b);
}

/* Not by spec.suspend, which makes it so, too: then it is active again in a moment. */
static void who_was_made_inactive_is_told_so(void **state)
{
        struct bed *b = begin();

        (void) state;
        put(b, "j", BED_TWO_CHIPS);
        bed_merge(b, KIND, workload_name("j"), "{\"spec\":{\"active\":false}}");
        look(b, "j");
        assert_true(bed_is(b, "j", "Suspended", "WorkloadInactive"));
        bed_merge(b, KIND, workload_name("j"),
                  "{\"metadata\":{\"annotations\":{\"" KUEUE_ANNOTATION_SUSPENDED "\":\"true\"}}}");
        bed_settle(b);
        assert_string_equal(bed_record(b, "j")->queue.reason, "WaitingForQueue");
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_asked_for_whose_name_is_not_known),
                cmocka_unit_test(an_admission_without_its_chips_plans_nothing),
                cmocka_unit_test(it_is_compared_again_before_it_is_planned),
                cmocka_unit_test(quota_is_kept_until_the_cluster_is_read),
                cmocka_unit_test(no_other_chips_are_taken_than_were_counted),
                cmocka_unit_test(who_was_made_inactive_is_told_so),
                cmocka_unit_test(who_runs_where_workloads_cannot_be_read_runs_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
