/* A dynamic programme over stages, from the last one to the first. */
#include "planner/splits/pipeline_cut.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define SAME 1e-9 /* sums in another order differ by less */

bool pipeline_cut_less(struct pipeline_cut_cost a, struct pipeline_cut_cost b)
{
        double slack = b.largest_ms * SAME;

        if (!isfinite(b.largest_ms))
                return isfinite(a.largest_ms);
        if (a.largest_ms < b.largest_ms - slack)
                return true;
        return a.largest_ms <= b.largest_ms + slack && a.sum_ms < b.sum_ms * (1 - SAME);
}

struct pipeline_cut_cost pipeline_cut_add(const struct pipeline_problem *problem, double load_ms,
                                          struct pipeline_cut_cost cost)
{
        return (struct pipeline_cut_cost){ fmax(fmax(load_ms, problem->within_ms), cost.largest_ms),
                                           load_ms + cost.sum_ms };
}

double pipeline_cut_link(const struct pipeline_worker *a, const struct pipeline_worker *b)
{
        bool inside = a->inside_bytes_per_ms > 0 && b->inside_bytes_per_ms > 0 && a->node == b->node;

        return inside ? fmin(a->inside_bytes_per_ms, b->inside_bytes_per_ms)
                      : fmin(a->bytes_per_ms, b->bytes_per_ms);
}

double pipeline_cut_crossing_ms(const struct pipeline_problem *problem, size_t begin, double link)
{
        if (begin == 0 || begin == problem->layer_count)
                return 0;
        return 2 * (double) problem->layers[begin - 1].output_bytes / link;
}

unsigned pipeline_cut_held(const struct pipeline_problem *problem, size_t from_end)
{
        return from_end < problem->microbatches && !problem->hold_all ? (unsigned) from_end
                                                                      : problem->microbatches;
}

bool pipeline_cut_room(const struct pipeline_problem *problem, const struct pipeline_worker *worker,
                       size_t layer, unsigned held, uint64_t *used)
{
        const struct pipeline_layer *l = &problem->layers[layer];
        uint64_t activations;

        if (__builtin_mul_overflow(l->held_bytes, (uint64_t) held, &activations) ||
            __builtin_add_overflow(*used, activations, used) ||
            __builtin_add_overflow(*used, l->state_bytes, used))
                return false;
        return worker->memory_bytes == 0 || *used <= worker->memory_bytes;
}

/* A chip of the order, and what stands beside it. */
struct place {
        size_t worker;
        double left, right; /* links to its neighbours; to its like at the ends */
};

struct cut {
        const struct pipeline_problem *problem;
        struct place *places;
        size_t count, row; /* chips; layers + 1 */
        struct pipeline_cut_cost *best;
        uint32_t *end; /* of the stage, in the best cut from here on */
        double most_ms;
        struct pipeline_cut_effort *effort;
};

static void cut_free(struct cut *c)
{
        free(c->places);
        free(c->best);
        free(c->end);
}

static int cut_init(struct cut *c, const size_t *order, size_t count)
{
        const struct pipeline_worker *workers = c->problem->workers;
        size_t n = 0;

        for (size_t k = 0; k < count; k++)
                c->count += workers[order[k]].chips;
        c->row = c->problem->layer_count + 1;
        c->places = calloc(c->count, sizeof(*c->places));
        c->best = calloc((c->count + 1) * c->row, sizeof(*c->best));
        c->end = calloc((c->count + 1) * c->row, sizeof(*c->end));
        if (c->places == NULL || c->best == NULL || c->end == NULL)
                return -ENOMEM;
        for (size_t k = 0; k < count; k++)
                for (unsigned chip = 0; chip < workers[order[k]].chips; chip++)
                        c->places[n++].worker = order[k];
        for (n = 0; n < c->count; n++) {
                const struct pipeline_worker *own = &workers[c->places[n].worker];

                c->places[n].left = pipeline_cut_link(own, &workers[c->places[n > 0 ? n - 1 : 0].worker]);
                c->places[n].right =
                        pipeline_cut_link(own, &workers[c->places[n + 1 < c->count ? n + 1 : n].worker]);
        }
        for (n = 0; n < (c->count + 1) * c->row; n++)
                c->best[n].largest_ms = INFINITY;
        c->best[c->count * c->row + c->problem->layer_count] = (struct pipeline_cut_cost){ 0 };
        c->effort->spent += (double) ((c->count + 1) * c->row);
        return 0;
}

