/* Job lease: the chips of a planned job that no pod has yet are kept for it, by a lease in the ledger. */
#pragma once

#include "job/controller/record.h"

/* job_lease_sync() - the lease is as the plan says, and goes on; of a job that needs none it is given back.
 */
void job_lease_sync(struct record *record);
void job_lease_release(struct record *record);
