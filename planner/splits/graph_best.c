/* Takes better placements over, counts steps, and draws random numbers. */
#include "planner/splits/graph_best.h"

#include <string.h>

#include "base/random.h"

void graph_best_offer(struct graph_best *best, const struct graph_state *s)
{
        double load = graph_state_max_load_ms(s);

        if (load >= best->max_load_ms * (1 - 1e-12))
                return;
        if (s->problem->contiguous && !graph_state_is_contiguous(s->problem, s->device, s->accelerators))
                return;
        best->max_load_ms = load;
        memcpy(best->device, s->device, s->units * sizeof(*best->device));
}

bool graph_best_step(struct graph_best *best)
{
        best->steps++;
        if (best->stopped || (best->effort > 0 && best->steps > best->effort))
                return false;
        if (best->max_load_ms <= best->lower_bound_ms * (1 + 1e-12))
                return false; /* it cannot get better */
        if (best->stop != NULL && best->steps % 1024 == 0 && best->stop(best->userdata))
                best->stopped = true;
        return !best->stopped;
}

uint64_t graph_best_random(struct graph_best *best)
{
        return random_next(&best->random);
}

double graph_best_random_unit(struct graph_best *best)
{
        return (double) (graph_best_random(best) >> 11) * 0x1p-53;
}
