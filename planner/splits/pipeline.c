/* The plan at the top: a first answer by exchange, the proof by all mixes, and why nothing fits. */
#include "planner/splits/pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/splits/pipeline_cut.h"
#include "planner/splits/pipeline_mixes.h"
#include "planner/splits/pipeline_schedule.h"

#define CUTS_MAX 4000 /* of the search by exchange */
#define STARTS   3
#define SLACK    1e-6 /* the best load is found again, added up in another order */

/* An order of those who take part, the others behind them. */
struct search {
        const struct pipeline_problem *problem;
        size_t *order, *best_order; /* [worker_count] */
        size_t count, best_count;
        struct pipeline_cut_cost best;
        double *speeds; /* of each worker's chips: larger is faster */
        size_t cuts;
        struct pipeline_cut_effort effort;
};

static void search_free(struct search *s)
{
        free(s->order);
        free(s->best_order);
        free(s->speeds);
}

static size_t chips_of(const struct search *s, size_t count)
{
        size_t chips = 0;

        for (size_t i = 0; i < count; i++)
                chips += s->problem->workers[s->order[i]].chips;
        return chips;
}

/* Return: is the order the best so far? -ENOMEM. */
static int try_order(struct search *s)
{
        struct pipeline_cut_cost cost;
        int r = pipeline_cut(s->problem, s->order, s->count, s->best.largest_ms, &s->effort, NULL, &cost);

        s->cuts++;
        if (r <= 0 || !pipeline_cut_less(cost, s->best))
                return r < 0 ? r : 0;
        s->best = cost;
        s->best_count = s->count;
        memcpy(s->best_order, s->order, s->problem->worker_count * sizeof(*s->order));
        return 1;
}

static bool is_spent(const struct search *s)
{
        return s->cuts >= CUTS_MAX || s->effort.spent > s->effort.most;
}

static void swap(size_t *a, size_t *b)
{
        size_t x = *a;

        *a = *b;
        *b = x;
}

/* May the job do without the last one of the order? */
static bool may_shorten(const struct search *s)
{
        const struct pipeline_worker *last = &s->problem->workers[s->order[s->count - 1]];
        unsigned chips = 0;

        for (size_t i = 0; i + 1 < s->count; i++) {
                const struct pipeline_worker *worker = &s->problem->workers[s->order[i]];

                chips += worker->role == last->role ? worker->chips : 0;
        }
        return s->count > 1 && chips >= s->problem->min_chips[last->role];
}

/* Tries the order without its i-th worker; the order is as before afterwards unless that is better. */
static int try_without(struct search *s, size_t i)
{
        size_t left_out = s->order[i];
        int r = 0;

        memmove(&s->order[i], &s->order[i + 1], (s->count - i - 1) * sizeof(*s->order));
        s->order[s->count - 1] = left_out;
        if (may_shorten(s)) {
                s->count--;
                r = try_order(s);
                if (r != 0)
                        return r;
                s->count++;
        }
        memmove(&s->order[i + 1], &s->order[i], (s->count - i - 1) * sizeof(*s->order));
        s->order[i] = left_out;
        return 0;
}

/* Exchanges pairs, and leaves out who may be, as long as that helps. */
static int improve(struct search *s)
{
        bool better = true;
        int r = 0;

        while (better && !is_spent(s)) {
                better = false;
                for (size_t i = 0; r >= 0 && i < s->count && !is_spent(s); i++) {
                        for (size_t j = i + 1; r >= 0 && j < s->count && !is_spent(s); j++) {
                                if (pipeline_alike(s->problem, s->order[i], s->order[j]))
                                        continue; /* the same order */
                                swap(&s->order[i], &s->order[j]);
                                r = try_order(s);
                                better = better || r > 0;
                                if (r <= 0)
                                        swap(&s->order[i], &s->order[j]);
                        }
                        if (r >= 0)
                                r = try_without(s, i);
                        better = better || r > 0;
                }
        }
        return r < 0 ? r : 0;
}

static int compare_speeds(const void *a, const void *b, void *speeds)
{
        const double *of = speeds;
        size_t x = *(const size_t *) a, y = *(const size_t *) b;

        if (of[x] != of[y])
                return of[x] > of[y] ? -1 : 1;
        return (x > y) - (x < y);
}

/* As given; the fast ones first; the fast ones last. Those with more memory count as faster among equals. */
static void start_order(struct search *s, unsigned start)
{
        size_t count = s->problem->worker_count;

        s->count = count;
        for (size_t i = 0; i < count; i++)
                s->order[i] = i;
        if (start > 0)
                qsort_r(s->order, count, sizeof(*s->order), compare_speeds, s->speeds);
        for (size_t i = 0; start == 2 && i < count / 2; i++)
                swap(&s->order[i], &s->order[count - 1 - i]);
}

