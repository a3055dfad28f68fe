/* What becomes of a job when its pods, chips and nodes do not behave, and who it is that is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "tests/support/controller_bed.h"

#define GOES  "{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:10:00Z\"}}"
#define TWICE ",\"restart\":{\"max\":2,\"migrate\":true}"
#define OUT                                                                                                  \
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"taints\":[{\"key\":"                   \
        "\"node.kubernetes.io/out-of-service\",\"effect\":\"NoExecute\"}]},\"status\":{\"allocatable\":{"    \
        "\"nvidia.com/gpu\":\"8\"}}}"

static const struct controller_options plain;

/* clang-format off */
static const struct { const char *what, *fields, *pod, *says, *phase, *reason, *message; } faults[] = {
        { "a group fails, and may start again", TWICE, "j-w0-0", BED_ENDED("Failed", "1", "bang\\n"), "Restarting", "GroupFailed", "ended with exit code 1 (Error) bang" },
        { "a group fails, and may not",         "",    "j-w0-0", BED_ENDED("Failed", "1", "bang"),    "Failed",     "GroupFailed", "exit code 1" },
        { "the manager fails",                  TWICE, "j-m0",   BED_ENDED("Failed", "1", "bang"),    "Restarting", "ManagerFailed", "pod j-m0 ended with exit code 1" },
        { "the manager cannot be started",      TWICE, "j-m0",   BED_ENDED("Failed", "127", "bang"),  "Failed",     "RankFailed", "exit code 127" },
        { "the manager says why",               TWICE, "j-m0",   BED_ENDED("Failed", "1", "{\\\"state\\\":\\\"Failed\\\",\\\"reason\\\":\\\"RankKilled\\\",\\\"message\\\":\\\"rank 3\\\"}"),
                                                                                                  "Failed",     "RankKilled", "rank 3" },
        { "the manager says that it failed",    TWICE, "j-m0",   BED_ENDED("Failed", "1", "{\\\"state\\\":\\\"Failed\\\"}"), "Failed", "Failed", "its log says why" },
        { "a chip is sick",                     TWICE, "j-w0-0", "{\"status\":{\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{}},\"allocatedResourcesStatus\":["
                                                                 "{\"name\":\"x\",\"resources\":[{\"resourceID\":\"1\",\"health\":\"Healthy\"},{\"resourceID\":\"2\",\"health\":\"Unhealthy\"}]}]}]}}",
                                                                                                  "Restarting", "DeviceUnhealthy", "a chip of w0-0" },
};
/* clang-format on */

static void a_fault_of_a_pod_is_repaired_or_the_end(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                struct bed *b = bed_begin(plain);
                char fields[300];
                bool is_end;

                (void) text_format(fields, sizeof(fields), "%s%s", BED_TWO_CHIPS, faults[i].fields);
                bed_run_job(b, "j", fields);
                bed_merge(b, "Pod", faults[i].pod, faults[i].says);
                BED_WAIT(b, bed_said(b, faults[i].reason));
                bed_settle(b);
                is_end = strcmp(faults[i].phase, "Failed") == 0;
                if (!bed_said(b, faults[i].message) || b->controller->metrics.faults != 1 ||
                    bed_record(b, "j")->state.restarts != !is_end ||
                    is_end != bed_is(b, "j", "Failed", faults[i].reason))
                        fail_msg("%s: %s", faults[i].what, b->said.data);
                bed_end(b);
        }
}

/* What never ran lost nothing: it is made anew as often as it takes. */
static void a_fault_before_it_runs_costs_no_restart(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is_there(b, "j-m0"));
        bed_merge(b, "Pod", "j-w0-0", BED_ENDED("Failed", "1", "bang"));
        BED_WAIT(b, bed_is_there(b, "j-w0-0-r1"));
        assert_int_equal(bed_record(b, "j")->state.restarts, 0);
        assert_int_equal(b->controller->metrics.restarts, 0);
        assert_int_equal(b->controller->metrics.faults, 1);
        bed_end(b);
}

