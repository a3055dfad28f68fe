/* Branch and bound: the heaviest unit first, onto every device that is not like one tried before. A load
 * never falls when a unit is added, so a partial placement that is no better than the best complete one is
 * left at once; so is one whose free capacity below the best load cannot take the work that is still to
 * place.
 *
 * Example: units of 5, 4 and 3 ms on two equal devices, the best so far 12 (all on one). 5 goes to the first;
 * the second, as empty, need not be tried. 4 beside it makes 9, and 3 beside them 12: no better, so 3 to the
 * second: 9. Then 4 to the second: 5 and 4, and 3 there: 7, the new best; 3 to the first: 8, left. Invariant:
 * what was left cannot be completed to less than the best; so if the steps suffice, the best is the least
 * possible. */
#include "planner/splits/graph_exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct branch {
        struct graph_state *s;
        struct graph_best *best;
        size_t *order;   /* units, heaviest first */
        double *rest_ms; /* accelerator work of the units from here on */
        double cpu_gain; /* accelerator ms that a ms of a CPU can save at most */
        uint64_t steps_left;
        bool complete;
};

struct keyed {
        double ms;
        size_t unit;
};

static int heavier(const void *a, const void *b)
{
        const struct keyed *x = a, *y = b;

        if (x->ms != y->ms)
                return x->ms > y->ms ? -1 : 1;
        return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static bool fits_in_what_is_free(const struct branch *b, size_t depth)
{
        const struct graph_state *s = b->s;
        double limit = b->best->max_load_ms, room = 0;

        for (size_t d = 0; d < s->devices; d++)
                room += (limit - s->load[d]) * (d < s->accelerators ? s->speed[d] : b->cpu_gain);
        return room > b->rest_ms[depth] * (1 - 1e-12);
}

/* Has an equal device that is just as empty been tried for this unit? */
static bool is_repeated(const struct graph_state *s, size_t device)
{
        if (device == 0 || device == s->accelerators || s->memory[device] != 0 || s->load[device] != 0)
                return false;
        return s->load[device - 1] == 0 && s->memory[device - 1] == 0 &&
               s->speed[device - 1] == s->speed[device] &&
               s->memory_limit[device - 1] == s->memory_limit[device];
}

static void descend(struct branch *b, size_t depth)
{
        struct graph_state *s = b->s;
        size_t unit = b->order[depth];

        if (b->steps_left == 0 || !graph_best_step(b->best)) {
                b->complete = false;
                return;
        }
        b->steps_left--;
        for (size_t d = 0; d < s->devices && b->complete; d++) {
                if (!graph_state_can_place(s, unit, d) || is_repeated(s, d))
                        continue;
                graph_state_place(s, unit, d);
                if (depth + 1 == s->units)
                        graph_best_offer(b->best, s);
                else if (graph_state_max_load_ms(s) < b->best->max_load_ms * (1 - 1e-12) &&
                         fits_in_what_is_free(b, depth + 1))
                        descend(b, depth + 1);
                graph_state_remove(s, unit);
        }
}

static int prepare(struct branch *b)
{
        const struct graph_state *s = b->s;
        CLEANUP(free_p) struct keyed *keys = calloc(s->units + 1, sizeof(*keys));

        b->order = calloc(s->units + 1, sizeof(*b->order));
        b->rest_ms = calloc(s->units + 1, sizeof(*b->rest_ms));
        if (keys == NULL || b->order == NULL || b->rest_ms == NULL)
                return -ENOMEM;
        for (size_t u = 0; u < s->units; u++) {
                const struct graph_state_unit *unit = &s->unit[u];

                keys[u] = (struct keyed){ unit->on_accelerator ? unit->accelerator_ms : INFINITY, u };
                if (unit->on_accelerator && unit->accelerator_ms > 0)
                        b->cpu_gain = fmax(b->cpu_gain,
                                           unit->cpu_ms > 0 ? unit->accelerator_ms / unit->cpu_ms : INFINITY);
        }
        qsort(keys, s->units, sizeof(*keys), heavier);
        for (size_t i = s->units; i-- > 0;) {
                const struct graph_state_unit *unit = &s->unit[keys[i].unit];

                b->order[i] = keys[i].unit;
                b->rest_ms[i] = b->rest_ms[i + 1] + (unit->on_accelerator ? unit->accelerator_ms : 0);
        }
        return 0;
}

int graph_exact_search(struct graph_state *s, struct graph_best *best, uint64_t steps_max)
{
        struct branch b = { .s = s, .best = best, .steps_left = steps_max, .complete = true };
        int r;

        if (s->units == 0 || s->units > 256)
                return 0;
        graph_state_clear(s);
        r = prepare(&b);
        if (r == 0) {
                descend(&b, 0);
                if (b.complete)
                        best->proven = true;
        }
        free(b.order);
        free(b.rest_ms);
        return r;
}
