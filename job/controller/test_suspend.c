/* spec.suspend from the first SIGTERM to the next plan: time for a checkpoint, no chips, no fault. */
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

#define EIGHT_CHIPS "\"workers\":[{\"model\":\"H100\",\"chips\":8}]"
#define SUSPEND     "{\"spec\":{\"suspend\":true}}"
#define RESUME      "{\"spec\":{\"suspend\":false}}"
#define SAVES       ",\"restart\":{\"max\":1},\"checkpoint\":{\"path\":\"/c\",\"claim\":\"c\"}"

static const struct controller_options plain;

static bool leaves(struct bed *b, const char *pod)
{
        return bed_text(b, "Pod", pod, "metadata|deletionTimestamp")[0] != '\0';
}

static bool condition_is(struct bed *b, const char *status)
{
        const json_t *list, *condition;
        size_t i;

        list = json_object_get(
                json_object_get(json_object_get(b->store->objects, "TrainingJob default/j"), "status"),
                "conditions");
        json_array_foreach(list, i, condition)
        {
                if (strcmp(json_string_value(json_object_get(condition, "type")), "Suspended") == 0)
                        return strcmp(json_string_value(json_object_get(condition, "status")), status) == 0;
        }
        return status[0] == '\0';
}

static void who_is_suspended_from_the_start_gets_nothing(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j", EIGHT_CHIPS ",\"suspend\":true");
        BED_WAIT(b, bed_is(b, "j", "Suspended", "Suspended") && condition_is(b, "True"));
        bed_put_job(b, "other", EIGHT_CHIPS); /* comes later, and need not wait */
        bed_put_job(b, "child", BED_TWO_CHIPS ",\"dependsOn\":[\"j\"]");
        BED_WAIT(b, bed_is(b, "other", "Starting", NULL));
        BED_WAIT(b, bed_is(b, "child", "Pending", "WaitsForDependency"));
        assert_int_equal(memory_store_count(b->store, "create Pod default/j-"), 0);
        assert_int_equal(memory_store_count(b->store, "event Suspended default/j"), 1);
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "event Suspended default/j"), 1);
        bed_drop(b, "TrainingJob", "other");
        bed_merge(b, "TrainingJob", "j", RESUME);
        BED_WAIT(b, bed_is(b, "j", "Starting", NULL) && bed_is_there(b, "j-m0"));
        assert_true(condition_is(b, "False"));
        assert_int_equal(memory_store_count(b->store, "event Resumed default/j"), 1);
        bed_end(b);
}

static void who_runs_has_time_for_a_checkpoint(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", EIGHT_CHIPS SAVES);
        assert_true(condition_is(b, ""));
        bed_put_job(b, "other", EIGHT_CHIPS);
        BED_WAIT(b, bed_is(b, "other", "Pending", NULL));
        bed_merge(b, "TrainingJob", "j", SUSPEND);
        BED_WAIT(b, leaves(b, "j-w0-0"));
        bed_look(b, "j");
        assert_true(bed_is(b, "j", "Running", "Suspending")); /* its chips are in use as long */
        assert_true(bed_said(b, "have 30 s for a checkpoint"));
        assert_false(leaves(b, "j-m0"));
        assert_true(bed_is(b, "other", "Pending", NULL));
        bed_merge(b, "Pod", "j-m0",
                  BED_ENDED("Failed", "1", "{\\\"state\\\":\\\"Failed\\\",\\\"restarts\\\":1}"));
        bed_look(b, "j"); /* it takes the end of its ranks for a fault */
        assert_true(bed_is(b, "j", "Running", "Suspending"));
        bed_drop(b, "Pod", "j-w0-0");
        BED_WAIT(b, bed_is(b, "j", "Suspended", NULL) && leaves(b, "j-m0"));
        assert_true(bed_said(b, "it goes on from its last checkpoint when that is false"));
        BED_WAIT(b, bed_is(b, "other", "Starting", NULL)); /* on chips that were its own */
        bed_drop(b, "Pod", "j-m0");
        bed_drop(b, "TrainingJob", "other");
        bed_end(b);
}

static void it_goes_on_without_a_restart_charged(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", EIGHT_CHIPS SAVES);
        bed_merge(b, "TrainingJob", "j", SUSPEND);
        BED_WAIT(b, leaves(b, "j-w0-0"));
        bed_merge(b, "TrainingJob", "j", RESUME); /* too late: what was begun is ended first */
        bed_look(b, "j");
        assert_true(bed_is(b, "j", "Running", "Suspending"));
        bed_drop(b, "Pod", "j-w0-0");
        BED_WAIT(b, bed_is(b, "j", "Restarting", NULL) && bed_is_there(b, "j-m1"));
        assert_int_equal(bed_record(b, "j")->state.restarts, 0);
        bed_end(b);
}

/* The next controller finds in the status what was begun. */
static void another_controller_ends_what_was_begun(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", EIGHT_CHIPS SAVES);
        bed_merge(b, "TrainingJob", "j", SUSPEND);
        BED_WAIT(b, leaves(b, "j-w0-0") && bed_is(b, "j", NULL, "Suspending"));
        bed_settle(b);
        b->leads = false;
        controller_lead(b->controller);
        bed_merge(b, "TrainingJob", "j", RESUME);
        bed_settle(b); /* its state is what the store says */
        b->leads = true;
        controller_lead(b->controller);
        bed_drop(b, "Pod", "j-w0-0");
        BED_WAIT(b, bed_is(b, "j", "Restarting", NULL));
        assert_int_equal(bed_record(b, "j")->state.restarts, 0);
        bed_end(b);
}

