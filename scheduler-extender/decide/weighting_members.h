/* Weighting, the members: on which chips the others of a job train, those that are bound and those whose
 * chips are leased. Servers and managers have none of the batch and are left out. Pure. */
#pragma once

#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

/* Of whom the members are the others. */
struct weighting_members_of {
        const struct ledger_job *job;       /* NULL = there are no others */
        const struct ledger_pod *pod;       /* may be NULL */
        const struct ledger_job_slot *slot; /* its own; NULL = none */
        bool slots_too;                     /* leased chips count, not bound ones alone */
};

/* weighting_members() - called for each group that members have chips of.
 * @weighting: of two groups that would serve a slot the faster one counts */
void weighting_members(const struct weighting *weighting, const struct weighting_members_of *self,
                       void (*add)(void *userdata, const struct ledger_node *node,
                                   const struct ledger_group *group, size_t chips),
                       void *userdata);

/* weighting_members_own_slot() - the slot of the job's lease that is for a pod that asks `request`: of those
 * that ask the same one on `node`, of the same models if there is one, else one on chips of this kind, else
 * any; NULL = there is none. */
const struct ledger_job_slot *weighting_members_own_slot(const struct weighting *weighting,
                                                         const struct ledger_job *job,
                                                         const struct request *request,
                                                         const struct ledger_node *node,
                                                         const struct ledger_group *kind);
