/* Explain: for one pod, why nodes do not take it, by reason, with the numbers of the nearest nodes; and what
 * would help, each remedy tried on the ledger before it is offered. Shared by the extender (GET /v1/explain)
 * and `remuda explain`. */
#pragma once

#include "scheduler-extender/ledger/cluster.h"

#define EXPLAIN_ALL           1u /* with "nodes": a row for each node */
#define EXPLAIN_REASONS_ALONE 2u /* "remedies" is empty: none is tried */

/* explain_pod() - what remuda-explain(1) prints, a new reference:
 *   {"pod","chips","verdict","summary","boundTo","note",
 *    "reasons":[{"word","verdict","count","examples":[{"node","message"}]}],
 *    "remedies":[{"who","action","takesEffect","detail","message"}],
 *    "nodes":[{"node","verdict","reason","message"}]}
 * "reasons" begin with what fits (word ""), then what time may mend, then the rest, the most frequent first;
 * examples are the nearest three. Who asked adds "asked": who has answered. A pod of a training job also has
 * "shares":
 * {"batch","shards","source","chips":[{"runtime","model","batch","weight","stepMs"}]}: source is measured
 * (the SpeedTable), table (of device models) or assumed. The ledger is changed while remedies are tried, and
 * as before when the call returns. Return: NULL with *err when out of memory. */
json_t *explain_pod(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec, unsigned flags,
                    struct err *err);
