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

#define CANDIDATE_LEFT_OUT 254 /* it takes the pod; others are better places */

/* candidates_keep_to_plan() - where the members of a gang are not alike, its lease has places for each: of
 * the nodes that candidates_judge() let pass those without one for the pod get CANDIDATE_LEFT_OUT, or a
 * member that may go anywhere takes the place of one that may not. Where none has one, all stay. */
void candidates_keep_to_plan(const struct rules_context *ctx, const uint32_t *nodes, size_t count,
                             uint8_t *verdicts);

/* candidates_shorten() - of the nodes that candidates_judge() let pass the @limit best keep their verdict,
 * the others get CANDIDATE_LEFT_OUT. Best is by rank, in a rank by order; a node that is worse than the best
 * one by more than how it packs (score_near()) is left out however few are left. Return: 0 or -ENOMEM. */
int candidates_shorten(const struct rules_context *ctx, struct ledger *ledger, const uint32_t *nodes,
                       size_t count, size_t limit, uint8_t *verdicts);
