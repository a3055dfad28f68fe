/* Pods: what is wrong with a job on a cluster, seen from outside of its world: by its pods, chips and nodes,
 * at one look. What breaks within its manager's reach the manager repairs (job/world/verdict.h); here are
 * those who keep pods. Pure: the controller collects what is seen, asks, and does it.
 *
 *      a node is lost, a pod is gone or has ended, a chip is sick  -> that group needs other chips
 *      the manager is gone, or has ended without a last word       -> the next world has another manager
 *      the manager says that it has tried what there was to try    -> the job ends */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PODS_TEXT_BYTES 400

enum pods_phase { PODS_PENDING, PODS_RUNNING, PODS_SUCCEEDED, PODS_FAILED };

/* One pod as it is seen. Borrowed texts. */
struct pods_pod {
        const char *group; /* that it is of; NULL = the manager */
        const char *name, *node;
        bool there;   /* else it is gone, or not made yet */
        bool ran;     /* its group did, at the last look; of the manager: its address is known */
        bool leaving; /* it was deleted from outside, and has its grace time */
        bool node_lost, chip_lost;
        const char *device; /* that is lost; "" = it is not known which */
        enum pods_phase phase;
        int exit_code;
        const char *reason; /* why it ended */
        const char *words;  /* what it wrote last, any number of lines */
};

struct pods_look {
        bool runs;     /* the job does: a restart costs one of restart_max */
        bool yielding; /* its chips are taken back: a pod that ends is no fault of its own */
        uint64_t restarts, restart_max;
        const struct pods_pod *groups; /* those that have a place */
        size_t group_count;
        struct pods_pod manager;
        const char *state, *state_reason, *state_message; /* of the manager's last words; "" = it left none */
};

enum pods_kind {
        PODS_GO_ON,
        PODS_RESTART,  /* the groups that are lost get other chips, and the world starts anew */
        PODS_GIVE_WAY, /* everything is given up, and the job waits for chips like a new one */
        PODS_END       /* the job has failed */
};

struct pods_verdict {
        enum pods_kind kind;
        bool world;        /* the next one has another manager */
        bool no_more_left; /* it ends since it was restarted as often as allowed */
        char reason[48], message[PODS_TEXT_BYTES];
};

/* pods_judge() - @ret_lost: of each group, does it need other chips? */
struct pods_verdict pods_judge(const struct pods_look *look, bool *ret_lost);