/* Whoever fails at once again and again is left alone for a while. */
static void between_faults_in_a_row_there_is_a_pause(void **state)
{
        struct bed *b = bed_begin(plain);
        char group[40] = "j-w0-0";
        struct record *record;

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS ",\"restart\":{\"max\":10,\"migrate\":true}");
        record = bed_record(b, "j");
        for (int i = 1; record->pace.again_usec <= controller_monotonic(b->controller); i++) {
                assert_true(i < 10);
                bed_merge(b, "Pod", group, BED_ENDED("Failed", "1", "bang"));
                BED_WAIT(b, record->state.restarts == (uint64_t) i);
                record->pace.again_usec += record->pace.again_usec > 0 ? 3600000000 : 0;
                bed_settle(b);
                (void) text_format(group, sizeof(group), "j-w0-0-r%d", i);
                if (bed_is_there(b, group))
                        bed_merge(b, "Pod", group, BED_RUNS);
                bed_settle(b);
        }
        assert_false(bed_is_there(b, group));
        bed_look(b, "j"); /* it is over */
        BED_WAIT(b, bed_is_there(b, group));
        bed_end(b);
}

/* A pod that is deleted from outside, of a job that lends nothing back: a fault like any other. And a group
 * that ends well before the manager says so is none. */
static void only_borrowers_give_way(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS TWICE);
        bed_merge(b, "Pod", "j-w0-0", GOES);
        bed_look(b, "j");
        assert_false(bed_record(b, "j")->yielding);
        assert_true(bed_is(b, "j", "Running", NULL));
        bed_merge(b, "Pod", "j-w0-0", BED_ENDED("Failed", "143", "asked to"));
        BED_WAIT(b, bed_is_there(b, "j-w0-0-r1"));
        assert_int_equal(bed_record(b, "j")->state.restarts, 1);
        bed_merge(b, "Pod", "j-w0-0-r1", BED_RUNS);
        BED_WAIT(b, bed_is(b, "j", "Running", NULL));
        bed_merge(b, "Pod", "j-w0-0-r1", BED_ENDED("Succeeded", "0", ""));
        BED_WAIT(b, bed_record(b, "j")->state.groups[0].state == JOB_GROUP_SUCCEEDED);
        assert_true(bed_is(b, "j", "Running", NULL));
        bed_merge(b, "Pod", "j-m0", BED_ENDED("Succeeded", "0", "{\\\"state\\\":\\\"Succeeded\\\"}"));
        BED_WAIT(b, bed_is(b, "j", "Succeeded", NULL));
        bed_end(b);
}

/* As often as it may, with ever new names, and then no more. */
static void restarts_are_counted(void **state)
{
        struct bed *b = bed_begin(plain);
        char group[40] = "j-w0-0";

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS TWICE);
        for (int i = 1; i <= 2; i++) {
                bed_merge(b, "Pod", group, BED_ENDED("Failed", "1", "bang"));
                (void) text_format(group, sizeof(group), "j-w0-0-r%d", i);
                BED_WAIT(b, bed_is_there(b, group));
                assert_int_equal(bed_record(b, "j")->state.restarts, i);
                bed_merge(b, "Pod", group, BED_RUNS);
                BED_WAIT(b, bed_is(b, "j", "Running", NULL));
        }
        assert_true(bed_said(b, "reason=Migrated"));
        bed_merge(b, "Pod", group, BED_ENDED("Failed", "1", "bang"));
        BED_WAIT(b, bed_is(b, "j", "Failed", "GroupFailed"));
        assert_non_null(strstr(bed_text(b, "TrainingJob", "j", "status|message"), "no restart is left"));
        bed_end(b);
}

static void a_lost_manager_has_a_successor(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS TWICE);
        bed_drop(b, "Pod", "j-m0");
        BED_WAIT(b, bed_is_there(b, "j-m1"));
        assert_true(bed_said(b, "ManagerGone"));
        bed_merge(b, "Pod", "j-m1", BED_RUNS);
        BED_WAIT(b, bed_is(b, "j", "Running", NULL));
        assert_true(bed_said(b, "reason=Resumed"));
        bed_end(b);
}

static void a_lost_node_is_left(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS TWICE);
        bed_put_node(b, "b", "H100", 8);
        memory_store_merge(b->store, "Node a", OUT);
        BED_WAIT(b, bed_is_there(b, "j-w0-0-r1") && bed_is_there(b, "j-m1"));
        assert_true(bed_said(b, "reason=NodeLost"));
        assert_int_equal(memory_store_count(b->store, "force Pod default/j-w0-0"), 1); /* nobody else will */
        bed_end(b);
}

