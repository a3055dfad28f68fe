/* Blocks of 4, 16 and 64 paces. */
#include "job/world/window.h"

#include <math.h>

static const unsigned block_paces[WINDOW_SCALES] = { 4, 16, 64 };

static struct window_sum sum_of(const struct window_sum *a, const struct window_sum *b)
{
        return (struct window_sum){ .paces = a->paces + b->paces,
                                    .steps = a->steps + b->steps,
                                    .samples = a->samples + b->samples,
                                    .busy_ms = a->busy_ms + b->busy_ms,
                                    .walled = a->walled + b->walled,
                                    .wall_ms = a->wall_ms + b->wall_ms,
                                    .square = a->square + b->square };
}

void window_add(struct window *window, const struct window_pace *pace, double wall_ms)
{
        const struct window_sum one = { .paces = 1,
                                        .steps = pace->steps,
                                        .samples = pace->samples,
                                        .busy_ms = pace->busy_ms,
                                        .walled = wall_ms < 0 ? 0 : pace->steps,
                                        .wall_ms = wall_ms < 0 ? 0 : wall_ms,
                                        .square = pace->busy_ms * pace->busy_ms / pace->steps };

        for (size_t i = 0; i < WINDOW_SCALES; i++) {
                window->next[i] = sum_of(&window->next[i], &one);
                if (window->next[i].paces < block_paces[i])
                        continue;
                window->last[i] = window->next[i];
                window->next[i] = (struct window_sum){ 0 };
        }
}

bool window_of(const struct window *window, size_t scale, struct window_sum *ret)
{
        *ret = sum_of(&window->last[scale], &window->next[scale]);
        return window->last[scale].paces > 0;
}

/* Paces of unlike length weigh by their steps: the variance of one step is about that of the paces' means
 * times their steps. */
double window_error_ms(const struct window_sum *sum)
{
        double spread = sum->square - sum->busy_ms * sum->busy_ms / sum->steps;

        return spread <= 0 ? 0 : sqrt(spread / (sum->paces - 1) / sum->steps);
}
