/* Blocks of 4, 16 and 64 looks. */
#include "job/world/window.h"

#include <math.h>

static const unsigned block_looks[WINDOW_SCALES] = { 4, 16, 64 };

static struct window_sum sum_of(const struct window_sum *a, const struct window_sum *b)
{
        return (struct window_sum){ .looks = a->looks + b->looks,
                                    .steps = a->steps + b->steps,
                                    .samples = a->samples + b->samples,
                                    .busy_ms = a->busy_ms + b->busy_ms,
                                    .wall_ms = a->wall_ms + b->wall_ms,
                                    .square = a->square + b->square };
}

void window_add(struct window *window, double steps, double samples, double busy_ms, double wall_ms)
{
        const struct window_sum look = { 1, steps, samples, busy_ms, wall_ms, busy_ms * busy_ms / steps };

        for (size_t i = 0; i < WINDOW_SCALES; i++) {
                window->next[i] = sum_of(&window->next[i], &look);
                if (window->next[i].looks < block_looks[i])
                        continue;
                window->last[i] = window->next[i];
                window->next[i] = (struct window_sum){ 0 };
        }
}

bool window_of(const struct window *window, size_t scale, struct window_sum *ret)
{
        *ret = sum_of(&window->last[scale], &window->next[scale]);
        return window->last[scale].looks > 0;
}

/* Looks of unlike length weigh by their steps: the variance of one step is about that of the looks' means
 * times their steps. */
double window_error_ms(const struct window_sum *sum)
{
        double spread = sum->square - sum->busy_ms * sum->busy_ms / sum->steps;

        return spread <= 0 ? 0 : sqrt(spread / (sum->looks - 1) / sum->steps);
}
