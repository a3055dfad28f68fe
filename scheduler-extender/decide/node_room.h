/* Node room: does what a pod asks for beside its chips (CPU, memory, ephemeral storage, a place among the
 * node's pods, extended resources that are no chips) suffice on a node, as kube-scheduler's NodeResourcesFit
 * counts it?
 *
 * kube-scheduler judges this before it asks us, so filter, prioritize and bind do not judge it again
 * (docs/adr/0062). Whoever looks for a place among all nodes must. A node's sums are kept with its accounts
 * (ledger/ledger_account.h); what its Node object does not say is not judged. Pure; O(1), of a pod that asks
 * for extended resources beside chips O(pods on the node). */
#pragma once

#include "scheduler-extender/decide/rules.h"

/* node_room_takes() - is there room now? What the request's pod itself has there counts as free, and what its
 * job leases, unless it is planned anew. */
bool node_room_takes(const struct rules_context *ctx, const struct ledger_node *node);

/* node_room_holds() - is there room for `members` pods that ask for `needs` in all, extended resources apart?
 */
bool node_room_holds(const struct rules_context *ctx, const struct ledger_node *node,
                     const struct request_needs *needs, size_t members);

/* node_room_ever() - would there be, if those who hold chips there and give way had gone? */
bool node_room_ever(const struct rules_context *ctx, const struct ledger_node *node,
                    enum ledger_pods_takes takes);

/* What a pod asks of its node beside chips. */
enum node_room_what { NODE_ROOM_PLACE, NODE_ROOM_CPU, NODE_ROOM_MEMORY, NODE_ROOM_STORAGE, NODE_ROOM_ITEM };

#define NODE_ROOM_KINDS (NODE_ROOM_ITEM + REQUEST_ITEMS_MAX)

struct node_room_kind {
        enum node_room_what what;
        uint32_t resource; /* of an item */
        int64_t asked;     /* by the request; > 0 */
        int64_t left;      /* there, as node_room_takes() counts it; may be below 0 */
};

/* node_room_left() - of each thing that the request asks for and that is judged. Return: how many, at most
 * NODE_ROOM_KINDS. node_room_asked() - how much of that another request asks for. */
size_t node_room_left(const struct rules_context *ctx, const struct ledger_node *node,
                      struct node_room_kind *ret);
int64_t node_room_asked(const struct request *request, const struct node_room_kind *kind);

/* node_room_why() - what there is too little of, for a person; "" = nothing. */
void node_room_why(const struct rules_context *ctx, const struct ledger_node *node, char *ret,
                   size_t ret_bytes);
