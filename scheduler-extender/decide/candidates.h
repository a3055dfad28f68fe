/* Candidates: many nodes judged and scored for one request, every different kind of node once.
 *
 * The same answers as rules_judge() and score_tuple() give node by node
 * (scheduler-extender/decide/test_candidates.c holds them side by side), at a table look-up a node: what
 * decides is equal for all nodes of a kind (scheduler-extender/decide/node_kinds.h). Judged themselves are
 * nodes with a lease or a backfill reservation, the node that the pod is bound to, all nodes where the
 * request demands equal hardware or a network, and those of another class where overflow counts pods. Pure
 * but for the heap. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "scheduler-extender/decide/rules.h"

/* candidates_judge() - verdicts[i] (enum reason) of the node with index nodes[i] in the ledger's roster;
 * ROSTER_NONE = the name is unknown. Return: 0 or -ENOMEM. */
int candidates_judge(const struct rules_context *ctx, struct ledger *ledger, const uint32_t *nodes,
                     size_t count, uint8_t *verdicts);

/* candidates_score() - scores[i]: 0 for a node that does not take the pod or is unknown, else 1..10 by rank
 * (scheduler-extender/decide/score.h). Return: 0 or -ENOMEM. */
int candidates_score(const struct rules_context *ctx, struct ledger *ledger, const uint32_t *nodes,
                     size_t count, uint8_t *scores);
