/* Job lease: the chips of a planned job that no pod has yet are kept for it in the ledger.
 *
 * What was decided stands in the TrainingJob's status; whoever reads the object leases the same chips by it:
 * the job controller, which wrote it, and every extender, in a process of its own. In memory only. */
#pragma once

#include <jansson.h>

#include "job/plan/job_state.h"
#include "scheduler-extender/decide/open_groups.h"
#include "scheduler-extender/ledger/cluster.h"

/* One job and what was decided for it. Borrowed. */
struct job_lease {
        const char *namespace_, *name;
        const struct job *job; /* NULL = nothing is leased for it any more: it is gone, or goes */
        const struct job_state *state;
        bool emergency; /* urgency: emergency, and its namespace may say so */
};

/* job_lease_set() - the ledger leases what the job's state says, and nothing of a job that has ended.
 * 0 or -ENOMEM. */
int job_lease_set(struct ledger *ledger, const struct job_lease *lease);

/* job_lease_observe() - a TrainingJob as the store shows it, after the ledger has taken it (NULL: it is
 * gone); its last checkpoint and what its status says are noted, too. Where it cannot be read, or its status
 * does not fit the job, the last lease stands. */
void job_lease_observe(struct cluster *cluster, const char *key, const json_t *object);

/* job_lease_note() - of job_lease_observe() what its status says, and its last checkpoint: for one that
 * leases by its own word. */
void job_lease_note(struct cluster *cluster, const char *key, const json_t *object);

/* job_lease_fits() - is there room for this group's place, as long as no pod is on it? Pods that others bound
 * meanwhile, and chips that fell ill, take it away.
 * @claim: chips of those who give way (`takes`) count as room */
bool job_lease_fits(const struct open_groups_claim *claim, const char *namespace_,
                    const struct job_group *group);
