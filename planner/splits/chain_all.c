/* Orders by exchange, cuts by dynamic programming. */
#include "planner/splits/chain_all.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct cuts {
        size_t layers;
        double *best; /* [k * (layers + 1) + j]: the largest load of the first k devices over the first j
                         layers */
        size_t *from; /* likewise: the first layer of device k - 1 in that cut */
};

struct search {
        const struct chain_problem *problem;
        struct cuts cuts;
        size_t order[CHAIN_ALL_TRIED], best_order[CHAIN_ALL_TRIED];
        double best;
};

/* Fills the row of device @k - 1, whose layers take @ms, from the row before. */
static void add_device(const struct cuts *cuts, size_t k, const double *ms)
{
        size_t row = cuts->layers + 1;

        for (size_t j = k; j < row; j++) {
                double load = 0;

                for (size_t i = j; i >= k; i--) { /* it has the layers i - 1 to j - 1 */
                        double before = cuts->best[(k - 1) * row + i - 1], largest;

                        load += ms[i - 1];
                        largest = before > load ? before : load;
                        if (largest < cuts->best[k * row + j]) {
                                cuts->best[k * row + j] = largest;
                                cuts->from[k * row + j] = i - 1;
                        }
                }
        }
}

/* The largest load of the best cut over the devices in this order. */
static double cut(const struct chain_problem *problem, const struct cuts *cuts, const size_t *order)
{
        size_t row = cuts->layers + 1, count = problem->class_count;

        for (size_t i = 0; i < (count + 1) * row; i++)
                cuts->best[i] = i == 0 ? 0 : INFINITY;
        for (size_t k = 1; k <= count; k++)
                add_device(cuts, k, problem->classes[order[k - 1]].ms);
        return cuts->best[count * row + cuts->layers];
}

/* Recursion is bounded by CHAIN_ALL_TRIED. */
static void try_orders(struct search *search, size_t fixed)
{
        if (fixed == search->problem->class_count) {
                double load = cut(search->problem, &search->cuts, search->order);

                if (load < search->best) {
                        search->best = load;
                        memcpy(search->best_order, search->order, sizeof(search->order));
                }
                return;
        }
        for (size_t i = fixed; i < search->problem->class_count; i++) {
                size_t swap = search->order[fixed];

                search->order[fixed] = search->order[i];
                search->order[i] = swap;
                try_orders(search, fixed + 1);
                search->order[i] = search->order[fixed];
                search->order[fixed] = swap;
        }
}

/* The stages of the plan, then those that it leaves idle. */
static void append_idle(const struct chain_problem *problem, const struct chain_plan *plan, size_t *order)
{
        size_t next = plan->stage_count;

        for (size_t k = 0; k < plan->stage_count; k++)
                order[k] = plan->stages[k].class_index;
        for (size_t i = 0; i < problem->class_count; i++) {
                bool used = false;

                for (size_t k = 0; k < plan->stage_count; k++)
                        used = used || order[k] == i;
                if (!used)
                        order[next++] = i;
        }
}

int chain_all(const struct chain_problem *problem, const struct chain_plan *plan, size_t *ret_order,
              size_t *ret_first)
{
        size_t count = problem->class_count, row = problem->layer_count + 1;
        CLEANUP(free_p) double *best = calloc((count + 1) * row, sizeof(*best));
        CLEANUP(free_p) size_t *from = calloc((count + 1) * row, sizeof(*from));
        struct search search = { .problem = problem,
                                 .cuts = { problem->layer_count, best, from },
                                 .best = INFINITY };

        if (best == NULL || from == NULL)
                return -ENOMEM;
        if (count <= CHAIN_ALL_TRIED && plan->stage_count < count) {
                for (size_t i = 0; i < count; i++)
                        search.order[i] = i;
                try_orders(&search, 0);
                memcpy(ret_order, search.best_order, count * sizeof(*ret_order));
        } else {
                append_idle(problem, plan, ret_order);
        }
        (void) cut(problem, &search.cuts, ret_order);
        for (size_t k = count, j = problem->layer_count; k > 0; k--) {
                ret_first[k - 1] = from[k * row + j];
                j = ret_first[k - 1];
        }
        return 0;
}
