/* Speed fit: how long a step of b samples takes on a device, alpha + beta b milliseconds, learnt from what is
 * seen and refined while jobs run. Pure; a fit is a handful of sums that fits into a table.
 *
 * Weighted least squares of the relative error (a step of 1 ms that is off by 0.1 ms counts like one of 100
 * ms that is off by 10), so each observation (b, t) enters with weight w / t^2. It is robust in two ways: an
 * observation that is more than 2.5 usual deviations from the line counts less, in proportion (Huber's
 * weights; the usual deviation is itself learnt); and old observations fade, so that all together never weigh
 * more than SPEED_FIT_WEIGHT_MAX: a device that became slower is followed within some runs, a bad second is
 * not. A single batch size cannot tell alpha from beta: what other sizes said before then decides the slope,
 * and with nothing before it is a line through the origin. alpha >= 0 and beta > 0 hold always: the least
 * squares under these bounds. */
#pragma once

#include <stdbool.h>

#define SPEED_FIT_WEIGHT_MAX    64.0
#define SPEED_FIT_OUTLIER       2.5  /* usual deviations */
#define SPEED_FIT_DEVIATION_MIN 0.02 /* a step is never steadier than this, relative */
#define SPEED_FIT_MS_MAX        1e9
#define SPEED_FIT_BATCH_MAX     1e9

struct speed_fit {
        /* sums over the observations of w / t^2 times this */
        double one, batch, batch_batch, ms, batch_ms;
        double weight;    /* sum of w: how much is known; 0 = nothing */
        double deviation; /* usual relative distance from the line; 0 = not known */
};

/* speed_fit_valid() - may these sums be believed? They come from a file. */
bool speed_fit_valid(const struct speed_fit *fit);

/* speed_fit_add() - one observation.
 * @batch: samples of the step, 1 .. SPEED_FIT_BATCH_MAX; @step_ms: > 0, at most SPEED_FIT_MS_MAX
 * @weight: > 0; 1 = one steady look at a step; many steps at one batch size are one look of 4 at most
 * Return: false, and nothing changed, if these are out of range. */
bool speed_fit_add(struct speed_fit *fit, double batch, double step_ms, double weight);

/* speed_fit_line() - the line. Return: false if nothing is known. */
bool speed_fit_line(const struct speed_fit *fit, double *ret_alpha_ms, double *ret_beta_ms);
