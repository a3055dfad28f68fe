/* Neighbours: what pods demand of the pods around them, and which pods those demands speak of.
 *
 * Kept are texts, each once for all pods that say the same (shared_texts.h). The labels of a pod: its
 * namespace, then "KEY=VALUE", a line each. Its demands: terms, a line each, words parted by tabs, every one
 * followed by the pods that it selects (scheduler-extender/wire/pod_neighbours.h writes both):
 *
 *         N  KEY                  such a pod is in the node's domain of this topology key; with several of
 *                                 these lines one that all of them select
 *         A  KEY                  no such pod is
 *         S  KEY SKEW LEAST FLAGS there are at most SKEW more of them than in the domain that has the fewest,
 *                                 0 where there are less than LEAST domains; FLAGS: m = nodes that the pod's
 *                                 selector leaves out are no domain, t = nor those that it does not tolerate
 *         @  NAMES...             ... of these namespaces; * = of all
 *         i  KEY VALUES...        ... whose labels are so: all lines hold. n NotIn, e Exists, a DoesNotExist
 *         x                       nothing is selected
 *
 * Which nodes are refused for it: scheduler-extender/neighbours/neighbour_view.h. Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler-extender/neighbours/shared_texts.h"

#define NEIGHBOURS_NONE      0u
#define NEIGHBOURS_TERMS_MAX 16 /* of one pod; what is beyond is not judged */
#define NEIGHBOURS_KEY_BYTES 320

enum neighbours_kind { NEIGHBOURS_NEAR, NEIGHBOURS_APART, NEIGHBOURS_SPREAD };

struct neighbours_term {
        enum neighbours_kind kind;
        uint32_t max_skew, min_domains;
        bool by_match, by_taints;
        const char *pods;               /* the lines that select them; up to the next term */
        char key[NEIGHBOURS_KEY_BYTES]; /* of the topology */
};

struct neighbours_demands {
        uint32_t number; /* 0 = free */
        uint8_t term_count;
        bool keeps_apart; /* some term is NEIGHBOURS_APART: it is the other pods', too */
        struct neighbours_term *terms;
};

struct neighbour_view; /* neighbour_view.h */

/* Labels of which all terms speak alike are one class, found out once until a term comes or goes. */
struct neighbours_classes {
        struct shared_texts terms; /* by class: those that select it, as numbers */
        uint32_t *of_labels;       /* by number of labels: class + 1; 0 = not known yet */
        uint32_t known;            /* numbers that there is room for */
};

/* Zero-initialised; one owner, the ledger. */
struct neighbours_table {
        struct shared_texts labels, texts;
        struct neighbours_demands *demands; /* by number of text - 1 */
        uint32_t demand_capacity, demand_count;
        uint64_t generation; /* grows when a pod that counts for others has come, gone or changed */
        struct neighbours_classes classes;
        uint64_t slot_changes; /* places of plans that have come or gone */
        const void *planning;  /* whose they were last */
        struct neighbour_view *views;
};

void neighbours_free(struct neighbours_table *table); /* after neighbour_view_free() of its views */

/* neighbours_hold_labels(), neighbours_hold_demands() - the number of a text (NULL = none); each is released
 * once. Return: NEIGHBOURS_NONE when out of memory: then nothing is known of it. */
uint32_t neighbours_hold_labels(struct neighbours_table *table, const char *text);
uint32_t neighbours_hold_demands(struct neighbours_table *table, const char *text);
void neighbours_refer(struct neighbours_table *table, uint32_t demands, uint32_t labels);
void neighbours_release(struct neighbours_table *table, uint32_t demands, uint32_t labels);

const char *neighbours_labels_text(const struct neighbours_table *table, uint32_t labels);
const char *neighbours_demands_text(const struct neighbours_table *table, uint32_t demands);

/* neighbours_of() - the terms of a number; none of NEIGHBOURS_NONE. */
const struct neighbours_demands *neighbours_of(const struct neighbours_table *table, uint32_t demands);

/* neighbours_selects() - is a pod with these labels one that the term speaks of? */
bool neighbours_selects(const struct neighbours_table *table, const struct neighbours_term *term,
                        uint32_t labels);

/* neighbours_class() - the same number for labels of which all terms that there are speak alike;
 * NEIGHBOURS_NONE: none speaks of them. Good until a term comes or goes. neighbours_alike() - are both of one
 * class? The first time O(terms), then O(1). */
uint32_t neighbours_class(const struct neighbours_table *table, uint32_t labels);
bool neighbours_alike(const struct neighbours_table *table, uint32_t a, uint32_t b);

/* neighbours_changed() - a pod on a node has come, gone or changed; neighbours_moved() - a place of a plan of
 * `job` has. */
void neighbours_changed(struct neighbours_table *table);
void neighbours_moved(struct neighbours_table *table, const void *job, uint32_t demands, uint32_t labels);
