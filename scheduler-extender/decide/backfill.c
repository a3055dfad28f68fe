/* Where and when an older pod could start, and what of that node others may have until then. */
#include "scheduler-extender/decide/backfill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/decide/gang_share.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

static bool same_namespace(const struct ledger_pod *a, const struct ledger_pod *b)
{
        return a->name - a->key == b->name - b->key &&
               strncmp(a->key, b->key, (size_t) (a->name - a->key)) == 0;
}

/* When the bound pod ends, as far as the waiting one may rely on it. */
static uint64_t end_for(const struct ledger_pod *waiting, const struct ledger_pod *bound)
{
        return bound->request.deadline_kept || same_namespace(waiting, bound) ? backfill_pod_ends(bound)
                                                                              : UINT64_MAX;
}

uint64_t backfill_pod_ends(const struct ledger_pod *pod)
{
        uint64_t begin = pod->started_usec != 0 ? pod->started_usec : pod->created_usec;

        return pod->request.deadline_sec == 0 || begin == 0
                       ? UINT64_MAX
                       : begin + (uint64_t) pod->request.deadline_sec * 1000000;
}

void backfill_clear(struct ledger *ledger)
{
        for (uint32_t i = 0; i < ledger->node_count && ledger->backfill_total > 0; i++)
                while (ledger->nodes[i]->backfills != NULL) {
                        struct ledger_backfill *backfill = ledger->nodes[i]->backfills;

                        ledger->nodes[i]->backfills = backfill->next;
                        ledger->backfill_total--;
                        free(backfill);
                }
}

int backfill_add(struct ledger *ledger, struct ledger_node *node, const struct ledger_pod *pod,
                 uint32_t resource, uint64_t start_usec, uint32_t spare)
{
        struct ledger_backfill *backfill = malloc(sizeof(*backfill));

        if (backfill == NULL)
                return -ENOMEM;
        *backfill = (struct ledger_backfill){ .pod = pod,
                                              .next = node->backfills,
                                              .resource = resource,
                                              .start_usec = start_usec,
                                              .spare = spare };
        node->backfills = backfill;
        ledger->backfill_total++;
        ledger_touch(ledger, node);
        return 0;
}

static int by_age(const void *a, const void *b)
{
        return ledger_pods_compare(*(struct ledger_pod *const *) a, *(struct ledger_pod *const *) b);
}

/* One chip is always found soonest by waiting; several, or a gang's, are not. */
static bool needs_reservation(const struct ledger_pod *pod)
{
        return pod->request.item_count == 1 &&
               (pod->request.items[0].chips > 1 || pod->request.gang_size > 1);
}

/* Pods that wait for several chips, oldest first. A gang that has its lease needs no reservation. */
static size_t collect_waiting(const struct ledger *ledger, struct ledger_pod **waiting)
{
        size_t count = 0;

        for (struct ledger_pod *pod = ledger->pending; pod != NULL; pod = pod->next_pending) {
                if (!pod->ended && !pod->deleting && !request_is_held_back(&pod->request) &&
                    needs_reservation(pod) && (pod->job == NULL || pod->job->slots == NULL))
                        waiting[count++] = pod;
        }
        qsort(waiting, count, sizeof(waiting[0]), by_age);
        return count;
}

/* Where and when an older pod could start. */
struct start {
        struct ledger_node *node;
        uint64_t usec;    /* UINT64_MAX = not known */
        uint32_t missing; /* chips that must still become free */
        uint32_t spare;
};

static bool is_sooner(const struct start *a, const struct start *b)
{
        if (b->node == NULL || a->usec != b->usec)
                return b->node == NULL || a->usec < b->usec;
        if (a->missing != b->missing)
                return a->missing < b->missing;
        return strcmp(a->node->name, b->node->name) < 0;
}

static uint32_t open_chips(const struct rules_context *ctx, const struct ledger_node *node)
{
        struct rules_room room;

        rules_room(ctx, node, 0, &room);
        return room.open;
}