static void who_succeeds_just_then_has_succeeded(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", EIGHT_CHIPS);
        bed_merge(b, "TrainingJob", "j", SUSPEND);
        BED_WAIT(b, leaves(b, "j-w0-0"));
        bed_merge(b, "Pod", "j-m0",
                  BED_ENDED("Succeeded", "0", "{\\\"state\\\":\\\"Succeeded\\\",\\\"step\\\":9}"));
        BED_WAIT(b, bed_is(b, "j", "Succeeded", NULL));
        assert_int_equal(bed_record(b, "j")->state.progress.step, 9);
        bed_end(b);
}

static void who_is_suspended_may_be_cancelled(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j", EIGHT_CHIPS ",\"suspend\":true");
        BED_WAIT(b, bed_is(b, "j", "Suspended", NULL));
        bed_merge(b, "TrainingJob", "j", "{\"metadata\":{\"annotations\":{\"remuda.dev/cancel\":\"true\"}}}");
        BED_WAIT(b, bed_is(b, "j", "Cancelled", NULL));
        assert_true(condition_is(b, "False"));
        bed_end(b);
}

/* A controller that dies in between leaves a job that says what befalls it. */
static void no_pod_is_told_before_it_is_written(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", EIGHT_CHIPS SAVES);
        bed_settle(b);
        memory_store_refuse(b->store, "put TrainingJob", -EIO, "not now");
        bed_merge(b, "TrainingJob", "j", SUSPEND);
        BED_WAIT(b, bed_said(b, "have 30 s for a checkpoint"));
        bed_look(b, "j");
        assert_false(leaves(b, "j-w0-0"));
        memory_store_refuse(b->store, NULL, 0, NULL);
        bed_record(b, "j")->retry_usec = 0;
        BED_WAIT(b, leaves(b, "j-w0-0") && bed_is(b, "j", NULL, "Suspending"));
        bed_end(b);
}

/* What nobody will end keeps the others' chips from nobody. */
static void a_pod_on_a_node_that_is_lost_keeps_no_chips(void **state)
{
        struct bed *b = bed_begin(plain);
        struct ledger *ledger = b->cluster->ledger;

        (void) state;
        bed_run_job(b, "j", EIGHT_CHIPS SAVES);
        bed_settle(b);
        ledger_set_seen(ledger, ledger_nodes_find(ledger, "a", 1), 1000);
        ledger->liveness.silent_before_usec = ledger->liveness.lost_before_usec = 2000;
        bed_merge(b, "TrainingJob", "j", SUSPEND);
        BED_WAIT(b, bed_is(b, "j", "Suspended", NULL));
        assert_true(bed_is_there(b, "j-w0-0"));
        assert_int_equal(bed_record(b, "j")->state.restarts, 0);
        bed_end(b);
}

/* Its parent had succeeded when it was planned, and may be gone since then (spec.ttlSecondsAfterFinished). */
static void a_child_that_ran_needs_its_parent_no_more(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "parent", BED_TWO_CHIPS);
        bed_merge(b, "Pod", "parent-w0-0", BED_ENDED("Succeeded", "0", ""));
        bed_merge(b, "Pod", "parent-m0", BED_ENDED("Succeeded", "0", "{\\\"state\\\":\\\"Succeeded\\\"}"));
        BED_WAIT(b, bed_is(b, "parent", "Succeeded", NULL));
        bed_run_job(b, "j", BED_TWO_CHIPS SAVES ",\"dependsOn\":[\"parent\"]");
        bed_drop(b, "TrainingJob", "parent");
        bed_merge(b, "TrainingJob", "j", SUSPEND);
        BED_WAIT(b, leaves(b, "j-w0-0"));
        bed_record(b, "j")->yielding = true; /* it was being evicted as well */
        bed_drop(b, "Pod", "j-w0-0");
        BED_WAIT(b, bed_is(b, "j", "Suspended", NULL));
        assert_false(bed_record(b, "j")->yielding); /* or the next fault would be taken for that eviction */
        bed_merge(b, "TrainingJob", "j", RESUME);
        BED_WAIT(b, bed_is(b, "j", "Restarting", NULL) && bed_is_there(b, "j-m1"));
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(who_is_suspended_from_the_start_gets_nothing),
                cmocka_unit_test(who_runs_has_time_for_a_checkpoint),
                cmocka_unit_test(it_goes_on_without_a_restart_charged),
                cmocka_unit_test(another_controller_ends_what_was_begun),
                cmocka_unit_test(who_succeeds_just_then_has_succeeded),
                cmocka_unit_test(who_is_suspended_may_be_cancelled),
                cmocka_unit_test(no_pod_is_told_before_it_is_written),
                cmocka_unit_test(a_pod_on_a_node_that_is_lost_keeps_no_chips),
                cmocka_unit_test(a_child_that_ran_needs_its_parent_no_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
