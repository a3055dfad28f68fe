/* Nodes filter: which nodes and groups `remuda nodes` lists, and what they come to. Pure but for the heap of
 * the selector. */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "scheduler-extender/ledger/ledger.h"

struct nodes_filter {
        const char *resource; /* groups of it alone; NULL = of all */
        const char *selector; /* as it was typed; NULL = none */
        unsigned free_chips;  /* at least so many of one resource */
        bool cpu;             /* CPU groups, too; those of `resource` are listed in any case */
        struct text labels;   /* the selector for node_match_selects() */
};

struct nodes_filter_totals {
        uint32_t nodes, chips, usable, held, leased, free;
};

/* nodes_filter_begin() - read the selector. nodes_filter_end() in any case.
 * Return: 0, -EINVAL with a sentence, -ENOMEM. */
int nodes_filter_begin(struct nodes_filter *filter, struct err *err);
void nodes_filter_end(struct nodes_filter *filter);

/* nodes_filter_takes() - is the node listed? nodes_filter_takes_group() - of a node that is: is the group? */
bool nodes_filter_takes(const struct nodes_filter *filter, const struct ledger *ledger,
                        const struct ledger_node *node);
bool nodes_filter_takes_group(const struct nodes_filter *filter, const struct ledger *ledger,
                              const struct ledger_node *node, const struct ledger_group *group);

/* nodes_filter_add() - a listed node and its listed groups. */
void nodes_filter_add(const struct nodes_filter *filter, const struct ledger *ledger,
                      const struct ledger_node *node, struct nodes_filter_totals *totals);
