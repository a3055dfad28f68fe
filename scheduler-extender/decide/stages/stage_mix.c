/* Kinds of offers, their chips onto groups, and the plan of a mix. */
#include "scheduler-extender/decide/stages/stage_mix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define PLANS   64   /* the effort is for so many plans at least */
#define NO_LESS 1e-9 /* steps that differ by less are the same */

void stage_mix_free(struct stage_mix *m)
{
        free(m->kinds);
        free(m->least);
        free(m->most);
        free(m->take);
        free(m->best);
        free(m->groups);
        free(m->left);
        free(m->workers);
}

/* Chips of one group that are dealt out to pipelines need not follow each other either. */
static bool apart(const struct stage_mix_problem *p)
{
        return p->apart || p->job->replicas != 1;
}

static size_t role_of(const struct stage_mix_problem *p, const struct stage_mix_offer *offer)
{
        return (size_t) (offer->worker.role - p->job->workers);
}

static int order_of(double a, double b)
{
        return (a > b) - (a < b);
}

/* 0: no plan tells them apart. Groups have names of their own that count where a stage is bound to one. */
static int compare_kinds(const struct stage_mix_problem *p, const struct stage_mix_offer *a,
                         const struct stage_mix_offer *b)
{
        const struct stage_plan_worker *x = &a->worker, *y = &b->worker;
        int order = (x->role > y->role) - (x->role < y->role);

        if (order == 0)
                order = strcmp(x->chip.vendor, y->chip.vendor);
        if (order == 0)
                order = strcmp(x->chip.runtime, y->chip.runtime);
        if (order == 0)
                order = strcmp(x->chip.model, y->chip.model);
        if (order == 0)
                order = (x->memory_bytes > y->memory_bytes) - (x->memory_bytes < y->memory_bytes);
        if (order == 0)
                order = (a->network_mbps > b->network_mbps) - (a->network_mbps < b->network_mbps);
        if (order == 0)
                order = order_of(x->samples_per_s, y->samples_per_s);
        if (order == 0)
                order = order_of(x->speed, y->speed);
        for (size_t i = 0; i < p->job->stage_count && order == 0; i++)
                if (p->job->stages[i].on.group[0] != '\0')
                        order = strcmp(x->chip.group, y->chip.group);
        return order;
}

static int compare_places(const struct stage_mix_offer *a, const struct stage_mix_offer *b)
{
        int order = strcmp(a->place.node, b->place.node);

        return order != 0 ? order : (a->place.index > b->place.index) - (a->place.index < b->place.index);
}

static int by_place(const void *a, const void *b)
{
        return compare_places(*(const struct stage_mix_offer *const *) a,
                              *(const struct stage_mix_offer *const *) b);
}

static int compare_offers(const void *a, const void *b, void *problem)
{
        int order = compare_kinds(problem, a, b);

        return order != 0 ? order : compare_places(a, b);
}

static bool is_in_scope(const struct stage_mix *m, const struct stage_mix_offer *offer)
{
        return m->scope == NULL || strcmp(m->scope, offer->place.node) == 0;
}

/* The kind's chips onto groups, packed. Return: false where there are not so many. */
static bool pack(struct stage_mix *m, const struct stage_mix_kind *kind)
{
        const struct stage_mix_problem *p = m->problem;
        uint32_t wanted = kind->chips;

        while (wanted > 0) {
                struct placement_choice best = { .open = 0 };
                size_t at = 0;

                m->spent += (double) kind->count;
                for (size_t i = kind->first; i < kind->first + kind->count; i++) {
                        struct placement_choice choice = p->offers[i].place;

                        if (m->take[i] > 0 || !is_in_scope(m, &p->offers[i]))
                                continue;
                        choice.open = m->left[m->groups[i]];
                        if (choice.open > 0 &&
                            (best.open == 0 ||
                             placement_goes_before(PLACEMENT_PACKED, &choice, &best, wanted))) {
                                best = choice;
                                at = i;
                        }
                }
                if (best.open == 0)
                        return false;
                m->take[at] = placement_portion(PLACEMENT_PACKED, &best, wanted);
                m->left[m->groups[at]] -= m->take[at];
                wanted -= m->take[at];
        }
        return true;
}

/* @backwards: the last kind chooses first */
static bool pack_in_order(struct stage_mix *m, bool backwards)
{
        memset(m->take, 0, m->problem->count * sizeof(*m->take));
        for (size_t i = 0; i < m->problem->count; i++) /* offers of one group say the same */
                m->left[m->groups[i]] = m->problem->offers[i].place.open;
        m->spent += (double) m->problem->count;
        for (size_t k = 0; k < m->kind_count; k++) {
                const struct stage_mix_kind *kind = &m->kinds[backwards ? m->kind_count - 1 - k : k];

                if (kind->chips > 0 && !pack(m, kind))
                        return false;
        }
        return true;
}

