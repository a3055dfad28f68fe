/* One pass over the nodes: a count and the nearest few of each reason, then the order in which they are told.
 */
#include "scheduler-extender/explain/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define TALLY_WORDS 3 /* in a sentence */

const char *tally_verdict(enum reason reason)
{
        if (reason == REASON_NONE)
                return "fits";
        return reason_text(reason)->unresolvable ? "never" : "waits";
}

/* Chips that are still to become open there. */
static uint64_t missing_chips(const struct rules_context *of, const struct ledger_node *node)
{
        struct rules_on on_node;
        const struct rules_context *ctx = rules_on(of, node, &on_node);
        uint64_t missing = 0;

        for (size_t i = 0; i < ctx->request->item_count; i++) {
                struct rules_room room;

                rules_room(ctx, node, i, &room);
                if (room.open < ctx->request->items[i].chips)
                        missing += ctx->request->items[i].chips - room.open;
        }
        return missing;
}

static bool is_nearer(const struct rules_context *ctx, const struct ledger_node *a,
                      const struct ledger_node *b)
{
        uint64_t x = missing_chips(ctx, a), y = b == NULL ? UINT64_MAX : missing_chips(ctx, b);

        return b == NULL || x < y || (x == y && strcmp(a->name, b->name) < 0);
}

static void keep_nearest(const struct rules_context *ctx, const struct ledger_node *node,
                         const struct ledger_node *nearest[TALLY_EXAMPLES])
{
        size_t at = TALLY_EXAMPLES;

        while (at > 0 && is_nearer(ctx, node, nearest[at - 1]))
                at--;
        if (at == TALLY_EXAMPLES)
                return;
        memmove(&nearest[at + 1], &nearest[at], (TALLY_EXAMPLES - 1 - at) * sizeof(nearest[0]));
        nearest[at] = node;
}

static unsigned group_of(enum reason reason)
{
        return reason == REASON_NONE ? 0 : reason_text(reason)->unresolvable ? 2 : 1;
}

static bool is_told_before(const struct tally *tally, enum reason a, enum reason b)
{
        if (group_of(a) != group_of(b))
                return group_of(a) < group_of(b);
        return tally->counts[a] > tally->counts[b] || (tally->counts[a] == tally->counts[b] && a < b);
}

static void find_order(struct tally *tally)
{
        for (size_t i = 0; i < REASON_COUNT; i++) {
                size_t at = tally->order_count;

                if (tally->counts[i] == 0)
                        continue;
                for (; at > 0 && is_told_before(tally, (enum reason) i, tally->order[at - 1]); at--)
                        tally->order[at] = tally->order[at - 1];
                tally->order[at] = (enum reason) i;
                tally->order_count++;
        }
}

void tally_nodes(const struct rules_context *ctx, struct tally *ret)
{
        *ret = (struct tally){ .nodes = ctx->ledger->node_count };
        for (uint32_t i = 0; i < ret->nodes; i++) {
                const struct ledger_node *node = ctx->ledger->nodes[i];
                enum reason reason = rules_judge(ctx, node);

                ret->counts[reason]++;
                keep_nearest(ctx, node, ret->nearest[reason]);
        }
        find_order(ret);
}

enum reason tally_top(const struct tally *tally)
{
        return tally->order_count == 0 ? REASON_NONE : tally->order[0];
}

void tally_sentence(const struct rules_context *ctx, const struct tally *tally,
                    char sentence[TALLY_SENTENCE_BYTES])
{
        const struct ledger_node *held = tally->nearest[REASON_HELD_FOR_OLDER][0];
        struct rules_on room;
        const struct ledger_pod *holder =
                held == NULL ? NULL : rules_holder(rules_on(ctx, held, &room), held);
        CLEANUP(text_free) struct text said = { 0 };
        uint32_t told = 0, rest = 0;

        if (tally->nodes == 0)
                text_append(&said, "there are no nodes");
        else if (tally->counts[REASON_NONE] > 0)
                text_printf(&said, "%u of %u node(s) take it", tally->counts[REASON_NONE], tally->nodes);
        else
                text_printf(&said, "no node of %u takes it", tally->nodes);
        for (size_t i = 0; i < tally->order_count; i++) {
                uint32_t count = tally->counts[tally->order[i]];

                if (tally->order[i] == REASON_NONE)
                        continue;
                if (told++ < TALLY_WORDS)
                        text_printf(&said, "%s%u %s", told == 1 ? ": " : ", ", count,
                                    reason_text(tally->order[i])->word);
                else
                        rest += count;
        }
        if (rest > 0)
                text_printf(&said, " and %u more", rest);
        if (holder != NULL)
                text_printf(&said, "; chips are held for %s", holder->key);
        (void) text_copy(sentence, TALLY_SENTENCE_BYTES, said.failed ? "" : said.data);
}
