/* The tuple of a node, key by key, and the ranks of the tuples of all nodes. */
#include "scheduler-extender/decide/score.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "scheduler-extender/decide/fragmentation.h"
#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/ledger/ledger_account.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define OFF_PLAN (INT64_C(1) << 61)

/* 1. An emergency prefers the reserve; a borrower prefers regular nodes to lent ones. */
static int64_t pool_key(const struct rules_context *ctx, const struct ledger_node *node)
{
        return ctx->request->emergency ? !node->reserved : node->reserved;
}

/* 2. The class made for it, then `any`, then overflow. */
static int64_t class_key(const struct rules_context *ctx, const struct ledger_node *node)
{
        enum node_class matching = ctx->request->class_chips > 1 ? NODE_CLASS_MULTI : NODE_CLASS_SINGLE;

        if (node->node_class == matching)
                return 0;
        return node->node_class == NODE_CLASS_ANY ? 1 : 2;
}

/* How much less of the node typical pods could use, in steps of 1/60 chip: the measure of `remuda simulate`.
 */
static int64_t fragmentation_growth(const struct ledger_node *node, uint32_t open, uint32_t chips)
{
        const struct fragmentation_typical *typical =
                fragmentation_of_class((enum node_class) node->node_class);
        struct fragmentation_node free_chips;
        struct fragmentation_pod pod = { .chips = chips, .milli = CHIP_MILLI };
        int partial;

        free_chips.cpu_milli = free_chips.memory_mib = 0; /* kube-scheduler's to judge */
        free_chips.whole = open;
        free_chips.partial_count = 0;
        free_chips.model = 0;
        return fragmentation_choose(typical, &free_chips, fragmentation_of(typical, &free_chips), &pod,
                                    &partial);
}

/* Would the pod take a part of a whole group where no broken group, and none that it just fills, has room? */
static bool breaks_whole_group(const struct request *request, size_t item, const struct ledger_group *groups,
                               uint32_t group_count)
{
        uint32_t chips = request->items[item].chips;
        bool breaks = false;

        for (uint32_t i = 0; i < group_count; i++) {
                const struct ledger_group *g = &groups[i];
                uint32_t open = ledger_group_open(g);

                if (g->resource != request->items[item].resource || !request_accepts(request, g->model) ||
                    open < chips)
                        continue;
                if (open < g->total || open == chips)
                        return false;
                breaks = true;
        }
        return breaks;
}

/* 3. packed: a pod inside one group before one that straddles, and one that leaves whole groups whole before
 * one that breaks one; if one has to be broken, that of the smallest server, else the least growth of
 * fragmentation; then the smallest server; then the fewest chips left. */
static void packed_keys(const struct rules_context *ctx, const struct ledger_node *node, int64_t *key)
{
        RULES_SCRATCH(scratch);
        const struct ledger_group *groups = rules_groups(ctx, node, scratch);

        for (size_t i = 0; i < ctx->request->item_count; i++) {
                uint32_t chips = ctx->request->items[i].chips;
                bool breaks = breaks_whole_group(ctx->request, i, groups, node->group_count);
                struct rules_room room;

                rules_room(ctx, node, i, &room);
                key[0] += 2 * (room.group_open < chips) + breaks;
                key[1] += breaks ? room.total : fragmentation_growth(node, room.open, chips);
                key[2] += room.total;
                key[3] += room.open - chips;
        }
}

/* 3. uniform: fewest chips held first. */
static void uniform_keys(const struct rules_context *ctx, const struct ledger_node *node, int64_t *key)
{
        for (size_t i = 0; i < ctx->request->item_count; i++) {
                struct rules_room room;

                rules_room(ctx, node, i, &room);
                key[0] += room.held;
        }
}

/* 3. largest-free: most free chips first. */
static void largest_free_keys(const struct rules_context *ctx, const struct ledger_node *node, int64_t *key)
{
        for (size_t i = 0; i < ctx->request->item_count; i++) {
                struct rules_room room;

                rules_room(ctx, node, i, &room);
                key[0] -= room.open;
        }
}

/* Speed of the group that would serve it, finely enough for whole numbers. */
static double group_speed(const struct rules_context *ctx, const struct ledger_group *group)
{
        const struct weighting_row *row = weighting_row(ctx->weighting, group);

        return row == NULL ? 0 : row->speed * 1e3;
}

