/* Window: what the latest steps of a rank took, in sums over blocks of paces: of a step each, or of a few
 * where steps are short.
 *
 * Three scales are kept at once: the short one sees within a few steps that a chip has become slower, the
 * long ones tell a small difference from noise. A scale's window is its last whole block and the one that
 * grows: once whole it is one to two blocks long. Pure; 300 bytes a rank, a few additions a pace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define WINDOW_SCALES 3

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
        struct window_sum last[WINDOW_SCALES], next[WINDOW_SCALES];
};

/* window_add() - steps > 0. @wall_ms: that they took in all; negative = it is not known */
void window_add(struct window *window, const struct window_pace *pace, double wall_ms);

/* window_of() - Return: false while there is no whole block. */
bool window_of(const struct window *window, size_t scale, struct window_sum *ret);

/* window_error_ms() - the standard error of busy_ms / steps, by how unlike the paces were. Paces >= 2. */
double window_error_ms(const struct window_sum *sum);
