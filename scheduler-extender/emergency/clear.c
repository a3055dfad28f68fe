/* Growing prefixes of the nodes, by what it costs to clear them. */
#include "scheduler-extender/emergency/clear.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

#define FIRST_NODES 16

struct full_node {
        struct ledger_node *node;
        victim_cost price; /* of a chip */
};

struct clearing {
        struct trial *trial;
        const struct asked *asked;
        const struct victim_rules *rules;
        struct full_node *nodes; /* owned */
        size_t count, cleared;
};

static int by_price(const void *a, const void *b)
{
        const struct full_node *x = a, *y = b;

        return x->price != y->price ? (x->price < y->price ? -1 : 1) : strcmp(x->node->name, y->node->name);
}

static bool may_go(const struct clearing *c, const struct ledger_pod *pod)
{
        return victim_may_go(c->rules, c->trial->ledger, pod, c->asked->job);
}

static void add_node(struct clearing *c, struct ledger_node *node)
{
        const struct ledger *ledger = c->trial->ledger;
        victim_cost cost = 0;
        uint32_t chips = 0;

        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                if (may_go(c, pod)) {
                        cost += victim_pod_cost(c->rules, ledger, pod);
                        chips += ledger_chips_asked(ledger, &pod->request);
                }
        if (chips > 0)
                c->nodes[c->count++] = (struct full_node){ .node = node, .price = cost / chips };
}

static int clear_until(struct clearing *c, size_t end)
{
        int r = 0;

        for (; c->cleared < end && r == 0; c->cleared++)
                for (struct ledger_pod *pod = c->nodes[c->cleared].node->pods, *next; pod != NULL && r == 0;
                     pod = next) {
                        next = pod->next_on_node;
                        if (may_go(c, pod))
                                r = trial_detach(c->trial, pod);
                }
        return r;
}

/* Is one of its places there, as it has taken them? */
static bool has_place(const struct asked *asked, const struct ledger_node *node)
{
        const struct ledger_job *gang = asked_gang(asked);

        if (asked->planned)
                return true; /* no other nodes are cleared */
        if (gang == NULL)
                return asked->context.self->node == node;
        for (const struct ledger_job_slot *slot = gang->slots; slot != NULL; slot = slot->next_in_job)
                if (slot->node == node)
                        return true;
        return false;
}

static int list_gone(const struct clearing *c, size_t mark, bool all, struct victim_list *ret)
{
        int r = 0;

        ret->count = 0;
        for (size_t i = mark; i < c->trial->count && r == 0; i++) {
                const struct trial_step *step = &c->trial->steps[i];

                if (step->job == NULL && !step->attached && (all || has_place(c->asked, step->node)))
                        r = victim_list_add(ret, step->pod);
        }
        return r;
}

/* It has its places: does it fit as well if nobody goes but from there? */
static int choose(struct clearing *c, size_t mark, struct victim_list *ret)
{
        int r = list_gone(c, mark, false, ret);

        trial_undo(c->trial, mark);
        for (size_t i = 0; i < ret->count && r == 0; i++)
                r = trial_detach(c->trial, ret->pods[i]);
        r = r == 0 ? asked_fits(c->trial, c->asked) : r;
        trial_undo(c->trial, mark);
        return r;
}

static int try_all(struct clearing *c, struct victim_list *ret, size_t *steps)
{
        size_t mark = c->trial->count, end = FIRST_NODES;
        int r = 0;

        for (; r == 0 && c->cleared < c->count; end *= 2) {
                uint64_t searched = c->trial->ledger->searched;

                r = clear_until(c, end < c->count ? end : c->count);
                r = r == 0 ? asked_fits(c->trial, c->asked) : r;
                *steps += (c->trial->ledger->node_count + end + (c->trial->ledger->searched - searched)) *
                          TRIAL_NODE_STEPS;
        }
        if (r > 0)
                r = list_gone(c, mark, true, ret) < 0 ? -ENOMEM : asked_take(c->trial, c->asked);
        if (r > 0) {
                struct victim_list fewer = { 0 };

                r = choose(c, mark, &fewer);
                if (r > 0) {
                        struct victim_list more = *ret;

                        *ret = fewer;
                        fewer = more;
                }
                victim_list_free(&fewer);
                r = r < 0 ? r : 1;
        }
        trial_undo(c->trial, mark);
        return r < 0 ? r : r > 0 ? 0 : CLEAR_E_NONE;
}

int clear_nodes(struct trial *trial, const struct asked *asked, const struct asked_needs *needs,
                const struct victim_rules *rules, struct victim_list *ret, size_t *steps)
{
        const struct ledger *ledger = trial->ledger;
        CLEANUP(free_p) struct full_node *nodes = calloc(ledger->node_count + 1, sizeof(*nodes));
        struct clearing c = { .trial = trial, .asked = asked, .rules = rules, .nodes = nodes };

        if (nodes == NULL)
                return -ENOMEM;
        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (asked_could_take(asked, needs, ledger->nodes[i]))
                        add_node(&c, ledger->nodes[i]);
        qsort(nodes, c.count, sizeof(nodes[0]), by_price);
        return try_all(&c, ret, steps);
}