/* 3. fastest: the fastest group with room; a pod that straddles groups is as slow as the slowest it needs. */
static void fastest_keys(const struct rules_context *ctx, const struct ledger_node *node, int64_t *key)
{
        RULES_SCRATCH(scratch);
        const struct ledger_group *groups = rules_groups(ctx, node, scratch);
        double best = -1, slowest = -1;

        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *g = &groups[i];
                double speed = group_speed(ctx, g);

                if (g->resource != ctx->request->items[0].resource ||
                    !request_accepts(ctx->request, g->model))
                        continue;
                if (ledger_group_open(g) >= ctx->request->items[0].chips && speed > best)
                        best = speed;
                if (ledger_group_open(g) > 0 && (slowest < 0 || speed < slowest))
                        slowest = speed;
        }
        key[0] = -(int64_t) (best >= 0 ? best : slowest);
}

static enum placement placement_of(const struct rules_context *ctx)
{
        return ctx->request->placement == PLACEMENT_DEFAULT ? ctx->rules->placement
                                                            : (enum placement) ctx->request->placement;
}

bool score_is_by_speed(const struct rules_context *ctx)
{
        return placement_of(ctx) == PLACEMENT_FASTEST;
}

static void placement_keys(const struct rules_context *ctx, const struct ledger_node *node, int64_t *key)
{
        switch (placement_of(ctx)) {
        case PLACEMENT_UNIFORM:
                uniform_keys(ctx, node, key);
                break;
        case PLACEMENT_LARGEST_FREE:
                largest_free_keys(ctx, node, key);
                break;
        case PLACEMENT_FASTEST:
                fastest_keys(ctx, node, key);
                break;
        default:
                packed_keys(ctx, node, key);
        }
}

/* 4. The modelled step time with this member; 0 where nothing is known. */
static int64_t step_key(const struct rules_context *ctx, const struct ledger_node *node)
{
        RULES_SCRATCH(scratch);
        const struct ledger_group *groups;
        const struct weighting_row *row;

        if (ctx->weighting == NULL)
                return 0;
        groups = rules_groups(ctx, node, scratch);
        row = weighting_row(ctx->weighting,
                            weighting_group(groups, node->group_count, ctx->request,
                                            placement_of(ctx) == PLACEMENT_FASTEST ? ctx->weighting : NULL));
        return row == NULL ? 0 : (int64_t) row->step_nsec;
}

/* A gang with a common batch was planned for the shortest step, others under one switch: the members go where
 * their slots are. */
static int64_t off_plan(const struct rules_context *ctx, const struct ledger_node *node)
{
        bool stepped = ctx->weighting != NULL && ctx->weighting->batch > 0;

        if (ctx->planning || ctx->job == NULL || ctx->job->slots == NULL || !(stepped || ctx->job->together))
                return 0;
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                if (slot->job == ctx->job &&
                    slot->request.items[0].resource == ctx->request->items[0].resource &&
                    slot->request.items[0].chips == ctx->request->items[0].chips)
                        return 0;
        return OFF_PLAN;
}

static void tuple_of(const struct rules_context *ctx, const struct ledger_node *node, struct score_tuple *ret)
{
        bool fastest = placement_of(ctx) == PLACEMENT_FASTEST || (ctx->planning && ctx->weighting != NULL);
        int64_t step = step_key(ctx, node);

        *ret = (struct score_tuple){ 0 };
        if (ctx->request->item_count == 0)
                return;
        ret->key[0] = (fastest ? step : 0) + off_plan(ctx, node);
        ret->key[1] = pool_key(ctx, node);
        ret->key[2] = class_key(ctx, node);
        placement_keys(ctx, node, &ret->key[3]); /* at most four keys */
        ret->key[7] = fastest ? 0 : step;
}

void score_tuple(const struct rules_context *ctx, const struct ledger_node *node, struct score_tuple *ret)
{
        struct rules_on room;

        tuple_of(ctx->asks == NULL ? ctx : rules_on(ctx, node, &room), node, ret);
}

int score_compare(const struct score_tuple *a, const struct score_tuple *b)
{
        for (size_t i = 0; i < SCORE_KEYS; i++)
                if (a->key[i] != b->key[i])
                        return a->key[i] < b->key[i] ? -1 : 1;
        return 0;
}

