/* Gang share: what the gangs of one namespace may have leased, so that none of them keeps chips from others
 * that it does not use.
 *
 * The leases of a namespace keep within its share (namespace_share.h), without what is held for its pods:
 * that gives way to them. A single one may be larger, but first, for as long as a lease lasts, pods of other
 * namespaces go that it alone would keep out: emergencies where it is none, else older ones, and where the
 * namespace's last lease went unused a short while ago, all whose own did not. A lease that comes to its end
 * unused, or whose members are all gone or of other jobs before, pauses the namespace's gangs for as long as
 * a lease lasts, twice as long each time that another one follows at once, GANG_PAUSE_MAX_USEC at most; after
 * a quiet time as long as the last pause and three leases it begins anew. Internal to
 * scheduler-extender/decide/gang.c. Pure but for the heap. */
#pragma once

#include "scheduler-extender/decide/rules.h"

#define GANG_PAUSE_MAX_USEC UINT64_C(600000000)
#define GANG_SHARE_LOOKS    16384 /* at nodes, for pods that a lease larger than the share might keep out */

/* gang_share_allows() - may the job keep the slots that it has now, as the pod of @ctx would have it?
 * O(jobs + nodes + pending pods), and GANG_SHARE_LOOKS verdicts for a lease larger than the share. */
bool gang_share_allows(const struct rules_context *ctx, struct ledger_job *job);

/* gang_share_unused() - a lease of the job's namespace has come to its end unused. */
void gang_share_unused(struct ledger *ledger, const struct ledger_job *job, uint64_t lease_usec,
                       uint64_t now_usec);

/* gang_share_left() - begins the pauses for leases that nobody is left to use (ledger.gang_left). */
void gang_share_left(struct ledger *ledger, uint64_t lease_usec, uint64_t now_usec);
bool gang_share_paused(const struct ledger *ledger, const struct ledger_job *job, uint64_t now_usec);

/* gang_share_resume() - called now and then. Return: the pauses that have ended since the last time, and the
 * gangs that have let others go first for long enough. */
size_t gang_share_resume(struct ledger *ledger, uint64_t lease_usec, uint64_t now_usec);
