/* One verdict and one score tuple a kind of node, which every node of the kind then gets. */
#include "scheduler-extender/decide/candidates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/decide/node_kinds.h"
#include "scheduler-extender/decide/score.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

#define KIND_OPEN  255 /* not judged yet in this request */
#define KIND_ALONE 254 /* its nodes are judged themselves */

struct panel {
        const struct rules_context *context;
        const struct ledger *ledger;
        uint8_t *verdicts; /* by kind; KIND_OPEN, KIND_ALONE or enum reason */
        uint32_t own;      /* index of the node that the pod is bound to, or ROSTER_NONE */
        bool each;         /* no two nodes are alike for this request */
};

static int panel_open(const struct rules_context *ctx, struct ledger *ledger, struct panel *ret)
{
        node_kinds_update(ledger);
        *ret = (struct panel){
                .context = ctx,
                .ledger = ledger,
                .verdicts = malloc(ledger->kinds.count + NODE_KIND_FIRST),
                .own = ctx->self != NULL && ctx->self->node != NULL ? ctx->self->node->index : ROSTER_NONE,
                .each = ctx->equal_to != NULL || ctx->request->network_mbps > 0 || ctx->devices > 0 ||
                        ctx->request->by_claims,
        };
        if (ret->verdicts == NULL)
                return -ENOMEM;
        memset(ret->verdicts, KIND_OPEN, ledger->kinds.count + NODE_KIND_FIRST);
        ret->verdicts[NODE_KIND_UNKNOWN] = ret->verdicts[NODE_KIND_ALONE] = KIND_ALONE;
        return 0;
}

/* Overflow onto a node of the other class depends on the pods that are there. */
static bool needs_pods(const struct rules_context *ctx, const struct ledger_node *shape)
{
        return ctx->overflow.allowed &&
               shape->node_class == (ctx->request->class_chips <= 1 ? NODE_CLASS_MULTI : NODE_CLASS_SINGLE);
}

static uint8_t judge_kind(struct panel *panel, uint32_t kind)
{
        const struct ledger_node *shape = node_kinds_shape(panel->ledger, kind);

        panel->verdicts[kind] = needs_pods(panel->context, shape)
                                        ? KIND_ALONE
                                        : (uint8_t) rules_judge_known(panel->context, shape);
        return panel->verdicts[kind];
}

/* The verdict on a node by its kind, or KIND_ALONE. */
static inline uint8_t judge_by_kind(struct panel *panel, uint32_t index, const struct roster_seat *seat)
{
        uint8_t verdict = panel->verdicts[seat->kind];

        if (index == panel->own || panel->each)
                return KIND_ALONE;
        if (verdict == KIND_OPEN)
                verdict = judge_kind(panel, seat->kind);
        if (verdict != KIND_ALONE && verdict != REASON_NODE_UNKNOWN &&
            liveness_silent(&panel->ledger->liveness, seat->seen_usec))
                return REASON_INVENTORY_STALE;
        return verdict;
}

int candidates_judge(const struct rules_context *ctx, struct ledger *ledger, const uint32_t *nodes,
                     size_t count, uint8_t *verdicts)
{
        struct panel panel;

        if (ctx->request->item_count == 0 && ctx->devices == 0 && !ctx->request->by_claims) {
                memset(verdicts, REASON_NONE, count);
                return 0;
        }
        if (panel_open(ctx, ledger, &panel) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                if (nodes[i] == ROSTER_NONE) {
                        verdicts[i] = REASON_NODE_UNKNOWN;
                        continue;
                }
                verdicts[i] = judge_by_kind(&panel, nodes[i], &ledger->roster.seats[nodes[i]]);
                if (verdicts[i] == KIND_ALONE)
                        verdicts[i] = (uint8_t) rules_judge(ctx, ledger->nodes[nodes[i]]);
        }
        free(panel.verdicts);
        return 0;
}

/* The tuples that are to be ranked: one of each kind that takes the pod, and one of each node by itself. */
struct table {
        struct score_tuple *tuples;
        uint32_t *of_kind; /* kind -> index of its tuple + 1; 0 = none yet */
        uint32_t *which;   /* candidate -> index of its tuple + 1; 0 = does not take the pod */
        size_t count, capacity;
};

