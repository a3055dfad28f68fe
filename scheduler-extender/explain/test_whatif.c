/* What would become of pods and jobs: who is placed where, who waits and until when, and which questions are
 * none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/explain/whatif.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/told_cluster.h"

/* clang-format off */
static const struct rules rules = { .placement = PLACEMENT_PACKED, .lease_usec = 60000000, .lease_share_percent = 50, .hold_usec = 600000000 };

#define POD(NAME, CHIPS, SPEC) "{kind: Pod, metadata: {name: " NAME ", uid: n-" NAME "}, spec: {" SPEC "containers: [{name: c, resources: {limits: {nvidia.com/gpu: " CHIPS "}}}]}}"
#define NAMELESS(CHIPS)        "{metadata: {}, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: " CHIPS "}}}]}}"
#define JOB(NAME, SPEC)        "{apiVersion: remuda.dev/v1alpha1, kind: TrainingJob, metadata: {name: " NAME "}, spec: {" SPEC "}}"
#define PROGRAMS               ", programs: {cuda: {image: x, command: [/x]}}"
#define TEN                    TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "V100", "2")
#define ENDS(NAME, CHIPS, SECONDS) TOLD_POD(NAME, "", CHIPS, "nodeName: a, activeDeadlineSeconds: " SECONDS ", ")