/* The best cut from layer i on, which stage s begins with. */
static void cut_from(struct cut *c, size_t s, size_t i)
{
        const struct pipeline_problem *p = c->problem;
        const struct place *place = &c->places[s];
        const struct pipeline_worker *worker = &p->workers[place->worker];
        struct pipeline_cut_cost *best = &c->best[s * c->row + i];
        unsigned held = pipeline_cut_held(p, c->count - s);
        double before = pipeline_cut_crossing_ms(p, i, place->left), ms = worker->begin_ms;
        uint64_t used = 0;

        for (size_t j = i + 1; j <= p->layer_count - (c->count - s - 1);
             j++) { /* each behind it has a layer */
                struct pipeline_cut_cost next = c->best[(s + 1) * c->row + j];
                double load;

                c->effort->spent++;
                if (worker->ms[j - 1] < 0 || (j - 1 > i && p->layers[j - 1].begin == PIPELINE_BEGINS) ||
                    !pipeline_cut_room(p, worker, j - 1, held, &used))
                        return;
                ms += worker->ms[j - 1];
                if (ms > c->most_ms || ms > best->largest_ms * (1 + SAME)) /* a longer stage is not better */
                        return;
                if (!isfinite(next.largest_ms))
                        continue;
                load = before + ms + pipeline_cut_crossing_ms(p, j, place->right);
                if (load > c->most_ms)
                        continue;
                next = pipeline_cut_add(p, load, next);
                if (pipeline_cut_less(next, *best)) {
                        *best = next;
                        c->end[s * c->row + i] = (uint32_t) j;
                }
        }
}

static void collect(const struct cut *c, struct pipeline_stage *ret)
{
        const struct pipeline_problem *p = c->problem;

        for (size_t s = 0, i = 0; s < c->count; s++) {
                const struct place *place = &c->places[s];
                const struct pipeline_worker *worker = &p->workers[place->worker];
                size_t end = c->end[s * c->row + i];

                ret[s] = (struct pipeline_stage){
                        .worker = place->worker,
                        .first = i,
                        .last = end - 1,
                        .load_ms = pipeline_cut_crossing_ms(p, i, place->left) +
                                   pipeline_cut_crossing_ms(p, end, place->right) +
                                   pipeline_own_ms(worker, i, end),
                };
                for (; i < end; i++) {
                        (void) pipeline_cut_room(p, worker, i, pipeline_cut_held(p, c->count - s),
                                                 &ret[s].memory_bytes);
                }
        }
}

int pipeline_cut(const struct pipeline_problem *problem, const size_t *order, size_t count, double most_ms,
                 struct pipeline_cut_effort *effort, struct pipeline_stage *ret,
                 struct pipeline_cut_cost *ret_cost)
{
        CLEANUP(cut_free)
        struct cut c = { .problem = problem, .most_ms = most_ms * (1 + SAME), .effort = effort };

        if (cut_init(&c, order, count) < 0)
                return -ENOMEM;
        *ret_cost = (struct pipeline_cut_cost){ INFINITY, INFINITY };
        if (c.count > problem->layer_count)
                return 0;
        for (size_t s = c.count; s-- > 0 && effort->spent <= effort->most;)
                for (size_t i = s == 0 ? 0 : problem->layer_count - (c.count - s); i >= s; i--) {
                        if (problem->layers[i].begin != PIPELINE_NO_BEGIN || i == 0)
                                cut_from(&c, s, i);
                        if (i == 0 || s == 0)
                                break;
                }
        if (!isfinite(c.best[0].largest_ms))
                return 0;
        *ret_cost = c.best[0];
        if (ret != NULL)
                collect(&c, ret);
        return (int) c.count;
}
