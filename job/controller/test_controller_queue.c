/* In what order jobs that wait are given chips, who waits behind whom, what an emergency may take back, and
 * who has to give back what he does not use. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/cluster_classes.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/controller_bed.h"

#define EIGHT_CHIPS "\"workers\":[{\"model\":\"H100\",\"chips\":8}]"
#define GOES        "{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:10:00Z\"}}"

static const struct controller_options plain;
static const char *const all_namespaces[] = { "*" }, *const urgent_classes[] = { "urgent" };

static void allow_emergencies(struct bed *b)
{
        b->cluster->options.policy = (struct pod_json_policy){ .emergency_namespaces = all_namespaces,
                                                               .emergency_namespace_count = 1,
                                                               .emergency_classes = urgent_classes,
                                                               .emergency_class_count = 1 };
}

static void put_class(struct bed *b, const char *name, const char *text)
{
        json_t *object = json_loads(text, 0, NULL);
        struct err err = { 0 };

        if (cluster_classes_take(b->cluster, name, object, &err) < 0)
                fail_msg("%s", err.msg);
        json_decref(object);
}

/* clang-format off */
#define SMALL BED_TWO_CHIPS
static const struct {
        const char *what, *large, *namespace_, *small;
        const char *reason; /* of the small one, which comes later; NULL = it is planned */
} orders[] = {
        { "the same namespace",              "\"priority\":5",              "default", SMALL, "WaitsForPriority" },
        { "no smaller priority",             "\"priority\":5",              "default", SMALL ",\"priority\":5", NULL },
        { "another namespace",               "\"priority\":5",              "other",   SMALL, NULL },
        { "an emergency, in any namespace",  "\"urgency\":\"emergency\"",   "other",   SMALL, "WaitsForPriority" },
        { "by its class, too",               "\"priorityClassName\":\"urgent\"", "other", SMALL, "WaitsForPriority" },
        { "another emergency",               "\"urgency\":\"emergency\"",   "other",   SMALL ",\"urgency\":\"emergency\"", NULL },
        { "it could not take them anyway",   "\"priority\":5,\"workers\":[{\"model\":\"H100\",\"runtime\":\"cuda\",\"vendor\":\"nvidia\",\"chips\":8}]",
                                             "default", "\"workers\":[{\"model\":\"H100\",\"runtime\":\"cuda\",\"vendor\":\"other\",\"chips\":2}]", "Unschedulable" },
        { "nor chips of another runtime",    "\"priority\":5,\"workers\":[{\"model\":\"H100\",\"runtime\":\"cuda\",\"chips\":8}]",
                                             "default", "\"workers\":[{\"model\":\"H100\",\"runtime\":\"cann\",\"chips\":2}]", "Unschedulable" },
        { "nor those of another model",      "\"priority\":5",              "default", "\"workers\":[{\"model\":\"A100\",\"chips\":2}]", NULL },
        { "nor behind an emergency",         "\"urgency\":\"emergency\"",   "other",   "\"workers\":[{\"model\":\"A100\",\"chips\":2}]", NULL },
        { "of either model",                 "\"urgency\":\"emergency\"",   "other",   "\"workers\":[{\"runtime\":\"cuda\",\"chips\":2}]", "WaitsForPriority" },
        { "in servers, too",                 "\"urgency\":\"emergency\"",   "other",   "\"strategy\":\"ps-sync\",\"servers\":{\"model\":\"H100\",\"chips\":1},\"workers\":[{\"model\":\"A100\",\"chips\":2}]", "WaitsForPriority" },
};
/* clang-format on */

