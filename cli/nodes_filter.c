/* A job asks for chips of one resource: what is free is counted by resource, over the groups of a node. */
#include "cli/nodes_filter.h"

#include <string.h>

#include "scheduler-extender/decide/node_match.h"
#include "scheduler-extender/decide/open_groups.h"
#include "scheduler-extender/wire/label_selector.h"

int nodes_filter_begin(struct nodes_filter *filter, struct err *err)
{
        return filter->selector == NULL ? 0 : label_selector_parse(filter->selector, &filter->labels, err);
}

void nodes_filter_end(struct nodes_filter *filter)
{
        text_free(&filter->labels);
}

static uint32_t free_of_resource(const struct ledger_node *node, uint32_t resource)
{
        uint32_t sum = 0;

        for (uint32_t i = 0; i < node->group_count; i++)
                if (node->groups[i].resource == resource)
                        sum += ledger_group_open(&node->groups[i]);
        return sum;
}

bool nodes_filter_takes_group(const struct nodes_filter *filter, const struct ledger *ledger,
                              const struct ledger_node *node, const struct ledger_group *group)
{
        const struct symbols *s = &ledger->symbols;

        if (filter->resource != NULL && strcmp(symbols_name(s, group->resource), filter->resource) != 0)
                return false;
        if (filter->resource == NULL && !filter->cpu && open_groups_is_cpu(s, group))
                return false;
        return filter->free_chips == 0 || free_of_resource(node, group->resource) >= filter->free_chips;
}

bool nodes_filter_takes(const struct nodes_filter *filter, const struct ledger *ledger,
                        const struct ledger_node *node)
{
        if (!ledger_node_known(node) || (filter->labels.data != NULL &&
                                         !node_match_selects(filter->labels.data, node->name, &node->traits)))
                return false;
        if (filter->resource == NULL && filter->free_chips == 0)
                return true;
        for (uint32_t i = 0; i < node->group_count; i++)
                if (nodes_filter_takes_group(filter, ledger, node, &node->groups[i]))
                        return true;
        return false;
}

void nodes_filter_add(const struct nodes_filter *filter, const struct ledger *ledger,
                      const struct ledger_node *node, struct nodes_filter_totals *totals)
{
        totals->nodes++;
        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *group = &node->groups[i];

                if (!nodes_filter_takes_group(filter, ledger, node, group))
                        continue;
                totals->chips += group->total;
                totals->usable += group->usable;
                totals->held += group->held;
                totals->leased += group->leased;
                totals->free += ledger_group_open(group);
        }
}
