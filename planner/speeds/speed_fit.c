/* Fits alpha + beta b to sums that fade, and weighs each observation by how far it is off.
 *
 * Example: steps of 10 ms at b = 10 and 18 ms at b = 20 enter with 1 / t^2: 0.01 and 0.00309. The line
 * through both is 2 + 0.8 b. A step of 36 ms at b = 20 is off by 1 of itself at most and by 100 % of the
 * line: with a usual deviation of 2 % it counts 2.5 x 0.02 / 1 = a twentieth. Invariant: batch_batch x one >=
 * batch^2 (Cauchy-Schwarz); a row of a file that breaks it was not made here. */
#include "planner/speeds/speed_fit.h"

#include <math.h>

#define BETA_MIN_MS     1e-9
#define SPREAD_MIN      1e-6 /* of the batch sizes, relative variance: below it they are one size */
#define SAME_BATCH      0.1  /* relative */
#define DEVIATION_LEARN 0.3
#define STEADY          0.1 /* usual deviation of a device that nothing happened to, at most */
#define FADE_MAX        0.15
#define OUTLIER_PULL    3.0 /* one observation teaches at most this many usual deviations */
#define NEW_DEVIATION   0.1 /* until some are seen */

bool speed_fit_valid(const struct speed_fit *fit)
{
        const double sums[] = { fit->one, fit->batch, fit->batch_batch, fit->ms, fit->batch_ms, fit->weight };

        for (unsigned i = 0; i < sizeof(sums) / sizeof(*sums); i++)
                if (!isfinite(sums[i]) || sums[i] <= 0)
                        return false;
        return fit->weight <= SPEED_FIT_WEIGHT_MAX * 2 && isfinite(fit->deviation) && fit->deviation >= 0 &&
               fit->deviation < 1e3 && fit->batch_batch * fit->one >= fit->batch * fit->batch * 0.999999;
}

bool speed_fit_line(const struct speed_fit *fit, double *ret_alpha_ms, double *ret_beta_ms)
{
        double mean, variance, alpha = 0, beta;

        if (!(fit->weight > 0) || !(fit->one > 0) || !(fit->batch_batch > 0))
                return false;
        mean = fit->batch / fit->one;
        variance = fit->batch_batch / fit->one - mean * mean;
        beta = fit->batch_ms / fit->batch_batch; /* through the origin: the best with alpha = 0 */
        if (variance > SPREAD_MIN * mean * mean) {
                double slope = (fit->batch_ms / fit->one - mean * fit->ms / fit->one) / variance;
                double level = fit->ms / fit->one - slope * mean;

                if (slope <= 0) { /* the best with beta = 0 */
                        alpha = fit->ms / fit->one;
                        beta = 0;
                } else if (level > 0) {
                        alpha = level;
                        beta = slope;
                }
        }
        *ret_alpha_ms = alpha;
        *ret_beta_ms = fmax(beta, fmax(BETA_MIN_MS, 1e-6 * alpha / mean));
        return isfinite(*ret_alpha_ms) && isfinite(*ret_beta_ms);
}

/* Does it tell the slope, which nothing did before? Then there is no line to be far from. */
static bool is_news(const struct speed_fit *fit, double batch)
{
        double mean = fit->batch / fit->one;

        return fit->batch_batch / fit->one - mean * mean <= SPREAD_MIN * mean * mean &&
               fabs(batch / mean - 1) > SAME_BATCH;
}

/* Huber's weight of an observation, and what it says about the usual deviation. */
static double judge(struct speed_fit *fit, double batch, double step_ms)
{
        double alpha, beta, usual, off, learnt;

        if (!speed_fit_line(fit, &alpha, &beta) || is_news(fit, batch))
                return 1;
        usual = fmax(fit->deviation > 0 ? fit->deviation : NEW_DEVIATION, SPEED_FIT_DEVIATION_MIN);
        off = fabs((alpha + beta * batch) / step_ms - 1);
        /* a step that is far too long is off by nearly 1 at most, measured by itself: measure it by the line,
         * too */
        off = fmax(off, fabs(step_ms / (alpha + beta * batch) - 1));
        learnt = fmin(off, OUTLIER_PULL * usual);
        fit->deviation =
                fit->deviation > 0 ? fit->deviation + DEVIATION_LEARN * (learnt - fit->deviation) : learnt;
        return off <= SPEED_FIT_OUTLIER * usual ? 1 : SPEED_FIT_OUTLIER * usual / off;
}

static void fade(struct speed_fit *fit, double by)
{
        fit->one *= by;
        fit->batch *= by;
        fit->batch_batch *= by;
        fit->ms *= by;
        fit->batch_ms *= by;
        fit->weight *= by;
}

bool speed_fit_add(struct speed_fit *fit, double batch, double step_ms, double weight)
{
        double w;

        if (!(batch >= 1 && batch <= SPEED_FIT_BATCH_MAX && step_ms > 0 && step_ms <= SPEED_FIT_MS_MAX &&
              weight > 0 && weight <= SPEED_FIT_WEIGHT_MAX) ||
            step_ms < 1e-9)
                return false;
        weight *= judge(fit, batch, step_ms);
        if (fit->deviation > STEADY) /* the past does not tell the present: less of it */
                fade(fit, 1 - fmin(FADE_MAX, fit->deviation / 4));
        if (fit->weight + weight > SPEED_FIT_WEIGHT_MAX)
                fade(fit, fmax(0, SPEED_FIT_WEIGHT_MAX - weight) / fit->weight);
        w = weight / (step_ms * step_ms);
        fit->one += w;
        fit->batch += w * batch;
        fit->batch_batch += w * batch * batch;
        fit->ms += w * step_ms;
        fit->batch_ms += w * batch * step_ms;
        fit->weight += weight;
        return true;
}
