/* Shapes one after the other over their curves; then the proof; then, where it pays, every set. */
#include "scheduler-extender/emergency/take_back.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/emergency/choice.h"
#include "scheduler-extender/emergency/clear.h"
#include "scheduler-extender/emergency/exact.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

void take_back_free(struct take_back *plan)
{
        victim_list_free(&plan->victims);
}

static int place(struct bins *bins, struct ledger_job *job, uint32_t count, struct ledger_node *node,
                 size_t *left)
{
        for (; count > 0 && *left > 0; count--, --*left)
                if (ledger_jobs_add_slot(bins->ledger, job, node, bins->need->request) < 0)
                        return -ENOMEM;
        return 0;
}

/* Did somebody go from there for this shape? */
static bool made_room(const struct trial *trial, size_t mark, const struct ledger_node *node)
{
        for (size_t i = mark; i < trial->count; i++)
                if (trial->steps[i].node == node)
                        return true;
        return false;
}

/* The members take the room that was made for them, then what was idle: the next shape finds what is left. */
static int place_members(struct bins *bins, const struct asked_need *need, const struct trial *trial,
                         size_t mark)
{
        size_t left = need->count;
        int r = bins_build(bins, need, 0); /* as it is now that the victims are gone */

        for (int made = 1; made >= 0 && r == 0; made--)
                for (size_t b = 0; b < bins->count && r == 0; b++)
                        if (made_room(trial, mark, bins->list[b].node) == made)
                                r = place(bins, bins->asked->job, bins->list[b].idle, bins->list[b].node,
                                          &left);
        return r;
}

static int take(struct trial *trial, const struct victim_list *list, struct take_back *plan)
{
        for (size_t i = 0; i < list->count; i++)
                if (trial_detach(trial, list->pods[i]) < 0 ||
                    victim_list_add(&plan->victims, list->pods[i]) < 0)
                        return -ENOMEM;
        return 0;
}

/* Shape after shape, the largest first. Nothing is proven yet. */
static int solve(struct trial *trial, const struct asked *asked, const struct asked_needs *needs,
                 const struct victim_rules *rules, size_t extra, struct take_back *plan)
{
        struct bins bins;
        int r = 0;

        bins_begin(&bins, trial->ledger, asked, rules);
        bins.steps = plan->steps;
        plan->cost = 0;
        if (asked->planned || asked_gang(asked) != NULL)
                r = trial_unlease(trial, asked->job);
        for (size_t i = 0; i < needs->count && r == 0; i++) {
                struct victim_list list = { 0 };
                victim_cost cost = 0, bound;
                size_t before = trial->count;

                r = choice_make(&bins, &needs->list[i], i == 0 ? extra : 0, &list, &cost, &bound);
                if (i == 0 && extra == 0)
                        plan->bound = bound;
                plan->cost += cost;
                r = r == 0 ? take(trial, &list, plan) : r;
                victim_list_free(&list);
                if (r == 0 && i + 1 < needs->count)
                        r = place_members(&bins, &needs->list[i], trial, before);
        }
        plan->steps = bins.steps;
        bins_free(&bins);
        return r;
}

static int fits(struct trial *trial, const struct asked *asked, struct take_back *plan)
{
        const struct ledger *ledger = trial->ledger;
        uint64_t searched = ledger->searched;
        int r = asked_fits(trial, asked);

        plan->steps += (ledger->node_count + 1 + (size_t) (ledger->searched - searched)) * TRIAL_NODE_STEPS;
        if (asked->job != NULL)
                plan->steps += (asked->job->pod_count + asked->job->place_count) * TRIAL_NODE_STEPS;
        return r;
}

static int prove(struct trial *trial, const struct asked *asked, struct take_back *plan)
{
        size_t mark = trial->count;
        int r = 0;

        for (size_t i = 0; i < plan->victims.count && r == 0; i++)
                r = trial_detach(trial, plan->victims.pods[i]);
        r = r == 0 ? fits(trial, asked, plan) : r;
        trial_undo(trial, mark);
        plan->steps += plan->victims.count * TRIAL_NODE_STEPS;
        return r;
}

/* Whoever need not go stays, the dearest first, as far as the steps last. Of pods by themselves who were
 * chosen for what they cost nobody can stay (@all = false), but a gang's cost nothing more once one of them
 * goes. */
static int shrink(struct trial *trial, const struct asked *asked, const struct victim_rules *rules, bool all,
                  struct take_back *plan)
{
        struct victim_list *list = &plan->victims;
        int r = 0;

