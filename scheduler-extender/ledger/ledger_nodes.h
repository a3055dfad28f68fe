/* Ledger, its nodes: they come with an inventory or a Node object, and go when they have neither, nor pods,
 * slots or reservations. A change recomputes the accounts of the node. Pure but for the heap; a look-up O(1),
 * a change O(pods on the node). */
#pragma once

#include "scheduler-extender/ledger/ledger.h"

/* What a Node object says of itself. Borrowed. */
struct ledger_node_facts {
        const char *name;
        struct ledger_trust_offer allocatable[GROUPS_MAX]; /* extended resources */
        size_t allocatable_count, allocatable_left_out;
        struct ledger_room room;   /* of it, what is offered */
        const char *switch_domain; /* label remuda.dev/switch-domain; NULL = none */
        bool out_of_service;       /* the taint of that name */
        const char *uid, *boot_id; /* NULL = not told */
        uint64_t now_usec;         /* CLOCK_MONOTONIC; 0 = nobody listens */
        const char *traits;        /* lines of scheduler-extender/decide/node_match.h; NULL = none */
};

struct ledger_node *ledger_nodes_find(const struct ledger *ledger, const char *name,
                                      size_t bytes); /* or NULL */

/* Inventories and Node objects come and go independently; a node with neither is known to nobody, but keeps
 * its pods. 0 or -ENOMEM. */
int ledger_nodes_set_inventory(struct ledger *ledger, const struct inventory *inventory);
/* ledger_nodes_set_words() - of its object: the uid of the Node that owns it, "" = none; its agent ends */
void ledger_nodes_set_words(struct ledger *ledger, const char *name, const char *uid, bool leaves);
void ledger_nodes_drop_inventory(struct ledger *ledger, const char *name);
int ledger_nodes_set(struct ledger *ledger, const struct ledger_node_facts *facts);
void ledger_nodes_drop(struct ledger *ledger, const char *name);

/* ledger_nodes_note() - there is a Node object that cannot be read: what a readable one said stands; without
 * one no chip there is given, but the node is none that was removed. 0 or -ENOMEM. */
int ledger_nodes_note(struct ledger *ledger, const char *name);

/* ledger_nodes_set_devices() - what DRA drivers offer there, and what claims hold of it. Of a node that is
 * not known nothing is kept. 0 or -ENOMEM. */
int ledger_nodes_set_devices(struct ledger *ledger, struct ledger_node *node,
                             const struct ledger_devices *devices);

/* ledger_nodes_judge() - what is believed of the node's inventory, as of the last look at ages; its accounts.
 */
void ledger_nodes_judge(struct ledger *ledger, struct ledger_node *node);

/* ledger_nodes_make() - the node of that name, made if need be; NULL when out of memory.
 * ledger_nodes_forget_if_empty() - after something of it went. ledger_nodes_free_one() - in no table any
 * more. */
struct ledger_node *ledger_nodes_make(struct ledger *ledger, const char *name);
void ledger_nodes_forget_if_empty(struct ledger *ledger, struct ledger_node *node);
void ledger_nodes_free_one(struct ledger *ledger, struct ledger_node *node);