/* It is none of the cluster any more, nobody vouches for its chips, or it alone is silent for long. */
static void nodes_are_lost_in_several_ways(void **state)
{
        (void) state;
        for (int how = 0; how < 3; how++) {
                struct bed *b = bed_begin(plain);
                struct ledger *ledger = b->cluster->ledger;

                bed_run_job(b, "j", BED_TWO_CHIPS TWICE);
                bed_put_node(b, "b", "H100", 8);
                memory_store_tell(b->store);
                if (how == 0)
                        ledger_set_seen(ledger, ledger_nodes_find(ledger, "a", 1), LIVENESS_REMOVED);
                else if (how == 1)
                        memory_store_drop(b->store, "NodeAccelerators a");
                else
                        ledger_set_seen(ledger, ledger_nodes_find(ledger, "a", 1), 1000);
                ledger->liveness.silent_before_usec = ledger->liveness.lost_before_usec = 2000;
                controller_queue(bed_record(b, "j"));
                BED_WAIT(b, bed_said(b, "reason=NodeLost"));
                BED_WAIT(b, bed_is_there(b, "j-w0-0-r1"));
                assert_string_equal(bed_record(b, "j")->state.groups[0].node, "b");
                bed_end(b);
        }
}

/* It may not move, so it waits for its own chips; with fewer it goes on where it may. */
static void without_a_spare_chip_it_waits_or_goes_on_with_fewer(void **state)
{
        static const struct {
                const char *fields, *event, *says;
        } rows[] = {
                { ",\"restart\":{\"max\":2,\"migrate\":false}", "NoSpareChip",
                  "spec.restart.migrate is false" },
                { TWICE, "NoSpareChip", "there are no 8 spare chips" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct bed *b = bed_begin(plain);
                char fields[300];

                (void) text_format(fields, sizeof(fields), "\"workers\":[{\"model\":\"H100\",\"chips\":8}]%s",
                                   rows[i].fields);
                bed_run_job(b, "j", fields);
                memory_store_merge(b->store, "Node a", OUT);
                BED_WAIT(b, bed_is(b, "j", "Restarting", rows[i].event));
                assert_non_null(strstr(bed_text(b, "TrainingJob", "j", "status|message"), rows[i].says));
                bed_look(b, "j");
                assert_false(bed_is_there(b, "j-w0-0-r1")); /* which would have nowhere to be */
                bed_end(b);
        }
}

/* The first layer may go to an H100 alone, and there are only others left: that is said, and nothing of the
 * plan that was stays. */
static void a_split_that_cannot_move_is_said(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j",
                    "\"strategy\":\"split\",\"args\":[],\"workers\":[{\"model\":\"H100|A100\",\"chips\":2}],"
                    "\"profile\":{\"layers\":[{\"multiply_adds\":1},{\"multiply_adds\":1}]},"
                    "\"stages\":[{\"layers\":\"0:0\",\"on\":{\"model\":\"H100\"}}]" TWICE);
        bed_put_node(b, "b", "A100", 8);
        memory_store_merge(b->store, "Node a", OUT);
        BED_WAIT(b, bed_is(b, "j", "Failed", "NoPlan"));
        assert_true(bed_said(b, "reason=NoPlan"));
        assert_non_null(strstr(bed_text(b, "TrainingJob", "j", "status|message"), "spec.stages[0].on"));
        assert_int_equal(bed_record(b, "j")->state.group_count, 0);
        bed_end(b);
}

static void a_group_may_be_left_out(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_node(b, "b", "H100", 2);
        bed_put_job(b, "j", "\"workers\":[{\"model\":\"H100\",\"chips\":10,\"minChips\":8}]" TWICE);
        BED_WAIT(b, bed_is_there(b, "j-m0"));
        bed_merge(b, "Pod", "j-w0-0", BED_RUNS);
        bed_merge(b, "Pod", "j-w0-1", BED_RUNS);
        bed_merge(b, "Pod", "j-w0-1", "{\"spec\":{\"nodeName\":\"b\"}}");
        bed_merge(b, "Pod", "j-m0", BED_RUNS);
        BED_WAIT(b, bed_is(b, "j", "Running", NULL));
        memory_store_drop(b->store, "NodeAccelerators b");
        bed_drop(b, "Pod", "j-w0-1");
        BED_WAIT(b, bed_said(b, "reason=LeftOut"));
        assert_int_equal(bed_record(b, "j")->state.group_count, 1);
        bed_end(b);
}

