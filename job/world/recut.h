/* Recut: would shares cut by the speeds that are seen now shorten the step, and by how much? Pure. */
#pragma once

#include "job/world/world.h"

#define RECUT_GAIN_MIN 1.1 /* a new world costs seconds: less than a tenth is not worth them */

/* A step of b samples takes alpha_ms + beta_ms b. */
struct recut_line {
        double alpha_ms, beta_ms;
};

/* recut_stretch() - a planned line, through what is seen: @seen_ms for @samples. Without a plan (0, 0) a line
 * through the origin. */
struct recut_line recut_stretch(double alpha_ms, double beta_ms, double samples, double seen_ms);

/* recut_line() - of a worker, as it is seen now: its planned line, stretched to the steps that it needs;
 * without a plan a line through the origin. Example: planned 2 + 0.5 b at b = 16, that is 10 ms; seen 30 ms:
 * the line becomes 6 + 1.5 b. Return: false if neither a plan nor a step is known. */
bool recut_line(const struct world *world, size_t rank, struct recut_line *ret);

/* recut_learned() - the lines of all workers, as a world has shown them: over four steps or more, or by
 * shares that were told while it ran. One whose word is not believed is as fast as its share says: with that
 * its step takes as long as the slowest of the others'. Example: 30 ms for 40 samples, and one that lies has
 * 24: its line is 1.25 b.
 * @ret: [rank_count]; of servers 0. Return: false if one of them is not known; no line is half the truth. */
bool recut_learned(const struct world *world, struct recut_line *ret);

/* recut_gain() - the slowest worker's step now over the slowest one's with new shares, the least of which is
 * one sample; 0 = not known. */
double recut_gain(const struct world *world);
