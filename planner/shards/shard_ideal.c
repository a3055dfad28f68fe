/* The step of real-valued shares, by bisection over doubles: what the exact search starts from, and what
 * people are shown as the limit.
 *
 * Example: 3 and 1 samples a second, a batch of 10: at T both have done 4 T, so T = 2.5 s, shares 7.5
 * and 2.5. Invariant: at `low` the workers have not done the batch, at `high` they have. With minima that
 * compete (two workers that take at least 8 of a batch of 10) what can be done by T no longer is a sum over
 * the workers: a knapsack then says which of them to leave out. */
#include "planner/shards/shard_ideal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define STEPS_MAX       6000 /* every third one halves: a double has no more to give long before */
#define NUDGE           1e-14
#define IDEAL_PRECISION 0
#define WHOLE_PRECISION 1e-6
#define IDEAL_MAX_STEPS ((uint64_t) 1 << 26) /* workers x batch of one knapsack */
#define REFINEMENTS     24 /* of the subset that competing minima leave; two or three are usual */
#define HARDLY_LESS     (1 - 1e-13)

/* Samples by `ms` of the workers that `used` names (NULL = all), none from one that is below its least. */
static double samples_by(const struct shard_curves *curves, const bool *used, double ms)
{
        double total = 0;

        for (size_t i = 0; i < curves->count; i++) {
                double samples;

                if (used != NULL && !used[i])
                        continue;
                samples = shard_curve_samples(&curves->curve[i], ms);
                if (samples >= curves->curve[i].real_least)
                        total += samples;
        }
        return total;
}

static double whole_by(const struct shard_curves *curves, const bool *used, double ms)
{
        double total = 0;

        (void) used;
        for (size_t i = 0; i < curves->count; i++) {
                const struct shard_curve *curve = &curves->curve[i];
                double multiple = (double) curve->multiple;

                total += trunc(shard_curve_samples(curve, ms) / multiple) * multiple;
        }
        return total;
}

typedef double (*samples_function)(const struct shard_curves *curves, const bool *used, double ms);

/* Where a straight line through the two ends of the bracket meets the batch, a little beyond on the side that
 * the last step did not move; every third step the middle. */
static double next_guess(double low, double low_samples, double high, double high_samples, double batch,
                         int step)
{
        double guess;

        if (step % 3 == 2)
                return low + (high - low) / 2;
        guess = low + (high - low) * ((batch - low_samples) / (high_samples - low_samples));
        return step % 3 == 0 ? guess * (1 + NUDGE) : guess * (1 - NUDGE);
}

/* The least double at which the function reaches the batch, but for `precision` of it; negative if it never
 * does. */
static double least_ms(const struct shard_curves *curves, samples_function samples, const bool *used,
                       double batch, double precision)
{
        double low = 0, high = 0, low_samples, high_samples;

        for (size_t i = 0; i < curves->count; i++)
                high = fmax(high, shard_curve_last_ms(&curves->curve[i]));
        high = high * (1 + 1e-12);
        high_samples = samples(curves, used, high);
        if (high_samples < batch)
                return -1;
        low_samples = samples(curves, used, 0);
        if (low_samples >= batch)
                return 0;
        for (int i = 0; i < STEPS_MAX && high - low > high * precision; i++) {
                double guess = next_guess(low, low_samples, high, high_samples, batch, i), reached;

                if (!(guess > low && guess < high))
                        guess = low + (high - low) / 2;
                if (guess <= low || guess >= high)
                        break;
                reached = samples(curves, used, guess);
                if (reached >= batch) {
                        high = guess;
                        high_samples = reached;
                } else {
                        low = guess;
                        low_samples = reached;
                }
        }
        return high;
}

static uint64_t sum_of_minima(const struct shard_curves *curves, double ms)
{
        uint64_t total = 0;

        for (size_t i = 0; i < curves->count; i++)
                if (shard_curve_samples(&curves->curve[i], ms) >= curves->curve[i].real_least)
                        total += curves->curve[i].worker->min;
        return total;
}

/* Knapsack: the subset of those able by `ms` whose minima fit into the batch and that takes the most samples.
 * @best: batch + 1 doubles; @taken: count x (batch + 1) bits */
static double most_by(const struct shard_curves *curves, uint64_t batch, double ms, double *best,
                      uint8_t *taken, bool *ret_used)
{
        uint64_t row_bytes = batch / 8 + 1, room = batch;

        memset(best, 0, (batch + 1) * sizeof(*best));
        memset(taken, 0, curves->count * row_bytes);
        for (size_t i = 0; i < curves->count; i++) {
                uint64_t min = curves->curve[i].worker->min;
                double samples = shard_curve_samples(&curves->curve[i], ms);

                if (samples <= 0 || samples < curves->curve[i].real_least || min > batch)
                        continue;
                for (uint64_t at = batch + 1; at-- > min;)
                        if (best[at - min] + samples > best[at]) {
                                best[at] = best[at - min] + samples;
                                taken[i * row_bytes + at / 8] |= (uint8_t) (1u << (at % 8));
                        }
        }
        for (size_t i = curves->count; i-- > 0;) {
                ret_used[i] = (taken[i * row_bytes + room / 8] >> (room % 8)) & 1;
                if (ret_used[i])
                        room -= curves->curve[i].worker->min;
        }
        return best[batch];
}

static double bound_subset(const struct shard_curves *curves, uint64_t batch, double bound)
{
        CLEANUP(free_p) double *best = calloc(batch + 1, sizeof(*best));
        CLEANUP(free_p) uint8_t *taken = calloc(curves->count, batch / 8 + 1);
        CLEANUP(free_p) bool *used = calloc(curves->count, sizeof(*used));
        double answer = 0, low = bound;

        if (best == NULL || taken == NULL || used == NULL)
                return bound;
        for (size_t i = 0; i < curves->count; i++)
                answer = fmax(answer, shard_curve_last_ms(&curves->curve[i]));
        answer *= 1 + 1e-12;
        if (most_by(curves, batch, answer, best, taken, used) < (double) batch)
                return -1;
        if (most_by(curves, batch, bound, best, taken, used) >= (double) batch)
                return bound;
        /* every better answer is that of a subset, at its own least time: from one to the next, or halve */
        for (int i = 0; i < REFINEMENTS; i++) {
                double probe = i < REFINEMENTS / 2 && answer > low * 1.0001 ? (low + answer) / 2
                                                                            : answer * HARDLY_LESS;

                if (most_by(curves, batch, probe, best, taken, used) >= (double) batch)
                        answer = least_ms(curves, samples_by, used, (double) batch, IDEAL_PRECISION);
                else if (probe >= answer * HARDLY_LESS)
                        break;
                else
                        low = probe;
        }
        return answer;
}

double shard_ideal_ms(const struct shard_curves *curves, uint64_t batch)
{
        double bound = least_ms(curves, samples_by, NULL, (double) batch, IDEAL_PRECISION);

        if (bound < 0 || sum_of_minima(curves, bound) <= batch ||
            curves->count > IDEAL_MAX_STEPS / (batch + 1))
                return bound;
        return bound_subset(curves, batch, bound);
}

double shard_ideal_whole_ms(const struct shard_curves *curves, uint64_t batch)
{
        return least_ms(curves, whole_by, NULL, (double) batch, WHOLE_PRECISION);
}
