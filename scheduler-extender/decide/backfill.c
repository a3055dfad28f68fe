/* Where and when an older pod could start, and what of that node others may have until then. */
#include "scheduler-extender/decide/backfill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/decide/node_room.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/neighbours/neighbour_view.h"
#include "scheduler-extender/share/namespace_share.h"

bool backfill_overdue(const struct ledger_pod *pod, uint64_t now_usec)
{
        return pod->deleting && pod->deletion_usec != 0 && now_usec > pod->deletion_usec &&
               now_usec - pod->deletion_usec > BACKFILL_OVERDUE_USEC;
}

/* Its grace time is the kubelet's to keep. */
static uint64_t deleted_by(const struct ledger_pod *pod, uint64_t now_usec)
{
        return pod->deletion_usec != 0 && !backfill_overdue(pod, now_usec) ? pod->deletion_usec : UINT64_MAX;
}

/* When the bound pod ends, as far as the waiting one may rely on it. */
static uint64_t end_for(const struct rules_context *ctx, const struct ledger_pod *bound)
{
        if (bound->request.deadline_kept || ledger_pods_same_namespace(ctx->self->key, bound->key))
                return backfill_pod_ends(bound, ctx->now_usec);
        return deleted_by(bound, ctx->now_usec);
}

uint64_t backfill_pod_ends(const struct ledger_pod *pod, uint64_t now_usec)
{
        uint64_t begin = pod->started_usec != 0 ? pod->started_usec : pod->created_usec;

        uint64_t ends = pod->request.deadline_sec == 0 || begin == 0
                                ? UINT64_MAX
                                : begin + (uint64_t) pod->request.deadline_sec * 1000000;

        return ends < deleted_by(pod, now_usec) ? ends : deleted_by(pod, now_usec);
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

int backfill_add(struct ledger *ledger, struct ledger_node *node, const struct ledger_backfill *hold)
{
        struct ledger_backfill *backfill = malloc(sizeof(*backfill));

        if (backfill == NULL)
                return -ENOMEM;
        *backfill = *hold;
        backfill->next = node->backfills;
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
static bool is_hard_to_find(const struct ledger_pod *pod)
{
        return pod->request.items[0].chips > 1 || pod->request.gang_size > 1;
}

static bool needs_reservation(const struct ledger_pod *pod)
{
        return pod->request.item_count == 1 && (is_hard_to_find(pod) || pod->nominated != NULL);
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

/* Takes pods off the node in the order of their known ends until the waiting one fits; puts them back.
 * has_place_ever() has judged its neighbours: to look at them here, too, would count those of all nodes anew,
 * for each node. */
static void find_start(struct ledger *ledger, const struct rules_context *of_pod, struct start *start)
{
        struct rules_context judged = *of_pod;
        const struct rules_context *ctx = &judged;
        uint64_t generation = ledger->neighbours.generation;
        struct ledger_pod *gone[64];
        size_t count = 0;
        uint32_t chips = ctx->request->items[0].chips, taken = promised(ctx, start->node);

        judged.neighbours_judged = true;
        while (!fits(ctx, start->node, taken) && count < ARRAY_SIZE(gone)) {
                struct ledger_pod *next = NULL;

                for (struct ledger_pod *pod = start->node->pods; pod != NULL; pod = pod->next_on_node)
                        if (end_for(ctx, pod) != UINT64_MAX &&
                            (next == NULL || end_for(ctx, pod) < end_for(ctx, next)))
                                next = pod;
                if (next == NULL)
                        break;
                start->usec = end_for(ctx, next) > ctx->now_usec ? end_for(ctx, next) : ctx->now_usec;
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
        ledger->neighbours.generation = generation; /* all are where they were */
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
               reason == REASON_NO_WHOLE_GROUP || reason == REASON_NODE_FULL;
}

bool backfill_had_its_time(struct ledger_pod *pod, const struct rules *rules, uint64_t now_usec)
{
        uint64_t held = now_usec - pod->waited_usec, limit = rules->hold_usec;

        if (pod->waited_usec == 0 || limit == 0 || now_usec < pod->waited_usec)
                return false;
        if (held >= 2 * limit)
                pod->waited_usec = now_usec;
        return now_usec - pod->waited_usec >= limit;
}

static uint32_t chips_asked(const struct ledger_pod *pod)
{
        return pod->request.items[0].chips;
}

/* Where pods that ask the same could start, of the nodes on which nothing is held. A hold changes its own
 * node alone, and there are BACKFILL_MAX at most: of one node more the soonest that is free of holds is the
 * soonest of all that are, however many are added between two of the pods. */
#define STARTS_MAX (BACKFILL_MAX + 1)

struct starts {
        struct ledger_pod *of; /* the first of the pods */
        struct overflow_room overflow;
        bool rely_on_ends;                    /* what is known of ends is known to pods of one namespace */
        struct start soonest[STARTS_MAX];     /* the soonest first */
        struct ledger_node *open[STARTS_MAX]; /* that take the pod now, any of them */
        uint32_t count, open_count;
};

/* The reservations that there are by now, and what was found out for them. */
struct holding {
        struct namespace_share share;
        struct ledger_node *nodes[BACKFILL_MAX];
        size_t count;
        struct starts *starts; /* BACKFILL_MAX; owned */
        size_t starts_count;
};

/* What a node that is of a kind has for the request. */
struct kind_room {
        uint32_t open, usable;
        bool known;
};

static struct kind_room room_of(const struct rules_context *ctx, const struct ledger_node *node,
                                struct kind_room *of_kinds)
{
        uint32_t kind = ctx->ledger->roster.seats[node->index].kind;
        struct kind_room *known = &of_kinds[kind >= NODE_KIND_FIRST ? kind : NODE_KIND_UNKNOWN];
        struct rules_room room;

        if (known->known && kind >= NODE_KIND_FIRST)
                return *known;
        rules_room(ctx, node, 0, &room);
        *known = (struct kind_room){ .open = room.open, .usable = room.usable, .known = true };
        return *known;
}

/* Is there ever room for it beside the chips, and does nobody there keep it off? No end of that is known. All
 * pods of the node are looked at: ask last. */
static bool has_place_ever(const struct rules_context *ctx, const struct ledger_node *node)
{
        return node_room_ever(ctx, node, LEDGER_PODS_TAKES_ANYBODY) && neighbour_view_takes(ctx, node);
}

/* When could the pod start on a node that does not take it for ever? False: the other members of its gang
 * take all that there is, or no end is known of a node that is full. */
static bool start_on(struct ledger *ledger, const struct rules_context *ctx, struct ledger_node *node,
                     enum reason reason, struct kind_room room, struct start *ret)
{
        uint32_t chips = chips_asked(ctx->self) + promised(ctx, node);

        *ret = (struct start){ .node = node, .missing = chips > room.open ? chips - room.open : 0 };
        if (chips > room.usable)
                return false;
        if (node->ending > 0 || node->backfills != NULL) {
                find_start(ledger, ctx, ret);
                return reason != REASON_NODE_FULL || ret->usec != UINT64_MAX;
        }
        if (reason == REASON_NODE_FULL)
                return false;
        ret->usec = reason == REASON_NONE ? ctx->now_usec : UINT64_MAX;
        ret->spare = reason == REASON_NONE ? room.open - chips : 0;
        return true;
}

static bool is_among_soonest(const struct starts *starts, const struct start *start)
{
        return starts->count < STARTS_MAX || is_sooner(start, &starts->soonest[STARTS_MAX - 1]);
}

static void keep_start(struct starts *starts, const struct start *start)
{
        uint32_t at = starts->count < STARTS_MAX ? starts->count++ : STARTS_MAX - 1;

        for (; at > 0 && is_sooner(start, &starts->soonest[at - 1]); at--)
                starts->soonest[at] = starts->soonest[at - 1];
        starts->soonest[at] = *start;
}

/* Is a start on a node that does not take the pod now too late to be kept, whatever the name of the node? Of
 * a node that is of a kind, and where no pod says when it ends, the roster and the kind tell: most nodes of
 * 5,000 are not touched, which is what their number costs. */
static bool is_too_late(const struct rules_context *ctx, uint32_t index, enum reason reason,
                        const struct kind_room *rooms, const struct starts *starts)
{
        const struct roster_seat *seat = &ctx->ledger->roster.seats[index];
        const struct kind_room *room = &rooms[seat->kind];
        const struct start *last = &starts->soonest[STARTS_MAX - 1];
        uint32_t chips = chips_asked(ctx->self);

        if (reason == REASON_NONE || seat->ends || seat->kind < NODE_KIND_FIRST || !room->known)
                return false;
        if (chips > room->usable)
                return true;
        return starts->count == STARTS_MAX &&
               (last->usec != UINT64_MAX || chips > room->open + last->missing);
}

static int find_starts(struct ledger *ledger, const struct rules_context *ctx, struct starts *starts)
{
        CLEANUP(free_p) uint32_t *nodes = malloc((ledger->node_count + 1) * sizeof(*nodes));
        CLEANUP(free_p) uint8_t *verdicts = malloc(ledger->node_count + 1);
        CLEANUP(free_p) struct kind_room *rooms = NULL;

        for (uint32_t i = 0; nodes != NULL && i < ledger->node_count; i++)
                nodes[i] = i;
        if (nodes == NULL || verdicts == NULL ||
            candidates_judge(ctx, ledger, nodes, ledger->node_count, verdicts) < 0)
                return -ENOMEM;
        rooms = calloc(ledger->kinds.count + NODE_KIND_FIRST, sizeof(*rooms));
        if (rooms == NULL)
                return -ENOMEM;
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                struct ledger_node *node = ledger->nodes[i];
                enum reason reason = (enum reason) verdicts[i];
                struct start start;

                if (!may_start_later(reason) || is_too_late(ctx, i, reason, rooms, starts) ||
                    node->backfills != NULL)
                        continue;
                reason = rules_unfiltered(ctx, node, reason);
                if (reason == REASON_NONE && starts->open_count < STARTS_MAX)
                        starts->open[starts->open_count++] = node;
                if (!may_start_later(reason) || (node->ending > 0 && !has_place_ever(ctx, node)) ||
                    !start_on(ledger, ctx, node, reason, room_of(ctx, node, rooms), &start))
                        continue;
                starts->rely_on_ends = starts->rely_on_ends || node->ending > 0;
                if (is_among_soonest(starts, &start) && (node->ending > 0 || has_place_ever(ctx, node)))
                        keep_start(starts, &start);
        }
        return 0;
}

static bool ask_the_same(const struct starts *starts, const struct rules_context *ctx)
{
        const struct overflow_room *a = &starts->overflow, *b = &ctx->overflow;

        return starts->of->job == ctx->job &&
               memcmp(&starts->of->request, ctx->request, sizeof(*ctx->request)) == 0 &&
               neighbours_alike(&ctx->ledger->neighbours, starts->of->labels, ctx->self->labels) &&
               a->allowed == b->allowed && a->chips_left == b->chips_left &&
               a->whole_groups == b->whole_groups && a->others_first == b->others_first &&
               (!starts->rely_on_ends || ledger_pods_same_namespace(starts->of->key, ctx->self->key));
}

/* Return: NULL when out of memory. */
static struct starts *starts_for(struct ledger *ledger, struct ledger_pod *pod,
                                 const struct rules_context *ctx, struct holding *holding)
{
        struct starts *starts = holding->starts;

        for (; starts < holding->starts + holding->starts_count; starts++)
                if (ask_the_same(starts, ctx))
                        return starts;
        *starts = (struct starts){ .of = pod, .overflow = ctx->overflow };
        if (find_starts(ledger, ctx, starts) < 0)
                return NULL;
        holding->starts_count++;
        return starts;
}

static bool can_start_now(const struct rules_context *ctx, const struct starts *starts,
                          const struct holding *holding)
{
        for (uint32_t i = 0; i < starts->open_count; i++)
                if (starts->open[i]->backfills == NULL)
                        return true;
        for (size_t i = 0; i < holding->count; i++)
                if (rules_judge(ctx, holding->nodes[i]) == REASON_NONE)
                        return true;
        return false;
}

static struct start soonest(struct ledger *ledger, const struct rules_context *ctx,
                            const struct starts *starts, const struct holding *holding)
{
        struct start best = { .node = NULL }, start;

        for (uint32_t i = 0; i < starts->count && best.node == NULL; i++)
                if (starts->soonest[i].node->backfills == NULL)
                        best = starts->soonest[i];
        for (size_t i = 0; i < holding->count; i++) {
                enum reason reason = rules_judge(ctx, holding->nodes[i]);
                struct rules_room room;

                if (!may_start_later(reason))
                        continue;
                rules_room(ctx, holding->nodes[i], 0, &room);
                if (has_place_ever(ctx, holding->nodes[i]) &&
                    start_on(ledger, ctx, holding->nodes[i], reason,
                             (struct kind_room){ .open = room.open, .usable = room.usable }, &start) &&
                    is_sooner(&start, &best))
                        best = start;
        }
        return best;
}

/* Chips that are held there, for whomever. */
static uint32_t held_there(const struct ledger_node *node, uint32_t resource)
{
        uint32_t chips = 0;

        for (const struct ledger_backfill *hold = node->backfills; hold != NULL; hold = hold->next)
                chips += hold->resource == resource ? chips_asked(hold->pod) : 0;
        return chips;
}

/* Where its scheduler says that it will go: it waits for nothing there, and has it for that long. */
static bool find_nominated(const struct ledger *ledger, const struct rules_context *ctx, struct start *ret)
{
        const char *name = ctx->self->nominated;
        struct ledger_node *node = name == NULL ? NULL : ledger_nodes_find(ledger, name, strlen(name));
        uint32_t chips = chips_asked(ctx->self), open, taken;

        if (node == NULL || rules_judge(ctx, node) != REASON_NONE)
                return false;
        open = open_chips(ctx, node);
        taken = held_there(node, ctx->request->items[0].resource);
        if (open < chips + taken)
                return false;
        *ret = (struct start){ .node = node, .usec = ctx->now_usec, .spare = open - chips - taken };
        return true;
}

static int hold(struct ledger *ledger, struct ledger_pod *pod, const struct rules_context *ctx,
                struct holding *holding, const struct start *start)
{
        if (pod->waited_usec == 0)
                pod->waited_usec = ctx->now_usec;
        holding->nodes[holding->count++] = start->node;
        return backfill_add(
                ledger, start->node,
                &(struct ledger_backfill){ .pod = pod,
                                           .resource = ctx->request->items[0].resource,
                                           .start_usec = start->usec,
                                           .spare = start->spare,
                                           .beyond_share = namespace_share_hold(&holding->share, pod) });
}

static int reserve_for(struct ledger *ledger, struct ledger_pod *pod, const struct rules_context *ctx,
                       struct holding *holding)
{
        const struct starts *starts;
        struct start best;

        if (find_nominated(ledger, ctx, &best))
                return hold(ledger, pod, ctx, holding, &best);
        if (!is_hard_to_find(pod))
                return 0;
        starts = starts_for(ledger, pod, ctx, holding);
        if (starts == NULL)
                return -ENOMEM;
        if (pod->waited_usec == 0 && pod->request.gang_size <= 1 && can_start_now(ctx, starts, holding))
                return 0; /* nobody need wait for it */
        best = soonest(ledger, ctx, starts, holding);
        if (best.node == NULL)
                return 0; /* it can never start: nobody need wait for it either */
        return hold(ledger, pod, ctx, holding, &best);
}

int backfill_update(struct ledger *ledger, const struct rules *rules, uint64_t now_usec)
{
        CLEANUP(free_p)
        struct ledger_pod **waiting = malloc((ledger->pending_count + 1) * sizeof(struct ledger_pod *));
        CLEANUP(free_p) struct starts *starts = malloc(BACKFILL_MAX * sizeof(*starts));
        struct holding holding = { .share = { .ledger = ledger, .rules = rules }, .starts = starts };
        struct overflow_rooms rooms = { .resources = { 0 } };
        uint64_t generation = ledger->generation;
        size_t count, tried = 0;

        if (waiting == NULL || starts == NULL)
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

                request.lone = gang_members_are_lone(ctx.job, ctx.self, &request);
                if (backfill_had_its_time(waiting[i], rules, now_usec) ||
                    gang_members_are_lacking(ctx.job, ctx.self, &request, waiting[i]->kinds,
                                             waiting[i]->kind_count) ||
                    !namespace_share_may_hold(&holding.share, waiting[i]))
                        continue;
                tried++;
                rules_prepare_in(&ctx, overflow_room_of(&rooms, &ctx, NULL));
                if (request.gang_size > 1 && waiting[i]->waited_usec == 0 && waiting[i]->nominated == NULL &&
                    gang_fits(ledger, waiting[i], &ctx))
                        continue;
                if (reserve_for(ledger, waiting[i], &ctx, &holding) < 0)
                        return -ENOMEM;
        }
        ledger->generation = generation; /* trying on is no change */
        return (int) namespace_share_binding(&holding.share);
}

#define EMERGENCIES_KEPT 256

/* backfill_update() does not work out what is held for an emergency where it will start. */
static bool is_decided(const struct ledger_backfill *hold)
{
        return hold->pod->node == NULL && hold->pod->served && hold->start_usec == UINT64_MAX;
}

/* What is held on a node for one pod is the same twice. */
static bool is_kept(const struct ledger_backfill *kept, struct ledger_node *const *nodes, size_t count,
                    const struct ledger_backfill *hold, const struct ledger_node *node)
{
        for (size_t i = 0; i < count; i++)
                if (kept[i].pod == hold->pod && kept[i].resource == hold->resource && nodes[i] == node)
                        return true;
        return false;
}

void backfill_renew(struct ledger *ledger, const struct rules *rules, uint64_t now_usec)
{
        struct ledger_backfill kept[EMERGENCIES_KEPT];
        struct ledger_node *nodes[EMERGENCIES_KEPT];
        size_t count = 0;

        for (uint32_t i = 0; i < ledger->node_count && ledger->backfill_total > 0; i++)
                for (const struct ledger_backfill *b = ledger->nodes[i]->backfills; b != NULL; b = b->next)
                        if (is_decided(b) && count < EMERGENCIES_KEPT &&
                            !is_kept(kept, nodes, count, b, ledger->nodes[i])) {
                                nodes[count] = ledger->nodes[i];
                                kept[count++] = *b;
                        }
        (void) backfill_update(ledger, rules, now_usec);
        for (size_t i = 0; i < count; i++)
                ledger_pods_drop_reservations(ledger, kept[i].pod);
        for (size_t i = 0; i < count; i++)
                (void) backfill_add(ledger, nodes[i], &kept[i]);
}
