/* The verdict on a node. rules_judge() is where a node is rejected: each rule above it returns its reason. */
#include "scheduler-extender/decide/rules.h"

#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/weighting.h"

struct ledger_group *rules_groups(const struct question *q, const struct ledger_node *node,
                                  struct ledger_group *scratch)
{
        bool own = q->self != NULL && q->self->node == node;

        for (const struct lease_slot *slot = node->slots;
             slot != NULL && !own && q->job != NULL && !q->planning; slot = slot->next_on_node)
                own = slot->job == q->job;
        if (!own)
                return node->groups;
        ledger_account(node, q->self, q->planning ? NULL : q->job, scratch);
        return scratch;
}

static void add_room(const struct ask *ask, const struct ledger_group *groups, uint32_t group_count,
                     size_t item, struct room *room)
{
        *room = (struct room){ 0 };
        for (uint32_t i = 0; i < group_count; i++) {
                const struct ledger_group *g = &groups[i];
                uint32_t open;

                if (g->resource != ask->items[item].resource || g->resource == 0)
                        continue;
                room->any_total += g->total;
                if (!ask_accepts(ask, g->model))
                        continue;
                open = group_open(g);
                room->total += g->total;
                room->usable += g->usable;
                room->free += group_free(g);
                room->open += open;
                room->held += g->held;
                room->group_total = g->total > room->group_total ? g->total : room->group_total;
                room->group_open = open > room->group_open ? open : room->group_open;
        }
}

void rules_room(const struct question *q, const struct ledger_node *node, size_t item, struct room *room)
{
        struct ledger_group scratch[GROUPS_MAX];

        add_room(q->ask, rules_groups(q, node, scratch), node->group_count, item, room);
}

static enum reason class_rule(const struct question *q, const struct ledger_node *node)
{
        if (node->node_class == NODE_CLASS_SINGLE && q->ask->class_chips > 1)
                return overflow_takes(q, node) ? REASON_NONE : REASON_SINGLE_CHIP_NODE;
        if (node->node_class == NODE_CLASS_MULTI && q->ask->class_chips <= 1)
                return overflow_takes(q, node) ? REASON_NONE : REASON_MULTI_CHIP_NODE;
        return REASON_NONE;
}

static enum reason pool_rule(const struct question *q, const struct ledger_node *node)
{
        if (!node->reserved || q->ask->emergency || (q->rules->lend_reserve && q->ask->preemptible))
                return REASON_NONE;
        return REASON_RESERVED_POOL;
}

bool rules_too_old(const struct question *q, uint64_t seen_usec)
{
        if (seen_usec == LEDGER_NODE_REMOVED)
                return true;
        return q->rules->stale_after_usec > 0 && seen_usec > 0 && q->now_usec > seen_usec &&
               q->now_usec - seen_usec > q->rules->stale_after_usec;
}

static bool network_too_slow(const struct question *q, const struct ledger_node *node)
{
        return q->ask->network_mbps > 0 && node->hardware.network_mbps < q->ask->network_mbps;
}

static bool ends_before(const struct question *q, uint64_t usec)
{
        return q->ask->deadline_sec > 0 && usec != UINT64_MAX &&
               q->now_usec + (uint64_t) q->ask->deadline_sec * 1000000u <= usec;
}

/* Does the pod of the hold come before the question's? An emergency's does whatever its age. */
static bool comes_first(const struct ledger_pod *pod, const struct question *q)
{
        if (pod == q->self || (q->job != NULL && pod->job == q->job))
                return false;
        if (pod->ask.emergency != q->ask->emergency)
                return pod->ask.emergency;
        return q->created_usec == 0 || pod->created_usec < q->created_usec;
}

bool rules_held_back(const struct question *q, const struct ledger_node *node)
{
        for (const struct hold *hold = node->holds; hold != NULL; hold = hold->next) {
                if (!comes_first(hold->pod, q) || ends_before(q, hold->start_usec))
                        continue;
                for (size_t i = 0; i < q->ask->item_count; i++)
                        if (q->ask->items[i].resource == hold->pod->ask.items[0].resource &&
                            q->ask->items[i].chips > hold->spare)
                                return true;
        }
        return false;
}

static enum reason earlier(enum reason a, enum reason b)
{
        if (a == REASON_NONE || b == REASON_NONE)
                return a == REASON_NONE ? b : a;
        return a < b ? a : b;
}

static enum reason unresolvable_room(const struct ask *ask, size_t item, const struct room *room)
{
        uint32_t chips = ask->items[item].chips;

        if (room->any_total == 0)
                return REASON_NO_SUCH_RESOURCE;
        if (room->total == 0)
                return REASON_WRONG_MODEL;
        if (room->total < chips)
                return REASON_TOO_FEW_CHIPS;
        return ask->same_group && room->group_total < chips ? REASON_NO_SUCH_GROUP : REASON_NONE;
}

static enum reason failed_room(const struct ask *ask, size_t item, const struct room *room)
{
        uint32_t chips = ask->items[item].chips;

        if (room->usable < chips)
                return REASON_CHIPS_UNHEALTHY;
        if (room->free < chips)
                return REASON_CHIPS_BUSY;
        if (room->open < chips)
                return REASON_CHIPS_LEASED;
        return ask->same_group && room->group_open < chips ? REASON_NO_WHOLE_GROUP : REASON_NONE;
}