/* Chips that other members of its gang are to get there. */
static uint32_t promised(const struct rules_context *ctx, const struct ledger_node *node)
{
        uint32_t chips = 0;

        for (const struct ledger_backfill *backfill = node->backfills; backfill != NULL && ctx->job != NULL;
             backfill = backfill->next)
                if (backfill->pod != ctx->self && backfill->pod->job == ctx->job)
                        chips += backfill->pod->request.items[0].chips;
        return chips;
}

static bool fits(const struct rules_context *ctx, const struct ledger_node *node, uint32_t taken)
{
        return rules_judge(ctx, node) == REASON_NONE &&
               (taken == 0 || open_chips(ctx, node) >= ctx->request->items[0].chips + taken);
}

/* Takes pods off the node in the order of their known ends until the waiting one fits; puts them back. */
static void find_start(struct ledger *ledger, const struct rules_context *ctx, struct start *start)
{
        struct ledger_pod *gone[64];
        size_t count = 0;
        uint32_t chips = ctx->request->items[0].chips, taken = promised(ctx, start->node);

        while (!fits(ctx, start->node, taken) && count < ARRAY_SIZE(gone)) {
                struct ledger_pod *next = NULL;

                for (struct ledger_pod *pod = start->node->pods; pod != NULL; pod = pod->next_on_node)
                        if (end_for(ctx->self, pod) != UINT64_MAX &&
                            (next == NULL || end_for(ctx->self, pod) < end_for(ctx->self, next)))
                                next = pod;
                if (next == NULL)
                        break;
                start->usec =
                        backfill_pod_ends(next) > ctx->now_usec ? backfill_pod_ends(next) : ctx->now_usec;
                ledger_pods_detach(ledger, next);
                gone[count++] = next;
        }
        if (fits(ctx, start->node, taken)) {
                start->spare = open_chips(ctx, start->node) - chips - taken;
                start->usec = count == 0 ? ctx->now_usec : start->usec;
        } else {
                start->usec = UINT64_MAX;
        }
        while (count > 0)
                ledger_pods_attach(ledger, gone[--count], start->node);
}

/* All usable chips that it may have there, whoever holds them. */
static uint32_t room_of(const struct rules_context *ctx, const struct ledger_node *node)
{
        struct rules_room room;

        rules_room(ctx, node, 0, &room);
        return room.usable;
}

/* Does the whole gang fit now? Then it will get its lease, and nobody need wait for its members. */
static bool gang_fits(struct ledger *ledger, const struct ledger_pod *pod, const struct rules_context *ctx)
{
        struct rules_context whole = *ctx;
        struct gang_demand demand = { .kinds = pod->kinds, .kind_count = pod->kind_count };

        return pod->job == NULL || gang_prepare(ledger, &whole, pod->job, &demand) < 0 || !whole.gang_blocked;
}

static bool may_start_later(enum reason reason)
{
        return reason == REASON_NONE || reason == REASON_CHIPS_BUSY || reason == REASON_CHIPS_LEASED ||
               reason == REASON_NO_WHOLE_GROUP;
}

/* Chips are held for a pod for a while, then not for as long: who cannot be bound keeps nobody waiting. */
static bool had_its_time(struct ledger_pod *pod, const struct rules_context *ctx)
{
        uint64_t held = ctx->now_usec - pod->waited_usec, limit = ctx->rules->hold_usec;

        if (pod->waited_usec == 0 || limit == 0)
                return false;
        if (ctx->now_usec < pod->waited_usec || held >= 2 * limit)
                pod->waited_usec = ctx->now_usec;
        return ctx->now_usec - pod->waited_usec >= limit;
}

static uint32_t chips_asked(const struct ledger_pod *pod)
{
        return pod->request.items[0].chips;
}

/* Pods that have a reservation by now. */
struct holding {
        const struct ledger_pod *pods[BACKFILL_MAX];
        size_t count;
        uint32_t resource; /* whose usable chips are known */
        uint64_t usable;
};

