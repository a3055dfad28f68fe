/* Explain a job: a TrainingJob or a gang, as a whole: what is decided for it, where its members are, and what
 * the one that waits first waits for. Shared by the extender (GET /v1/explain?job=) and `remuda explain`. */
#pragma once

#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

/* explain_job() - what remuda-explain(1) prints, a new reference:
 *   {"job","kind":"TrainingJob"|"gang"|"group","verdict","summary",
 *    "plan":[{"node","places","chips","leased"}],
 *    "members":[{"state":"runs"|"waits"|"gated"|"goes"|"ended","node","count","chips","pods":[NAME...]}],
 *    "pod","note","reasons","shares","remedies","nodes"}
 * "plan": places by node, of the TrainingJob's plan or of the gang's lease, and how many chips of them are
 * kept from others now. "members": pods of one state on one node, the first three by name. The last line is
 * explain_pod()'s, of the first member that waits; a TrainingJob without pods and plan is placed as whatif()
 * would, and "remedies" are for it; of one that is told to wait explain_held.h has the words. @flags as
 * explain_pod(). Return: NULL with *err. */
json_t *explain_job(struct cluster *cluster, const struct ledger_job *job, uint64_t now_usec, unsigned flags,
                    struct err *err);