/* Rules about the node that its room does not decide, in the order of the table. */
static enum reason other_unresolvable(const struct question *q, const struct ledger_node *node,
                                      const struct ledger_group *groups)
{
        if (q->weighting != NULL && !weighting_has_program(q->weighting, q->ask, node, groups))
                return REASON_NO_PROGRAM;
        if (q->equal_to != NULL && q->equal_to != node && configuration_difference(q->equal_to, node) != NULL)
                return REASON_UNEQUAL_NODE;
        if (network_too_slow(q, node))
                return REASON_NETWORK_TOO_SLOW;
        return REASON_NONE;
}

static enum reason judge_fresh(const struct question *q, const struct ledger_node *node)
{
        struct ledger_group scratch[GROUPS_MAX];
        const struct ledger_group *groups = rules_groups(q, node, scratch);
        enum reason never = REASON_NONE, later = REASON_NONE, share = REASON_NONE;
        struct room room;

        never = earlier(class_rule(q, node), pool_rule(q, node));
        for (size_t i = 0; i < q->ask->item_count; i++) {
                add_room(q->ask, groups, node->group_count, i, &room);
                never = earlier(never, unresolvable_room(q->ask, i, &room));
                later = earlier(later, failed_room(q->ask, i, &room));
        }
        never = earlier(never, other_unresolvable(q, node, groups));
        if (never != REASON_NONE && never < REASON_SHARE_TOO_SMALL)
                return never;
        if (q->weighting != NULL)
                share = weighting_judge(q->weighting, q->ask, node, groups);
        if (share == REASON_SHARE_TOO_LARGE)
                return share;
        if (later == REASON_NONE || later > REASON_HELD_FOR_OLDER)
                later = rules_held_back(q, node) ? REASON_HELD_FOR_OLDER : later;
        if (q->gang_blocked)
                later = earlier(later, REASON_GANG_DOES_NOT_FIT);
        return earlier(later, share);
}

/* What a scheduler has judged before it asks, where it is we who look for a node: the last of the rules that
 * time cannot mend. Of a node without a Node object nothing is known. */
static enum reason with_match(const struct question *q, const struct ledger_node *node, enum reason reason)
{
        if (!q->unfiltered || !node->has_object || reason_text(reason)->unresolvable ||
            node_match_takes(&q->ledger->matches, q->ask->match, node->name, node->index, &node->traits))
                return reason;
        return REASON_NODE_NOT_ALLOWED;
}

enum reason rules_judge(const struct question *q, const struct ledger_node *node)
{
        if (q->ask->item_count == 0)
                return REASON_NONE; /* it asks for no chips: not ours to judge */
        if (node == NULL || !ledger_node_known(node))
                return REASON_NODE_UNKNOWN;
        if (rules_too_old(q, ledger_seen_usec(q->ledger, node)))
                return REASON_INVENTORY_STALE;
        return with_match(q, node, judge_fresh(q, node));
}

enum reason rules_judge_known(const struct question *q, const struct ledger_node *node)
{
        return ledger_node_known(node) ? judge_fresh(q, node) : REASON_NODE_UNKNOWN;
}

static const struct ledger_node *reference_node(const struct question *q)
{
        const struct ledger_pod *first = NULL;

        if (!q->ask->equal_nodes || q->job == NULL)
                return NULL;
        for (const struct ledger_pod *pod = q->job->pods; pod != NULL; pod = pod->next_in_job)
                if (pod != q->self && pod->node != NULL && pod->ask.item_count > 0 &&
                    (first == NULL || strcmp(pod->key, first->key) < 0))
                        first = pod;
        if (first != NULL)
                return first->node;
        return q->job->slots != NULL ? q->job->slots->node : NULL;
}

void question_prepare(struct question *q)
{
        if (q->ask->item_count == 0)
                return;
        overflow_prepare(q, &q->overflow);
        q->equal_to = reference_node(q);
}

static size_t count_like(const struct ledger_node *node, const struct ledger_group *like)
{
        size_t count = 0;

        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *g = &node->groups[i];

                count += g->vendor == like->vendor && g->model == like->model && g->total == like->total &&
                         (g->vendor != 0 || g->resource == like->resource);
        }
        return count;
}

static bool equal_groups(const struct ledger_node *a, const struct ledger_node *b)
{
        if (a->group_count != b->group_count)
                return false;
        for (uint32_t i = 0; i < a->group_count; i++)
                if (count_like(a, &a->groups[i]) != count_like(b, &a->groups[i]))
                        return false;
        return true;
}

static bool within_2_percent(uint64_t a, uint64_t b)
{
        uint64_t large = a > b ? a : b, small = a > b ? b : a;

        if (a == 0 || b == 0)
                return a == b;
        return (large - small) <= large / 50;
}

const char *configuration_difference(const struct ledger_node *a, const struct ledger_node *b)
{
        const struct ledger_hardware *x = &a->hardware, *y = &b->hardware;

        if (!equal_groups(a, b))
                return "groups";
        if (x->cores != y->cores)
                return "CPU cores";
        if (x->max_mhz != y->max_mhz)
                return "CPU clock";
        if (x->memory_type != y->memory_type)
                return "memory type";
        if (!within_2_percent(x->memory_bytes, y->memory_bytes))
                return "memory size";
        if (x->network_kind != y->network_kind)
                return "network kind";
        return x->network_mbps != y->network_mbps ? "network speed" : NULL;
}