static void table_free(struct table *table)
{
        free(table->tuples);
        free(table->of_kind);
        free(table->which);
}

static uint32_t add_tuple(struct table *table, const struct rules_context *ctx,
                          const struct ledger_node *node)
{
        struct score_tuple *tuple =
                array_add(&table->tuples, &table->count, &table->capacity, sizeof(*tuple));

        if (tuple == NULL)
                return 0;
        score_tuple(ctx, node, tuple);
        return (uint32_t) table->count;
}

/* Return: index of the node's tuple + 1; 0 when out of memory. */
static uint32_t tuple_of(struct table *table, const struct panel *panel, uint32_t index, bool alone)
{
        uint32_t kind = panel->ledger->roster.seats[index].kind;

        if (alone)
                return add_tuple(table, panel->context, panel->ledger->nodes[index]);
        if (table->of_kind[kind] == 0)
                table->of_kind[kind] =
                        add_tuple(table, panel->context, node_kinds_shape(panel->ledger, kind));
        return table->of_kind[kind];
}

static int choose_tuples(struct panel *panel, const uint32_t *nodes, size_t count, struct table *table)
{
        const struct ledger *ledger = panel->ledger;

        for (size_t i = 0; i < count; i++) {
                uint8_t verdict;

                table->which[i] = 0;
                if (nodes[i] == ROSTER_NONE)
                        continue;
                verdict = judge_by_kind(panel, nodes[i], &ledger->roster.seats[nodes[i]]);
                if (verdict == KIND_ALONE) {
                        if (rules_judge(panel->context, ledger->nodes[nodes[i]]) != REASON_NONE)
                                continue;
                } else if (verdict != REASON_NONE) {
                        continue;
                }
                table->which[i] = tuple_of(table, panel, nodes[i], verdict == KIND_ALONE);
                if (table->which[i] == 0)
                        return -ENOMEM;
        }
        return 0;
}

static int build_table(struct panel *panel, const uint32_t *nodes, size_t count, struct table *table)
{
        table->of_kind = calloc(panel->ledger->kinds.count + NODE_KIND_FIRST, sizeof(*table->of_kind));
        table->which = malloc((count + 1) * sizeof(*table->which));
        if (table->of_kind == NULL || table->which == NULL)
                return -ENOMEM;
        return choose_tuples(panel, nodes, count, table);
}