/* A job runs on two of eight chips, and another one waits for all of them. */
static void who_comes_later_waits_behind_whom_it_would_take_from(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
                struct bed *b = bed_begin(plain);
                char fields[500], small[64], json[700];
                const char *reason;

                allow_emergencies(b);
                put_class(b, "urgent", "{\"value\":9}");
                bed_put_node(b, "b", "A100", 8);
                bed_run_job(b, "running", BED_TWO_CHIPS);
                (void) text_format(fields, sizeof(fields), "%s,%s", EIGHT_CHIPS, orders[i].large);
                bed_put_job(b, "large", fields);
                BED_WAIT(b, bed_is(b, "large", "Pending", "Unschedulable"));
                (void) text_format(small, sizeof(small), "TrainingJob %s/small", orders[i].namespace_);
                (void) text_format(json, sizeof(json),
                                   "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"TrainingJob\","
                                   "\"metadata\":{\"name\":\"small\",\"namespace\":\"%s\",\"uid\":\"s\"},"
                                   "\"spec\":{\"globalBatch\":64,\"programs\":{\"cuda\":{\"image\":\"img\","
                                   "\"command\":[\"/opt/t\"]}},%s}}",
                                   orders[i].namespace_, orders[i].small);
                memory_store_merge(b->store, small, json);
                BED_WAIT(b, memory_store_text(b->store, small, "status|reason")[0] != '\0');
                bed_settle(b);
                reason = memory_store_text(b->store, small, "status|reason");
                if (orders[i].reason == NULL
                            ? strcmp(memory_store_text(b->store, small, "status|phase"), "Starting") != 0
                            : strcmp(reason, orders[i].reason) != 0)
                        fail_msg("%s: %s: %s", orders[i].what, reason,
                                 memory_store_text(b->store, small, "status|message"));
                bed_end(b);
        }
}

/* Where nothing ends the wait, the first one is waited for as long as it takes; else for a while, and after
 * as long again anew. */
static void chips_are_kept_for_the_first_as_long_as_the_rules_say(void **state)
{
        struct bed *b = bed_begin(plain);
        struct rules *rules = &b->cluster->options.rules;
        struct record *large;

        (void) state;
        rules->hold_usec = 0;
        bed_run_job(b, "running", BED_TWO_CHIPS);
        bed_put_job(b, "large", EIGHT_CHIPS ",\"priority\":5");
        BED_WAIT(b, bed_is(b, "large", "Pending", "Unschedulable"));
        large = bed_record(b, "large");
        bed_put_job(b, "small", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "small", "Pending", "WaitsForPriority"));
        large->blocks_usec = 1; /* as long as there is a clock */
        bed_look(b, "small");
        assert_true(bed_is(b, "small", "Pending", "WaitsForPriority"));
        rules->hold_usec = 3600000000;
        large->blocks_usec = controller_monotonic(b->controller) - 2 * rules->hold_usec;
        bed_look(b, "small");
        assert_true(bed_is(b, "small", "Pending", "WaitsForPriority"));
        assert_true(controller_monotonic(b->controller) - large->blocks_usec < rules->hold_usec);
        large->blocks_usec -= rules->hold_usec;
        bed_look(b, "small");
        assert_true(bed_is(b, "small", "Starting", NULL));
        bed_end(b);
}

/* What classes there are may be read later than the job: nobody is told that his is not there. */
static void a_class_is_waited_for_until_classes_are_read(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        b->cluster->synced &= ~(1u << STORE_PRIORITY_CLASS);
        bed_put_job(b, "j", BED_TWO_CHIPS ",\"priorityClassName\":\"research\"");
        BED_WAIT(b, bed_record(b, "j") != NULL && bed_record(b, "j")->valid);
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "event"), 0);
        b->cluster->synced |= 1u << STORE_PRIORITY_CLASS;
        bed_look(b, "j");
        assert_true(bed_is(b, "j", "Pending", "NoPriorityClass"));
        put_class(b, "research", "{\"value\":7}");
        bed_look(b, "j");
        assert_true(bed_is(b, "j", "Starting", NULL));
        assert_string_equal(bed_text(b, "Pod", "j-w0-0", "spec|priorityClassName"), "research");
        bed_end(b);
}

