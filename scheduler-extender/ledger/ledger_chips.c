/* A note beside each symbol; who knows its chips tells that what else it offers is none. */
#include "scheduler-extender/ledger/ledger_chips.h"

#include <string.h>

#include "agent/vendor/vendor.h"

#define RESOURCES_MAX 32 /* of one vendor */

void ledger_chips_note(struct ledger *ledger, uint32_t resource, uint8_t what)
{
        uint32_t index = symbols_index(&ledger->symbols, resource);

        if (index != SYMBOLS_NONE)
                ledger->symbols.entries[index].note |= what;
}

void ledger_chips_mark(struct ledger *ledger, const char *resource)
{
        ledger_chips_note(ledger, symbols_keep(&ledger->symbols, resource), LEDGER_CHIPS);
}

void ledger_chips_mark_usual(struct ledger *ledger)
{
        const char *resources[RESOURCES_MAX];

        for (size_t v = 0; vendors[v] != NULL; v++) {
                size_t count = vendor_resources(vendors[v], resources, RESOURCES_MAX);

                for (size_t i = 0; i < count; i++)
                        ledger_chips_mark(ledger, resources[i]);
        }
}

static uint8_t noted(const struct ledger *ledger, uint32_t resource)
{
        uint32_t index = symbols_index(&ledger->symbols, resource);

        return index == SYMBOLS_NONE ? 0 : ledger->symbols.entries[index].note;
}

bool ledger_chips_has(const struct ledger *ledger, uint32_t resource)
{
        return (noted(ledger, resource) & LEDGER_CHIPS) != 0;
}

static bool may_be_chip(const struct ledger *ledger, uint32_t resource)
{
        return (noted(ledger, resource) & LEDGER_CHIPS_BESIDE) == 0;
}

unsigned ledger_chips_rank(const struct ledger *ledger, uint32_t resource)
{
        return ledger_chips_has(ledger, resource) ? LEDGER_CHIPS_SURE
               : may_be_chip(ledger, resource)    ? LEDGER_CHIPS_PERHAPS
                                                  : LEDGER_CHIPS_NONE;
}

typedef bool keeps_t(const struct ledger *, uint32_t resource);

/* Where one of them is a chip that is known, the others are none. */
static keeps_t *rule_of(const struct ledger *ledger, const struct request *request)
{
        for (size_t i = 0; i < request->item_count; i++)
                if (ledger_chips_has(ledger, request->items[i].resource))
                        return ledger_chips_has;
        return may_be_chip;
}

void ledger_chips_only(const struct ledger *ledger, struct request *request)
{
        keeps_t *keeps = rule_of(ledger, request);
        uint8_t kept = 0, count = request->item_count;
        struct request_item item;

        for (size_t i = 0; i < request->item_count; i++)
                if (keeps(ledger, request->items[i].resource)) {
                        item = request->items[i];
                        memmove(&request->items[kept + 1], &request->items[kept], (i - kept) * sizeof(item));
                        request->items[kept++] = item;
                }
        request->item_count = kept;
        request->beside_count = (uint8_t) (request->beside_count + count - kept);
}

uint32_t ledger_chips_asked(const struct ledger *ledger, const struct request *request)
{
        keeps_t *keeps = rule_of(ledger, request); /* as in ledger_chips_only(), without a copy */
        uint32_t chips = 0;

        for (size_t i = 0; i < request->item_count; i++)
                if (keeps(ledger, request->items[i].resource))
                        chips += request->items[i].chips;
        return chips;
}
