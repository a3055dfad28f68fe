/* The graph planner at the top: a first placement, the methods in turn, the proven bound, and the check of a
 * finished placement. */
#include "planner/splits/graph_split.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/splits/graph_anneal.h"
#include "planner/splits/graph_exact.h"
#include "planner/splits/graph_ideals.h"

#define EXACT_STEPS 2000000 /* branch and bound gives up after so many: well below a second */

void graph_split_plan_free(struct graph_plan *plan)
{
        if (plan == NULL)
                return;
        free(plan->device);
        plan->device = NULL;
}

struct piece { /* a unit, for the bound */
        double accelerator_ms, cpu_ms;
        bool on_accelerator;
};

static int saves_most(const void *a, const void *b)
{
        const struct piece *x = a, *y = b;
        double i = x->accelerator_ms * y->cpu_ms, j = y->accelerator_ms * x->cpu_ms;

        return i > j ? -1 : i < j;
}

/* Can the work be shared in `ms`, if units could be divided? Those that save most go to the CPUs first. */
static bool shares_in(const struct piece *pieces, size_t count, double accelerators, double cpus, double ms)
{
        double cpu = cpus * ms, accelerator = accelerators * ms;

        for (size_t i = 0; i < count; i++)
                if (!pieces[i].on_accelerator)
                        cpu -= pieces[i].cpu_ms;
        if (cpu < 0)
                return false;
        for (size_t i = 0; i < count; i++) {
                double part = 1;

                if (!pieces[i].on_accelerator)
                        continue;
                if (cpus <= 0)
                        part = 0;
                else if (pieces[i].cpu_ms > cpu)
                        part = cpu / pieces[i].cpu_ms;
                cpu -= part * pieces[i].cpu_ms;
                accelerator -= (1 - part) * pieces[i].accelerator_ms;
        }
        return accelerator >= 0;
}

static double lower_bound_ms(const struct graph_problem *problem)
{
        const struct graph_problem *p = problem;
        CLEANUP(free_p) struct piece *pieces = calloc(p->unit_count + 1, sizeof(*pieces));
        double capacity = 0, fastest = 0, low = 0, high = 1e-9, largest = 0;

        if (pieces == NULL)
                return 0;
        for (size_t t = 0; t < p->type_count; t++)
                if (p->types[t].count > 0) {
                        capacity += (double) p->types[t].count * p->types[t].speed;
                        fastest = fmax(fastest, p->types[t].speed);
                }
        for (size_t u = 0; u < p->unit_count; u++)
                pieces[u].on_accelerator = fastest > 0;
        for (size_t v = 0; v < p->node_count; v++) {
                struct piece *piece = &pieces[p->nodes[v].unit];

                if (p->nodes[v].accelerator_ms < 0)
                        piece->on_accelerator = false;
                else
                        piece->accelerator_ms += p->nodes[v].accelerator_ms;
                piece->cpu_ms += p->nodes[v].cpu_ms;
        }
        for (size_t u = 0; u < p->unit_count; u++) {
                double least = p->cpu_count > 0 ? pieces[u].cpu_ms : INFINITY;

                if (pieces[u].on_accelerator)
                        least = fmin(least, pieces[u].accelerator_ms / fastest);
                largest = fmax(largest, least);
        }
        if (!isfinite(largest))
                return 0; /* nothing fits: graph_split() says so */
        qsort(pieces, p->unit_count, sizeof(*pieces), saves_most);
        while (!shares_in(pieces, p->unit_count, capacity, (double) p->cpu_count, high) && high < 1e300)
                high *= 2;
        for (int i = 0; i < 100; i++) {
                double middle = low + (high - low) / 2;

                if (shares_in(pieces, p->unit_count, capacity, (double) p->cpu_count, middle))
                        high = middle;
                else
                        low = middle;
        }
        return fmax(low, largest);
}

double graph_split_loads(const struct graph_problem *problem, const uint32_t *device, double *ret_load_ms)
{
        struct graph_state s = { 0 };
        CLEANUP(free_p) uint32_t *unit_device = calloc(problem->unit_count + 1, sizeof(*unit_device));
        double max = -1;

        for (size_t v = 0; unit_device != NULL && v < problem->node_count; v++)
                unit_device[problem->nodes[v].unit] = device[v];
        if (unit_device != NULL && graph_state_init(&s, problem) == 0) {
                graph_state_load(&s, unit_device);
                memcpy(ret_load_ms, s.load, s.devices * sizeof(*s.load));
                max = graph_state_max_load_ms(&s);
        }
        graph_state_free(&s);
        return max;
}