/* The reserve is lent to who may be evicted; who may take it back is planned there at once, and the extender
 * evicts whoever sits on it: where that is allowed, of regular nodes too. */
static void an_emergency_takes_back_what_was_lent(void **state)
{
        static const enum ledger_pods_takes takes[] = { LEDGER_PODS_TAKES_NOBODY, LEDGER_PODS_TAKES_BORROWERS,
                                                        LEDGER_PODS_TAKES_PREEMPTIBLE };

        (void) state;
        for (size_t i = 0; i < 2 * ARRAY_SIZE(takes); i++) {
                struct bed *b = bed_begin(plain);
                bool regular = i % 2 > 0;

                b->cluster->options.rules.takes = takes[i / 2];
                allow_emergencies(b);
                b->cluster->options.rules.lend_reserve = true;
                memory_store_merge(b->store, "NodeAccelerators a",
                                   regular ? "{\"status\":{\"pool\":\"regular\"}}"
                                           : "{\"status\":{\"pool\":\"reserved\"}}");
                if (!regular) {
                        bed_put_job(b, "no", EIGHT_CHIPS);
                        BED_WAIT(b, bed_is(b, "no", "Pending", "Unschedulable"));
                }
                bed_run_job(b, "lent", EIGHT_CHIPS ",\"preemptible\":true");
                bed_put_job(b, "urgent", EIGHT_CHIPS ",\"urgency\":\"emergency\"");
                if (takes[i / 2] < (regular ? LEDGER_PODS_TAKES_PREEMPTIBLE : LEDGER_PODS_TAKES_BORROWERS)) {
                        BED_WAIT(b, bed_is(b, "urgent", "Pending", "Unschedulable"));
                } else {
                        BED_WAIT(b, bed_is(b, "urgent", "Starting", NULL));
                        bed_look(b, "urgent"); /* and keeps its place as long as they are there */
                        assert_false(bed_said(b, "PlaceLost"));
                }
                assert_true(bed_is(b, "lent", "Running", NULL));
                bed_end(b);
        }
}

/* Whose namespace may not say so is as urgent as others. */
static void not_everybody_may_call_himself_an_emergency(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j", EIGHT_CHIPS ",\"urgency\":\"emergency\"");
        bed_merge(b, "TrainingJob", "j",
                  "{\"metadata\":{\"finalizers\":[\"" JOB_FINALIZER "\",\"x.dev/y\"]}}"); /* it is known */
        BED_WAIT(b, bed_is(b, "j", "Starting", NULL));
        assert_int_equal(memory_store_count(b->store, "patch TrainingJob"), 0);
        assert_false(bed_record(b, "j")->emergency);
        bed_end(b);
}

/* What the plan has to say of itself is an event; why one waits, in other words, is none, but stands in its
 * status; and a batch that cannot be cut is no plan. */
static void plans_say_what_there_is_to_know(void **state)
{
        struct bed *b = bed_begin(plain);
        char first[200];

        (void) state;
        bed_put_node(b, "b", "A100", 8);
        memory_store_merge(
                b->store, "NodeAccelerators b", /* of which nobody knows how fast they are */
                "{\"status\":{\"groups\":[{\"name\":\"g\",\"vendor\":\"nvidia\",\"runtime\":\"cuda\","
                "\"model\":\"A100\",\"resource\":\"nvidia.com/gpu\",\"fabric\":\"none\",\"total\":8,"
                "\"healthy\":8,\"free\":0,\"memoryBytes\":85899345920}]}}");
        bed_put_job(b, "unlike",
                    "\"workers\":[{\"model\":\"H100\",\"chips\":2},{\"model\":\"A100\",\"chips\":2}]");
        BED_WAIT(b, bed_is_there(b, "unlike-m0"));
        assert_true(bed_record(b, "unlike")->state.note_count > 0);
        assert_int_equal(memory_store_count(b->store, "event Speed"), 1);
        bed_put_job(b, "large", "\"workers\":[{\"model\":\"H100\",\"chips\":9}]");
        BED_WAIT(b, bed_is(b, "large", "Pending", "Unschedulable"));
        (void) text_copy(first, sizeof(first), bed_text(b, "TrainingJob", "large", "status|message"));
        bed_put_node(b, "a", "H100", 7);
        bed_look(b, "large");
        assert_string_not_equal(bed_text(b, "TrainingJob", "large", "status|message"), first);
        assert_int_equal(memory_store_count(b->store, "event Unschedulable default/large"), 1);
        bed_end(b);
}

