/* Window: what the latest steps of a rank took, in paces: of a step each, or of a few where steps are short.
 *
 * The last fifteen paces are kept one by one, so that a look may begin with the very step in which a chip
 * changed; longer looks, which tell a small difference from noise, are sums over blocks: the last whole one
 * and the one that grows, so that once whole they are one to two blocks long. Example: throttled in the
 * middle of a block of four, a look of blocks alone would mix old and new steps for four to eight steps; the
 * latest five or six say the same after five or six. Pure; 712 bytes a rank, a few additions a pace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define WINDOW_LEAST  4  /* paces, of the shortest look */
#define WINDOW_RECENT 15 /* that are kept one by one */
#define WINDOW_MIDDLE 16 /* paces of a block */
#define WINDOW_LONG   64

struct window_pace { /* some steps that follow each other */
        double steps, samples, busy_ms;
};

struct window_sum {
        unsigned paces;
        double steps, samples;
        double busy_ms;
        double walled, wall_ms; /* of how many it is known how long they took in all; and how long */
        double square;          /* of busy_ms over steps, summed: for the error */
};

struct window {
        size_t count; /* of paces in all */
        struct window_recent {
                struct window_pace pace;
                double wall_ms;  /* negative = it is not known */
        } recent[WINDOW_RECENT]; /* a ring */
        struct window_blocks {
                struct window_sum last, next;
        } middle, longest;
};

/* window_add() - steps > 0. @wall_ms: that they took in all; negative = it is not known */
void window_add(struct window *window, const struct window_pace *pace, double wall_ms);

/* window_of() - @paces: so many of the latest, up to WINDOW_RECENT, or WINDOW_MIDDLE or WINDOW_LONG.
 * Return: false while there are fewer; *ret has those that are there. */
bool window_of(const struct window *window, unsigned paces, struct window_sum *ret);

/* window_usual_ms() - what a step took, in all and of computing, as medians of so many of the latest paces
 * that are kept one by one: not how long the one was in which an evaluation was waited for. 0 = it is not
 * known. */
double window_usual_ms(const struct window *window, unsigned paces, double *ret_busy_ms);

/* window_error_ms() - the standard error of busy_ms / steps, by how unlike the paces were. Paces >= 2. */
double window_error_ms(const struct window_sum *sum);
