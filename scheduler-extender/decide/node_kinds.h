/* Node kinds: nodes that no request can tell apart are of one kind, and each kind is judged once.
 *
 * Of one kind are nodes with equal class, pool, programs and groups (resource, runtime, model, total, usable,
 * held, leased, speed). In 5,000 nodes there are a few dozen to a few hundred kinds:
 * servers of eight chips of one model with 0..8 of them held are nine kinds, and a bind moves one node from
 * "3 held" to "4 held". Invariant: nodes of a kind get one verdict and one score tuple, whatever is asked
 * (but for the exceptions below). Judging every node anew costs 5,000 times O(groups) a request. A kind has a
 * shape: a node that is in no ledger, without a name, pods, slots and reservations, which the rules judge in
 * the place of all its nodes. Where that would not be the same answer (a lease or a reservation on the node,
 * the pod itself bound there, a rule that reads pods or hardware), scheduler-extender/decide/candidates.h
 * judges the node itself.
 *
 * The ledger sets a node's kind to 0 whenever it changes; it is found out again when it is asked for. Kinds
 * that no node is of any more are dropped all together now and then. Pure but for the heap. */
#pragma once

#include <stdint.h>

struct ledger;
struct ledger_node;

#define NODE_KIND_UNKNOWN 0u /* not found out yet */
#define NODE_KIND_ALONE   1u /* to be judged itself */
#define NODE_KIND_FIRST   2u

struct node_kinds {
        struct ledger_node **shapes; /* of kind NODE_KIND_FIRST + index; owned */
        uint32_t count, capacity;
        uint32_t *slots; /* hash of a shape -> index + 1 */
        uint32_t slot_count;
};

void node_kinds_free(struct node_kinds *kinds);

/* node_kinds_update() - find out the kind of every node whose kind is not known. Nodes for which there is no
 * memory stay NODE_KIND_ALONE. Costs O(nodes that changed), plus one pass over the roster. */
void node_kinds_update(struct ledger *ledger);

/* node_kinds_shape() - of a kind that is neither unknown nor alone. */
const struct ledger_node *node_kinds_shape(const struct ledger *ledger, uint32_t kind);
