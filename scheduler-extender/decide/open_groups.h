/* Open groups: the device groups that a TrainingJob may take chips of now, and which of them is next for a
 * role.
 *
 * A group is open as far as the rules let a pod of the job have a chip there: what the job leases is not
 * counted as taken, what its pods have and what is held for older pods is. Pure but for the heap. Collecting
 * costs O(groups of the ledger), a choice O(open groups). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler-extender/decide/batch_cut.h"
#include "scheduler-extender/decide/placement.h"
#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/ledger/ledger_pods.h"

/* Whose chips, and by which rules. Borrowed. */
struct open_groups_claim {
        struct batch_cut_job job; /* the ledger, the job, the program table */
        const struct rules *rules;
        const struct ledger_job *ledger_job; /* what it leases is its own; NULL = it has none */
        bool emergency;                      /* urgency: emergency, and its namespace may say so */
        enum ledger_pods_takes takes;        /* whose chips count as free (emergencies) */
        bool processes;        /* ranks are processes of a machine, not pods: entries may share a CPU group */
        uint64_t created_usec; /* of the job: chips held for older pods are not open to it; 0 = not known (as
                                  young as can be) */
        uint64_t now_usec;     /* CLOCK_REALTIME */
};

struct open_group {
        struct placement_choice choice;
        const struct ledger_node *node;
        const struct ledger_group *group;
        uint32_t found;  /* choice.open as it was collected */
        uint32_t beyond; /* ranks that found no chip of their own there */
        bool fits;       /* the role that was considered last */
};

struct open_groups {
        struct open_group *items;
        size_t count, capacity;
};

/* open_groups_collect() - those that some role of the job could use. @equal_to: of nodes of this one's
 * configuration alone; NULL = of all. What @groups held is forgotten. 0 or -ENOMEM. */
int open_groups_collect(const struct open_groups_claim *claim, const struct ledger_node *equal_to,
                        struct open_groups *groups);

/* open_groups_possible() - ret[i]: could a role of the job have chips of the i-th group of the ledger if all
 * others had ended? @ret has room for open_groups_all(). Return: the usable chips of those that it could. */
uint64_t open_groups_possible(const struct open_groups_claim *claim, bool *ret);
size_t open_groups_all(const struct ledger *ledger); /* how many groups there are */

/* open_groups_held() - chips that the role could have beside those, if older pods did not wait for them. */
uint64_t open_groups_held(const struct open_groups_claim *claim, const struct ledger_node *equal_to,
                          const struct job_role *role);
void open_groups_free(struct open_groups *groups);

/* open_groups_consider() - from now on it is about this role: which groups fit it, and under `fastest` how
 * fast their chips are, all by one figure. */
void open_groups_consider(const struct batch_cut_job *job, const struct job_role *role,
                          struct open_groups *groups);

/* open_groups_first() - where the role takes chips next, while it lacks `wanted`; NULL = no chip is open. */
struct open_group *open_groups_first(const struct open_groups *groups, enum placement placement,
                                     uint32_t wanted);

/* open_groups_lent() - chips of a group that those who give way would give back. */
uint32_t open_groups_lent(const struct ledger_node *node, const struct ledger_group *group,
                          enum ledger_pods_takes takes);

/* open_groups_takes() - does a device group of the ledger match every selector of the role? Its `place` is
 * the node's to match: those that are collected and fit do. */
bool open_groups_takes(const struct job_role *role, const struct symbols *symbols,
                       const struct ledger_group *group);

/* open_groups_is_cpu() - does it serve any number of ranks? */
bool open_groups_is_cpu(const struct symbols *symbols, const struct ledger_group *group);

/* open_groups_runtime() - of the program that the role runs there. */
const char *open_groups_runtime(const struct symbols *symbols, const struct job_role *role,
                                const struct ledger_group *group);
