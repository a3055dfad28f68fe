/* Whoever can go on does; what has come is known by how many passes a neighbour has done. */
#include "planner/splits/pipeline_schedule.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define FORWARD_PARTS 3 /* of a load a forward pass is one */
#define STEADY        4 /* so many microbatches a stage, and those that follow are about alike */

struct going { /* a stage */
        double load_ms, free_ms;
        unsigned forward, backward; /* passes that are done */
        double *sent_ms;            /* when microbatch m had gone forward, at m % places, */
        double *returned_ms;        /* and backward */
};

struct schedule {
        struct going *stages;
        size_t count, places; /* no more microbatches are under way in a stage than there are stages */
        unsigned microbatches;
};

/* Can the stage's next pass be told? Then it is done. */
static bool go_on(struct schedule *s, size_t k)
{
        struct going *g = &s->stages[k];
        bool forward =
                g->forward < s->microbatches && g->forward - g->backward <= (unsigned) (s->count - 1 - k);
        unsigned m = forward ? g->forward : g->backward;
        double came_ms = 0, forward_ms = g->load_ms / FORWARD_PARTS;

        if (m == s->microbatches)
                return false;
        if (forward && k > 0) {
                if (s->stages[k - 1].forward <= m)
                        return false;
                came_ms = s->stages[k - 1].sent_ms[m % s->places];
        } else if (!forward && k + 1 < s->count) {
                if (s->stages[k + 1].backward <= m)
                        return false;
                came_ms = s->stages[k + 1].returned_ms[m % s->places];
        }
        g->free_ms = fmax(g->free_ms, came_ms) + (forward ? forward_ms : g->load_ms - forward_ms);
        if (forward) {
                g->sent_ms[m % s->places] = g->free_ms;
                g->forward++;
        } else {
                g->returned_ms[m % s->places] = g->free_ms;
                g->backward++;
        }
        return true;
}

double pipeline_schedule_most_ms(double sum_ms, double largest_ms, unsigned microbatches)
{
        return sum_ms + largest_ms * (microbatches - 1);
}

double pipeline_schedule_ms(const double *load_ms, size_t count, unsigned microbatches)
{
        size_t places = (count < microbatches ? count : microbatches) + 1;
        CLEANUP(free_p) struct going *stages = calloc(count, sizeof(*stages));
        CLEANUP(free_p)
        double *times =
                count <= PIPELINE_SCHEDULE_STAGES_MAX ? calloc(2 * count * places, sizeof(*times)) : NULL;
        struct schedule s = { .stages = stages, .count = count, .places = places };
        size_t most = PIPELINE_SCHEDULE_PASSES / count;
        double sum_ms = 0, largest_ms = 0, most_ms, end_ms = 0;

        for (size_t k = 0; k < count; k++) {
                sum_ms += load_ms[k];
                largest_ms = fmax(largest_ms, load_ms[k]);
        }
        most_ms = pipeline_schedule_most_ms(sum_ms, largest_ms, microbatches);
        if (stages == NULL || times == NULL)
                return most_ms;
        most = most < STEADY * count ? STEADY * count : most;
        s.microbatches = microbatches < most ? microbatches : (unsigned) most;
        for (size_t k = 0; k < count; k++)
                stages[k] = (struct going){ .load_ms = load_ms[k],
                                            .sent_ms = times + 2 * k * places,
                                            .returned_ms = times + (2 * k + 1) * places };
        while (stages[0].backward < s.microbatches)
                for (size_t k = 0; k < count; k++)
                        while (go_on(&s, k))
                                ;
        for (size_t k = 0; k < count; k++)
                end_ms = fmax(end_ms, stages[k].free_ms);
        return fmin(end_ms + (microbatches - s.microbatches) * largest_ms, most_ms);
}
