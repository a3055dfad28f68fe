/* Claims of gangs: members that ask for chips by claims of their own, as requests that a gang is planned of.
 *
 * A gang is planned before its first member may pass, and what its members ask for has then to be known in
 * chips, as that of others is. A member's request gets them when its gang is asked about, and keeps them:
 * they are leased for it until its claims are allocated. From then on the claims hold them, and the pod
 * nothing. Members whose claims others may share, or ask for what no class of ours says, stay as they are:
 * what they ask for is kube-scheduler's alone. TrainingJobs are planned by themselves. A look O(members with
 * claims). */
#pragma once

#include "scheduler-extender/claims/device_asks.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/ledger/ledger_pods.h"

/* claims_members_ask() - turn what the claims of a member ask for into chips of its request, and likewise of
 * its fellows.
 * @self: the pod as the ledger has it, or NULL
 * @asks: what its claims still ask for; none is left where they are in the request now
 * @request: chips only. Of one whose claims are allocated, item_count 0 with by_claims */
void claims_members_ask(struct cluster *cluster, struct ledger_job *job, const struct ledger_pod *self,
                        struct device_asks *asks, struct request *request);
