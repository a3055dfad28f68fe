/* Simulated annealing of a placement: one unit moves, or two change places; the energy is the 16-norm of the
 * loads, which is nearly the largest load but feels the second largest too. Every run cools from a few per
 * cent of the load to a hundred-thousandth; runs begin from the best placement so far, shaken more or less.
 *
 * Example: loads of 10 and 9 have the norm 10.107, of 10 and 8 the norm 10.017: the largest load is the same,
 * but the second is better placed to take a unit over, and the energy says so; the largest load alone would
 * be a plain on which nothing shows the way. Invariant: the state's loads follow every change and its
 * reversal term by term, and the best is summed afresh when it is kept. */
#include "planner/splits/graph_anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOT  0.03
#define COLD 1e-5

static double energy(const struct graph_state *s, double reference_ms)
{
        double sum = 0;

        for (size_t d = 0; d < s->devices; d++) {
                double x = s->load[d] / reference_ms;

                x *= x;
                x *= x;
                x *= x;
                sum += x * x;
        }
        return log(sum + 1e-300) / 16;
}

struct change {
        size_t unit, from, to;
        size_t other; /* unit that goes the other way; SIZE_MAX = none */
};

static size_t busiest(const struct graph_state *s)
{
        size_t most = 0;

        for (size_t d = 1; d < s->devices; d++)
                if (s->load[d] > s->load[most])
                        most = d;
        return most;
}

/* Half of the changes begin at the busiest device: that is where something is to be gained. */
static bool propose(const struct graph_state *s, struct graph_best *best, struct change *ret)
{
        uint64_t r = graph_best_random(best);
        size_t unit = (size_t) (r >> 32) % s->units;

        if ((r & 1) != 0) {
                size_t most = busiest(s), tries = 0;

                while (s->device[unit] != most && tries++ < 8)
                        unit = (size_t) (graph_best_random(best) >> 32) % s->units;
        }
        ret->unit = unit;
        ret->from = s->device[unit];
        ret->other = SIZE_MAX;
        if ((r & 6) == 0) {
                ret->other = (size_t) (graph_best_random(best) >> 32) % s->units;
                ret->to = s->device[ret->other];
        } else if ((r & 6) == 2 && s->unit[unit].net_count > 0) { /* to where a neighbour is */
                size_t net = s->unit_nets[s->unit[unit].first_net +
                                          (size_t) (graph_best_random(best) >> 32) % s->unit[unit].net_count];

                ret->to = s->device[s->pins[s->net[net].first_pin + (size_t) (graph_best_random(best) >> 32) %
                                                                            s->net[net].pin_count]];
        } else
                ret->to = (size_t) (graph_best_random(best) >> 32) % s->devices;
        return ret->to != ret->from;
}

/* Return: false, and nothing changed, if the change is not allowed. */
static bool apply(struct graph_state *s, const struct change *c)
{
        graph_state_remove(s, c->unit);
        if (c->other != SIZE_MAX)
                graph_state_remove(s, c->other);
        if (graph_state_can_place(s, c->unit, c->to)) {
                graph_state_place(s, c->unit, c->to);
                if (c->other == SIZE_MAX)
                        return true;
                if (graph_state_can_place(s, c->other, c->from)) {
                        graph_state_place(s, c->other, c->from);
                        return true;
                }
                graph_state_remove(s, c->unit);
        }
        graph_state_place(s, c->unit, c->from);
        if (c->other != SIZE_MAX)
                graph_state_place(s, c->other, c->to);
        return false;
}

static void revert(struct graph_state *s, const struct change *c)
{
        graph_state_remove(s, c->unit);
        if (c->other != SIZE_MAX) {
                graph_state_remove(s, c->other);
                graph_state_place(s, c->other, c->to);
        }
        graph_state_place(s, c->unit, c->from);
}

static bool is_wanted(const struct graph_state *s, struct graph_best *best, double gain, double heat)
{
        if (gain < 0 && graph_best_random_unit(best) >= exp(gain / heat))
                return false;
        return !s->problem->contiguous || graph_state_is_contiguous(s->problem, s->device, s->accelerators);
}

/* One cooling. Return: false when the search must end. */
static bool cool(struct graph_state *s, struct graph_best *best, double hot, uint64_t changes)
{
        double reference = best->max_load_ms, heat = hot, now = energy(s, reference);
        uint64_t coolings = changes / 64 + 1;
        double factor = pow(COLD / hot, 1.0 / (double) coolings);

        for (uint64_t i = 0; i < changes; i++) {
                struct change c;
                double then;

                if (!graph_best_step(best))
                        return false;
                if (i % 64 == 0)
                        heat *= factor;
                if (!propose(s, best, &c) || !apply(s, &c))
                        continue;
                then = energy(s, reference);
                if (!is_wanted(s, best, now - then, heat)) {
                        revert(s, &c);
                        continue;
                }
                now = then;
                if (graph_state_max_load_ms(s) < best->max_load_ms * (1 - 1e-9)) {
                        graph_state_load(s, memcpy(best->device, s->device, s->units * sizeof(*s->device)));
                        best->max_load_ms = graph_state_max_load_ms(s); /* summed afresh: no drift */
                }
        }
        return true;
}

static void shake(struct graph_state *s, struct graph_best *best, size_t changes)
{
        for (size_t i = 0; i < changes; i++) {
                struct change c;

                if (propose(s, best, &c) && apply(s, &c) && s->problem->contiguous &&
                    !graph_state_is_contiguous(s->problem, s->device, s->accelerators))
                        revert(s, &c);
        }
}

int graph_anneal_search(struct graph_state *s, struct graph_best *best)
{
        uint64_t changes = s->units < 900 ? 200000 + 2000 * (uint64_t) s->units : 2000000;

        if (s->units == 0 || s->devices < 2 || !isfinite(best->max_load_ms))
                return 0;
        if (s->problem->contiguous)
                changes /= 16; /* each costs a walk over the graph */
        for (unsigned run = 0;; run++) {
                graph_state_load(s, best->device);
                if (run % 4 == 3)
                        shake(s, best, s->units);
                if (!cool(s, best, run % 4 == 1 ? HOT / 10 : run % 4 == 2 ? HOT / 100 : HOT, changes))
                        return 0;
        }
}