static int score_table(const struct table *table, size_t count, uint8_t *scores)
{
        CLEANUP(free_p) uint8_t *of_tuple = malloc(table->count + 1);

        if (of_tuple == NULL || score_rank(table->tuples, table->count, of_tuple) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                scores[i] = table->which[i] == 0 ? 0 : of_tuple[table->which[i] - 1];
        return 0;
}

int candidates_score(const struct rules_context *ctx, struct ledger *ledger, const uint32_t *nodes,
                     size_t count, uint8_t *scores)
{
        struct table table = { 0 };
        struct panel panel;
        int r;

        if (ctx->request->item_count == 0 && ctx->asks == NULL) { /* one place is as good as another */
                for (size_t i = 0; i < count; i++)
                        scores[i] = nodes[i] == ROSTER_NONE ? 0 : SCORE_BEST;
                return 0;
        }
        if (panel_open(ctx, ledger, &panel) < 0)
                return -ENOMEM;
        r = build_table(&panel, nodes, count, &table);
        if (r == 0)
                r = score_table(&table, count, scores);
        table_free(&table);
        free(panel.verdicts);
        return r;
}

/* May whoever asks for this take that place? */
static bool is_place_for(const struct rules_context *ctx, const struct ledger_job_slot *slot)
{
        uint32_t labels = ctx->self != NULL ? ctx->self->labels : ctx->request->labels;

        return gang_same_shape(&slot->request, ctx->request) &&
               neighbours_alike(&ctx->ledger->neighbours, slot->request.labels, labels);
}

/* Are there places for others than such as ask for this, or does it matter who is beside whom? */
static bool is_unlike(const struct rules_context *ctx)
{
        for (const struct ledger_job_slot *slot = ctx->job->slots; slot != NULL; slot = slot->next_in_job)
                if (!is_place_for(ctx, slot) || slot->request.demands != NEIGHBOURS_NONE ||
                    slot->request.labels != NEIGHBOURS_NONE)
                        return true;
        return false;
}

static bool has_place(const struct rules_context *ctx, const struct ledger_node *node)
{
        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                if (slot->job == ctx->job && is_place_for(ctx, slot))
                        return true;
        return false;
}

void candidates_keep_to_plan(const struct rules_context *ctx, const uint32_t *nodes, size_t count,
                             uint8_t *verdicts)
{
        struct ledger_node *const *all = ctx->ledger->nodes;
        bool any = false;

        if (ctx->request->item_count == 0 || ctx->job == NULL || ctx->job->place_count > 0 || !is_unlike(ctx))
                return;
        for (size_t i = 0; i < count && !any; i++)
                any = verdicts[i] == REASON_NONE && has_place(ctx, all[nodes[i]]);
        for (size_t i = 0; i < count && any; i++)
                if (verdicts[i] == REASON_NONE && !has_place(ctx, all[nodes[i]]))
                        verdicts[i] = CANDIDATE_LEFT_OUT;
}

/* Tuples that are equal have one rank. */
struct place {
        struct score_tuple tuple;
        uint32_t index; /* of the tuple in the table */
};

static int compare_places(const void *a, const void *b)
{
        return score_compare(&((const struct place *) a)->tuple, &((const struct place *) b)->tuple);
}

/* rank_of[tuple], and of each rank whether its nodes come into question. Return: 0 or -ENOMEM. */
static int rank_tuples(const struct rules_context *ctx, const struct table *table, uint32_t *rank_of,
                       bool *is_near)
{
        CLEANUP(free_p) struct place *places = malloc((table->count + 1) * sizeof(*places));
        uint32_t rank = 0;

        if (places == NULL)
                return -ENOMEM;
        for (uint32_t i = 0; i < table->count; i++)
                places[i] = (struct place){ .tuple = table->tuples[i], .index = i };
        qsort(places, table->count, sizeof(*places), compare_places);
        for (size_t i = 0; i < table->count; i++) {
                rank += i > 0 && compare_places(&places[i - 1], &places[i]) != 0;
                rank_of[places[i].index] = rank;
                is_near[rank] = score_near(ctx, &places[0].tuple, &places[i].tuple);
        }
        return 0;
}

static int keep_best(const struct rules_context *ctx, const struct table *table, size_t count, size_t limit,
                     uint8_t *verdicts)
{
        CLEANUP(free_p) uint32_t *rank_of = malloc((table->count + 1) * sizeof(*rank_of));
        CLEANUP(free_p) size_t *room = calloc(table->count + 1, sizeof(*room)); /* by rank: nodes kept */
        CLEANUP(free_p) bool *is_near = calloc(table->count + 1, sizeof(*is_near));

        if (rank_of == NULL || room == NULL || is_near == NULL ||
            rank_tuples(ctx, table, rank_of, is_near) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                if (table->which[i] > 0 && verdicts[i] == REASON_NONE)
                        room[rank_of[table->which[i] - 1]]++;
        for (size_t rank = 0; rank < table->count; rank++) {
                size_t most = is_near[rank] ? limit : 0;

                room[rank] = room[rank] < most ? room[rank] : most;
                limit -= room[rank];
        }
        for (size_t i = 0; i < count; i++) {
                size_t *left = table->which[i] > 0 ? &room[rank_of[table->which[i] - 1]] : NULL;

                if (left == NULL || verdicts[i] != REASON_NONE)
                        continue;
                if (*left == 0)
                        verdicts[i] = CANDIDATE_LEFT_OUT;
                else
                        --*left;
        }
        return 0;
}

int candidates_shorten(const struct rules_context *ctx, struct ledger *ledger, const uint32_t *nodes,
                       size_t count, size_t limit, uint8_t *verdicts)
{
        struct table table = { 0 };
        struct panel panel;
        int r;

        if (ctx->request->item_count == 0 && ctx->asks == NULL) /* kube-scheduler knows better */
                return 0;
        if (panel_open(ctx, ledger, &panel) < 0)
                return -ENOMEM;
        r = build_table(&panel, nodes, count, &table);
        if (r == 0)
                r = keep_best(ctx, &table, count, limit, verdicts);
        table_free(&table);
        free(panel.verdicts);
        return r;
}
