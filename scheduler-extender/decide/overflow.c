/* Counts chips and whole groups on nodes of the other class once a request, then judges node by node. */
#include "scheduler-extender/decide/overflow.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/decide/rules.h"

int overflow_parse(const char *text, enum overflow *ret, uint32_t *ret_percent)
{
        static const char *const names[] = { "none", "single-to-multi", "multi-to-single", "both" };
        const char *colon = strchr(text, ':');
        size_t bytes = colon == NULL ? strlen(text) : (size_t) (colon - text);
        uint64_t percent = 100;

        if (colon != NULL && (text_parse_uint64(colon + 1, &percent) < 0 || percent > 100))
                return -EINVAL;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strlen(names[i]) == bytes && strncmp(names[i], text, bytes) == 0) {
                        *ret = (enum overflow) i;
                        *ret_percent = (uint32_t) percent;
                        return 0;
                }
        return -EINVAL;
}

static bool is_single(const struct ask *ask)
{
        return ask->class_chips <= 1;
}

/* A member counts as its whole job does. */
static bool pod_is_single(const struct ledger_pod *pod)
{
        const struct job *training = pod->job != NULL ? pod->job->training : NULL;

        return training != NULL ? job_worker_chips(training) + job_server_chips(training) <= 1
                                : is_single(&pod->ask);
}

static bool goes_first(const struct ask *ask)
{
        return ask->preemptible || (ask->deadline_sec > 0 && ask->deadline_sec <= OVERFLOW_SHORT_SEC);
}

static bool is_other_class(const struct question *q, const struct ledger_node *node)
{
        return node->node_class == (is_single(q->ask) ? NODE_CLASS_MULTI : NODE_CLASS_SINGLE);
}

static uint32_t chips_of(const struct ask *ask, uint32_t resource)
{
        uint32_t chips = 0;

        for (size_t i = 0; i < ask->item_count; i++)
                chips += ask->items[i].resource == resource ? ask->items[i].chips : 0;
        return chips;
}

static void add_node(const struct question *q, const struct ledger_node *node, uint64_t *chips,
                     uint64_t *used, uint32_t *whole)
{
        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *g = &node->groups[i];

                if (g->resource != q->ask->items[0].resource)
                        continue;
                *chips += g->usable;
                *whole += g->total > 1 && group_open(g) == g->total;
        }
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                if (pod != q->self && pod_is_single(pod) == is_single(q->ask))
                        *used += chips_of(&pod->ask, q->ask->items[0].resource);
}

static bool one_goes_first(const struct question *q)
{
        const struct ledger *ledger = q->ledger;

        for (const struct ledger_pod *pod = ledger->pending; pod != NULL; pod = pod->next_pending) {
                if (pod != q->self && !pod->ended && !pod->deleting && !pod->ask.gated &&
                    pod_is_single(pod) && goes_first(&pod->ask) && pod->ask.item_count > 0 &&
                    pod->ask.items[0].resource == q->ask->items[0].resource)
                        return true;
        }
        return false;
}

void overflow_prepare(const struct question *q, struct overflow_room *ret)
{
        bool single = is_single(q->ask);
        enum overflow direction = single ? OVERFLOW_SINGLE_TO_MULTI : OVERFLOW_MULTI_TO_SINGLE;
        uint64_t chips = 0, used = 0, cap;

        *ret = (struct overflow_room){ 0 };
        ret->allowed = (q->rules->overflow == direction || q->rules->overflow == OVERFLOW_BOTH) &&
                       q->ask->item_count > 0 && (single || q->ask->class_chips <= OVERFLOW_SMALL_CHIPS);
        if (!ret->allowed)
                return;
        for (uint32_t i = 0; i < q->ledger->node_count; i++)
                if (is_other_class(q, q->ledger->nodes[i]))
                        add_node(q, q->ledger->nodes[i], &chips, &used, &ret->whole_groups);
        cap = chips * q->rules->overflow_percent / 100;
        ret->chips_left = (uint32_t) (cap > used ? cap - used : 0);
        ret->others_first = single && !goes_first(q->ask) && one_goes_first(q);
}

/* Would a single chip taken from this node break a whole group? */
static bool breaks_whole_group(const struct question *q, const struct ledger_node *node)
{
        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *g = &node->groups[i];

                if (g->resource == q->ask->items[0].resource && ask_accepts(q->ask, g->model) &&
                    group_open(g) > 0 && (group_open(g) < g->total || g->total == 1))
                        return false;
        }
        return true;
}

bool overflow_takes(const struct question *q, const struct ledger_node *node)
{
        if (!q->overflow.allowed || q->overflow.others_first ||
            q->ask->items[0].chips > q->overflow.chips_left)
                return false;
        if (!is_single(q->ask))
                return true;
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                if (!pod_is_single(pod) && pod != q->self)
                        return false;
        if (node->slots != NULL)
                return false;
        return q->overflow.whole_groups > 1 || !breaks_whole_group(q, node);
}