/* Each placement as "POD NODE WHEN", with "-" for none. */
static const struct { const char *what, *objects, *question, *placements, *says; } rows[] = {
        { "nothing", TEN, "{pods: []}", "", "\"placed\": 0" },
        { "one pod, as it is", TEN, POD("x", "8", ""), "default/x a now", "\"placed\": 1, \"waiting\": 0" },
        { "a list", TEN, "{kind: List, items: [" POD("x", "2", "") ", " POD("y", "8", "") "]}", "default/x b now, default/y a now", "placed" },
        { "pods without names", TEN, "{pods: [" NAMELESS("8") ", " NAMELESS("2") "]}", "default/whatif-0 a now, default/whatif-1 b now", "" },
        { "a pod of no chips", TEN, "{pods: [" POD("x", "0", "") "]}", "default/x a now", "" },
        { "a pod that says where it is", TEN, "{pods: [" POD("x", "8", "nodeName: b, ") "]}", "default/x a now", "" },
        { "one too many", TEN, "{pods: [" POD("x", "8", "") ", " POD("y", "8", "") "]}", "default/x a now, default/y - -", "\"reasons\": {\"TooFewChips\": 1, \"ChipsBusy\": 1}" },
        { "a pod of this name is there", TEN TOLD_POD("x", "", "8", "nodeName: a, "), "{pods: [" POD("x", "8", "") "]}", "default/x a now", "" },
        { "without another", TEN TOLD_POD("old", "", "8", "nodeName: a, "), "{pods: [" POD("x", "8", "") "], withoutPods: [default/old]}", "default/x a now", "" },
        { "... of no namespace", TEN TOLD_POD("old", "", "8", "nodeName: a, "), "{pods: [" POD("x", "8", "") "], withoutPods: [old]}", "default/x a now", "" },
        { "without a node", TEN, "{pods: [" POD("x", "2", "") "], removeNodes: [b]}", "default/x a now", "" },
        { "without any node", TEN, "{pods: [" POD("x", "2", "") "], removeNodes: [a, b]}", "default/x - -", "\"reasons\": {}" },
        { "with one more", "", "{pods: [" POD("x", "2", "") "], addNodes: [{apiVersion: remuda.dev/v1alpha1, kind: NodeAccelerators, metadata: {name: n}, status: {generation: 1, "
          "bootID: b, nodeClass: any, pool: regular, groups: [" TOLD_GROUP("g", "H100", "2", "2") "], devices: []}}]}", "default/x n now", "" },
        { "it waits for an end", TEN ENDS("old", "8", "7200"), "{pods: [" POD("x", "8", "") "]}", "default/x - 2026-11-21T11:00:00Z", "no node of 2 takes it: 1 ChipsBusy, 1 TooFewChips\"" },
        { "... of one that is being deleted, with a grace of an hour", TEN TOLD_POD("old", "deletionTimestamp: \"2026-11-21T11:00:00Z\", ", "8", "nodeName: a, "), "{pods: [" POD("x", "8", "") "]}", "default/x - 2026-11-21T11:00:00Z", "" },
        { "... or ends sooner than that", TEN TOLD_POD("old", "deletionTimestamp: \"2026-11-21T11:00:00Z\", ", "8", "nodeName: a, activeDeadlineSeconds: 5400, "), "{pods: [" POD("x", "8", "") "]}", "default/x - 2026-11-21T10:30:00Z", "" },
        { "... or was to be gone long ago, and is not: counted on no longer", TEN TOLD_POD("old", "deletionTimestamp: \"2026-11-21T09:55:00Z\", ", "8", "nodeName: a, "), "{pods: [" POD("x", "8", "") "]}", "default/x - -", "" },
        { "for one that is over", TEN ENDS("old", "8", "60"), "{pods: [" POD("x", "8", "") "]}", "default/x - 2026-11-21T10:00:00Z", "" },
        { "two after two ends", TEN ENDS("one", "4", "7200") ENDS("two", "4", "9000"), "{pods: [" POD("x", "4", "") ", " POD("y", "4", "") "]}",
          "default/x - 2026-11-21T11:00:00Z, default/y - 2026-11-21T11:30:00Z", "" },
        { "an end that is not enough for the first, who has the chips held", TEN ENDS("one", "4", "7200") TOLD_POD("two", "", "4", "nodeName: a, "), "{pods: [" POD("x", "8", "") ", " POD("y", "4", "") "]}",
          "default/x - -, default/y - -", "no node of 2 takes it: 1 ChipsBusy, 1 TooFewChips; no known end of other pods changes that" },
        { "two ends at once", TEN ENDS("one", "4", "7200") ENDS("two", "4", "7200"), "{pods: [" POD("x", "8", "") "]}", "default/x - 2026-11-21T11:00:00Z", "" },
        { "a job", TEN, JOB("j", "workers: [{runtime: cuda, chips: 8}]" PROGRAMS), "default/j-w0-0 a now", "8 chips of group g" },
        { "a job over two nodes", TEN, JOB("j", "globalBatch: 100, workers: [{runtime: cuda, chips: 10}]" PROGRAMS), "default/j-w0-0 a now, default/j-w0-1 b now", "\"speedSource\"" },
        { "with a server", TEN, JOB("j", "strategy: ps-sync, workers: [{runtime: cuda, chips: 4}], servers: {runtime: cuda, chips: 1}" PROGRAMS), NULL, "s-" },
        { "a job that is too large", TEN, JOB("j", "workers: [{runtime: cuda, chips: 16}]" PROGRAMS), "default/j-workers - -", "\"missing\"" },
        { "... for what runs later", TEN ENDS("old", "8", "7200"), JOB("j", "workers: [{runtime: cuda, chips: 8}]" PROGRAMS), NULL, "2026-11-21T11:00:00Z" },
        { "a job of chips that nobody has", TEN, JOB("j", "workers: [{runtime: cann, chips: 8}], programs: {cann: {image: x, command: [/x]}}"), "default/j-workers - -", "NoSuchResource" },
        { "a job for which nobody lacks chips", "", JOB("j", "workers: [{runtime: cuda, chips: 8}]" PROGRAMS), "default/j-workers - -", "" },
        { "an emergency", TEN, JOB("j", "urgency: emergency, workers: [{runtime: cuda, chips: 8}]" PROGRAMS), "default/j-w0-0 a now", "" },
        { "the job again, with its pods", TEN "- " JOB("j", "workers: [{runtime: cuda, chips: 8}]" PROGRAMS) "\n" TOLD_POD("j-w0-0-r0", "labels: {remuda.dev/job: j}, ", "8", "nodeName: a, "),
          JOB("j", "workers: [{runtime: cuda, chips: 8}]" PROGRAMS), "default/j-w0-0 a now", "" },
        { "a job whose servers lack chips", TEN, JOB("j", "strategy: ps-sync, workers: [{model: H100, chips: 8}], servers: {model: H100, chips: 1}" PROGRAMS), "default/j-servers - -", "" },
        { "as many as there are", TEN, JOB("j", "workers: [{runtime: cuda, chips: 64, minChips: 4}]" PROGRAMS), "default/j-w0-0 a now, default/j-w0-1 b now", "" },
        { "of either model", TEN, JOB("j", "workers: [{model: A100|V100, chips: 2}]" PROGRAMS), "default/j-w0-0 b now", "" },
        { "two entries", TEN, JOB("j", "workers: [{model: V100, chips: 2}, {model: H100, chips: 4}]" PROGRAMS), "default/j-w0-0 b now, default/j-w1-1 a now", "" },
        { "evenly", TEN, JOB("j", "placement: uniform, workers: [{runtime: cuda, chips: 4}]" PROGRAMS), "default/j-w0-0 a now, default/j-w0-1 b now", "2 chips of group g" },
        { "evenly, more than is free", TEN, JOB("j", "placement: uniform, workers: [{runtime: cuda, chips: 11}]" PROGRAMS), "default/j-workers - -", "" },
        { "where most is free", TEN, JOB("j", "placement: largest-free, workers: [{runtime: cuda, chips: 2}]" PROGRAMS), "default/j-w0-0 a now", "" },
        { "where it fits best", TEN, JOB("j", "placement: packed, workers: [{runtime: cuda, chips: 2}]" PROGRAMS), "default/j-w0-0 b now", "" },
        { "on equal nodes", TEN TOLD_PLAIN("c", "H100", "8"), JOB("j", "equalNodes: true, workers: [{runtime: cuda, chips: 16}]" PROGRAMS), "default/j-w0-0 a now, default/j-w0-1 c now", "" },
        { "on equal nodes that are not there", TEN TOLD_PLAIN("c", "H100", "8"), JOB("j", "equalNodes: true, workers: [{runtime: cuda, chips: 18}]" PROGRAMS), "default/j-workers - -", "equal nodes: " },
        { "on a group of this name", TEN, JOB("j", "workers: [{group: h, chips: 1}]" PROGRAMS), "default/j-workers - -", "" },
        { "equal shares", TEN, JOB("j", "shards: equal, globalBatch: 10, workers: [{runtime: cuda, chips: 10}]" PROGRAMS), "default/j-w0-0 a now, default/j-w0-1 b now", "\"batch\": 8" },
        { "a job and a pod", TEN, "{pods: [" JOB("j", "workers: [{runtime: cuda, chips: 8}]" PROGRAMS) ", " POD("x", "2", "") "]}", "default/j-w0-0 a now, default/x b now", "" },
};
static const struct { const char *question, *says; } wrong[] = {
        { "{}",                                                    "pods: must be a list of at most 10000 pods" },
        { "{pods: 7}",                                             "pods: must be a list" },
        { "{items: {}}",                                           "pods: must be a list" },
        { "{pods: [7]}",                                           "pods[0]" },
        { "{pods: [" POD("x", "1", "") ", {metadata: {name: 7}}]}", "pods[1]" },
        { "{pods: [{metadata: {name: x}, spec: {containers: 7}}]}", "pods[0]" },
        { "{pods: [], withoutPods: default/x}",                    "withoutPods" },
        { "{pods: [], withoutPods: [7]}",                          "withoutPods[0]: must be \"NAMESPACE/NAME\"" },
        { "{pods: [], withoutPods: [default/none]}",               "withoutPods[0]: there is no pod 'default/none'" },
        { "{pods: [], withoutPods: [none]}",                       "withoutPods[0]: there is no pod 'none'" },
        { "{pods: [], removeNodes: {}}",                           "removeNodes" },
        { "{pods: [], removeNodes: [a, z]}",                       "removeNodes[1]: there is no node 'z'" },
        { "{pods: [], removeNodes: [[]]}",                         "removeNodes[0]: there is no node '?'" },
        { "{pods: [], addNodes: 1}",                               "addNodes" },
        { "{pods: [], addNodes: [{kind: Node, metadata: {name: n}}, {kind: Node}]}", "addNodes[1]: metadata.name" },
        { "{pods: [], addNodes: [{kind: Lease, metadata: {name: n}}]}", "addNodes[0]: kind: must be Node, NodeAccelerators, Pod or TrainingJob, not 'Lease'" },
        { JOB("j", "workers: 7"),                                  "pods[0]" },
        { "{kind: TrainingJob}",                                   "pods[0]" },
        { "{pods: [{kind: Node, metadata: {name: n}}]}",           "pods[0]: kind: must be Pod or TrainingJob, not 'Node'" },
        { JOB("j", "workers: [{runtime: cuda, chips: 8}], globalBatch: 1" PROGRAMS), "pods[0]" },
};
/* clang-format on */