static int search_init(struct search *s)
{
        const struct pipeline_problem *p = s->problem;

        s->order = calloc(p->worker_count, sizeof(*s->order));
        s->best_order = calloc(p->worker_count, sizeof(*s->best_order));
        s->speeds = calloc(p->worker_count, sizeof(*s->speeds));
        if (s->order == NULL || s->best_order == NULL || s->speeds == NULL)
                return -ENOMEM;
        s->best = (struct pipeline_cut_cost){ INFINITY, INFINITY };
        for (size_t i = 0; i < p->worker_count; i++) {
                double ms = 0;

                for (size_t l = 0; l < p->layer_count; l++)
                        ms += fmax(p->workers[i].ms[l], 0);
                s->speeds[i] = ms > 0 ? 1 / ms : INFINITY;
        }
        return 0;
}

static const char *name_of(const struct pipeline_problem *p, size_t layer, char buffer[32])
{
        if (p->layers[layer].name != NULL && p->layers[layer].name[0] != '\0')
                return p->layers[layer].name;
        (void) text_format(buffer, 32, "%zu", layer);
        return buffer;
}

/* The first layer that has no place even alone, with one microbatch of it. */
static int check_layers(const struct pipeline_problem *p, struct err *err)
{
        char buffer[32];

        for (size_t l = 0; l < p->layer_count; l++) {
                const struct pipeline_layer *layer = &p->layers[l];
                uint64_t needs = layer->state_bytes + layer->held_bytes, most = 0;
                bool able = false, fits = false;

                for (size_t i = 0; i < p->worker_count; i++) {
                        const struct pipeline_worker *worker = &p->workers[i];

                        if (worker->ms[l] < 0)
                                continue;
                        able = true;
                        fits = fits || worker->memory_bytes == 0 || worker->memory_bytes >= needs;
                        most = worker->memory_bytes > most ? worker->memory_bytes : most;
                }
                if (!able)
                        return err_set(err, PIPELINE_NO_FIT, "layer %s may go to none of the chips",
                                       name_of(p, l, buffer));
                if (!fits)
                        return err_set(
                                err, PIPELINE_NO_FIT,
                                "layer %s needs %llu bytes (%llu of parameters, gradients and the "
                                "optimiser's state, %llu of activations), the largest chip that it may go "
                                "to has %llu; give a chip with more memory, or more microbatches",
                                name_of(p, l, buffer), (unsigned long long) needs,
                                (unsigned long long) layer->state_bytes,
                                (unsigned long long) layer->held_bytes, (unsigned long long) most);
        }
        return 0;
}

static int no_fit(const struct pipeline_problem *p, struct err *err)
{
        return err_set(
                err, PIPELINE_NO_FIT,
                "no order of the chips and no cut of the %zu layers was found in which every stage fits "
                "into its chip's memory; give chips with more memory, more chips, or more microbatches "
                "(each is then smaller)",
                p->layer_count);
}

static int check(const struct pipeline_problem *p, struct err *err)
{
        size_t fewest = 0;

        if (p->layer_count == 0 || p->layer_count > PIPELINE_LAYERS_MAX || p->worker_count == 0 ||
            p->worker_count > PIPELINE_WORKERS_MAX || p->microbatches == 0 || !(p->effort > 0))
                return err_set(
                        err, -EINVAL,
                        "1 to %d layers, 1 to %d workers and a microbatch or more, and an effort, are needed",
                        PIPELINE_LAYERS_MAX, PIPELINE_WORKERS_MAX);
        for (size_t r = 0; r < PIPELINE_ROLES_MAX; r++)
                fewest += p->min_chips[r];
        if (fewest > p->layer_count)
                return err_set(err, -EINVAL,
                               "%zu chips for the stages, the model has %zu layers: a stage needs a layer or "
                               "more; ask for fewer chips",
                               fewest, p->layer_count);
        return 0;
}

/* Every order at once, from the best one that is known. Return: 0 or -ENOMEM. */
static int prove(struct search *s, bool *ret_exact, double *ret_spent)
{
        struct pipeline_cut_effort mixes = { .most = 2 * s->problem->effort };
        int r = pipeline_mixes(s->problem, s->best.largest_ms, &mixes, s->order);

        *ret_exact = r != -E2BIG;
        *ret_spent += s->effort.spent + mixes.spent;
        if (r > 0) {
                s->best_count = (size_t) r;
                memcpy(s->best_order, s->order, s->problem->worker_count * sizeof(*s->order));
        }
        return r < 0 && r != -E2BIG ? r : 0;
}

