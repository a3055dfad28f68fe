/* Trial: "what if these pods went and those came" on the ledger itself, undone step by step.
 *
 * Each change is remembered; trial_undo() takes back what was changed since a mark, the last first. Nothing
 * else may change the ledger in between. Pure but for the heap. Cost: a change O(pods on the node), as any.
 */
#pragma once

#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define TRIAL_NODE_STEPS 40 /* that a node or a pod which is looked at counts for: a step is some 5 ns */

struct trial_step {
        struct ledger_pod *pod;   /* that was taken off `node`, or put onto it */
        struct ledger_node *node; /* NULL = its lease was planned anew */
        bool attached;
        struct ledger_job *job;
        struct gang_former former;
};

struct trial {
        struct ledger *ledger;
        struct trial_step *steps; /* owned */
        size_t count, capacity;
        uint64_t generation; /* trying on is no change */
};

void trial_begin(struct trial *trial, struct ledger *ledger);

/* trial_end() - undoes everything; the trial is empty then. Accepts one that was never begun. */
void trial_end(struct trial *trial);
void trial_undo(struct trial *trial, size_t mark);

/* trial_detach() - a bound pod goes. trial_attach() - a pending one comes. trial_unlease() - the job leases
 * nothing, and slots added to it go with the undoing. trial_lease() - it leases what gang_try() makes of it:
 * 1 = all members have slots; 0 = nothing has changed. All: 0 or -ENOMEM. */
int trial_detach(struct trial *trial, struct ledger_pod *pod);
int trial_attach(struct trial *trial, struct ledger_pod *pod, struct ledger_node *node);
int trial_unlease(struct trial *trial, struct ledger_job *job);
int trial_lease(struct trial *trial, struct rules_context *context, struct ledger_job *job,
                const struct gang_demand *demand);