static void list(const json_t *reply, struct text *text)
{
        const json_t *placements = json_object_get(reply, "placements");

        text_append(text, "");
        for (size_t i = 0; i < json_array_size(placements); i++) {
                const json_t *item = json_array_get(placements, i);
                const char *node = json_string_value(json_object_get(item, "node")),
                           *when = json_string_value(json_object_get(item, "when"));

                text_printf(text, "%s%s %s %s", i > 0 ? ", " : "",
                            json_string_value(json_object_get(item, "pod")), node != NULL ? node : "-",
                            when != NULL ? when : "-");
        }
}

static void what_would_be_is_told(void **state)
{
        struct dir_store *f = dir_store_new();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct cluster *c =
                        told_cluster(f, (struct cluster_options){ .rules = rules }, rows[i].objects);
                CLEANUP(text_free) struct text placements = { 0 };
                CLEANUP(free_p) char *dump = NULL;
                json_t *question = told_parse(rows[i].question), *reply = NULL, *again = NULL;
                struct err err = { 0 };

                if (whatif(c, question, TOLD_NOW_USEC, &reply, &err) < 0)
                        fail_msg("%s: %s", rows[i].what, err.msg);
                list(reply, &placements);
                dump = json_dumps(reply, 0);
                if ((rows[i].placements != NULL && strcmp(placements.data, rows[i].placements) != 0) ||
                    strstr(dump, rows[i].says) == NULL)
                        fail_msg("%s: %s", rows[i].what, dump);
                assert_int_equal(whatif(c, question, TOLD_NOW_USEC, &again, &err), 0);
                assert_true(json_equal(reply, again)); /* nothing of it has become real */
                json_decref(again);
                json_decref(reply);
                json_decref(question);
                cluster_close(c);
        }
        dir_store_free(f);
}

