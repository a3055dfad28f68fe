/* Explain: for one pod, every node's verdict with its numbers, and what would help, each remedy tried on the
 * ledger before it is offered. Shared by the extender (GET /v1/explain) and `remuda explain`. */
#pragma once

#include "scheduler-extender/ledger/cluster.h"

/* explain_pod() - {"pod","chips","verdict","nodes":[...],"remedies":[...]}, what remuda-explain(1) prints;
 * a new reference. A pod of a training job also has "shares":
 * {"batch","shards","source","chips":[{"runtime","model","batch","weight","stepMs"}]}: source is measured
 * (the SpeedTable), table (of device models) or assumed. The ledger is changed while remedies are tried, and
 * as before when the call returns. Return: NULL with *err when out of memory. */
json_t *explain_pod(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec,
                    struct err *err);
