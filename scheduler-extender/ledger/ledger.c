/* What counts as chips in a ledger, and what is noted of a node beside it. */
#include "scheduler-extender/ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

void ledger_mark_chips(struct ledger *ledger, const char *resource)
{
        uint32_t symbol = symbols_add(&ledger->symbols, resource);

        if (symbol >= ledger->chip_resource_count) {
                uint32_t count = symbol + 64;
                uint8_t *grown = realloc(ledger->chip_resource, count);

                if (grown == NULL)
                        return;
                memset(grown + ledger->chip_resource_count, 0, count - ledger->chip_resource_count);
                ledger->chip_resource = grown;
                ledger->chip_resource_count = count;
        }
        ledger->chip_resource[symbol] = 1;
}

bool ledger_is_chip(const struct ledger *ledger, uint32_t resource)
{
        return resource != 0 && resource < ledger->chip_resource_count &&
               ledger->chip_resource[resource] != 0;
}

void ledger_chips_only(const struct ledger *ledger, struct request *request)
{
        uint8_t kept = 0;

        for (size_t i = 0; i < request->item_count; i++)
                kept = (uint8_t) (kept + ledger_is_chip(ledger, request->items[i].resource));
        if (kept == 0 || kept == request->item_count)
                return;
        kept = 0;
        for (size_t i = 0; i < request->item_count; i++)
                if (ledger_is_chip(ledger, request->items[i].resource))
                        request->items[kept++] = request->items[i];
        request->item_count = kept;
}

void ledger_set_seen(struct ledger *ledger, const struct ledger_node *node, uint64_t seen_usec)
{
        ledger->roster.seats[node->index].seen_usec = seen_usec;
}

uint64_t ledger_seen_usec(const struct ledger *ledger, const struct ledger_node *node)
{
        return node->index < ledger->node_count ? ledger->roster.seats[node->index].seen_usec : 0;
}

void ledger_touch(struct ledger *ledger, const struct ledger_node *node)
{
        ledger->roster.seats[node->index].kind = NODE_KIND_UNKNOWN;
        ledger->kinds_stale = true;
}