static void a_question_that_is_none_says_where(void **state)
{
        struct dir_store *f = dir_store_new();
        struct cluster *c = told_cluster(f, (struct cluster_options){ .rules = rules }, TEN);

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                json_t *question = told_parse(wrong[i].question), *reply = NULL;
                struct err err = { 0 };
                int r = whatif(c, question, TOLD_NOW_USEC, &reply, &err);

                if (r >= 0 || r == -ENOMEM || strstr(err.msg, wrong[i].says) == NULL)
                        fail_msg("%s: %d %s", wrong[i].question, r, err.msg);
                assert_null(reply);
                json_decref(question);
        }
        cluster_close(c);
        dir_store_free(f);
}

static void chips_held_for_an_emergency_are_not_given(void **state)
{
        struct dir_store *f = dir_store_new();
        struct cluster *c = told_cluster(f, (struct cluster_options){ .rules = rules },
                                         TOLD_PLAIN("a", "H100", "8") TOLD_POD("fire", "", "8", ""));
        json_t *question = told_parse(POD("x", "4", "")), *reply = NULL;
        struct ledger_pod *fire = ledger_pods_find(cluster_ledger(c), "default", "fire");
        const json_t *placement;
        struct err err = { 0 };

        (void) state;
        fire->request.emergency = true;
        fire->served = true;
        fire->waited_usec = TOLD_NOW_USEC;
        assert_int_equal(backfill_add(cluster_ledger(c), cluster_ledger(c)->nodes[0],
                                      &(struct ledger_backfill){ .pod = fire,
                                                                 .resource = fire->request.items[0].resource,
                                                                 .start_usec = UINT64_MAX }),
                         0);
        assert_int_equal(whatif(c, question, TOLD_NOW_USEC, &reply, &err), 0);
        placement = json_array_get(json_object_get(reply, "placements"), 0);
        assert_true(json_is_null(json_object_get(placement, "node")));
        assert_string_equal(json_string_value(json_object_get(placement, "message")),
                            "no node of 1 takes it: 1 HeldForOlder; chips are held for default/fire; "
                            "no known end of other pods changes that");
        json_decref(reply);
        json_decref(question);
        cluster_close(c);
        dir_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_would_be_is_told),
                cmocka_unit_test(a_question_that_is_none_says_where),
                cmocka_unit_test(chips_held_for_an_emergency_are_not_given),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