int score_order(const struct score_tuple *a, const struct ledger_node *a_node, const struct score_tuple *b,
                const struct ledger_node *b_node)
{
        int order = score_compare(a, b);

        return order != 0 ? order : strcmp(a_node->name, b_node->name);
}

bool score_near(const struct rules_context *ctx, const struct score_tuple *a, const struct score_tuple *b)
{
        size_t keys = placement_of(ctx) == PLACEMENT_FASTEST ? SCORE_KEYS : 3;

        return memcmp(a->key, b->key, keys * sizeof(a->key[0])) == 0;
}

static int compare_pointers(const void *a, const void *b)
{
        return score_compare(*(const struct score_tuple *const *) a, *(const struct score_tuple *const *) b);
}

struct distinct {
        const struct score_tuple **tuples; /* the different ones, sorted at the end */
        size_t count;
        uint32_t *slots; /* hash of a tuple -> index + 1 */
        size_t slot_count;
};

static size_t add_distinct(struct distinct *distinct, const struct score_tuple *tuple)
{
        size_t mask = distinct->slot_count - 1, i = (size_t) hash_bytes(tuple, sizeof(*tuple), 0) & mask;

        while (distinct->slots[i] != 0 && score_compare(distinct->tuples[distinct->slots[i] - 1], tuple) != 0)
                i = (i + 1) & mask;
        if (distinct->slots[i] == 0) {
                distinct->tuples[distinct->count++] = tuple;
                distinct->slots[i] = (uint32_t) distinct->count;
        }
        return distinct->slots[i] - 1;
}

int score_rank(const struct score_tuple *tuples, size_t count, uint8_t *scores)
{
        CLEANUP(free_p)
        const struct score_tuple **sorted = malloc((count + 1) * sizeof(struct score_tuple *));
        CLEANUP(free_p) const struct score_tuple **found = malloc((count + 1) * sizeof(struct score_tuple *));
        CLEANUP(free_p) uint32_t *which = malloc((count + 1) * sizeof(*which));
        CLEANUP(free_p) uint8_t *score_of = malloc(count + 1);
        CLEANUP(free_p) uint32_t *slots = NULL;
        struct distinct distinct = { .tuples = found, .slot_count = 64 };

        while (distinct.slot_count < 2 * count)
                distinct.slot_count *= 2;
        slots = distinct.slots = calloc(distinct.slot_count, sizeof(*slots));
        if (sorted == NULL || found == NULL || which == NULL || score_of == NULL || slots == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                which[i] = i > 0 && memcmp(&tuples[i], &tuples[i - 1], sizeof(*tuples)) == 0
                                   ? which[i - 1]
                                   : (uint32_t) add_distinct(&distinct, &tuples[i]);
        memcpy(sorted, found, distinct.count * sizeof(struct score_tuple *));
        qsort(sorted, distinct.count, sizeof(struct score_tuple *), compare_pointers);
        for (size_t rank = 0; rank < distinct.count; rank++) {
                size_t index = add_distinct(&distinct, sorted[rank]);
                size_t below = distinct.count > 1 ? rank * (SCORE_BEST - 1) / (distinct.count - 1) : 0;

                score_of[index] = (uint8_t) (SCORE_BEST - below);
        }
        for (size_t i = 0; i < count; i++)
                scores[i] = score_of[which[i]];
        return 0;
}

size_t score_parts(const struct rules_context *ctx, const struct ledger_node *node,
                   struct ledger_pod_part *parts)
{
        RULES_SCRATCH(scratch);
        const struct ledger_group *groups = rules_groups(ctx, node, scratch), *best;

        if (groups != scratch)
                memcpy(scratch, groups, node->group_count * sizeof(*groups));
        best = weighting_group(scratch, node->group_count, ctx->request, ctx->weighting);
        if (placement_of(ctx) == PLACEMENT_FASTEST && best != NULL && ctx->request->item_count == 1 &&
            ledger_group_open(best) >= ctx->request->items[0].chips) {
                parts[0] = (struct ledger_pod_part){ .group = best->name,
                                                     .chips = ctx->request->items[0].chips };
                return 1;
        }
        return ledger_account_place(scratch, node->group_count, ctx->request, false, parts);
}