        victim_list_sort(list, rules, trial->ledger);
        for (size_t i = list->count; i-- > 0 && r >= 0 && plan->steps < TAKE_BACK_STEPS;) {
                struct ledger_pod *last = list->pods[list->count - 1], *pod = list->pods[i];

                if (!all && !victim_is_member(pod))
                        continue;
                list->pods[i] = last;
                list->pods[--list->count] = pod;
                r = prove(trial, asked, plan);
                if (r == 0) {
                        list->pods[list->count++] = last;
                        list->pods[i] = pod;
                }
        }
        if (r >= 0 && all)
                r = victim_list_cost(list, rules, trial->ledger, &plan->cost);
        return r < 0 ? r : 0;
}

/* Return: 0 = found and proven; TAKE_BACK_E_NONE = by chips alone no set helps; 2 = chips do, but what was
 * chosen does not. */
static int try_curves(struct trial *trial, const struct asked *asked, const struct asked_needs *needs,
                      const struct victim_rules *rules, size_t extra, struct take_back *plan)
{
        size_t mark = trial->count;
        int r;

        victim_list_free(&plan->victims);
        r = solve(trial, asked, needs, rules, extra, plan);
        trial_undo(trial, mark);
        if (r == 0) {
                r = prove(trial, asked, plan);
                r = r > 0 ? shrink(trial, asked, rules, extra > 0, plan) : r < 0 ? r : 2;
        }
        if (r != 0)
                plan->cost = VICTIM_COST_MAX;
        return r;
}

/* Nodes are cleared of all who may go. Return: 0, or TAKE_BACK_E_NONE = not even that helps. */
static int try_clearing(struct trial *trial, const struct asked *asked, const struct asked_needs *needs,
                        const struct victim_rules *rules, struct take_back *plan)
{
        int r;

        victim_list_free(&plan->victims);
        r = clear_nodes(trial, asked, needs, rules, &plan->victims, &plan->steps);
        return r == 0 ? shrink(trial, asked, rules, true, plan) : r == CLEAR_E_NONE ? TAKE_BACK_E_NONE : r;
}

static int search(struct trial *trial, const struct asked *asked, const struct asked_needs *needs,
                  const struct victim_rules *rules, struct take_back *plan)
{
        int r = try_curves(trial, asked, needs, rules, 0, plan), tried;

        if (r < 0 || (r == TAKE_BACK_E_NONE && needs->count == 1) || (r == 0 && plan->cost == plan->bound))
                return r;
        tried = exact_search(trial, asked, needs, rules, plan);
        if (tried != EXACT_E_MANY)
                return tried;
        for (size_t extra = 1; r == 2 && extra <= BINS_MEMBERS_MAX && plan->steps < TAKE_BACK_STEPS;
             extra *= 2)
                r = try_curves(trial, asked, needs, rules, extra, plan);
        return r > 0 ? try_clearing(trial, asked, needs, rules, plan) : r;
}

/* Regular nodes are left alone where the reserve will do. */
static int search_stepwise(struct trial *trial, const struct asked *asked, const struct asked_needs *needs,
                           const struct victim_rules *rules, struct take_back *plan)
{
        struct victim_rules reserve = *rules;
        int r = TAKE_BACK_E_NONE;

        if (rules->takes == LEDGER_PODS_TAKES_PREEMPTIBLE) {
                reserve.takes = LEDGER_PODS_TAKES_BORROWERS;
                r = search(trial, asked, needs, &reserve, plan);
        }
        return r == TAKE_BACK_E_NONE ? search(trial, asked, needs, rules, plan) : r;
}

static int by_name(const void *a, const void *b)
{
        return strcmp((*(struct ledger_pod *const *) a)->key, (*(struct ledger_pod *const *) b)->key);
}

int take_back_plan(struct trial *trial, const struct asked *asked, const struct victim_rules *rules,
                   struct take_back *ret)
{
        struct asked_needs needs = { 0 };
        int r;

        *ret = (struct take_back){ .steps = 0 };
        r = fits(trial, asked, ret);
        if (r != 0)
                return r < 0 ? r : 0;
        r = asked_needs(asked, BINS_MEMBERS_MAX, &needs);
        if (r == 0)
                r = needs.count == 0 ? TAKE_BACK_E_NONE : search_stepwise(trial, asked, &needs, rules, ret);
        asked_needs_free(&needs);
        if (r != 0)
                victim_list_free(&ret->victims);
        if (ret->victims.count > 0)
                qsort(ret->victims.pods, ret->victims.count, sizeof(ret->victims.pods[0]), by_name);
        for (size_t i = 0; i < ret->victims.count; i++) {
                uint32_t chips = ledger_chips_asked(trial->ledger, &ret->victims.pods[i]->request);

                ret->chips += chips;
                ret->regular_chips += ret->victims.pods[i]->node->reserved ? 0 : chips;
        }
        return r;
}