/* Units that can go nowhere, said by name of the first node. */
static int check_units(const struct graph_state *s, struct err *err)
{
        double largest = 0;

        for (size_t d = 0; d < s->accelerators; d++)
                largest = fmax(largest, s->memory_limit[d]);
        for (size_t u = 0; u < s->units; u++) {
                if (s->problem->cpu_count > 0)
                        continue;
                if (!s->unit[u].on_accelerator || s->accelerators == 0)
                        return err_set(err, GRAPH_NO_FIT,
                                       "a node cannot run on an accelerator and there is no CPU");
                if (s->unit[u].memory_bytes > largest)
                        return err_set(err, GRAPH_NO_FIT,
                                       "nodes of one colour need %.0f bytes, %.0f more than any accelerator "
                                       "has, and there "
                                       "is no CPU",
                                       s->unit[u].memory_bytes, s->unit[u].memory_bytes - largest);
        }
        return 0;
}

/* Everything on one device, which is contiguous however the graph is. */
static void place_on(struct graph_state *s, struct graph_best *best, size_t device)
{
        graph_state_clear(s);
        for (size_t u = 0; u < s->units; u++) {
                if (!graph_state_can_place(s, u, device))
                        return;
                graph_state_place(s, u, device);
        }
        graph_best_offer(best, s);
}

/* A first placement: everything on one CPU, or largest memory first into the roomiest accelerator. */
static void place_somehow(struct graph_state *s, struct graph_best *best)
{
        if (s->devices > s->accelerators) {
                place_on(s, best, s->accelerators);
                return;
        }
        graph_state_clear(s);
        for (size_t u = 0; u < s->units; u++) {
                size_t roomiest = SIZE_MAX;

                for (size_t d = 0; d < s->devices; d++)
                        if (graph_state_can_place(s, u, d) &&
                            (roomiest == SIZE_MAX || s->memory_limit[d] - s->memory[d] >
                                                             s->memory_limit[roomiest] - s->memory[roomiest]))
                                roomiest = d;
                if (roomiest == SIZE_MAX)
                        return;
                graph_state_place(s, u, roomiest);
        }
        graph_best_offer(best, s);
}

static int search_all(struct graph_state *s, struct graph_best *best, const struct graph_search *search)
{
        uint64_t exact_steps =
                search->effort > 0 && search->effort / 2 < EXACT_STEPS ? search->effort / 2 : EXACT_STEPS;
        int r;

        place_somehow(s, best);
        r = graph_ideals_search(s, best);
        if (r == 0)
                r = graph_exact_search(s, best, exact_steps);
        for (size_t d = 0; r == 0 && d < s->devices && !isfinite(best->max_load_ms); d++)
                place_on(s, best, d);
        if (r == 0 && !best->proven)
                r = graph_anneal_search(s, best);
        return r;
}

static int plan_of(const struct graph_state *s, const struct graph_best *best, struct graph_plan *ret)
{
        const struct graph_problem *p = s->problem;
        uint32_t *device = calloc(p->node_count + 1, sizeof(*device));

        if (device == NULL)
                return -ENOMEM;
        for (size_t v = 0; v < p->node_count; v++)
                device[v] = best->device[p->nodes[v].unit];
        *ret = (struct graph_plan){ .device = device,
                                    .max_load_ms = best->max_load_ms,
                                    .lower_bound_ms = best->proven ? best->max_load_ms : best->lower_bound_ms,
                                    .exact = best->proven,
                                    .steps = best->steps };
        return 0;
}

int graph_split(const struct graph_problem *problem, const struct graph_search *search,
                struct graph_plan *ret, struct err *err)
{
        struct graph_state s = { 0 };
        struct graph_best best = { .max_load_ms = INFINITY,
                                   .effort = search->effort,
                                   .random = search->seed,
                                   .stop = search->stop,
                                   .userdata = search->userdata };
        int r = graph_state_init(&s, problem);

        best.device = calloc(problem->unit_count + 1, sizeof(*best.device));
        if (r == 0 && best.device == NULL)
                r = -ENOMEM;
        if (r == 0)
                r = check_units(&s, err);
        if (r == 0) {
                best.lower_bound_ms = lower_bound_ms(problem);
                r = search_all(&s, &best, search);
        }
        if (r == 0 && !isfinite(best.max_load_ms))
                r = err_set(err, GRAPH_NO_FIT, "no placement fits into the accelerators' memory%s",
                            best.proven ? "" : ", as far as was searched");
        if (r == 0 && best.max_load_ms <= best.lower_bound_ms * (1 + 1e-12))
                best.proven = true;
        if (r == 0) {
                graph_state_load(&s, best.device);
                best.max_load_ms = graph_state_max_load_ms(&s);
                r = plan_of(&s, &best, ret);
        }
        graph_state_free(&s);
        free(best.device);
        return r < 0 ? err_set(err, r, "no memory for %zu nodes", problem->node_count) : r;
}