/* A parent that is on its way out never succeeds. */
static void children_of_a_deleted_parent_do_not_start(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "parent", BED_TWO_CHIPS);
        bed_put_job(b, "child", BED_TWO_CHIPS ",\"dependsOn\":[\"parent\"]");
        BED_WAIT(b, bed_is(b, "child", "Pending", "WaitsForDependency"));
        bed_merge(b, "TrainingJob", "parent", GOES);
        BED_WAIT(b, bed_is(b, "child", "Failed", "DependencyFailed"));
        bed_end(b);
}

/* Of many jobs that come at once all get their finalizer, and one that is refused keeps nobody from it. */
static void many_jobs_at_once_are_taken_on_in_turn(void **state)
{
        struct bed *b = bed_begin(plain);
        char name[16];

        (void) state;
        bed_put_node(b, "a", "H100", 64); /* room for all; their pods are made a few at a time */
        memory_store_refuse(b->store, "patch TrainingJob default/j3", -EPERM, "not this one");
        for (unsigned i = 0; i < 20; i++) {
                (void) text_format(name, sizeof(name), "j%u", i);
                bed_put_job(b, name, BED_TWO_CHIPS);
                bed_merge(b, "TrainingJob", name,
                          i % 2 == 0 ? "{\"metadata\":{\"finalizers\":[\"x.dev/y\"]}}"
                                     : "{\"metadata\":{\"finalizers\":[\"x.dev/y\",\"x.dev/z\"]}}");
        }
        for (unsigned i = 0; i < 20; i++) {
                (void) text_format(name, sizeof(name), "j%u", i);
                BED_WAIT(b, i == 3 || (bed_record(b, name) != NULL && bed_record(b, name)->has_finalizer));
        }
        assert_false(bed_record(b, "j3")->has_finalizer);
        BED_WAIT(b, bed_is(b, "j3", "Pending", "FinalizerRefused"));
        assert_int_equal(bed_record(b, "j3")->state.group_count, 0); /* others may have its chips */
        assert_int_equal(memory_store_count(b->store, "create Pod default/j3"), 0);
        memory_store_refuse(b->store, NULL, 0, NULL);
        bed_look(b, "j3");
        assert_true(bed_record(b, "j3")->has_finalizer);
        for (unsigned i = 0; i < 20; i++) {
                (void) text_format(name, sizeof(name), "j%u", i);
                BED_WAIT(b, bed_is(b, name, "Starting", NULL));
                assert_int_equal(json_array_size(bed_record(b, name)->finalizers),
                                 2 + i % 2); /* others' stay */
        }
        bed_end(b);
}

#define FIRE                                                                                                 \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"fire\",\"namespace\":\"default\"," \
        "\"uid\":\"u\",\"labels\":{\"remuda.dev/"                                                            \
        "urgency\":\"emergency\"}},\"spec\":{\"containers\":[{\"name\":"                                     \
        "\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}"

