/* What is said of a pod that waits: a reason a node, its words, and the remedies that help when tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/gang_share.h"
#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/pod_request.h"
#include "tests/support/told_cluster.h"

/* clang-format off */
#define FULL(NAME)      TOLD_PLAIN(NAME, "H100", "8") TOLD_POD("on-" NAME, "", "8", "nodeName: " NAME ", ")
#define OBJECT(NAME, META, SPEC) "- {kind: Node, metadata: {" META "name: " NAME "}, spec: {" SPEC "}}\n"
#define SIZED(NAME, LIST) "- {kind: Node, metadata: {name: " NAME "}, status: {allocatable: {" LIST "}}}\n"
#define HUNGRY(NAME, META, CHIPS, LIST) "- {kind: Pod, metadata: {" META "name: " NAME ", uid: u-" NAME "}, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: " CHIPS "}, requests: {" LIST "}}}]}}\n"
#define APART                                                                                                \
        "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "                      \
        "[{topologyKey: host, labelSelector: {matchLabels: {app: web}}}]}}, "
#define BUSY(SECONDS)   TOLD_POD("old", "", "6", "nodeName: a, activeDeadlineSeconds: " SECONDS ", ")
#define LABELS(LIST)    "labels: {" LIST "}, "
#define MODELS(LIST)    "annotations: {remuda.dev/models: \"" LIST "\"}, "
#define GANG(SIZE)      LABELS("remuda.dev/job: j, remuda.dev/gang-size: \"" SIZE "\"")
#define HARDWARE(NAME, MBPS) \
        "- {apiVersion: remuda.dev/v1alpha1, kind: NodeAccelerators, metadata: {name: " NAME "}, status: {generation: 1, bootID: b, nodeClass: any, " \
        "pool: regular, hardware: {cores: 8, network: [{name: e, kind: ethernet, mbps: " MBPS "}]}, groups: [" TOLD_GROUP("g", "H100", "8", "8") "], devices: []}}\n"
#define OF_JOB(MORE)            LABELS("remuda.dev/job: j, remuda.dev/gang-size: \"" MORE "\"")
#define KINDS(LIST)             "labels: {remuda.dev/job: j}, annotations: {remuda.dev/gang: \"" LIST "\"}, "
#define JOB(SPEC)               "- {apiVersion: remuda.dev/v1alpha1, kind: TrainingJob, metadata: {name: j}, spec: {programs: {cuda: {image: x, command: [/x]}}, " SPEC "}}\n"
#define AMD(NAME, META, SPEC)   "- {kind: Pod, metadata: {" META "name: " NAME ", uid: u-" NAME "}, spec: {" SPEC "containers: [{name: c, resources: {limits: {amd.com/gpu: 1}}}]}}\n"
#define HARD(NAME, FIELDS) \
        "- {apiVersion: remuda.dev/v1alpha1, kind: NodeAccelerators, metadata: {name: " NAME "}, status: {generation: 1, bootID: b, nodeClass: any, " \
        "pool: regular, hardware: {" FIELDS "}, groups: [" TOLD_GROUP("g", "H100", "8", "8") "], devices: []}}\n"
#define PAIR(ONE, OTHER) HARD("a", ONE) HARD("b", OTHER) TOLD_POD("first", LABELS("remuda.dev/job: j"), "8", "nodeName: a, ") \
        TOLD_POD("p", LABELS("remuda.dev/job: j, remuda.dev/equal-nodes: \"true\""), "8", "")
