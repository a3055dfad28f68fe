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

/* The items in the order in which they are tried: by what a piece of the scarcest kind costs of them. */
struct search {
        const struct beside *beside;
        const struct curve_item *items;
        uint8_t order[CURVE_PODS];
        double rates[CURVE_PODS];             /* by item */
        uint64_t dominated[CURVE_PODS];       /* by place in the order; bit = item; 0 = not known yet */
        size_t scarcest;                      /* kind */
        int64_t lacking[1 + NODE_ROOM_KINDS]; /* chips, then the kinds */
        int64_t (*rest)[1 + NODE_ROOM_KINDS]; /* what the items from this place on free */
        size_t steps, most;
        uint64_t set, best_set, barred;
        victim_cost price, best;
};

static int64_t freed_of(const struct search *s, size_t item, size_t k)
{
        return k == 0 ? s->items[item].chips : s->beside->freed[item][k - 1];
}

static void find_lacking(struct search *s, uint32_t chips, uint32_t members)
{
        double most = 0;

        s->lacking[0] = chips;
        for (size_t k = 0; k < s->beside->kind_count; k++)
                s->lacking[k + 1] = members * s->beside->kinds[k].asked - s->beside->kinds[k].left;
        for (size_t k = 0; k <= s->beside->kind_count; k++) {
                int64_t freed = 0;

                for (size_t i = 0; i < s->beside->item_count; i++)
                        freed += freed_of(s, i, k);
                if (s->lacking[k] <= 0 || (double) s->lacking[k] <= most * (double) freed)
                        continue;
                most = freed > 0 ? (double) s->lacking[k] / (double) freed : 1e300;
                s->scarcest = k;
        }
}

static void put_in_order(struct search *s)
{
        size_t count = s->beside->item_count;

        for (size_t i = 0; i < count; i++) {
                int64_t freed = freed_of(s, i, s->scarcest);
                size_t at = i;

                s->rates[i] = freed > 0 ? (double) s->items[i].price / (double) freed : 1e300;
                for (; at > 0 && s->rates[s->order[at - 1]] > s->rates[i]; at--)
                        s->order[at] = s->order[at - 1];
                s->order[at] = (uint8_t) i;
        }
        for (size_t k = 0; k <= s->beside->kind_count; k++) {
                s->rest[count][k] = 0;
                for (size_t at = count; at-- > 0;)
                        s->rest[at][k] = s->rest[at + 1][k] + freed_of(s, s->order[at], k);
        }
}

/* At least this much more, if a part of an item could go. By the order's rates: the sum of whole items is
 * exact, the part a little less than it is. */
static victim_cost price_at_least(const struct search *s, size_t at)
{
        int64_t lacking = s->lacking[s->scarcest];
        victim_cost price = s->price;

        for (; lacking > 0 && at < s->beside->item_count; at++) {
                size_t item = s->order[at];
                int64_t freed = freed_of(s, item, s->scarcest);

                if (s->barred >> item & 1)
                        continue;
                if (freed == 0)
                        return VICTIM_COST_MAX;
                if (freed > lacking)
                        return price + (victim_cost) (s->rates[item] * (double) lacking * (1 - 1e-9));
                price += s->items[item].price;
                lacking -= freed;
        }
        return lacking > 0 ? VICTIM_COST_MAX : price;
}

/* Those behind it that free no more of anything and cost no less: without it, none of them is needed. */
static uint64_t dominated_by(struct search *s, size_t at)
{
        size_t item = s->order[at];

        if (s->dominated[at] != 0)
                return s->dominated[at];
        s->dominated[at] = UINT64_C(1) << item;
        for (size_t b = at + 1; b < s->beside->item_count; b++) {
                size_t behind = s->order[b], k = 0;

                if (s->items[behind].price < s->items[item].price)
                        continue;
                while (k <= s->beside->kind_count && freed_of(s, behind, k) <= freed_of(s, item, k))
                        k++;
                if (k > s->beside->kind_count)
                        s->dominated[at] |= UINT64_C(1) << behind;
        }
        s->steps += (s->beside->item_count - at) / 8;
        return s->dominated[at];
}

/* With or without what comes at that place of the order: with it, then without. Invariant: `lacking`, `price`
 * and `barred` are of the places before. */
static void try_from(struct search *s, size_t at)
{
        uint64_t barred = s->barred;
        bool lacks = false;
        size_t item;

        while (at < s->beside->item_count && (barred >> s->order[at] & 1) != 0)
                at++;
        if (s->price >= s->best || s->steps++ > s->most)
                return;
        for (size_t k = 0; k <= s->beside->kind_count; k++) {
                lacks = lacks || s->lacking[k] > 0;
                if (s->lacking[k] > s->rest[at][k])
                        return;
        }
        if (!lacks) {
                s->best = s->price;
                s->best_set = s->set;
                return;
        }
        if (price_at_least(s, at) >= s->best)
                return;
        item = s->order[at];
        for (size_t k = 0; k <= s->beside->kind_count; k++)
                s->lacking[k] -= freed_of(s, item, k);
        s->price += s->items[item].price;
        s->set |= UINT64_C(1) << item;
        try_from(s, at + 1);
        for (size_t k = 0; k <= s->beside->kind_count; k++)
                s->lacking[k] += freed_of(s, item, k);
        s->price -= s->items[item].price;
        s->set &= ~(UINT64_C(1) << item);
        s->barred |= dominated_by(s, at);
        try_from(s, at + 1);
        s->barred = barred;
}

victim_cost beside_solve(const struct beside *beside, const struct curve_item *items, uint32_t chips,
                         uint32_t members, size_t most, uint64_t *set, bool *exact, size_t *steps)
{
        int64_t rest[CURVE_PODS + 1][1 + NODE_ROOM_KINDS]
                __attribute__((uninitialized)); /* few of it are used */
        struct search s = {
                .beside = beside, .items = items, .most = most, .rest = rest, .best = VICTIM_COST_MAX
        };

        find_lacking(&s, chips, members);
        put_in_order(&s);
        try_from(&s, 0);
        *exact = *exact && s.steps <= most;
        *steps += s.steps + beside->item_count + beside->item_count * beside->item_count / 8; /* in order */
        *set = s.best_set;
        return s.best;
}
