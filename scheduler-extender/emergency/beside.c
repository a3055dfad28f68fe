/* Branch and bound over the pods of one node. */
#include "scheduler-extender/emergency/beside.h"

void beside_begin(struct beside *beside, const struct rules_context *context, const struct ledger_node *node,
                  size_t item_count)
{
        beside->kind_count = context->unfiltered ? node_room_left(context, node, beside->kinds) : 0;
        beside->item_count = item_count;
        for (size_t i = 0; i < item_count; i++)
                for (size_t k = 0; k < beside->kind_count; k++)
                        beside->freed[i][k] = 0;
}

void beside_free(struct beside *beside, size_t item, const struct ledger_pod *pod)
{
        for (size_t k = 0; k < beside->kind_count; k++)
                beside->freed[item][k] += node_room_asked(&pod->request, &beside->kinds[k]);
}

uint32_t beside_members(const struct beside *beside, bool all)
{
        int64_t least = UINT32_MAX;

        for (size_t k = 0; k < beside->kind_count; k++) {
                int64_t left = beside->kinds[k].left;

                for (size_t i = 0; i < beside->item_count && all; i++)
                        left += beside->freed[i][k];
                left = left > 0 ? left / beside->kinds[k].asked : 0;
                least = left < least ? left : least;
        }
        return (uint32_t) least;
}

bool beside_suffices(const struct beside *beside, uint64_t set, uint32_t members)
{
        for (size_t k = 0; k < beside->kind_count; k++) {
                int64_t left = beside->kinds[k].left - members * beside->kinds[k].asked;

                for (size_t i = 0; i < beside->item_count && left < 0; i++)
                        left += (set >> i & 1) != 0 ? beside->freed[i][k] : 0;
                if (left < 0)
                        return false;
        }
        return true;
}

struct search {
        const struct beside *beside;
        const struct curve_item *items;
        int64_t lacking[1 + NODE_ROOM_KINDS]; /* chips, then the kinds */
        int64_t (*rest)[1 + NODE_ROOM_KINDS]; /* what the items from this one on free */
        size_t steps, most;
        uint64_t set, best_set;
        victim_cost price, best;
};

static int64_t freed_of(const struct search *s, size_t item, size_t k)
{
        return k == 0 ? s->items[item].chips : s->beside->freed[item][k - 1];
}

/* With this item, then without. */
static void try_item(struct search *s, size_t item)
{
        bool lacks = false;

        if (s->price >= s->best || s->steps++ > s->most)
                return;
        for (size_t k = 0; k <= s->beside->kind_count; k++) {
                lacks = lacks || s->lacking[k] > 0;
                if (s->lacking[k] > s->rest[item][k])
                        return;
        }
        if (!lacks) {
                s->best = s->price;
                s->best_set = s->set;
                return;
        }
        for (size_t k = 0; k <= s->beside->kind_count; k++)
                s->lacking[k] -= freed_of(s, item, k);
        s->price += s->items[item].price;
        s->set |= UINT64_C(1) << item;
        try_item(s, item + 1);
        for (size_t k = 0; k <= s->beside->kind_count; k++)
                s->lacking[k] += freed_of(s, item, k);
        s->price -= s->items[item].price;
        s->set &= ~(UINT64_C(1) << item);
        try_item(s, item + 1);
}

victim_cost beside_solve(const struct beside *beside, const struct curve_item *items, uint32_t chips,
                         uint32_t members, size_t most, uint64_t *set, bool *exact, size_t *steps)
{
        int64_t rest[CURVE_PODS + 1][1 + NODE_ROOM_KINDS]
                __attribute__((uninitialized)); /* few of it are used */
        struct search s = {
                .beside = beside, .items = items, .most = most, .rest = rest, .best = VICTIM_COST_MAX
        };

        s.lacking[0] = chips;
        for (size_t k = 0; k < beside->kind_count; k++)
                s.lacking[k + 1] = members * beside->kinds[k].asked - beside->kinds[k].left;
        for (size_t k = 0; k <= beside->kind_count; k++)
                rest[beside->item_count][k] = 0;
        for (size_t i = beside->item_count; i-- > 0;)
                for (size_t k = 0; k <= beside->kind_count; k++)
                        rest[i][k] = rest[i + 1][k] + freed_of(&s, i, k);
        try_item(&s, 0);
        *exact = *exact && s.steps <= most;
        *steps += s.steps + beside->item_count;
        *set = s.best_set;
        return s.best;
}
