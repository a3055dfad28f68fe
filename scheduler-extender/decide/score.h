/* Score: which of the nodes that take a pod is the best place for it.
 *
 * Every node gets a tuple; smaller is better, compared field by field; its rank among the distinct tuples of
 * the nodes sent is mapped onto 10..1. The tuple (issue: right place):
 *   1. pool       an emergency prefers the reserve, a borrower regular nodes to lent ones
 *   2. class      the matching class, then `any`, then overflow
 *   3. placement  packed, uniform, largest-free or fastest: packed_keys(), uniform_keys(),
 *                 largest_free_keys(), fastest_keys()
 *   4. step       the modelled step time with this member; under `fastest` it comes first
 * Before all of them, for a member of a gang with a common batch, or of one that was placed under one switch:
 * where its lease is (scheduler-extender/decide/gang_step.h, gang.h). Pure; a tuple costs O(groups), ranking
 * N nodes O(N + D log D) for D different tuples. */
#pragma once

#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define SCORE_BEST 10 /* the extender protocol's 0..10; 0 is kept for nodes that do not take the pod */
#define SCORE_KEYS 8

struct score_tuple {
        int64_t key[SCORE_KEYS];
};

/* score_tuple() - of a node that takes the request's pod. */
void score_tuple(const struct rules_context *ctx, const struct ledger_node *node, struct score_tuple *ret);

/* score_is_by_speed() - is it the fastest chips that the request's pod asks for? */
bool score_is_by_speed(const struct rules_context *ctx);

int score_compare(const struct score_tuple *a, const struct score_tuple *b); /* < 0: a is the better place */

/* score_order() - the order of places: the better first, of equal ones the one of the first name. */
int score_order(const struct score_tuple *a, const struct ledger_node *a_node, const struct score_tuple *b,
                const struct ledger_node *b_node);

/* score_near() - are two places alike but for how full their nodes are? Not in pool, class, plan or speed. */
bool score_near(const struct rules_context *ctx, const struct score_tuple *a, const struct score_tuple *b);

/* score_rank() - turn tuples into scores 10..1, falling strictly for up to ten different ones; equal tuples
 * get equal scores. Return: 0 or -ENOMEM. */
int score_rank(const struct score_tuple *tuples, size_t count, uint8_t *scores);

/* score_parts() - the groups that the pod's chips will be recorded in when it is bound there.
 * Return: how many parts. */
size_t score_parts(const struct rules_context *ctx, const struct ledger_node *node,
                   struct ledger_pod_part *parts);
