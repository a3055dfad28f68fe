/* What counts as chips in a ledger, and what is noted of a node beside it. */
#include "scheduler-extender/ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

void ledger_note_resource(struct ledger *ledger, uint32_t symbol, uint8_t what)
{
        if (symbol >= ledger->resource_count) {
                uint32_t count = symbol + 64;
                uint8_t *grown = realloc(ledger->resources, count);

                if (grown == NULL)
                        return;
                memset(grown + ledger->resource_count, 0, count - ledger->resource_count);
                ledger->resources = grown;
                ledger->resource_count = count;
        }
        ledger->resources[symbol] |= what;
}

void ledger_mark_chips(struct ledger *ledger, const char *resource)
{
        ledger_note_resource(ledger, symbols_add(&ledger->symbols, resource), LEDGER_CHIPS);
}

static uint8_t noted(const struct ledger *ledger, uint32_t resource)
{
        return resource != 0 && resource < ledger->resource_count ? ledger->resources[resource] : 0;
}

bool ledger_is_chip(const struct ledger *ledger, uint32_t resource)
{
        return (noted(ledger, resource) & LEDGER_CHIPS) != 0;
}

static bool may_be_chip(const struct ledger *ledger, uint32_t resource)
{
        return (noted(ledger, resource) & LEDGER_BESIDE_CHIPS) == 0;
}

void ledger_chips_only(const struct ledger *ledger, struct request *request)
{
        bool (*keeps)(const struct ledger *, uint32_t) = may_be_chip;
        uint8_t kept = 0;

        for (size_t i = 0; i < request->item_count; i++)
                if (ledger_is_chip(ledger, request->items[i].resource))
                        keeps = ledger_is_chip;
        for (size_t i = 0; i < request->item_count; i++)
                if (keeps(ledger, request->items[i].resource))
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
