/* Gang share: what the gangs of one namespace may have leased, so that none of them keeps chips from others
 * that it does not use.
 *
 * One lease a namespace may have whatever its size; further ones as long as all of them together stay within
 * rules.lease_share_percent of the usable chips of each resource (0 = no limit). A lease that comes to its
 * end unused pauses the namespace's gangs for as long as a lease lasts, twice as long each time that another
 * one follows at once, GANG_PAUSE_MAX_USEC at most; after a quiet time as long as the last pause it begins
 * anew. Leases of TrainingJobs' plans are not counted: their controller ends them. Internal to
 * scheduler-extender/decide/gang.c. Pure but for the heap. */
#pragma once

#include "scheduler-extender/decide/rules.h"

#define GANG_PAUSE_MAX_USEC UINT64_C(600000000)

/* gang_share_allows() - may the job keep the slots that it has now? O(jobs + nodes). */
bool gang_share_allows(const struct ledger *ledger, const struct rules *rules, const struct ledger_job *job);

/* gang_share_usable() - usable chips of the resource in the cluster. */
uint64_t gang_share_usable(const struct ledger *ledger, uint32_t resource);

/* gang_share_unused() - a lease of the job's namespace has come to its end unused. */
void gang_share_unused(struct ledger *ledger, const struct ledger_job *job, uint64_t lease_usec,
                       uint64_t now_usec);
bool gang_share_paused(const struct ledger *ledger, const struct ledger_job *job, uint64_t now_usec);

/* gang_share_resume() - called now and then. Return: the pauses that have ended since the last time. */
size_t gang_share_resume(struct ledger *ledger, uint64_t lease_usec, uint64_t now_usec);
