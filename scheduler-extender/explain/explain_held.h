/* Explain held: a TrainingJob that is told to wait, by its spec.suspend or by its queue: who holds it, in the
 * words of its status, and what lets it go on. No chips would. Shared as explain_job.h is, which asks here.
 */
#pragma once

#include "base/text.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

/* explain_held_is() - is it told to wait? By its spec, or by what the controller says in its status. O(1). */
bool explain_held_is(const struct ledger_job *job);

/* explain_held() - onto @summary the sentence, into @reply "verdict" and "remedies": first what lets it go
 * on, then what it would wait for then, which is tried as whatif() does. A remedy that is not the ledger's to
 * try says so: "untried" has whose it is. Cost: of whatif_job(). Return: 0; -ENOMEM and what whatif_job()
 * says, with *err. */
int explain_held(struct cluster *cluster, const struct ledger_job *job, uint64_t now_usec, json_t *reply,
                 struct text *summary, struct err *err);
