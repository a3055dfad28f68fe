/* Replay: a list of pods arrives at a list of nodes, and the extender's scoring code places them.
 *
 * Arrivals: the whole list in a seeded random order, a new permutation each pass, until the chips asked for
 * reach `load` x capacity; a pod that fits nowhere is dropped. With departures the pods also leave: time runs
 * so that the chips held would on average be `load` x capacity, each pod stays for its own duration, and one
 * pass is made. Pure but for the heap. Verdicts are kept per (kind of pod, node) and only worked out again
 * for nodes that changed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "scheduler-extender/decide/fragmentation.h"

#define REPLAY_CHIPS_MAX 64 /* of one node */

enum replay_policy {
        REPLAY_PACKED,
        REPLAY_UNIFORM,
        REPLAY_LARGEST_FREE,
        REPLAY_FASTEST,
        REPLAY_BESTFIT, /* baseline: least left over, CPU and chips together */
        REPLAY_FGD,     /* baseline: fragmentation gradient descent, as published */
        REPLAY_POLICY_COUNT
};

struct replay_node {
        uint32_t cpu_milli, memory_mib, chips;
        uint8_t model;
        double speed; /* 0 = not known */
};

struct replay_pod {
        struct fragmentation_pod request;
        uint64_t created_sec, deleted_sec; /* 0, 0 = not known */
};

struct replay_placement;

struct replay_options {
        enum replay_policy policy;
        uint64_t seed;
        double load;
        size_t shortlist; /* kube-scheduler takes the node with the most CPU and memory left of so many best
                           */
        bool departures;
        void (*placed)(void *userdata, const struct replay_placement *placement); /* every arrival in order */
        void *userdata;
};

/* Where an arrived pod went. */
struct replay_placement {
        uint32_t pod;  /* index in the list */
        int32_t node;  /* -1 = dropped */
        uint8_t chips; /* how many of chip[] */
        uint8_t chip[REPLAY_CHIPS_MAX];
};

struct replay_result {
        size_t arrived, placed;
        double chips_requested, chips_allocated; /* with departures: allocated on average over time */
        double allocation_percent;
};

/* Return: 0; -EINVAL (no nodes, no chips asked for, more than REPLAY_CHIPS_MAX on a node); -ENOMEM. */
int replay_run(const struct replay_node *nodes, size_t node_count, const struct replay_pod *pods,
               size_t pod_count, const struct replay_options *options, struct replay_result *ret,
               struct err *err);

int replay_policy_parse(const char *name, enum replay_policy *ret); /* 0 or -EINVAL */
