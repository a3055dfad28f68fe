/* What is said of a pod that waits: a reason a node, its words, and the remedies that help when tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/told_cluster.h"

/* clang-format off */
#define FULL(NAME)      TOLD_PLAIN(NAME, "H100", "8") TOLD_POD("on-" NAME, "", "8", "nodeName: " NAME ", ")
#define OBJECT(NAME, META, SPEC) "- {kind: Node, metadata: {" META "name: " NAME "}, spec: {" SPEC "}}\n"
#define BUSY(SECONDS)   TOLD_POD("old", "", "6", "nodeName: a, activeDeadlineSeconds: " SECONDS ", ")
#define LABELS(LIST)    "labels: {" LIST "}, "
#define MODELS(LIST)    "annotations: {remuda.dev/models: \"" LIST "\"}, "
#define GANG(SIZE)      LABELS("remuda.dev/job: j, remuda.dev/gang-size: \"" SIZE "\"")
#define HARDWARE(NAME, MBPS) \
        "- {apiVersion: remuda.dev/v1alpha1, kind: NodeAccelerators, metadata: {name: " NAME "}, status: {generation: 1, bootID: b, nodeClass: any, " \
        "pool: regular, hardware: {cores: 8, network: [{name: e, kind: ethernet, mbps: " MBPS "}]}, groups: [" TOLD_GROUP("g", "H100", "8", "8") "], devices: []}}\n"
static const struct rules plain = { .placement = PLACEMENT_PACKED, .lease_usec = 60000000, .lease_share_percent = 50, .hold_usec = 600000000 },
                          open = { .placement = PLACEMENT_PACKED, .lend_reserve = true, .overflow = OVERFLOW_BOTH, .overflow_percent = 100 };