/* Its chips are taken back: that is no fault of its own, and it begins again when there are some. */
static void who_may_be_evicted_gives_way(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS ",\"preemptible\":true" TWICE);
        bed_merge(b, "Pod", "j-w0-0", GOES);
        BED_WAIT(b, bed_record(b, "j")->yielding);
        assert_true(bed_is(b, "j", "Running", NULL)); /* it has its grace time */
        bed_merge(b, "Pod", "j-w0-0", BED_ENDED("Failed", "143", "asked to"));
        BED_WAIT(b, bed_said(b, "reason=Evicted"));
        assert_int_equal(bed_record(b, "j")->state.restarts, 0);
        BED_WAIT(b, bed_is_there(b, "j-m1")); /* there is room: a new plan */
        bed_end(b);
}

static void chips_that_others_took_are_planned_anew(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j", "\"workers\":[{\"model\":\"H100\",\"chips\":8}]");
        BED_WAIT(b, bed_is_there(b, "j-m0"));
        bed_merge(b, "Pod", "foreign",
                  "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"foreign\",\"namespace\":\"default\",\"uid\":"
                  "\"f\"},"
                  "\"spec\":{\"nodeName\":\"a\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
                  "\"nvidia.com/gpu\":\"1\"}}}]},\"status\":{\"phase\":\"Running\"}}");
        BED_WAIT(b, bed_said(b, "reason=PlaceLost"));
        BED_WAIT(b, bed_is(b, "j", "Pending", "Unschedulable"));
        bed_drop(b, "Pod", "foreign");
        bed_look(b, "j");
        BED_WAIT(b, bed_is_there(b, "j-m1"));
        bed_end(b);
}

#define FOREIGN                                                                                              \
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"foreign\",\"namespace\":\"default\",\"uid\":\"f\"},"     \
        "\"spec\":{\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"          \
        "\"nvidia.com/gpu\":\"1\"}}}]},\"status\":{\"phase\":\"Running\"}}"

/* While it is repaired, its group looks for another place; after it was evicted, all of it is planned anew.
 */
static void a_place_may_be_lost_again_before_it_is_taken(void **state)
{
        struct bed *b = bed_begin(plain);
        char node[16], foreign[400];

        (void) state;
        bed_put_node(b, "b", "H100", 8);
        bed_run_job(b, "j", "\"workers\":[{\"model\":\"H100\",\"chips\":8}]" TWICE);
        bed_merge(b, "Pod", "j-w0-0", BED_ENDED("Failed", "1", "bang"));
        BED_WAIT(b, bed_is_there(b, "j-w0-0-r1"));
        (void) text_copy(node, sizeof(node), bed_record(b, "j")->state.groups[0].node);
        (void) text_format(foreign, sizeof(foreign), FOREIGN, node);
        bed_merge(b, "Pod", "foreign", foreign);
        BED_WAIT(b, bed_said(b, "reason=PlaceLost"));
        BED_WAIT(b, strcmp(bed_record(b, "j")->state.groups[0].node, node) != 0 &&
                            bed_record(b, "j")->state.groups[0].node[0] != '\0');
        assert_int_equal(bed_record(b, "j")->state.world, 0); /* its manager stays */
        bed_end(b);
        b = bed_begin(plain);
        bed_run_job(b, "j", "\"workers\":[{\"model\":\"H100\",\"chips\":8}],\"preemptible\":true" TWICE);
        bed_merge(b, "Pod", "j-w0-0", GOES);
        BED_WAIT(b, bed_record(b, "j")->yielding);
        bed_look(b, "j");
        bed_merge(b, "Pod", "j-w0-0", BED_ENDED("Failed", "143", "asked to"));
        BED_WAIT(b, bed_is_there(b, "j-m1"));
        (void) text_format(foreign, sizeof(foreign), FOREIGN, "a");
        bed_merge(b, "Pod", "foreign", foreign);
        BED_WAIT(b, bed_is(b, "j", "Pending", NULL) && bed_said(b, "reason=PlaceLost"));
        assert_int_equal(bed_record(b, "j")->state.group_count, 0);
        bed_end(b);
}

