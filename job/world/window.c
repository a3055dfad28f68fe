/* The latest paces in a ring, the others in blocks. */
#include "job/world/window.h"

#include <math.h>

#include "base/median.h"

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

static struct window_sum sum_of_one(const struct window_pace *pace, double wall_ms)
{
        return (struct window_sum){ .paces = 1,
                                    .steps = pace->steps,
                                    .samples = pace->samples,
                                    .busy_ms = pace->busy_ms,
                                    .walled = wall_ms < 0 ? 0 : pace->steps,
                                    .wall_ms = wall_ms < 0 ? 0 : wall_ms,
                                    .square = pace->busy_ms * pace->busy_ms / pace->steps };
}

static void add_to_block(struct window_blocks *blocks, unsigned paces, const struct window_sum *one)
{
        blocks->next = sum_of(&blocks->next, one);
        if (blocks->next.paces < paces)
                return;
        blocks->last = blocks->next;
        blocks->next = (struct window_sum){ 0 };
}

void window_add(struct window *window, const struct window_pace *pace, double wall_ms)
{
        const struct window_sum one = sum_of_one(pace, wall_ms);

        window->recent[window->count++ % WINDOW_RECENT] = (struct window_recent){ *pace, wall_ms };
        add_to_block(&window->middle, WINDOW_MIDDLE, &one);
        add_to_block(&window->longest, WINDOW_LONG, &one);
}

/* Return: the i-th latest pace, from 0 on; NULL = so many are not kept. */
static const struct window_recent *recent(const struct window *window, size_t i)
{
        return i < window->count && i < WINDOW_RECENT
                       ? &window->recent[(window->count - 1 - i) % WINDOW_RECENT]
                       : NULL;
}

bool window_of(const struct window *window, unsigned paces, struct window_sum *ret)
{
        const struct window_blocks *blocks = paces == WINDOW_MIDDLE ? &window->middle : &window->longest;
        const struct window_recent *pace;

        *ret = (struct window_sum){ 0 };
        if (paces > WINDOW_RECENT) {
                *ret = sum_of(&blocks->last, &blocks->next);
                return blocks->last.paces > 0;
        }
        for (size_t i = 0; i < paces && (pace = recent(window, i)) != NULL; i++) {
                const struct window_sum one = sum_of_one(&pace->pace, pace->wall_ms);

                *ret = sum_of(ret, &one);
        }
        return ret->paces == paces;
}

double window_usual_ms(const struct window *window, unsigned paces, double *ret_busy_ms)
{
        double walls[WINDOW_RECENT], busy[WINDOW_RECENT];
        const struct window_recent *pace;
        size_t count = 0;

        for (size_t i = 0; i < paces && (pace = recent(window, i)) != NULL; i++) {
                if (pace->wall_ms < 0)
                        continue;
                walls[count] = pace->wall_ms / pace->pace.steps;
                busy[count++] = pace->pace.busy_ms / pace->pace.steps;
        }
        *ret_busy_ms = median(busy, count);
        return median(walls, count);
}

/* Paces of unlike length weigh by their steps: the variance of one step is about that of the paces' means
 * times their steps. */
double window_error_ms(const struct window_sum *sum)
{
        double spread = sum->square - sum->busy_ms * sum->busy_ms / sum->steps;

        return spread <= 0 ? 0 : sqrt(spread / (sum->paces - 1) / sum->steps);
}