/* Where an entry has taken what another one needs, that one chooses first. */
static bool pack_all(struct stage_mix *m)
{
        return pack_in_order(m, false) || pack_in_order(m, true);
}

static bool leaves_node(const struct stage_mix_problem *p, const uint32_t *take)
{
        const char *node = NULL;

        for (size_t i = 0; i < p->count; i++) {
                if (take[i] > 0 && node != NULL && strcmp(node, p->offers[i].place.node) != 0)
                        return true;
                node = take[i] > 0 ? p->offers[i].place.node : node;
        }
        return false;
}

/* Return: how many; every chip is one of its own where they may stand apart. */
static size_t make_workers(struct stage_mix *m, const uint32_t *take)
{
        const struct stage_mix_problem *p = m->problem;
        bool leaves = leaves_node(p, take);
        size_t count = 0;

        for (size_t i = 0; i < p->count; i++)
                for (uint32_t k = 0; k < (apart(p) || take[i] == 0 ? take[i] : 1); k++) {
                        struct stage_plan_worker *worker = &m->workers[count++];

                        *worker = p->offers[i].worker;
                        worker->chips = apart(p) ? 1 : take[i];
                        worker->leaves_node = leaves;
                        worker->bytes_per_ms = stage_plan_link(p->offers[i].network_mbps, leaves);
                }
        return count;
}

static double chips_of(const struct stage_mix_problem *p, const uint32_t *take)
{
        double chips = 0;

        for (size_t i = 0; i < p->count; i++)
                chips += take[i];
        return chips;
}

/* Of a cut in one order at worst, which no effort ends. */
static double cut_cost(const struct stage_mix_problem *p, double chips)
{
        double layers = (double) p->profile->layer_count;

        return chips * layers * layers / 2;
}

/* What it costs to look the layers' times up, in loads. */
static double table_cost(const struct stage_mix_problem *p, size_t workers)
{
        return (double) p->profile->layer_count *
               ((double) workers * 4 + 3 * (double) p->profile->layers[0].ms_count);
}

/* The step of the chips in @take. 0 or -ENOMEM. */
static int judge(struct stage_mix *m, const uint32_t *take, struct stage_mix_step *ret)
{
        const struct stage_mix_problem *p = m->problem;
        size_t count = make_workers(m, take);
        double effort = p->effort / PLANS, chips = chips_of(p, take);
        struct stage_plan plan = { 0 };
        struct err err = { 0 };
        int r = count == 0 ? -EINVAL
                           : stage_plan(p->job, p->profile, m->workers, count, true, effort, &plan, &err);

        m->plans++;
        m->spent += table_cost(p, count);
        *ret = (struct stage_mix_step){ INFINITY, INFINITY, false };
        if (r < 0) { /* what was looked at in vain is not told */
                m->spent += fmin(5 * effort, cut_cost(p, chips) * chips);
                return r == -ENOMEM ? r : 0;
        }
        m->spent += plan.pipeline.effort_spent;
        *ret = (struct stage_mix_step){ plan.step_ms, plan.pipeline.period_ms,
                                        plan.times == STAGE_TIMES_COMPARED };
        stage_plan_free(&plan);
        return 0;
}

static bool is_shorter(const struct stage_mix *m, const struct stage_mix_step *step)
{
        const struct stage_mix_step *best = &m->best_step;

        if (!isfinite(step->ms))
                return false;
        if (!isfinite(best->ms))
                return !isfinite(m->before.ms) || step->compared == m->before.compared;
        return step->compared == best->compared && step->ms < best->ms * (1 - NO_LESS);
}

bool stage_mix_spent(const struct stage_mix *m)
{
        return m->spent > m->most_spent;
}

/* The mix that the kinds have. Return: 1 = it is the best so far; 0; -ENOMEM. */
int stage_mix_try(struct stage_mix *m)
{
        struct stage_mix_step step;
        int r;

        if (!pack_all(m))
                return 0;
        r = judge(m, m->take, &step);
        if (r < 0 || !is_shorter(m, &step))
                return r;
        m->best_step = step;
        memcpy(m->best, m->take, m->problem->count * sizeof(*m->best));
        return 1;
}

uint32_t stage_mix_chips(const struct stage_mix *m, size_t role)
{
        uint32_t chips = 0;

        for (size_t k = 0; k < m->kind_count; k++)
                chips += m->kinds[k].role == role ? m->kinds[k].chips : 0;
        return chips;
}