#define WAITS(REASON, MESSAGE)                                                                               \
        "{\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":" \
        "\"main\",\"state\":{\"waiting\":{\"reason\":\"" REASON "\",\"message\":\"" MESSAGE "\"}}}]}}"

/* What a person can mend is said, once, and one thing at a time. */
static void pods_that_do_not_start_are_spoken_of(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "j", "Starting", "Planned") && bed_is_there(b, "j-m0"));
        bed_merge(b, "Pod", "j-w0-0", WAITS("ContainerCreating", ""));
        bed_look(b, "j");
        assert_true(bed_is(b, "j", "Starting", "Planned") && bed_is_there(b, "j-m0"));
        bed_merge(b, "Pod", "j-w0-0", WAITS("ImagePullBackOff", "no such image"));
        BED_WAIT(b, bed_is(b, "j", "Starting", "ImagePullBackOff"));
        assert_string_equal(bed_text(b, "TrainingJob", "j", "status|message"), "pod j-w0-0: no such image");
        bed_merge(b, "Pod", "j-m0", WAITS("ErrImagePull", "none either"));
        bed_look(b, "j");
        assert_true(bed_is(b, "j", "Starting", "ImagePullBackOff")); /* as long as it holds */
        assert_int_equal(memory_store_count(b->store, "event ImagePullBackOff"), 1);
        bed_end(b);
}

static void a_secret_of_the_jobs_own_that_is_missing_is_named(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j", BED_TWO_CHIPS ",\"tls\":{\"secretName\":\"own\",\"groupSecretName\":\"theirs\"}");
        BED_WAIT(b, bed_is(b, "j", "Starting", "Planned") && bed_is_there(b, "j-m0"));
        bed_merge(b, "Pod", "j-w0-0", WAITS("ContainerCreating", ""));
        BED_WAIT(b, record_find_pod(bed_record(b, "j"), "j-w0-0")->bound_usec > 0);
        assert_true(bed_is(b, "j", "Starting", "Planned") &&
                    bed_is_there(b, "j-m0")); /* images may be pulled for a while */
        bed_merge(b, "Pod", "j-m0", WAITS("ContainerCreating", ""));
        BED_WAIT(b, record_find_pod(bed_record(b, "j"), "j-m0")->bound_usec > 0);
        bed_look(b, "j");
        assert_true(bed_is(b, "j", "Starting", "Planned") || bed_is(b, "j", "Starting", "Created"));
        record_find_pod(bed_record(b, "j"), "j-m0")->bound_usec -= 31000000; /* one of them is enough */
        record_find_pod(bed_record(b, "j"), "j-w0-0")->bound_usec -= 31000000;
        bed_look(b, "j");
        assert_true(bed_is(b, "j", "Starting", "PodNotStarted"));
        assert_non_null(
                strstr(bed_text(b, "TrainingJob", "j", "status|message"), "Secret 'own' or 'theirs'"));
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "event PodNotStarted"), 1);
        bed_end(b);
}

/* A pod that was made and is not shown is asked for again, and so is one with keys that nobody has. */
static void pods_that_are_not_seen_are_made_again(void **state)
{
        struct bed *b = bed_begin(plain);
        struct job_pod *pod;

        (void) state;
        bed_put_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "j", "Starting", "Planned") && bed_is_there(b, "j-m0"));
        bed_settle(b);
        pod = record_find_pod(bed_record(b, "j"), "j-m0");
        pod->asked = true;
        pod->asked_usec = controller_monotonic(b->controller) - 6000000;
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "create Pod default/j-m0"), 2);
        assert_int_equal(b->controller->metrics.pods_existed, 1);
        bed_merge(b, "Pod", "j-w0-0",
                  "{\"metadata\":{\"annotations\":{\"remuda.dev/"
                  "keys\":\"{\\\"secret\\\":\\\"another\\\"}\"}}}");
        bed_settle(b);
        record_find_pod(bed_record(b, "j"), "j-w0-0")->secret[0] = 'x';
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "delete Pod default/j-w0-0"), 1);
        BED_WAIT(b, memory_store_count(b->store, "create Pod default/j-w0-0") == 2);
        bed_end(b);
}