/* As in an extender that carries jobs out, too: where an emergency will start is its word. */
static void what_is_held_for_an_emergency_stays_held(void **state)
{
        struct bed *b = bed_begin(plain);
        struct ledger *ledger = cluster_ledger(b->cluster);
        struct ledger_pod *fire;

        (void) state;
        allow_emergencies(b);
        bed_merge(b, "Pod", "fire", FIRE);
        BED_WAIT(b, (fire = ledger_pods_find(ledger, "default", "fire")) != NULL);
        fire->served = true;
        fire->waited_usec = 1;
        assert_int_equal(backfill_add(ledger, ledger_nodes_find(ledger, "a", 1),
                                      &(struct ledger_backfill){ .pod = fire,
                                                                 .resource = fire->request.items[0].resource,
                                                                 .start_usec = UINT64_MAX }),
                         0);
        bed_put_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is(b, "j", "Pending", "Unschedulable"));
        assert_int_equal(ledger->backfill_total, 1);
        bed_end(b);
}

/* A job whose pods are there, and on no node. */
static struct bed *begin_unbound(void)
{
        struct bed *b = bed_begin((struct controller_options){ .pods_wait_sec = 600 });

        bed_put_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, bed_is_there(b, "j-m0") && bed_is_there(b, "j-w0-0"));
        BED_WAIT(b, bed_record(b, "j")->unbound_usec != 0);
        return b;
}

/* As if it had been so for ten minutes. */
static bool was_given_up(struct bed *b, unsigned times)
{
        struct record *record = bed_record(b, "j");

        if (record->unbound_usec != 0)
                record->unbound_usec = controller_monotonic(b->controller) - 600000000;
        controller_queue(record);
        return record->unbound_times == times;
}

#define NO_NODE                                                                                              \
        "{\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"          \
        "\"False\","                                                                                         \
        "\"reason\":\"Unschedulable\",\"message\":\"claim not found\"}]}}"

static void what_is_bound_to_no_node_for_too_long_has_no_lease(void **state)
{
        struct bed *b = begin_unbound();
        struct record *record = bed_record(b, "j");

        (void) state;
        bed_merge(b, "Pod", "j-w0-0", NO_NODE);
        BED_WAIT(b, was_given_up(b, 1));
        BED_WAIT(b, bed_is(b, "j", "Pending", "PodNotBound"));
        BED_WAIT(b, !bed_is_there(b, "j-w0-0") && !bed_is_there(b, "j-m0"));
        assert_int_equal(record->state.group_count, 0);
        assert_true(bed_said(b, "pod j-w0-0 is on no node after 600 s, its chips are given back for 600 s: "
                                "claim not found"));
        assert_int_equal(memory_store_count(b->store, "event LeaseEnded"), 1);
        bed_put_job(b, "other", EIGHT_CHIPS); /* nobody waits for it meanwhile */
        BED_WAIT(b, bed_is(b, "other", "Starting", NULL));
        bed_drop(b, "TrainingJob", "other");
        record->plan_after_usec = 0;
        BED_WAIT(b, bed_is(b, "j", "Restarting", NULL));
        BED_WAIT(b, was_given_up(b, 2)); /* nobody says why */
        BED_WAIT(b, bed_is(b, "j", "Pending", "PodNotBound"));
        assert_true(bed_said(b, "given back for 1200 s: no scheduler has said why"));
        bed_end(b);
}

/* Who is bound, whose store is not in step, and whose chips somebody is being evicted from. */
static void who_may_still_be_bound_keeps_his_chips(void **state)
{
        struct bed *b = begin_unbound();
        struct record *record = bed_record(b, "j");

        (void) state;
        b->store->age_usec = 60000000;
        bed_look(b, "j");
        assert_int_equal(record->unbound_usec, 0);
        b->store->age_usec = 0;
        bed_look(b, "j");
        assert_int_not_equal(record->unbound_usec, 0);
        record->unbound_look_usec -= 60000000; /* nobody looked for a minute */
        record->unbound_usec = 1;
        bed_look(b, "j");
        assert_true(record->unbound_usec > 1 && record->unbound_times == 0);
        bed_merge(b, "Pod", "j-w0-0", "{\"spec\":{\"nodeName\":\"a\"}}");
        bed_merge(b, "Pod", "j-m0", "{\"spec\":{\"nodeName\":\"a\"}}");
        BED_WAIT(b, record->unbound_usec == 0);
        bed_end(b);
}

