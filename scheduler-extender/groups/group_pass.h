/* Group pass: the members of a pod group (spec.schedulingGroup) are asked about one after the other while
 * none of them is bound. kube-scheduler assumes each where we let it go, and at the end binds all or forgets
 * all, without a word to us and without asking again. So nothing that is asked leaves a lease or a pause
 * behind.
 *
 * With the first member the whole group is planned (its minCount, decide/gang.h); if it does not fit nobody
 * passes. Each member is then answered with one node, the planned one, or if that was not among those asked
 * about the best one; members that were answered before count as if they were there. In no account: what was
 * answered is a note on the pods, for GROUP_PASS_USEC after the last question; a member that is asked again
 * begins a new pass. The first bind shows that the group goes: what its fellows were answered is leased for
 * them as one, or the bind is refused, so that no group is begun that cannot be finished. Pure but for the
 * heap; time is an argument. Cost: of a gang's plan for the first member, then O(members) a member. */
#pragma once

#include "scheduler-extender/decide/gang.h"

#define GROUP_PASS_USEC UINT64_C(5000000)

/* group_pass_begin() - before the nodes are judged for a member. Works out ctx->gang_blocked; those answered
 * before have slots until group_pass_end().
 * Return: 1 = it is to be answered with one node; 0 = as any other pod; -ENOMEM. */
int group_pass_begin(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
                     const struct gang_demand *demand);

/* group_pass_choose() - verdicts[i] of the nodes (an index in the roster each) as candidates_judge() has
 * them: of those that take the member all but one become CANDIDATE_LEFT_OUT, and that one is its answer.
 * Return: 0 or -ENOMEM. */
int group_pass_choose(struct ledger *ledger, const struct rules_context *ctx, const uint32_t *nodes,
                      size_t count, uint8_t *verdicts);
void group_pass_end(struct ledger *ledger, struct ledger_job *job);

/* group_pass_commit() - a member is about to be bound: leases what its fellows were answered, for
 * rules.lease_usec at most. Return: 1 = done; 0 = there is nothing to lease, or nothing may be
 * (gang_share.h), or with ctx->gang_blocked they do not fit any more; -ENOMEM. */
int group_pass_commit(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job);