/* Another object of the same name, pods before their job, and pods of nobody. */
static void a_name_may_come_again(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_merge(
                b, "Pod", "x-w0-0",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"x-w0-0\",\"namespace\":\"default\",\"uid\":\"1\","
                "\"labels\":{\"remuda.dev/job\":\"x\"},\"ownerReferences\":[{\"kind\":\"Job\",\"uid\":\"z\"},"
                "{\"kind\":\"TrainingJob\",\"uid\":\"u-old\"}]}}");
        bed_merge(
                b, "Pod", "y-w0-0",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"y-w0-0\",\"namespace\":\"default\",\"uid\":\"1\","
                "\"labels\":{\"remuda.dev/"
                "job\":\"y\"},\"ownerReferences\":[{\"kind\":\"Job\",\"uid\":\"z\"}]}}");
        BED_WAIT(b, bed_record(b, "x") != NULL);
        assert_null(bed_record(b, "y"));
        bed_put_job(b, "x", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "x", "Starting", NULL)); /* the old one's pod is the garbage collector's */
        bed_merge(b, "TrainingJob", "x", "{\"metadata\":{\"uid\":\"u-new\"},\"status\":null}");
        BED_WAIT(b, strcmp(bed_record(b, "x")->uid, "u-new") == 0);
        bed_drop(b, "TrainingJob", "x");
        bed_drop(b, "TrainingJob", "x"); /* it is told twice */
        BED_WAIT(b, bed_record(b, "x") == NULL || bed_record(b, "x")->gone);
        bed_end(b);
}

static void a_status_of_somebody_else_ends_the_job(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j", BED_TWO_CHIPS);
        bed_merge(b, "TrainingJob", "j",
                  "{\"status\":{\"phase\":\"Running\",\"subtasks\":[{\"name\":\"w9-9\",\"role\":\"worker\","
                  "\"entry\":9,\"chips\":2,\"ranks\":2}]}}");
        BED_WAIT(b, bed_is(b, "j", "Failed", "BadStatus"));
        assert_non_null(strstr(bed_text(b, "TrainingJob", "j", "status|message"),
                               "was not written by this controller"));
        bed_end(b);
}

/* Who does not lead looks on; who comes to lead carries on with what stands in the store. */
static void another_one_carries_on(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        b->leads = false;
        controller_lead(b->controller);
        bed_put_job(b, "j", BED_TWO_CHIPS);
        bed_settle(b);
        assert_int_equal(json_array_size(b->store->lines), 0);
        b->leads = true;
        controller_lead(b->controller);
        BED_WAIT(b, bed_is(b, "j", "Starting", "Planned") && bed_is_there(b, "j-m0"));
        b->leads = false;
        controller_lead(b->controller);
        bed_merge(b, "Pod", "j-w0-0", BED_RUNS);
        bed_merge(b, "Pod", "j-m0", BED_RUNS);
        bed_merge(b, "TrainingJob", "j", "{\"status\":{\"reason\":\"SaidByAnother\"}}");
        bed_settle(b);
        assert_string_equal(bed_record(b, "j")->state.reason, "SaidByAnother");
        b->leads = true;
        controller_lead(b->controller);
        BED_WAIT(b, bed_is(b, "j", "Running", NULL));
        assert_true(bed_said(b, "leading=no") && bed_said(b, "leading=yes"));
        bed_end(b);
}

/* Silent as most are: nobody is taken from there, and that is said once. */
static void nodes_that_are_silent_together_keep_their_jobs(void **state)
{
        struct bed *b = bed_begin(plain);
        struct liveness *l = &b->cluster->ledger->liveness;

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        ledger_set_seen(b->cluster->ledger, ledger_nodes_find(b->cluster->ledger, "a", 1), 1000);
        l->silent_before_usec = 2000;
        l->held = true;
        l->judged = l->doubtful = 1;
        bed_look(b, "j");
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "event NodesSilent"), 1);
        assert_true(bed_is(b, "j", "Running", NULL));
        BED_WAIT(b, bed_said(b, "node-silence believed=no"));
        l->held = false;
        l->silent_before_usec = 0;
        BED_WAIT(b, bed_said(b, "node-silence believed=yes"));
        bed_end(b);
}

