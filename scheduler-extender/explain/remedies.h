/* Remedies: what would let a waiting pod start, each one tried on the ledger before it is offered, with who
 * pays for it and when it takes effect.
 *
 * One of each kind: the one that helps soonest, then the smallest. First what costs nobody anything (to wait
 * for an end that is known), then what whoever asks can change without asking for less, then what costs
 * others (an operator's option, a repair, a pod that must go), and last to ask for less: half a job is
 * another job. Among those the sooner ones first. Tried is on the ledger as it is (changes are undone), and
 * where that does not help now, on forks of it at times to come (scheduler-extender/explain/play.h), the
 * earliest found in steps that double, then by halving: at the end before it the pod did not fit. Cost: a
 * fork a kind, and O(log ends) for what helps later. */
#pragma once

#include "scheduler-extender/ledger/pod_request.h"

/* remedies_find() - an array of {"who","action","takesEffect","detail","message"}, cheapest first. who:
 * "nobody", "asker" or "others"; takesEffect: "now", a time, or "when NS/NAME ends" where nobody knows the
 * time. */
json_t *remedies_find(struct cluster *cluster, struct pod_request *pod_request);