bool stage_mix_enter(struct stage_mix *m, const char *scope)
{
        const struct stage_mix_problem *p = m->problem;
        bool enough = true;

        m->scope = scope;
        for (size_t k = 0; k < m->kind_count; k++) {
                m->kinds[k].open = m->kinds[k].chips = 0;
                for (size_t i = m->kinds[k].first; i < m->kinds[k].first + m->kinds[k].count; i++)
                        m->kinds[k].open += is_in_scope(m, &p->offers[i]) ? p->offers[i].place.open : 0;
        }
        for (size_t role = 0; role < p->job->worker_count; role++) {
                uint64_t open = 0;

                for (size_t k = 0; k < m->kind_count; k++)
                        open += m->kinds[k].role == role ? m->kinds[k].open : 0;
                enough = enough && open >= m->least[role];
        }
        return enough;
}

/* Numbers the groups: offers of one group have one number. */
static int number_groups(struct stage_mix *m)
{
        const struct stage_mix_problem *p = m->problem;
        CLEANUP(free_p) const struct stage_mix_offer **order = calloc(p->count + 1, sizeof(*order));
        size_t group_count = 0;

        if (order == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < p->count; i++)
                order[i] = &p->offers[i];
        qsort(order, p->count, sizeof(*order), by_place);
        for (size_t i = 0; i < p->count; i++) {
                group_count += i > 0 && compare_places(order[i - 1], order[i]) != 0;
                m->groups[order[i] - p->offers] = group_count;
        }
        return 0;
}

/* How many chips of each entry there may be: a chip has a layer or more. */
static void limit_roles(struct stage_mix *m)
{
        const struct stage_mix_problem *p = m->problem;
        uint64_t layers = p->profile->layer_count;

        for (size_t role = 0; role < p->job->worker_count; role++) {
                const struct job_role *asked = &p->job->workers[role];
                uint64_t taken = 0, most;

                for (size_t i = 0; i < p->count; i++)
                        taken += role_of(p, &p->offers[i]) == role ? p->offers[i].chips : 0;
                most = p->fixed                                         ? taken
                       : asked->chips < layers || p->job->replicas != 1 ? asked->chips
                                                                        : layers;
                m->most[role] = (uint32_t) most;
                m->least[role] = (uint32_t) (p->fixed ? taken : asked->min_chips);
        }
}

static int allocate(struct stage_mix *m)
{
        const struct stage_mix_problem *p = m->problem;
        size_t workers = p->count;

        for (size_t i = 0; i < p->count; i++)
                workers += apart(p) ? p->offers[i].place.open : 0;
        m->kinds = calloc(p->count + 1, sizeof(*m->kinds));
        m->least = calloc(p->job->worker_count + 1, sizeof(*m->least));
        m->most = calloc(p->job->worker_count + 1, sizeof(*m->most));
        m->take = calloc(p->count + 1, sizeof(*m->take));
        m->best = calloc(p->count + 1, sizeof(*m->best));
        m->groups = calloc(p->count + 1, sizeof(*m->groups));
        m->left = calloc(p->count + 1, sizeof(*m->left));
        m->workers = calloc(workers + 1, sizeof(*m->workers));
        return m->kinds == NULL || m->least == NULL || m->most == NULL || m->take == NULL ||
                               m->best == NULL || m->groups == NULL || m->left == NULL || m->workers == NULL
                       ? -ENOMEM
                       : 0;
}

int stage_mix_init(struct stage_mix *m, struct stage_mix_problem *p)
{
        *m = (struct stage_mix){ .problem = p };
        if (allocate(m) < 0)
                return -ENOMEM;
        qsort_r(p->offers, p->count, sizeof(*p->offers), compare_offers, p);
        for (size_t i = 0; i < p->count; i++) {
                if (i == 0 || compare_kinds(p, &p->offers[i - 1], &p->offers[i]) != 0)
                        m->kinds[m->kind_count++] =
                                (struct stage_mix_kind){ .first = i, .role = role_of(p, &p->offers[i]) };
                m->kinds[m->kind_count - 1].count++;
                m->best[i] = p->offers[i].chips;
        }
        limit_roles(m);
        if (number_groups(m) < 0 || judge(m, m->best, &m->before) < 0)
                return -ENOMEM;
        m->best_step = m->before;
        return 0;
}

double stage_mix_cut_cost(const struct stage_mix *m)
{
        return cut_cost(m->problem, chips_of(m->problem, m->best));
}