/* Of its world's manager, who repairs what it can by itself. */
static int64_t allowed(struct bed *b, const char *manager, const char *field)
{
        json_t *plan =
                json_loads(bed_text(b, "Pod", manager, "metadata|annotations|remuda.dev/plan"), 0, NULL);
        json_t *restart = json_object_get(plan, "restart");
        int64_t value =
                json_integer_value(json_object_get(strcmp(field, "max") == 0 ? restart : plan, field));

        json_decref(plan);
        return value;
}

static void restarts_are_allowed_while_it_runs(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", "\"workers\":[{\"model\":\"H100\",\"chips\":8}]" TWICE);
        assert_int_equal(allowed(b, "j-m0", "max"), 2);
        bed_merge(b, "TrainingJob", "j", "{\"spec\":{\"restart\":{\"max\":9}}}");
        BED_WAIT(b, allowed(b, "j-m0", "max") == 9);
        bed_settle(b);
        assert_int_equal(memory_store_count(b->store, "patch Pod default/j-m0"), 1);
        bed_merge(b, "Pod", "j-m0", BED_ENDED("Failed", "1", "bang"));
        BED_WAIT(b, bed_is_there(b, "j-m1"));
        assert_int_equal(allowed(b, "j-m1", "max"), 8);
        assert_int_equal(allowed(b, "j-m1", "restarts"), 1);
        bed_merge(b, "TrainingJob", "j", "{\"spec\":{\"restart\":{\"max\":3}}}");
        bed_merge(b, "Pod", "j-m1", BED_RUNS);
        BED_WAIT(b, allowed(b, "j-m1", "max") == 2);
        assert_int_equal(allowed(b, "j-m1", "restarts"), 1); /* before it, whatever is allowed */
        assert_int_equal(bed_record(b, "j")->base_restarts, 1);
        bed_merge(b, "TrainingJob", "j", "{\"spec\":{\"restart\":{\"max\":0}}}");
        BED_WAIT(b, allowed(b, "j-m1", "max") == 0);
        assert_true(bed_is(b, "j", "Running", NULL)); /* what is repaired is not undone */
        bed_merge(b, "Pod", "j-m1", BED_ENDED("Failed", "1", "bang"));
        BED_WAIT(b, bed_is(b, "j", "Failed", "ManagerFailed"));
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(restarts_are_allowed_while_it_runs),
                cmocka_unit_test(a_fault_of_a_pod_is_repaired_or_the_end),
                cmocka_unit_test(a_fault_before_it_runs_costs_no_restart),
                cmocka_unit_test(restarts_are_counted),
                cmocka_unit_test(between_faults_in_a_row_there_is_a_pause),
                cmocka_unit_test(a_lost_manager_has_a_successor),
                cmocka_unit_test(a_lost_node_is_left),
                cmocka_unit_test(nodes_are_lost_in_several_ways),
                cmocka_unit_test(without_a_spare_chip_it_waits_or_goes_on_with_fewer),
                cmocka_unit_test(a_split_that_cannot_move_is_said),
                cmocka_unit_test(a_group_may_be_left_out),
                cmocka_unit_test(who_may_be_evicted_gives_way),
                cmocka_unit_test(only_borrowers_give_way),
                cmocka_unit_test(chips_that_others_took_are_planned_anew),
                cmocka_unit_test(a_place_may_be_lost_again_before_it_is_taken),
                cmocka_unit_test(pods_that_do_not_start_are_spoken_of),
                cmocka_unit_test(a_secret_of_the_jobs_own_that_is_missing_is_named),
                cmocka_unit_test(pods_that_are_not_seen_are_made_again),
                cmocka_unit_test(a_name_may_come_again),
                cmocka_unit_test(a_status_of_somebody_else_ends_the_job),
                cmocka_unit_test(another_one_carries_on),
                cmocka_unit_test(nodes_that_are_silent_together_keep_their_jobs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