static const struct rules plain = { .placement = PLACEMENT_PACKED, .lease_usec = 60000000, .lease_share_percent = 50, .hold_usec = 600000000 },
                          open = { .placement = PLACEMENT_PACKED, .lend_reserve = true, .overflow = OVERFLOW_BOTH, .overflow_percent = 100 },
                          evicting = { .placement = PLACEMENT_PACKED, .takes = LEDGER_PODS_TAKES_BORROWERS };

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
          "waits", "a ChipsBusy", "wait, free-chips, ask-for-fewer", "\"takesEffect\": \"2026-11-21T11:00:00Z\", \"detail\": {\"node\": \"a\", \"until\": \"2026-11-21T11:00:00Z\"}, \"message\": \"wait: by 2026-11-21T11:00:00Z default/old ends, and node a takes it\"" },
        { "a pod there should have ended", &plain, TOLD_PLAIN("a", "H100", "8") BUSY("60") TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsBusy", "wait, free-chips, ask-for-fewer", "by 2026-11-21T10:00:00Z" },
        { "the first end is not enough", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("x", "", "4", "nodeName: a, activeDeadlineSeconds: 9000, ")
          TOLD_POD("y", "", "2", "nodeName: a, activeDeadlineSeconds: 7200, ") TOLD_POD("z", "", "1", "nodeName: a, ") TOLD_POD("p", "", "7", ""),
          "waits", "a ChipsBusy", "wait, free-chips, ask-for-fewer", "by 2026-11-21T11:30:00Z" },
        { "nobody there says when it ends", &plain, FULL("a") TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsBusy", "free-chips", "free 8 chip(s): 1 pod(s), the first is default/on-a on node a" },
        { "a chip is ill", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "H100", "8", "7"), TOLD_DEVICE("d0", "g", "unhealthy")) TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsUnhealthy", "repair-device, ask-for-fewer", "repair d0 on node a\"" },
        { "chips are in quarantine", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "H100", "8", "6") ", " TOLD_GROUP("h", "V100", "2", "1"),
          TOLD_DEVICE("d0", "g", "quarantined") ", " TOLD_DEVICE("e0", "h", "unhealthy") ", " TOLD_DEVICE("d1", "g", "quarantined") ", " TOLD_DEVICE("lone", "none", "unhealthy"))
          TOLD_POD("p", MODELS("H100"), "8", ""),
          "waits", "a ChipsUnhealthy", "clear-quarantine, ask-for-fewer", "clear the quarantine of d0 on node a (and others there)" },
        { "... on two nodes, fewer on one of them", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "H100", "8", "6"), TOLD_DEVICE("d0", "g", "unhealthy") ", " TOLD_DEVICE("d1", "g", "unhealthy"))
          TOLD_NODE("b", "any", "regular", TOLD_GROUP("g", "H100", "8", "7"), TOLD_DEVICE("e0", "g", "unhealthy")) TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsUnhealthy, b ChipsUnhealthy", "repair-device, ask-for-fewer", "repair e0 on node b\"" },
        { "more is ill than can be mended", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "H100", "8", "6"), TOLD_DEVICE("d0", "g", "unhealthy"))
          TOLD_POD("p", "", "8", ""), "waits", "a ChipsUnhealthy", "ask-for-fewer", "8 in all, 6 usable" },
        { "another model has room", &plain, TOLD_PLAIN("a", "A100", "8") TOLD_PLAIN("b", "A100", "8") TOLD_PLAIN("c", "\"\"", "8")
          TOLD_NODE("d", "any", "regular", TOLD_GROUP("g", "A100", "8", "8") ", " TOLD_GROUP("h", "\"\"", "1", "1"), "") TOLD_POD("p", MODELS("H100|V100"), "8", ""),
          "never", "a WrongModel, b WrongModel, c WrongModel, d WrongModel", "accept-model", "the node has A100, an unknown model" },
        { "more reasons than a sentence has", &plain, FULL("a") TOLD_NODE("b", "single", "regular", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_PLAIN("d", "H100", "4")
          TOLD_NODE("c", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsBusy, b SingleChipNode, c ReservedPool, d TooFewChips", "lend-reserve, free-chips, ask-for-fewer",
          "no node of 4 takes it: 1 ChipsBusy, 1 SingleChipNode, 1 ReservedPool and 1 more\"" },
        { "one model in two groups", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "A100", "4", "4") ", " TOLD_GROUP("h", "A100", "4", "4"), "") TOLD_POD("p", MODELS("H100"), "8", ""),
          "never", "a WrongModel", "accept-model", "the node has A100\"" },
        { "another model has none", &plain, TOLD_PLAIN("a", "A100", "4") TOLD_POD("p", MODELS("H100"), "8", ""), "never", "a WrongModel", "", "the node has A100" },
        { "accepted, but taken", &plain, FULL("a") TOLD_POD("p", MODELS("H100"), "8", ""), "waits", "a ChipsBusy", "free-chips", "" },
        { "another model is free sooner", &plain, TOLD_PLAIN("a", "A100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("on-a", "", "8", "nodeName: a, activeDeadlineSeconds: 7200, ")
          TOLD_POD("on-b", "", "8", "nodeName: b, activeDeadlineSeconds: 9000, ") TOLD_POD("p", MODELS("H100"), "8", ""), "waits", "a WrongModel, b ChipsBusy", "wait, accept-model, free-chips",
          "{\"who\": \"asker\", \"action\": \"accept-model\", \"takesEffect\": \"2026-11-21T11:00:00Z\"" },
        { "another model is free later", &plain, TOLD_PLAIN("a", "A100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("on-a", "", "8", "nodeName: a, activeDeadlineSeconds: 9000, ")
          TOLD_POD("on-b", "", "8", "nodeName: b, activeDeadlineSeconds: 7200, ") TOLD_POD("p", MODELS("H100"), "8", ""), "waits", "a WrongModel, b ChipsBusy", "wait, free-chips", "" },
        { "of two that cost the same the sooner", &open, TOLD_PLAIN("a", "A100", "8") TOLD_NODE("b", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "")
          TOLD_POD("on-a", "", "8", "nodeName: a, activeDeadlineSeconds: 7200, ") TOLD_POD("p", MODELS("H100"), "8", ""), "never", "a WrongModel, b ReservedPool", "label-preemptible, accept-model", "" },
        { "the nearest node is the one with most room", &plain, FULL("a") FULL("b") FULL("c") FULL("d") TOLD_PLAIN("e", "H100", "8") TOLD_POD("on-e", "", "1", "nodeName: e, ")
          TOLD_POD("p", "", "8", ""), "waits", "a ChipsBusy, b ChipsBusy, c ChipsBusy, d ChipsBusy, e ChipsBusy", "free-chips, ask-for-fewer", "\"examples\": [{\"node\": \"e\"" },
        { "who may go for emergencies goes for nobody else", &evicting, TOLD_PLAIN("a", "H100", "8") TOLD_POD("x", LABELS("remuda.dev/preemptible: \"true\""), "8", "nodeName: a, ")
          TOLD_POD("p", "", "8", ""), "waits", "a ChipsBusy", "free-chips", "" },
        { "two that do not say when they end", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("x", "", "4", "nodeName: a, ") TOLD_POD("y", "", "4", "nodeName: a, ") TOLD_POD("p", "", "8", ""),
          "waits", "a ChipsBusy", "free-chips", "{\"who\": \"others\", \"action\": \"free-chips\", \"takesEffect\": \"when default/x and 1 more end\"" },
        { "a gang that two must leave for", &plain, FULL("a") FULL("b") FULL("c") TOLD_POD("p", GANG("2"), "8", "") TOLD_POD("q", GANG("2"), "8", ""), "waits",
          "a ChipsBusy, b ChipsBusy, c ChipsBusy", "free-chips", "\"message\": \"free 16 chip(s): 2 pod(s), the first is default/on-" },
        { "as many models as can be named", &plain, TOLD_PLAIN("a", "A100", "8") TOLD_POD("p", MODELS("a|b|c|d|e|f|g|h|i|j|k|l"), "8", ""),
          "never", "a WrongModel", "", "the node has A100" },
        { "the chips are in two groups", &plain, TOLD_NODE("a", "any", "regular", TOLD_GROUP("g", "H100", "4", "4") ", " TOLD_GROUP("h", "H100", "4", "4"), "")
          TOLD_POD("p", LABELS("remuda.dev/same-group: \"true\""), "8", ""),
          "never", "a NoSuchGroup", "drop-label, ask-for-fewer", "drop the label remuda.dev/same-group: the chips are there, in several groups" },
        { "the chips are nowhere", &plain, TOLD_PLAIN("a", "H100", "4") TOLD_POD("p", LABELS("remuda.dev/same-group: \"true\""), "8", ""),
          "never", "a TooFewChips", "ask-for-fewer", "" },
        { "another of the job is elsewhere", &plain, HARDWARE("a", "100") HARDWARE("b", "200") TOLD_POD("first", LABELS("remuda.dev/job: j"), "8", "nodeName: a, ")
          TOLD_POD("p", LABELS("remuda.dev/job: j, remuda.dev/equal-nodes: \"true\""), "8", ""),
          "waits", "a ChipsBusy, b UnequalNode", "drop-label", "differs from node a in: network speed" },
        { "unlike, and too small", &plain, HARDWARE("a", "100") TOLD_PLAIN("b", "H100", "4") TOLD_POD("first", LABELS("remuda.dev/job: j"), "8", "nodeName: a, ")
          TOLD_POD("p", LABELS("remuda.dev/job: j, remuda.dev/equal-nodes: \"true\""), "8", ""), "waits", "a ChipsBusy, b TooFewChips", "", "" },
        { "the network is too slow", &plain, HARDWARE("a", "100") TOLD_POD("p", LABELS("remuda.dev/min-network-mbps: \"200\""), "8", ""),
          "never", "a NetworkTooSlow", "", "the fastest network of the node does 100 Mbit/s; 200 asked for" },
        { "a gang of three on two nodes", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("p", GANG("3"), "8", "") TOLD_POD("q", GANG("3"), "8", "") TOLD_POD("r", GANG("3"), "8", ""),
          "waits", "a GangDoesNotFit, b GangDoesNotFit", "smaller-gang", "make the gang 2 member(s) instead of 3" },
        { "a gang of kinds", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("q", "labels: {remuda.dev/job: j}, annotations: {remuda.dev/gang: \"nvidia.com/gpu=8x2\"}, ", "8", "")
          TOLD_POD("p", "labels: {remuda.dev/job: j}, annotations: {remuda.dev/gang: \"nvidia.com/gpu=8x2\"}, ", "8", ""),
          "waits", "a GangDoesNotFit", "", "" },
        { "a gang that fits nowhere", &plain, TOLD_PLAIN("a", "H100", "4") TOLD_POD("p", GANG("2"), "8", "") TOLD_POD("q", GANG("2"), "1", ""), "never", "a TooFewChips", "ask-for-fewer", "ask for 3 chip(s)" },
        { "a gang of many", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("p", GANG("65"), "8", ""), "waits", "a GangIncomplete", "", "" },
        { "the reserve has room", &plain, TOLD_NODE("a", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_POD("p", "", "2", ""),
          "never", "a ReservedPool", "lend-reserve", "the node is in the pool reserved; the pod is no emergency\"" },
        { "an emergency by its own word", &plain, TOLD_NODE("a", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "")
          TOLD_POD("p", LABELS("remuda.dev/urgency: emergency"), "2", ""),
          "never", "a ReservedPool", "lend-reserve", "the label remuda.dev/urgency is ignored: its namespace is not among --emergency-namespaces" },
        { "the reserve is lent", &open, TOLD_NODE("a", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_POD("p", "", "2", ""),
          "never", "a ReservedPool", "label-preemptible", "{\"who\": \"asker\"" },
        { "... to such a pod", &open, TOLD_NODE("a", "any", "reserved", TOLD_GROUP("g", "H100", "8", "8"), "") FULL("b")
          TOLD_POD("p", LABELS("remuda.dev/preemptible: \"true\""), "9", ""), "never", "a TooFewChips, b TooFewChips", "ask-for-fewer", "" },
        { "a node of the other class", &plain, TOLD_NODE("a", "single", "regular", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_POD("p", "", "2", ""),
          "never", "a SingleChipNode", "allow-overflow, ask-for-fewer", "the node's class is single; the pod's job asks for 2 chip(s)" },
        { "one chip of the last whole group", &plain, TOLD_NODE("a", "multi", "regular", TOLD_GROUP("g", "H100", "8", "8"), "") TOLD_POD("p", "", "1", ""),
          "never", "a MultiChipNode", "", "the node's class is multi; the pod's job asks for 1 chip(s)" },
        { "... of one of two", &plain, TOLD_NODE("a", "multi", "regular", TOLD_GROUP("g", "H100", "8", "8") ", " TOLD_GROUP("h", "H100", "8", "8"), "") TOLD_POD("p", "", "1", ""),
          "never", "a MultiChipNode", "allow-overflow", "" },
        { "what it would take of each batch", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "V100", "8") JOB("globalBatch: 64, workers: [{runtime: cuda, chips: 2}]")
          TOLD_POD("p", OF_JOB("2"), "1", ""), "fits", "a , b ", "", "\"shares\": {\"batch\": 64, \"shards\": \"weighted\"" },
        { "... the same for all", &plain, TOLD_PLAIN("a", "H100", "8") JOB("shards: equal, globalBatch: 64, workers: [{runtime: cuda, chips: 2}]")
          TOLD_POD("p", OF_JOB("2"), "1", ""), "fits", "a ", "", "\"shards\": \"equal\"" },
        { "a node that a pod alone names", &plain, TOLD_POD("x", "", "1", "nodeName: ghost, ") TOLD_POD("p", "", "1", ""), "waits", "ghost NodeUnknown", "", "neither an inventory nor a Node object of this name is there" },
        { "unlike in its cores", &plain, PAIR("cores: 9", "cores: 8"), "waits", "a ChipsBusy, b UnequalNode", "drop-label", "differs from node a in: CPU cores" },
        { "in its clock", &plain, PAIR("maxMhz: 3000", "maxMhz: 2000"), "waits", "a ChipsBusy, b UnequalNode", "drop-label", "differs from node a in: CPU clock" },
        { "in its kind of memory", &plain, PAIR("memoryType: DDR5", "memoryType: DDR4"), "waits", "a ChipsBusy, b UnequalNode", "drop-label", "differs from node a in: memory type" },
        { "in how much of it", &plain, PAIR("memoryBytes: 1000", "memoryBytes: 900"), "waits", "a ChipsBusy, b UnequalNode", "drop-label", "differs from node a in: memory size" },
        { "... or in none at all", &plain, PAIR("memoryBytes: 1000", "cores: 0"), "waits", "a ChipsBusy, b UnequalNode", "drop-label", "differs from node a in: memory size" },
        { "alike within two parts of a hundred", &plain, PAIR("memoryBytes: 980", "memoryBytes: 1000"), "fits", "a ChipsBusy, b ", "", "" },
        { "in its network", &plain, PAIR("network: [{name: e, kind: ethernet, mbps: 1}]", "network: [{name: e, kind: infiniband, mbps: 1}, {name: f, kind: ethernet, mbps: 0}]"),
          "waits", "a ChipsBusy, b UnequalNode", "drop-label", "differs from node a in: network kind" },
        { "only its taint is in the way", &plain, TOLD_PLAIN("a", "H100", "8") OBJECT("a", "", "taints: [{key: k, value: v, effect: NoSchedule}]") TOLD_POD("p", "", "8", ""),
          "never", "a NodeNotAllowed", "allow-node", "let the pod onto node a: " },
        { "its labels, and no room", &plain, FULL("a") OBJECT("a", "", "") TOLD_POD("p", "", "8", "nodeSelector: {zone: x}, "), "never", "a NodeNotAllowed", "", "the label zone=x" },
        { "its CPUs do not suffice", &plain, TOLD_PLAIN("a", "H100", "8") SIZED("a", "cpu: 2, pods: 110") HUNGRY("p", "", "1", "cpu: 2500m") , "waits", "a NodeFull", "", "2500m of CPU asked for, 2000 of 2000 left" },
        { "... for all of a gang", &plain, TOLD_PLAIN("a", "H100", "8") SIZED("a", "cpu: 4, pods: 110") HUNGRY("p", GANG("2"), "1", "cpu: 2500m") HUNGRY("q", GANG("2"), "1", "cpu: 2500m") , "waits", "a GangDoesNotFit", "smaller-gang", "" },
        { "a pod there that it keeps away from", &plain, TOLD_PLAIN("a", "H100", "8") OBJECT("a", "labels: {host: a}, ", "") TOLD_POD("x", LABELS("app: web"), "1", "nodeName: a, ") TOLD_POD("p", "", "1", APART),
          "waits", "a WrongNeighbours", "", "its pod anti-affinity: 1 such pods are in host=a" },
        { "a node without an inventory", &plain, OBJECT("a", "", "") TOLD_POD("p", "", "8", ""), "never", "a NoSuchResource", "", "" },
        { "one of each kind of remedy", &plain, FULL("a") FULL("b") FULL("c") FULL("d") FULL("e") FULL("f") FULL("g") FULL("h") FULL("i") FULL("j") FULL("k") FULL("l")
          FULL("m") FULL("n") FULL("o") FULL("q") FULL("r") FULL("s") TOLD_PLAIN("t", "H100", "2") TOLD_NODE("u", "any", "regular", TOLD_GROUP("g", "H100", "8", "7"),
          TOLD_DEVICE("d0", "g", "unhealthy")) TOLD_POD("p", "", "8", ""),
          "waits", NULL, "repair-device, free-chips, ask-for-fewer", "ask for 7 chip(s)" },
};
/* clang-format on */

/* clang-format off */
#define TWO_GROUPS(NAME, CLASS) TOLD_NODE(NAME, CLASS, "regular", TOLD_GROUP("g", "H100", "8", "8") ", " TOLD_GROUP("h", "H100", "8", "8"), "")
#define ONE(NAME, META, SPEC)   TOLD_POD(NAME, META, "1", SPEC)
/* It has run. */
#define DONE(NAME, META, PHASE) "- {kind: Pod, metadata: {" META "name: " NAME ", uid: u-" NAME "}, status: {phase: " PHASE ", startTime: \"2026-11-21T09:10:00Z\"}, " \
        "spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}}\n"
static const struct rules quarter = { .placement = PLACEMENT_PACKED, .overflow = OVERFLOW_SINGLE_TO_MULTI, .overflow_percent = 25 };

/* Of the pod "p": the reason of each node, whatever would help. */
static const struct { const char *what; const struct rules *rules; const char *objects, *nodes; } reasons[] = {
        { "one chip of a node for many", &open, TWO_GROUPS("a", "multi") ONE("p", "", ""), "a " },
        { "... where a short one waits", &open, TWO_GROUPS("a", "multi") ONE("s", "", "activeDeadlineSeconds: 60, ") ONE("p", "", ""), "a MultiChipNode" },
        { "... where one waits that may go", &open, TWO_GROUPS("a", "multi") ONE("s", LABELS("remuda.dev/preemptible: \"true\""), "") ONE("p", "", ""), "a MultiChipNode" },
        { "... and is such a one itself", &open, TWO_GROUPS("a", "multi") ONE("s", "", "activeDeadlineSeconds: 60, ") ONE("p", LABELS("remuda.dev/preemptible: \"true\""), ""), "a " },
        { "... where a long one waits", &open, TWO_GROUPS("a", "multi") ONE("s", "", "activeDeadlineSeconds: 1000000, ") ONE("p", "", ""), "a " },
        { "... where one waits at a gate", &open, TWO_GROUPS("a", "multi") ONE("s", "", "activeDeadlineSeconds: 60, schedulingGates: [{name: x}], ") ONE("p", "", ""), "a " },
        { "... where one is on its way out", &open, TWO_GROUPS("a", "multi") ONE("s", "deletionTimestamp: \"2026-11-21T09:30:00Z\", ", "activeDeadlineSeconds: 60, ") ONE("p", "", ""), "a " },
        { "... where one of no chips waits", &open, TWO_GROUPS("a", "multi") TOLD_POD("s", "", "0", "activeDeadlineSeconds: 60, ") ONE("p", "", ""), "a " },
        { "... where one of other chips waits", &open, TWO_GROUPS("a", "multi") AMD("s", "", "activeDeadlineSeconds: 60, ") ONE("p", "", ""), "a " },
        { "... beside a job of several", &open, TWO_GROUPS("a", "multi") TOLD_POD("big", "", "2", "nodeName: a, ") ONE("p", "", ""), "a MultiChipNode" },
        { "... beside one that has its quarter", &quarter, TWO_GROUPS("a", "multi") ONE("x", "", "nodeName: a, ") ONE("y", "", "nodeName: a, ") ONE("z", "", "nodeName: a, ") ONE("p", "", ""), "a " },
        { "... or more", &quarter, TWO_GROUPS("a", "multi") ONE("w", "", "nodeName: a, ") ONE("x", "", "nodeName: a, ") ONE("y", "", "nodeName: a, ") ONE("z", "", "nodeName: a, ") ONE("p", "", ""), "a MultiChipNode" },
        { "many on nodes for one", &open, TWO_GROUPS("a", "single") TOLD_POD("p", "", "2", ""), "a " },
        { "too many for nodes of one", &open, TWO_GROUPS("a", "single") TOLD_POD("p", "", "16", ""), "a SingleChipNode" },
        { "the other way alone", &quarter, TWO_GROUPS("a", "single") TOLD_POD("p", "", "2", ""), "a SingleChipNode" },
        { "a gang of which one is there", &plain, TWO_GROUPS("a", "multi") TWO_GROUPS("b", "single") TOLD_PLAIN("c", "H100", "8") ONE("p", GANG("2"), ""), "a GangIncomplete, b SingleChipNode, c GangIncomplete" },
        { "... and whose others are at a gate", &plain, TWO_GROUPS("a", "multi") ONE("m", GANG("2"), "schedulingGates: [{name: x}], ") ONE("p", GANG("2"), ""), "a GangIncomplete" },
        { "... and all its others have ended", &plain, TWO_GROUPS("a", "multi") ONE("m", "deletionTimestamp: \"2026-11-21T09:30:00Z\", " GANG("2"), "") ONE("p", GANG("2"), ""), "a GangIncomplete" },
        { "... of no job", &plain, TWO_GROUPS("a", "multi") ONE("p", LABELS("remuda.dev/gang-size: \"2\""), ""), "a GangIncomplete" },
        { "... by a list", &plain, TWO_GROUPS("a", "multi") ONE("p", KINDS("nvidia.com/gpu=1x2"), ""), "a GangIncomplete" },
        { "... with overflow", &open, TWO_GROUPS("a", "multi") ONE("p", GANG("2"), ""), "a GangIncomplete" },
        { "two of three are there", &plain, TWO_GROUPS("a", "multi") ONE("m", GANG("3"), "") ONE("p", GANG("3"), ""), "a GangIncomplete" },
        { "one has begun, and another comes back", &plain, TWO_GROUPS("a", "multi") ONE("m", GANG("3"), "nodeName: a, ") ONE("p", GANG("3"), ""), "a " },
        { "all of it are there", &plain, TWO_GROUPS("a", "multi") ONE("m", GANG("3"), "") ONE("n", GANG("3"), "") ONE("p", GANG("3"), ""), "a " },
        { "the other is bound", &plain, TWO_GROUPS("a", "multi") ONE("m", GANG("2"), "nodeName: a, ") ONE("p", GANG("2"), ""), "a " },
        { "one of two chips", &plain, TWO_GROUPS("a", "multi") TOLD_POD("p", GANG("2"), "2", "") TOLD_POD("q", GANG("2"), "2", ""), "a " },
        { "one whose job is written down", &plain, TWO_GROUPS("a", "multi") JOB("workers: [{runtime: cuda, chips: 2}]") ONE("p", OF_JOB("2"), ""), "a " },
        { "a network that is fast enough", &plain, HARDWARE("a", "200") TOLD_POD("p", LABELS("remuda.dev/min-network-mbps: \"200\""), "8", ""), "a " },
        { "a share that no chip holds", &plain, TOLD_PLAIN("a", "H100", "8")
          TOLD_POD("p", "labels: {remuda.dev/job: j, remuda.dev/gang-size: \"1\"}, annotations: {remuda.dev/batch: \"64\", remuda.dev/memory-fixed-bytes: 200Gi, remuda.dev/memory-sample-bytes: 1Ki}, ", "1", ""), "a ShareTooLarge" },
        { "a job without a program", &plain, TOLD_PLAIN("a", "H100", "8") "- {apiVersion: remuda.dev/v1alpha1, kind: TrainingJob, metadata: {name: j}, spec: {workers: [{runtime: cuda, chips: 8}]}}\n"
          TOLD_POD("p", LABELS("remuda.dev/job: j"), "8", ""), "a NoProgram" },
        { "two of a kind, one is there", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("m", KINDS("nvidia.com/gpu=8x2"), "8", "nodeName: a, ") TOLD_POD("p", KINDS("nvidia.com/gpu=8x2"), "8", ""), "a ChipsBusy, b " },
        { "two of a kind, none has room", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("x", "", "1", "nodeName: a, ") TOLD_POD("m", KINDS("nvidia.com/gpu=8x2"), "8", "") TOLD_POD("p", KINDS("nvidia.com/gpu=8x2"), "8", ""), "a ChipsBusy, b GangDoesNotFit" },
        { "two kinds of one resource", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "4") TOLD_POD("m", KINDS("nvidia.com/gpu=8x1,nvidia.com/gpu=4x1"), "4", "") TOLD_POD("p", KINDS("nvidia.com/gpu=8x1,nvidia.com/gpu=4x1"), "8", ""), "a , b TooFewChips" },
        { "a kind of chips that nobody has", &plain, TOLD_PLAIN("a", "H100", "8") AMD("m", KINDS("nvidia.com/gpu=8x1,amd.com/gpu=1x1"), "") TOLD_POD("p", KINDS("nvidia.com/gpu=8x1,amd.com/gpu=1x1"), "8", ""), "a GangDoesNotFit" },
        { "a copy that is at a gate", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("m", OF_JOB("2"), "8", "schedulingGates: [{name: x}], ") TOLD_POD("p", OF_JOB("2"), "8", ""), "a GangIncomplete, b GangIncomplete" },
        { "a copy that has ended", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("m", OF_JOB("3") "deletionTimestamp: \"2026-11-21T09:30:00Z\", ", "8", "") TOLD_POD("q", OF_JOB("3"), "8", "") TOLD_POD("r", OF_JOB("3"), "8", "") TOLD_POD("p", OF_JOB("3"), "8", ""), "a GangDoesNotFit, b GangDoesNotFit" },
        { "all members are bound", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("m", OF_JOB("1"), "8", "nodeName: a, ") TOLD_POD("p", OF_JOB("1"), "8", ""), "a ChipsBusy, b " },
        { "the members that the job lists", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") JOB("workers: [{runtime: cuda, chips: 16}]") TOLD_POD("m", OF_JOB("2"), "8", "nodeName: a, ") TOLD_POD("p", OF_JOB("2"), "8", ""), "a ChipsBusy, b " },
        { "... one of which has no room", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "4") JOB("workers: [{runtime: cuda, chips: 16}]") TOLD_POD("p", OF_JOB("2"), "8", ""), "a GangDoesNotFit, b TooFewChips" },
        { "... the rest in one", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "4") JOB("workers: [{runtime: cuda, chips: 12}]") TOLD_POD("p", OF_JOB("2"), "8", ""), "a , b TooFewChips" },
        { "... with a server", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "1") JOB("strategy: ps-sync, workers: [{runtime: cuda, chips: 8}], servers: {runtime: cuda, chips: 1}")
          TOLD_POD("s", LABELS("remuda.dev/job: j, remuda.dev/role: server, remuda.dev/gang-size: \"2\""), "1", "nodeName: b, ") TOLD_POD("p", OF_JOB("2"), "8", ""), "a , b TooFewChips" },
        { "... and one that is of no role of it", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") JOB("workers: [{runtime: cuda, chips: 8}]") AMD("m", OF_JOB("2"), "") TOLD_POD("p", OF_JOB("2"), "8", ""), "a GangDoesNotFit, b GangDoesNotFit" },
        { "... of a model that it takes", &plain, TOLD_PLAIN("a", "A100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_PLAIN("c", "A100", "8") JOB("workers: [{model: A100, chips: 16}]") TOLD_POD("p", "labels: {remuda.dev/job: j, remuda.dev/gang-size: \"2\"}, annotations: {remuda.dev/models: A100}, ", "8", ""), "a , b WrongModel, c " },
        { "a copy that is bound already", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_PLAIN("c", "H100", "8") TOLD_POD("m", OF_JOB("3"), "8", "nodeName: a, ") TOLD_POD("p", OF_JOB("3"), "8", ""), "a ChipsBusy, b , c " },
        { "a copy in the place of one that was evicted, whose fellows are done", &plain, TOLD_PLAIN("a", "H100", "8") DONE("m", GANG("2"), "Succeeded") TOLD_POD("p", GANG("2"), "2", ""), "a " },
        { "... or failed", &plain, TOLD_PLAIN("a", "H100", "8") DONE("m", KINDS("nvidia.com/gpu=2x2"), "Failed") TOLD_POD("p", KINDS("nvidia.com/gpu=2x2"), "2", ""), "a " },
        { "... or on their way out", &plain, TOLD_PLAIN("a", "H100", "8") DONE("m", "deletionTimestamp: \"2026-11-21T09:30:00Z\", " GANG("2"), "Pending") TOLD_POD("p", GANG("2"), "2", ""), "a " },
        { "... which had no chips", &plain, TOLD_PLAIN("a", "H100", "8") "- {kind: Pod, metadata: {" GANG("2") "name: m, uid: u-m}, status: {phase: Succeeded, startTime: \"2026-11-21T09:10:00Z\"}, spec: {containers: [{name: c}]}}\n"
          TOLD_POD("p", GANG("2"), "2", ""), "a GangIncomplete" },
        { "one of no chips among copies", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("m", OF_JOB("2"), "0", "") TOLD_POD("p", OF_JOB("2"), "8", ""), "a , b " },
        { "one of no chips is none of a list", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("m", KINDS("nvidia.com/gpu=8x2"), "0", "") TOLD_POD("p", KINDS("nvidia.com/gpu=8x2"), "8", ""), "a GangIncomplete, b GangIncomplete" },
        { "... and is not planned beside it", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("m", KINDS("nvidia.com/gpu=8x2"), "0", "") TOLD_POD("o", KINDS("nvidia.com/gpu=8x2"), "8", "") TOLD_POD("p", KINDS("nvidia.com/gpu=8x2"), "8", ""), "a , b " },
        { "one of no chips in a job", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") JOB("workers: [{runtime: cuda, chips: 16}]") TOLD_POD("m", OF_JOB("2"), "0", "") TOLD_POD("p", OF_JOB("2"), "8", ""), "a , b " },
        { "one of a job on its way out", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") JOB("workers: [{runtime: cuda, chips: 16}]") TOLD_POD("m", OF_JOB("2") "deletionTimestamp: \"2026-11-21T09:30:00Z\", ", "8", "") TOLD_POD("p", OF_JOB("2"), "8", ""), "a , b " },
        { "fewer will do", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "4") JOB("workers: [{runtime: cuda, chips: 16, minChips: 8}]") TOLD_POD("p", OF_JOB("2"), "8", ""), "a , b TooFewChips" },
        { "of another size than the job's", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") JOB("workers: [{runtime: cuda, chips: 16}]") TOLD_POD("p", OF_JOB("7"), "8", ""), "a GangDoesNotFit, b GangDoesNotFit" },
        { "chips under a lease of its own job", &plain, TOLD_PLAIN("a", "H100", "8") TOLD_POD("p", LABELS("remuda.dev/job: j, remuda.dev/equal-nodes: \"true\""), "8", ""), "a " },
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
        reply = explain_pod(c, pod, TOLD_NOW_USEC, EXPLAIN_ALL, &err);
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

static void every_rule_gives_its_reason(void **state)
{
        struct dir_store *f = dir_store_new();
        size_t wrong = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
                struct cluster *c = told_cluster(f, (struct cluster_options){ .rules = *reasons[i].rules },
                                                 reasons[i].objects);
                CLEANUP(text_free) struct text nodes = { 0 };
                struct err err = { 0 };
                json_t *reply = explain_pod(c, ledger_pods_find(cluster_ledger(c), "default", "p"),
                                            TOLD_NOW_USEC, EXPLAIN_ALL, &err);

                assert_non_null(reply);
                list(json_object_get(reply, "nodes"), "node", "reason", &nodes);
                if (strcmp(nodes.data, reasons[i].nodes) != 0) {
                        print_error("%s: want '%s', got '%s'\n", reasons[i].what, reasons[i].nodes,
                                    nodes.data);
                        wrong++;
                }
                json_decref(reply);
                cluster_close(c);
        }
        assert_int_equal(wrong, 0);
        dir_store_free(f);
}

/* The remedy of one who waits for what has an end, but is no pod's. */
static void expect_wait(struct cluster *c, const char *reason, const char *message)
{
        struct err err = { 0 };
        json_t *reply =
                explain_pod(c, ledger_pods_find(cluster_ledger(c), "default", "p"), TOLD_NOW_USEC, 0, &err);
        const json_t *first = json_array_get(json_object_get(reply, "reasons"), 0),
                     *remedy = json_array_get(json_object_get(reply, "remedies"), 0);

        if (remedy == NULL)
                fail_msg("%s: %s", reason, json_dumps(reply, 0));
        assert_null(json_object_get(reply, "nodes"));
        assert_string_equal(json_string_value(json_object_get(first, "word")), reason);
        assert_string_equal(json_string_value(json_object_get(remedy, "who")), "nobody");
        assert_string_equal(json_string_value(json_object_get(remedy, "message")), message);
        json_decref(reply);
}

/* The members of j, as filter would ask for them. */
static void lease(struct cluster *c)
{
        struct pod_request pod_request;

        assert_int_equal(pod_request_begin_pod(c, ledger_pods_find(cluster_ledger(c), "default", "q"),
                                               TOLD_NOW_USEC, true, &pod_request, NULL),
                         0);
        assert_true(pod_request.leased);
        pod_request_end(c, &pod_request);
}

/* clang-format off */
static const char leased[] = TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("q", GANG("2"), "8", "") TOLD_POD("r", GANG("2"), "8", "") TOLD_POD("p", "", "8", ""),
        held[] = TOLD_PLAIN("a", "H100", "8") TOLD_POD("x", "", "4", "nodeName: a, ") TOLD_POD("p", "", "4", "")
        "- {kind: Pod, metadata: {name: big, uid: b, creationTimestamp: \"2026-11-21T08:00:00Z\"}, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}\n",
        large[] = TOLD_PLAIN("a", "H100", "8") TOLD_POD("p", KINDS("nvidia.com/gpu=8x1"), "8", "")
        "- {kind: Pod, metadata: {name: s, namespace: other, uid: s, creationTimestamp: \"2026-11-21T08:00:00Z\"}, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}\n",
        paused[] = TOLD_PLAIN("a", "H100", "8") TOLD_PLAIN("b", "H100", "8") TOLD_POD("p", GANG("2"), "8", "") TOLD_POD("r", GANG("2"), "8", "");
/* clang-format on */

static void leases_holds_and_pauses_end(void **state)
{
        struct dir_store *f = dir_store_new();
        struct cluster *c = told_cluster(f, (struct cluster_options){ .rules = plain }, leased);

        (void) state;
        lease(c);
        expect_wait(c, "ChipsLeased",
                    "wait: by 2026-11-21T10:01:00Z default/j has no lease any more, and node a takes it");
        cluster_close(c);
        c = told_cluster(f, (struct cluster_options){ .rules = plain }, held);
        assert_int_equal(backfill_update(cluster_ledger(c), &plain, TOLD_NOW_USEC), 1);
        expect_wait(
                c, "HeldForOlder",
                "wait: by 2026-11-21T10:10:00Z default/big has no chips held any more, and node a takes it");
        cluster_close(c);
        c = told_cluster(f, (struct cluster_options){ .rules = plain }, paused);
        gang_share_unused(cluster_ledger(c), ledger_jobs_find(cluster_ledger(c), "default", "j"), 60000000,
                          TOLD_NOW_USEC);
        expect_wait(c, "GangPaused",
                    "wait: by 2026-11-21T10:01:00Z default may lease again, and node a takes it");
        cluster_close(c);
        c = told_cluster(f, (struct cluster_options){ .rules = plain }, large);
        expect_wait(
                c, "GangPaused",
                "wait: by 2026-11-21T10:01:00Z default/j lets others go first no more, and node a takes it");
        cluster_close(c);
        dir_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_remedy_is_one_that_helps),
                cmocka_unit_test(every_rule_gives_its_reason),
                cmocka_unit_test(leases_holds_and_pauses_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