static void who_waits_for_an_eviction_keeps_his_chips(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .pods_wait_sec = 600 });

        (void) state;
        allow_emergencies(b);
        b->cluster->options.rules.lend_reserve = true;
        b->cluster->options.rules.takes = LEDGER_PODS_TAKES_BORROWERS;
        memory_store_merge(b->store, "NodeAccelerators a", "{\"status\":{\"pool\":\"reserved\"}}");
        bed_run_job(b, "lent", EIGHT_CHIPS ",\"preemptible\":true");
        bed_put_job(b, "j", EIGHT_CHIPS ",\"urgency\":\"emergency\"");
        BED_WAIT(b, bed_is_there(b, "j-m0") && bed_is_there(b, "j-w0-0"));
        bed_merge(b, "Pod", "j-m0", "{\"spec\":{\"nodeName\":\"a\"}}");
        bed_look(b, "j");
        assert_int_equal(bed_record(b, "j")->unbound_usec, 0);
        bed_drop(b, "Pod", "lent-w0-0");
        BED_WAIT(b, bed_record(b, "j")->unbound_usec != 0);
        bed_end(b);
}

/* The first layer takes long, so the others share a chip: nothing that a plan without the map would do. */
static void a_profile_is_read_from_a_map(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "j",
                    "\"strategy\":\"split\",\"args\":[]," BED_TWO_CHIPS
                    ",\"profile\":{\"configMapKeyRef\":{\"name\":\"m\",\"key\":\"k\"}}");
        BED_WAIT(b, bed_is(b, "j", "Pending", "NoProfile"));
        assert_non_null(
                strstr(bed_text(b, "TrainingJob", "j", "status|message"), "there is no ConfigMap 'm'"));
        bed_merge(b, "ConfigMap", "m",
                  "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\",\"namespace\":\"default\"},\"data\":{"
                  "\"k\":\"{\\\"layers\\\":[{\\\"multiply_adds\\\":8},{\\\"multiply_adds\\\":1},"
                  "{\\\"multiply_adds\\\":1}]}\"}}");
        bed_record(b, "j")->profile.asked_usec = 1; /* ten seconds pass */
        bed_look(b, "j");
        BED_WAIT(b, bed_is_there(b, "j-m0"));
        assert_true(bed_said(b, "reason=Planned"));
        assert_string_equal(bed_record(b, "j")->state.groups[0].layers, "0:0,1:2");
        bed_look(b, "j"); /* seen again, it keeps what it was planned with */
        assert_int_equal(bed_record(b, "j")->job.profile.layer_count, 3);
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(who_comes_later_waits_behind_whom_it_would_take_from),
                cmocka_unit_test(chips_are_kept_for_the_first_as_long_as_the_rules_say),
                cmocka_unit_test(a_class_is_waited_for_until_classes_are_read),
                cmocka_unit_test(an_emergency_takes_back_what_was_lent),
                cmocka_unit_test(not_everybody_may_call_himself_an_emergency),
                cmocka_unit_test(plans_say_what_there_is_to_know),
                cmocka_unit_test(children_of_a_deleted_parent_do_not_start),
                cmocka_unit_test(many_jobs_at_once_are_taken_on_in_turn),
                cmocka_unit_test(what_is_held_for_an_emergency_stays_held),
                cmocka_unit_test(what_is_bound_to_no_node_for_too_long_has_no_lease),
                cmocka_unit_test(who_may_still_be_bound_keeps_his_chips),
                cmocka_unit_test(who_waits_for_an_eviction_keeps_his_chips),
                cmocka_unit_test(a_profile_is_read_from_a_map),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