/* Of the pod "p": its verdict, "NODE REASON" of each node, the actions of its remedies, the smallest change first. */
static const struct {
        const char *what;
        const struct rules *rules;
        const char *objects, *verdict, *nodes, *remedies, *says;
} rows[] = {
        { "no node at all", &plain, TOLD_POD("p", "", "1", ""), "never", "", "", "\"chips\": 1" },
        { "no chips", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("p", "", "0", ""), "fits", "a ", "", "the pod asks for no chips" },
        { "it fits on one of two", &plain, FULL("a") TOLD_PLAIN("b", "H100", "8") TOLD_POD("p", "", "8", ""),
          "fits", "a ChipsBusy, b ", "", "nvidia.com/gpu: 8 asked for; 8 in all, 8 usable, 0 free, 0 neither held nor leased; largest group 8, 0 of it open" },
        { "it is bound", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("p", "", "8", "nodeName: a, "), "fits", "a ", "", "\"boundTo\": \"a\"" },
        { "too large for every node", &plain, TOLD_PLAIN("a", "H100", "4") TOLD_PLAIN("b", "H100", "2") TOLD_POD("p", "", "8", ""),
          "never", "a TooFewChips, b TooFewChips", "ask-for-fewer", "ask for 4 chip(s) instead of 8" },
        { "too large, and for two resources", &plain, TOLD_PLAIN("a", "H100", "4")
          "- {kind: Pod, metadata: {name: p, uid: u}, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8, amd.com/gpu: 1}}}]}}\n",
          "never", "a NoSuchResource", "", "\"chips\": 9" },
        { "a pod there ends in time", &plain, TOLD_PLAIN("a", "H100", "8") BUSY("7200") TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsBusy", "wait, ask-for-fewer, free-chips", "wait: node a ends enough of its work by 2026-11-21T11:00:00Z" },
        { "a pod there should have ended", &plain, TOLD_PLAIN("a", "H100", "8") BUSY("60") TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsBusy", "wait, ask-for-fewer, free-chips", "by 2026-11-21T10:00:00Z" },
        { "the first end is not enough", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("x", "", "4", "nodeName: a, activeDeadlineSeconds: 9000, ")
          TOLD_POD("y", "", "2", "nodeName: a, activeDeadlineSeconds: 7200, ") TOLD_POD("z", "", "1", "nodeName: a, ") TOLD_POD("p", "", "7", ""),
          "waits", "a ChipsBusy", "wait, ask-for-fewer, free-chips", "by 2026-11-21T11:30:00Z" },
        { "nobody there says when it ends", &plain, FULL("a") TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsBusy", "free-chips", "free 8 chip(s) on node a: 1 pod(s), the first is default/on-a" },
        { "a chip is ill", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "H100", "8", "7"), TOLD_DEVICE("d0", "g", "unhealthy")) TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsUnhealthy", "ask-for-fewer, repair-device", "repair d0 on node a\"" },
        { "chips are in quarantine", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "H100", "8", "6") ", " TOLD_GROUP("h", "V100", "2", "1"),
          TOLD_DEVICE("d0", "g", "quarantined") ", " TOLD_DEVICE("e0", "h", "unhealthy") ", " TOLD_DEVICE("d1", "g", "quarantined") ", " TOLD_DEVICE("lone", "none", "unhealthy"))
          TOLD_POD("p", MODELS("H100"), "8", ""),
          "waits", "a ChipsUnhealthy", "ask-for-fewer, clear-quarantine", "clear the quarantine of d0 on node a (and others there)" },
        { "more is ill than can be mended", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "H100", "8", "6"), TOLD_DEVICE("d0", "g", "unhealthy"))
          TOLD_POD("p", "", "8", ""), "waits", "a ChipsUnhealthy", "ask-for-fewer", "8 in all, 6 usable" },
        { "another model has room", &plain, TOLD_PLAIN("a", "A100", "8") TOLD_PLAIN("b", "A100", "8") TOLD_PLAIN("c", "\"\"", "8")
          TOLD_NODE("d", "any", "regular", TOLD_GROUP("g", "A100", "8", "8") ", " TOLD_GROUP("h", "\"\"", "1", "1"), "") TOLD_POD("p", MODELS("H100|V100"), "8", ""),
          "never", "a WrongModel, b WrongModel, c WrongModel, d WrongModel", "accept-model", "the node has A100, an unknown model" },
        { "another model has none", &plain, TOLD_PLAIN("a", "A100", "4") TOLD_POD("p", MODELS("H100"), "8", ""), "never", "a WrongModel", "", "the node has A100" },
        { "accepted, but taken", &plain, FULL("a") TOLD_POD("p", MODELS("H100"), "8", ""), "waits", "a ChipsBusy", "free-chips", "" },
        { "as many models as can be named", &plain, TOLD_PLAIN("a", "A100", "8") TOLD_POD("p", MODELS("a|b|c|d|e|f|g|h|i|j|k|l"), "8", ""),
          "never", "a WrongModel", "", "the node has A100" },
        { "the chips are in two groups", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "H100", "4", "4") ", " TOLD_GROUP("h", "H100", "4", "4"), "")
          TOLD_POD("p", LABELS("remuda.dev/same-group: \"true\""), "8", ""),
          "never", "a NoSuchGroup", "drop-label, ask-for-fewer", "drop the label remuda.dev/same-group: the chips are there, in several groups" },
        { "the chips are nowhere", &plain, TOLD_PLAIN("a", "H100", "4") TOLD_POD("p", LABELS("remuda.dev/same-group: \"true\""), "8", ""),
          "never", "a TooFewChips", "ask-for-fewer", "" },
        { "another of the job is elsewhere", &plain, HARDWARE("a", "100") HARDWARE("b", "200") TOLD_POD("first", LABELS("remuda.dev/job: j"), "8", "nodeName: a, ")
          TOLD_POD("p", LABELS("remuda.dev/job: j, remuda.dev/equal-nodes: \"true\""), "8", ""),
          "waits", "a ChipsBusy, b UnequalNode", "drop-label, free-chips", "differs from node a in: network speed" },
        { "unlike, and too small", &plain, HARDWARE("a", "100") TOLD_PLAIN("b", "H100", "4") TOLD_POD("first", LABELS("remuda.dev/job: j"), "8", "nodeName: a, ")
          TOLD_POD("p", LABELS("remuda.dev/job: j, remuda.dev/equal-nodes: \"true\""), "8", ""), "waits", "a ChipsBusy, b TooFewChips", "free-chips", "" },
        { "the network is too slow", &plain, HARDWARE("a", "100") TOLD_POD("p", LABELS("remuda.dev/min-network-mbps: \"200\""), "8", ""),
          "never", "a NetworkTooSlow", "", "the fastest network of the node does 100 Mbit/s; 200 asked for" },
        { "a gang of three on two nodes", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("p", GANG("3"), "8", ""),
          "waits", "a GangDoesNotFit, b GangDoesNotFit", "ask-for-fewer, smaller-gang", "make the gang 2 member(s) instead of 3" },
        { "a gang of kinds", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("p", "labels: {remuda.dev/job: j}, annotations: {remuda.dev/gang: \"nvidia.com/gpu=8x2\"}, ", "8", ""),
          "waits", "a GangDoesNotFit", "", "" },
        { "a gang that fits nowhere", &plain, TOLD_PLAIN("a", "H100", "4") TOLD_POD("p", GANG("2"), "8", ""), "never", "a TooFewChips", "ask-for-fewer", "ask for 2 chip(s)" },
        { "a gang of many", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("p", GANG("65"), "8", ""), "waits", "a GangDoesNotFit", "", "" },
        { "the reserve has room", &plain, TOLD_NODE("a", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_POD("p", "", "2", ""),
          "never", "a ReservedPool", "lend-reserve", "the node is in the pool reserved; the pod is no emergency\"" },
        { "an emergency by its own word", &plain, TOLD_NODE("a", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "")
          TOLD_POD("p", LABELS("remuda.dev/urgency: emergency"), "2", ""),
          "never", "a ReservedPool", "lend-reserve", "the label remuda.dev/urgency is ignored: its namespace is not among --emergency-namespaces" },
        { "the reserve is lent", &open, TOLD_NODE("a", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_POD("p", "", "2", ""),
          "never", "a ReservedPool", "lend-reserve", "" },
        { "... to such a pod", &open, TOLD_NODE("a", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "") FULL("b")
          TOLD_POD("p", LABELS("remuda.dev/preemptible: \"true\""), "9", ""), "never", "a TooFewChips, b TooFewChips", "ask-for-fewer", "" },
        { "a node of the other class", &plain, TOLD_NODE("a", "single", "regular", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_POD("p", "", "2", ""),
          "never", "a SingleChipNode", "ask-for-fewer, allow-overflow", "the node's class is single; the pod's job asks for 2 chip(s)" },
        { "one chip of the last whole group", &plain, TOLD_NODE("a", "multi", "regular", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_POD("p", "", "1", ""),
          "never", "a MultiChipNode", "", "the node's class is multi; the pod's job asks for 1 chip(s)" },
        { "... of one of two", &plain, TOLD_NODE("a", "multi", "regular", TOLD_GROUP("g", "H100", "8", "8") ", " TOLD_GROUP("h", "H100", "8", "8"), "") TOLD_POD("p", "", "1", ""),
          "never", "a MultiChipNode", "allow-overflow", "" },
        { "only its taint is in the way", &plain, TOLD_PLAIN("a", "H100", "8") OBJECT("a", "", "taints: [{key: k, value: v, effect: NoSchedule}]") TOLD_POD("p", "", "8", ""),
          "never", "a NodeNotAllowed", "allow-node", "let the pod onto node a: " },
        { "its labels, and no room", &plain, FULL("a") OBJECT("a", "", "") TOLD_POD("p", "", "8", "nodeSelector: {zone: x}, "), "never", "a NodeNotAllowed", "", "the label zone=x" },
        { "a node without an inventory", &plain, OBJECT("a", "", "") TOLD_POD("p", "", "8", ""), "never", "a NoSuchResource", "", "" },
        { "more remedies than are told", &plain, FULL("a") FULL("b") FULL("c") FULL("d") FULL("e") FULL("f") FULL("g") FULL("h") FULL("i") FULL("j") FULL("k") FULL("l")
          FULL("m") FULL("n") FULL("o") FULL("q") FULL("r") FULL("s") TOLD_PLAIN("t", "H100", "2") TOLD_NODE("u", "any", "regular", TOLD_GROUP("g", "H100", "8", "7"),
          TOLD_DEVICE("d0", "g", "unhealthy")) TOLD_POD("p", "", "8", ""),
          "waits", NULL, "ask-for-fewer, repair-device, free-chips, free-chips, free-chips, free-chips, free-chips, free-chips, "
          "free-chips, free-chips, free-chips, free-chips, free-chips, free-chips, free-chips, free-chips", "ask for 7 chip(s)" },
};
/* clang-format on */

static void list(const json_t *items, const char *first, const char *second, struct text *text)
{
        for (size_t i = 0; i < json_array_size(items); i++) {
                const json_t *item = json_array_get(items, i);

                text_printf(text, "%s%s", i > 0 ? ", " : "", json_string_value(json_object_get(item, first)));
                if (second != NULL)
                        text_printf(text, " %s", json_string_value(json_object_get(item, second)));
        }
        text_append(text, "");
}

static void explain_row(struct dir_store *f, size_t row)
{
        struct cluster *c =
                told_cluster(f, (struct cluster_options){ .rules = *rows[row].rules }, rows[row].objects);
        CLEANUP(text_free) struct text nodes = { 0 }, remedies = { 0 };
        CLEANUP(free_p) char *dump = NULL;
        struct ledger_pod *pod = ledger_pods_find(cluster_ledger(c), "default", "p");
        json_t *reply;
        struct err err = { 0 };

        assert_non_null(pod);
        reply = explain_pod(c, pod, TOLD_NOW_USEC, &err);
        assert_non_null(reply);
        list(json_object_get(reply, "nodes"), "node", "reason", &nodes);
        list(json_object_get(reply, "remedies"), "action", NULL, &remedies);
        dump = json_dumps(reply, 0);
        if (strcmp(json_string_value(json_object_get(reply, "verdict")), rows[row].verdict) != 0 ||
            (rows[row].nodes != NULL && strcmp(nodes.data, rows[row].nodes) != 0) ||
            strcmp(remedies.data, rows[row].remedies) != 0 || strstr(dump, rows[row].says) == NULL)
                fail_msg("%s: %s", rows[row].what, dump);
        json_decref(reply);
        cluster_close(c);
}

static void every_remedy_is_one_that_helps(void **state)
{
        struct dir_store *f = dir_store_new();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                explain_row(f, i);
        dir_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_remedy_is_one_that_helps),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
