/* Node match: may a pod go onto a node, by its node selector, its required node affinity and its tolerations?
 *
 * kube-scheduler judges this before it asks us, so filter, prioritize and bind do not judge it again. Whoever
 * looks for a place among all nodes must: a reservation, a gang's lease or an eviction for a pod on a node
 * that it can never have would keep chips from others for nothing.
 *
 * What a pod demands is a text, a line each, words parted by tabs (scheduler-extender/wire/pod_node_match.h
 * writes it), so that equal demands are one entry that many pods share; "" selects every node and tolerates
 * nothing:
 *
 *         =  KEY VALUE                 nodeSelector: all lines hold
 *         |                            a term of the affinity begins: one of them holds
 *         i  KEY VALUES...             In; n NotIn, e Exists, a DoesNotExist, g Gt, l Lt
 *         I  NAMES...                  the node's name is one of these; N it is none of them
 *         x                            nothing: an empty term
 *         t  KEY OPERATOR VALUE EFFECT a toleration; OPERATOR is = (Equal) or e (Exists)
 *
 * What a node says are traits: labels "KEY=VALUE" and taints "!KEY=VALUE:EFFECT" (NoSchedule and NoExecute
 * alone), each kept once for all nodes. Answers are remembered by node until a trait changes or a node goes:
 * asking again costs O(1). Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name_map.h"
#include "scheduler-extender/neighbours/shared_texts.h"

#define NODE_MATCH_ANY     0u /* nothing is known of what the pod demands: every node */
#define NODE_MATCH_NOTHING 1u /* the text "": tolerates no taint; in every table */

struct node_match_trait {
        struct name_map_entry entry;
        uint32_t references;
        char text[];
};

/* Of one node. Zero-initialised. */
struct node_match_traits {
        struct node_match_trait **list; /* owned; the traits are the table's */
        uint32_t count;
};

struct node_match_answers;

/* Zero-initialised; one owner, the ledger. */
struct node_match_table {
        struct name_map traits;
        struct shared_texts texts;
        struct node_match_answers *answers; /* by number of text - 1 */
        uint32_t answer_capacity;
        uint64_t generation; /* grows when an answer may be another one */
};

void node_match_free(struct node_match_table *matches); /* after all node_match_free_traits() */

/* node_match_hold() - the number of a text, made if need be; each is released once.
 * Return: NODE_MATCH_ANY when out of memory. node_match_refer() - one that is held is held once more. It and
 * node_match_release() accept NODE_MATCH_ANY. */
uint32_t node_match_hold(struct node_match_table *matches, const char *text);
void node_match_refer(struct node_match_table *matches, uint32_t match);
void node_match_release(struct node_match_table *matches, uint32_t match);
const char *node_match_text(const struct node_match_table *matches, uint32_t match);

/* node_match_set_traits() - @lines: a trait a line; NULL = none are known. 0 or -ENOMEM (nothing changed). */
int node_match_set_traits(struct node_match_table *matches, struct node_match_traits *traits,
                          const char *lines);
int node_match_copy_traits(struct node_match_table *to, struct node_match_traits *traits,
                           const struct node_match_traits *from);
void node_match_free_traits(struct node_match_table *matches, struct node_match_traits *traits);

/* node_match_forget() - nodes have other indices now. */
void node_match_forget(struct node_match_table *matches);

/* node_match_takes() - may a pod with this demand go onto the node? @index: the node's, for remembering. */
bool node_match_takes(const struct node_match_table *matches, uint32_t match, const char *node,
                      uint32_t index, const struct node_match_traits *traits);

/* node_match_judge() - the same, worked out; if not, `why` says which demand is not met ("the taint
 * a=b:NoSchedule is not tolerated"). */
bool node_match_judge(const char *text, const char *node, const struct node_match_traits *traits, char *why,
                      size_t why_bytes);

/* node_match_selects() - its labels alone; node_match_tolerates() - its taints alone. */
bool node_match_selects(const char *text, const char *node, const struct node_match_traits *traits);
bool node_match_tolerates(const char *text, const struct node_match_traits *traits);
