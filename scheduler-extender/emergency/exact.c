/* Branch and bound over those who may go. */
#include "scheduler-extender/emergency/exact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A pod that may go, and who goes with it. */
struct pick {
        struct ledger_pod *pod;
        struct ledger_node *home;
        size_t unit;
};

/* The pods of a gang, or one. */
struct unit {
        const struct ledger_pod *first;
        victim_cost cost;
        size_t order; /* as it was found */
};

struct search {
        struct trial *trial;
        const struct asked *asked;
        const struct victim_rules *rules;
        struct victim_gangs gangs;
        struct pick picks[EXACT_PODS];
        struct unit units[EXACT_UNITS]; /* the dearest first */
        size_t pick_count, unit_count, steps;
        uint32_t gone, best; /* bit = units[i] goes */
        victim_cost cost, best_cost;
        int error;
};

static bool same_unit(const struct ledger_pod *a, const struct ledger_pod *b)
{
        return victim_is_member(a) && victim_is_member(b) && a->job == b->job;
}

static int add_pick(struct search *s, struct ledger_pod *pod)
{
        size_t u = 0;

        while (u < s->unit_count && !same_unit(s->units[u].first, pod))
                u++;
        if (s->pick_count == EXACT_PODS || u == EXACT_UNITS)
                return EXACT_E_MANY;
        if (u == s->unit_count) {
                struct victim_gang *gang = NULL;

                if (victim_is_member(pod)) {
                        gang = victim_gangs_of(&s->gangs, s->rules, s->trial->ledger, pod);
                        if (gang == NULL)
                                return -ENOMEM;
                }
                s->units[s->unit_count++] = (struct unit){
                        .first = pod,
                        .cost = gang != NULL ? gang->cost : victim_pod_cost(s->rules, s->trial->ledger, pod),
                        .order = u,
                };
        }
        s->picks[s->pick_count++] = (struct pick){ .pod = pod, .home = pod->node, .unit = u };
        return 0;
}

static int collect(struct search *s, const struct asked_needs *needs)
{
        const struct ledger *ledger = s->trial->ledger;
        int r = 0;

        for (uint32_t i = 0; i < ledger->node_count && r == 0; i++) {
                bool could = false, known = false;

                for (struct ledger_pod *pod = ledger->nodes[i]->pods; pod != NULL && r == 0;
                     pod = pod->next_on_node) {
                        if (!victim_may_go(s->rules, ledger, pod, s->asked->job))
                                continue;
                        if (!known)
                                could = asked_could_take(s->asked, needs, ledger->nodes[i]);
                        known = true;
                        if (could)
                                r = add_pick(s, pod);
                }
        }
        return r;
}

static int by_cost(const void *a, const void *b)
{
        const struct unit *x = a, *y = b;

        if (x->cost != y->cost)
                return x->cost > y->cost ? -1 : 1;
        return strcmp(x->first->key, y->first->key);
}

static void sort(struct search *s)
{
        size_t place[EXACT_UNITS];

        qsort(s->units, s->unit_count, sizeof(s->units[0]), by_cost);
        for (size_t u = 0; u < s->unit_count; u++)
                place[s->units[u].order] = u;
        for (size_t i = 0; i < s->pick_count; i++)
                s->picks[i].unit = place[s->picks[i].unit];
}

static void move_unit(struct search *s, size_t unit, bool back)
{
        for (size_t i = 0; i < s->pick_count; i++)
                if (s->picks[i].unit == unit && back)
                        ledger_pods_attach(s->trial->ledger, s->picks[i].pod, s->picks[i].home);
                else if (s->picks[i].unit == unit)
                        ledger_pods_detach(s->trial->ledger, s->picks[i].pod);
}

static bool is_proven(struct search *s)
{
        uint64_t searched = s->trial->ledger->searched;
        int r = s->error < 0 ? s->error : asked_fits(s->trial, s->asked);

        s->steps += s->trial->ledger->node_count + 1 + (size_t) (s->trial->ledger->searched - searched);
        s->error = r < 0 ? r : 0;
        return r > 0;
}

/* Units from this one on are off their nodes; it fits so. Who can stay stays; then it is tried without. */
static void decide(struct search *s, size_t unit)
{
        if (s->cost >= s->best_cost || s->steps > EXACT_STEPS)
                return;
        if (unit == s->unit_count) {
                s->best_cost = s->cost;
                s->best = s->gone;
                return;
        }
        move_unit(s, unit, true);
        if (is_proven(s))
                decide(s, unit + 1);
        move_unit(s, unit, false);
        s->gone |= UINT32_C(1) << unit;
        s->cost += s->units[unit].cost;
        decide(s, unit + 1);
        s->cost -= s->units[unit].cost;
        s->gone &= ~(UINT32_C(1) << unit);
}

/* A gang is paid for whole; those of its pods that need not go stay all the same. */
static int list_victims(struct search *s, struct take_back *plan)
{
        for (size_t u = 0; u < s->unit_count; u++)
                if ((s->best >> u & 1) == 0)
                        move_unit(s, u, true);
        victim_list_free(&plan->victims);
        for (size_t i = 0; i < s->pick_count; i++) {
                struct pick *pick = &s->picks[i];

                if ((s->best >> pick->unit & 1) == 0)
                        continue;
                ledger_pods_attach(s->trial->ledger, pick->pod, pick->home);
                if (victim_is_member(pick->pod) && s->steps <= 2 * EXACT_STEPS && is_proven(s))
                        continue;
                ledger_pods_detach(s->trial->ledger, pick->pod);
                if (victim_list_add(&plan->victims, pick->pod) < 0)
                        return -ENOMEM;
        }
        plan->cost = s->best_cost;
        return s->error;
}

/* Everybody is home again. */
static void restore(struct search *s)
{
        for (size_t i = 0; i < s->pick_count; i++)
                if (s->picks[i].pod->node == NULL)
                        ledger_pods_attach(s->trial->ledger, s->picks[i].pod, s->picks[i].home);
}

int exact_search(struct trial *trial, const struct asked *asked, const struct asked_needs *needs,
                 const struct victim_rules *rules, struct take_back *plan)
{
        CLEANUP(free_p) struct search *s = calloc(1, sizeof(*s));
        int r;

        if (s == NULL)
                return -ENOMEM;
        s->trial = trial;
        s->asked = asked;
        s->rules = rules;
        s->best_cost = plan->cost;
        r = collect(s, needs);
        if (r == 0) {
                sort(s);
                for (size_t u = 0; u < s->unit_count; u++)
                        move_unit(s, u, false);
                if (is_proven(s))
                        decide(s, 0);
                else
                        r = s->error < 0 ? s->error : TAKE_BACK_E_NONE;
                if (r == 0 && s->best_cost < plan->cost)
                        r = list_victims(s, plan);
                restore(s);
        }
        plan->steps += s->steps * TRIAL_NODE_STEPS;
        victim_gangs_free(&s->gangs);
        if (r == 0 && plan->cost == VICTIM_COST_MAX)
                r = s->error < 0 ? s->error : EXACT_E_MANY;
        return r;
}