/* Of one namespace: what is held for its other pods, and this one's gang, must stay within its share. */
static bool within_share(const struct ledger *ledger, const struct rules_context *ctx,
                         struct holding *holding)
{
        uint64_t others = 0, own = chips_asked(ctx->self);
        uint32_t resource = ctx->request->items[0].resource;

        for (size_t i = 0; i < holding->count && ctx->rules->lease_share_percent > 0; i++) {
                const struct ledger_pod *pod = holding->pods[i];

                if (!same_namespace(pod, ctx->self) || pod->request.items[0].resource != resource)
                        continue;
                if (ctx->job != NULL && pod->job == ctx->job)
                        own += chips_asked(pod);
                else
                        others += chips_asked(pod);
        }
        if (others == 0)
                return true;
        if (holding->resource != resource)
                holding->usable = gang_share_usable(ledger, resource);
        holding->resource = resource;
        return (others + own) * 100 <= holding->usable * ctx->rules->lease_share_percent;
}

static int reserve_for(struct ledger *ledger, struct ledger_pod *pod, struct rules_context *ctx)
{
        struct start best = { .node = NULL };

        if (pod->waited_usec == 0 && pod->request.gang_size <= 1)
                for (uint32_t i = 0; i < ledger->node_count; i++)
                        if (rules_judge(ctx, ledger->nodes[i]) == REASON_NONE)
                                return 0; /* it can start now: nobody need wait for it */
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                struct start start = { .node = ledger->nodes[i] };
                uint32_t open;

                if (!may_start_later(rules_judge(ctx, ledger->nodes[i])))
                        continue;
                open = open_chips(ctx, ledger->nodes[i]);
                start.missing = ctx->request->items[0].chips + promised(ctx, ledger->nodes[i]);
                if (start.missing > room_of(ctx, ledger->nodes[i]))
                        continue; /* the other members take all that there is */
                start.missing = start.missing > open ? start.missing - open : 0;
                find_start(ledger, ctx, &start);
                if (is_sooner(&start, &best))
                        best = start;
        }
        if (best.node == NULL)
                return 0; /* it can never start: nobody need wait for it either */
        if (pod->waited_usec == 0)
                pod->waited_usec = ctx->now_usec;
        return backfill_add(ledger, best.node, pod, ctx->request->items[0].resource, best.usec, best.spare) < 0
                       ? -ENOMEM
                       : 1;
}

int backfill_update(struct ledger *ledger, const struct rules *rules, uint64_t now_usec)
{
        CLEANUP(free_p)
        struct ledger_pod **waiting = malloc((ledger->pending_count + 1) * sizeof(struct ledger_pod *));
        struct holding holding = { .count = 0 };
        uint64_t generation = ledger->generation;
        size_t count, tried = 0;

        if (waiting == NULL)
                return -ENOMEM;
        backfill_clear(ledger);
        count = collect_waiting(ledger, waiting);
        for (size_t i = 0; i < count && tried < BACKFILL_MAX; i++) {
                struct request request = waiting[i]->request;
                struct rules_context ctx = { .ledger = ledger,
                                             .rules = rules,
                                             .request = &request,
                                             .job = waiting[i]->job,
                                             .self = waiting[i],
                                             .created_usec = waiting[i]->created_usec,
                                             .now_usec = now_usec,
                                             .unfiltered = true };
                int r;

                rules_prepare(&ctx);
                if (had_its_time(waiting[i], &ctx) || !within_share(ledger, &ctx, &holding))
                        continue;
                tried++;
                if ((request.gang_size > 1 && waiting[i]->waited_usec == 0 &&
                     gang_fits(ledger, waiting[i], &ctx)))
                        continue;
                r = reserve_for(ledger, waiting[i], &ctx);
                if (r < 0)
                        return r;
                if (r > 0)
                        holding.pods[holding.count++] = waiting[i];
        }
        ledger->generation = generation; /* trying on is no change */
        return (int) holding.count;
}
