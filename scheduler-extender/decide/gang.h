/* Gang: the pods of one job are placed together before the first may pass: all fit, and get a lease with an
 * end, or none does.
 *
 * All are planned, so that the first passes only where the last would fit; leased are the chips of members
 * that exist. One that comes later is planned with the rest of them again, and the lease ends when it would
 * have ended.
 *
 * Members that are bound already count; pending ones that the store knows are planned with what they ask for;
 * those not created yet count as copies of the one asked for, unless the pod or its TrainingJob
 * lists the members (scheduler-extender/decide/gang_members.h). Members are
 * placed largest first, under one switch if there is one that takes them all (label remuda.dev/switch-domain)
 * with nodes of no other pool or class than the best one's, each on the best node by the score's tuple; with
 * a common batch, on those kinds of chips that make the shortest modelled step
 * (scheduler-extender/decide/gang_step.h); when members differ in size and that does not succeed, a bounded
 * search over nodes decides (GANG_SEARCH_STEPS; beyond it the gang is said not to fit). Pure but for the
 * heap; time is an argument. Cost: O(nodes + members log nodes) per shape of member.
 */
#pragma once

#include "scheduler-extender/decide/rules.h"

#define GANG_SEARCH_STEPS 200000

struct gang_demand {
        const struct request_member *kinds; /* NULL = the pod's gang-size says how many copies */
        size_t kind_count;
        bool keep; /* true: leave the lease in the ledger (filter); false: only find out (prioritize, explain)
                    */
};

/* gang_prepare() - work out ctx->gang_blocked, gang_paused and equal_to for a pod of a gang; nothing for
 * others. Call it after rules_prepare().
 * @job: the pod's job, referred to by the caller; may be without pods and slots yet
 * Return: 1 = a lease was made; 0 = none was needed, or the gang does not fit; -ENOMEM. */
int gang_prepare(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
                 const struct gang_demand *demand);

/* A lease as it was before a gang was planned anew. Nodes are the ledger's. */
struct gang_former {
        struct ledger *ledger;
        struct request *requests;
        struct ledger_node **nodes;
        size_t count;
        uint64_t ends_usec;
        bool together;
};

/* gang_set_aside() - the job's lease goes until gang_put_back(). gang_try() - it goes, and the members alone
 * are planned, whatever the share of the namespace: slots for all of them, those that are not there yet
 * included. Both as gang_prepare() has left @ctx and @job; the caller refers to the job.
 * Return: 1 = all have slots; 0 = they do not fit, or there are none to place (nothing but the lease was to
 * be set aside); -ENOMEM. gang_put_back() and gang_former_free() in any case. */
int gang_set_aside(struct ledger *ledger, struct ledger_job *job, struct gang_former *ret);
int gang_try(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
             const struct gang_demand *demand, struct gang_former *former);
void gang_put_back(struct ledger *ledger, struct ledger_job *job, const struct gang_former *former);
void gang_former_free(struct gang_former *former);

/* gang_same_shape() - do they ask for the same, chips of the same models and what is beside them, on the same
 * nodes? */
bool gang_same_shape(const struct request *a, const struct request *b);

/* gang_expire() - drop leases whose end has come; their namespaces' gangs pause (gang_share.h). Return: how
 * many. */
size_t gang_expire(struct ledger *ledger, const struct rules *rules, uint64_t now_usec);

/* gang_lease_count() - jobs that have a lease now. */
size_t gang_lease_count(const struct ledger *ledger);