static int find_order(struct search *s, bool *ret_exact, double *ret_spent)
{
        int r = search_init(s);

        for (unsigned start = 0; r >= 0 && start < STARTS; start++) {
                start_order(s, start);
                while (chips_of(s, s->count) > s->problem->layer_count && may_shorten(s))
                        s->count--;
                /* Whatever it costs, a job has a plan; another start has as much again, not more. */
                s->effort.most = s->best_count > 0 ? s->effort.spent + s->problem->effort : INFINITY;
                r = try_order(s);
                s->effort.most = s->problem->effort;
                if (r >= 0)
                        r = improve(s);
        }
        return r < 0 ? r : prove(s, ret_exact, ret_spent);
}

/* The stages of the best order. Return: how many; 0 = there is none; -ENOMEM. */
static int take(struct search *s, struct pipeline_plan *plan)
{
        struct pipeline_cut_effort whole = { .most = INFINITY };
        struct pipeline_cut_cost cost = { 0 };
        int r;

        if (s->best_count == 0)
                return 0;
        memcpy(s->order, s->best_order, s->problem->worker_count * sizeof(*s->order));
        plan->stages = calloc(chips_of(s, s->best_count), sizeof(*plan->stages));
        if (plan->stages == NULL)
                return -ENOMEM;
        r = pipeline_cut(s->problem, s->best_order, s->best_count, s->best.largest_ms * (1 + SLACK), &whole,
                         plan->stages, &cost);
        plan->stage_count = r < 0 ? 0 : (size_t) r;
        plan->sum_ms = cost.sum_ms;
        plan->effort_spent += whole.spent;
        for (size_t i = 0; i < plan->stage_count; i++)
                plan->period_ms = fmax(plan->period_ms, plan->stages[i].load_ms);
        return r;
}

/* The least sum of loads, none of which is larger than those of the plan. */
static int refine(const struct pipeline_problem *problem, const struct search *found,
                  struct pipeline_plan *plan)
{
        struct pipeline_problem within = *problem;
        CLEANUP(search_free) struct search s = { .problem = &within };
        struct pipeline_plan other = { .effort_spent = plan->effort_spent };
        bool exact = false;
        int r = search_init(&s);

        within.within_ms = plan->period_ms;
        if (r == 0) {
                s.count = found->best_count;
                memcpy(s.order, found->best_order, problem->worker_count * sizeof(*s.order));
                s.effort.most = problem->effort;
                r = try_order(&s);
        }
        if (r >= 0)
                r = improve(&s);
        if (r >= 0)
                r = prove(&s, &exact, &other.effort_spent);
        if (r >= 0)
                r = take(&s, &other);
        plan->effort_spent = other.effort_spent;
        plan->exact = plan->exact && exact;
        if (r > 0 && other.sum_ms < plan->sum_ms && other.period_ms <= plan->period_ms * (1 + SLACK)) {
                other.exact = plan->exact;
                pipeline_plan_free(plan);
                *plan = other;
        } else {
                pipeline_plan_free(&other);
        }
        return r < 0 ? r : 0;
}

int pipeline_plan(const struct pipeline_problem *problem, struct pipeline_plan *ret, struct err *err)
{
        CLEANUP(search_free) struct search search = { .problem = problem };
        struct pipeline_plan plan = { 0 };
        int r = check(problem, err);

        if (r == 0)
                r = check_layers(problem, err);
        if (r != 0)
                return r;
        r = find_order(&search, &plan.exact, &plan.effort_spent);
        if (r == 0)
                r = take(&search, &plan);
        if (r == 0)
                return no_fit(problem, err);
        if (r > 0)
                r = refine(problem, &search, &plan);
        if (r < 0) {
                pipeline_plan_free(&plan);
                return err_set(err, r, "no memory for the stages");
        }
        *ret = plan;
        return 0;
}

void pipeline_plan_free(struct pipeline_plan *plan)
{
        if (plan == NULL)
                return;
        free(plan->stages);
        *plan = (struct pipeline_plan){ 0 };
}

double pipeline_own_ms(const struct pipeline_worker *worker, size_t begin, size_t end)
{
        double ms = worker->begin_ms;

        for (size_t i = begin; i < end; i++)
                ms += worker->ms[i];
        return ms;
}

uint64_t pipeline_microbatches(uint64_t microbatches, uint64_t part, uint64_t whole)
{
        uint64_t own = whole == 0 ? microbatches : (2 * microbatches * part + whole) / (2 * whole);

        return own > 0 ? own : 1;
}

double pipeline_step_ms(const struct pipeline_plan *plan, unsigned microbatches)
{
        return pipeline_schedule_most_ms(plan->sum_ms, plan->period_ms, microbatches);
}

double pipeline_foretold_ms(const struct pipeline_stage *stages, size_t count, unsigned microbatches)
{
        double load_ms[PIPELINE_LAYERS_MAX]; /* a stage has a layer or more */

        for (size_t k = 0; k < count; k++)
                load_ms[k] = stages[k].load_ms;
        return pipeline_schedule_ms(load_ms, count, microbatches);
}
