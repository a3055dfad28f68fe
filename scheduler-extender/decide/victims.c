/* Subsets of the pods of one node, cheapest first, until what is left has room for the pod. */
#include "scheduler-extender/decide/victims.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_pods.h"

struct search {
        struct ledger *ledger;
        const struct rules_context *context;
        struct ledger_pod *candidates[VICTIMS_MAX]; /* youngest first */
        size_t candidate_count, steps;
        struct victims now, best;
        bool found;
};

static int compare_ages(const struct ledger_pod *a, const struct ledger_pod *b)
{
        if (a->created_usec != b->created_usec)
                return a->created_usec < b->created_usec ? -1 : 1;
        return strcmp(a->key, b->key);
}

static int compare(const struct victims *a, const struct victims *b)
{
        size_t common = a->count < b->count ? a->count : b->count;

        if (a->chips != b->chips)
                return a->chips < b->chips ? -1 : 1;
        for (size_t i = 0; i < common; i++) /* oldest first: the younger one is the better victim */
                if (a->pods[i]->created_usec != b->pods[i]->created_usec)
                        return a->pods[i]->created_usec > b->pods[i]->created_usec ? -1 : 1;
        return (a->count > b->count) - (a->count < b->count);
}

static int by_youth(const void *a, const void *b)
{
        return -compare_ages(*(struct ledger_pod *const *) a, *(struct ledger_pod *const *) b);
}

static void collect(struct search *s, struct ledger_node *node, bool (*may_go)(const struct ledger_pod *pod))
{
        struct ledger_pod *all[512];
        size_t count = 0;

        for (struct ledger_pod *pod = node->pods; pod != NULL && count < 512; pod = pod->next_on_node)
                if (pod != s->context->self && ledger_chips_asked(s->ledger, &pod->request) > 0 &&
                    !pod->deleting && (may_go == NULL || may_go(pod)))
                        all[count++] = pod;
        qsort(all, count, sizeof(all[0]), by_youth);
        s->candidate_count = count < VICTIMS_MAX ? count : VICTIMS_MAX;
        memcpy(s->candidates, all, s->candidate_count * sizeof(all[0]));
}

static bool fits(const struct search *s)
{
        return rules_judge(s->context, s->now.node) == REASON_NONE;
}

/* The set in hand, oldest first. */
static void remember(struct search *s)
{
        struct victims set = s->now;

        qsort(set.pods, set.count, sizeof(set.pods[0]), by_youth);
        for (size_t i = 0; i < set.count / 2; i++) {
                struct ledger_pod *swap = set.pods[i];

                set.pods[i] = set.pods[set.count - 1 - i];
                set.pods[set.count - 1 - i] = swap;
        }
        if (!s->found || compare(&set, &s->best) < 0)
                s->best = set;
        s->found = true;
}

static void search_from(struct search *s, size_t next)
{
        if (++s->steps > VICTIMS_STEPS)
                return;
        if (fits(s)) {
                remember(s);
                return; /* more victims are never better */
        }
        for (size_t i = next; i < s->candidate_count; i++) {
                struct ledger_pod *pod = s->candidates[i];
                uint32_t chips = ledger_chips_asked(s->ledger, &pod->request);

                if (s->found && s->now.chips + chips > s->best.chips)
                        continue;
                ledger_pods_detach(s->ledger, pod);
                s->now.pods[s->now.count++] = pod;
                s->now.chips += chips;
                search_from(s, i + 1);
                s->now.count--;
                s->now.chips -= chips;
                ledger_pods_attach(s->ledger, pod, s->now.node);
        }
}

/* Does it fit when everybody goes who may? If not, no set helps. */
static bool can_help(struct search *s)
{
        bool result;

        for (size_t i = 0; i < s->candidate_count; i++)
                ledger_pods_detach(s->ledger, s->candidates[i]);
        result = fits(s);
        for (size_t i = 0; i < s->candidate_count; i++)
                ledger_pods_attach(s->ledger, s->candidates[i], s->now.node);
        return result;
}

int victims_choose(struct ledger *ledger, const struct rules_context *context, struct ledger_node *node,
                   bool (*may_go)(const struct ledger_pod *pod), struct victims *ret)
{
        struct search s = { .ledger = ledger, .context = context, .now.node = node };

        collect(&s, node, may_go);
        if (!can_help(&s))
                return VICTIMS_E_NONE;
        search_from(&s, 0);
        if (!s.found)
                return VICTIMS_E_NONE;
        *ret = s.best;
        return 0;
}

int victims_choose_anywhere(struct ledger *ledger, const struct rules_context *context,
                            bool (*may_go)(const struct ledger_pod *pod), struct victims *ret)
{
        bool found = false;

        for (uint32_t i = 0; i < ledger->node_count; i++) {
                struct victims set;
                int order;

                if (victims_choose(ledger, context, ledger->nodes[i], may_go, &set) != 0)
                        continue;
                order = found ? compare(&set, ret) : -1;
                if (order < 0 || (order == 0 && strcmp(set.node->name, ret->node->name) < 0))
                        *ret = set;
                found = true;
        }
        return found ? 0 : VICTIMS_E_NONE;
}
