/* Makes straight pieces of speeds, lines and tables, and compares points on them exactly.
 *
 * Example: 0.2 ms + 0.1 ms a sample is the piece (2 + 1 b) / 10; b = 3 gives 5 / 10. Against 6 samples at
 * 12,000 a second, 6 / 12, the doubles 0.5 and 0.5 decide nothing, the cross products 5 x 12 and 6 x 10 do:
 * equal. */
#include "planner/shards/shard_curves.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What `small` pieces keep to, so that no product of a comparison passes 2^127: (2^84 + 2^43 x 2^40) x 2^42.
 */
#define SMALL_BASE        ((unsigned __int128) 1 << 63)
#define SMALL_SLOPE       ((uint64_t) 1 << 43)
#define SMALL_DENOMINATOR ((uint64_t) 1 << 42)

/* Doubles that differ by more than this share differ exactly, too: a time is reached in fewer than 20
 * roundings of 2^-53 each. */
#define CERTAIN 1e-14

/* digits x 10^(exponent + shift) in 64 bits, or false. */
static bool scale_decimal(const struct decimal *decimal, int shift, uint64_t *ret)
{
        uint64_t value = decimal->digits;

        assert(value == 0 || decimal->exponent + shift >= 0);
        if (value != 0)
                for (int i = decimal->exponent + shift; i > 0; i--)
                        if (__builtin_mul_overflow(value, (uint64_t) 10, &value))
                                return false;
        *ret = value;
        return true;
}

static int decimals_needed(const struct decimal *a, const struct decimal *b)
{
        int least = a->exponent < b->exponent ? a->exponent : b->exponent;

        return least < 0 ? -least : 0;
}

static void keep_small(struct shard_curve_piece *piece, uint64_t base, uint64_t slope, uint64_t denominator)
{
        uint64_t common = exact_common_divisor(exact_common_divisor(base, slope), denominator);

        piece->base = base / common;
        piece->slope = slope / common;
        piece->denominator = denominator / common;
        piece->small = piece->base < SMALL_BASE && piece->slope < SMALL_SLOPE &&
                       piece->denominator < SMALL_DENOMINATOR;
}

static int make_speed(const struct shard_worker *worker, struct shard_curve_piece *piece)
{
        const struct decimal thousand = { .digits = 1000 };
        struct decimal speed;
        uint64_t slope, denominator;
        int shift;

        if (!decimal_in_range(worker->speed) || worker->speed == 0)
                return -EINVAL;
        *piece = (struct shard_curve_piece){ .to = SHARDS_MAX_BATCH,
                                             .slope_ms = 1000.0 / worker->speed,
                                             .samples_per_ms = worker->speed / 1000.0 };
        if (!decimal_quick(worker->speed, &speed))
                return 0; /* more digits than `small` holds */
        shift = speed.exponent < 0 ? -speed.exponent : 0;
        if (scale_decimal(&thousand, shift, &slope) && scale_decimal(&speed, shift, &denominator))
                keep_small(piece, 0, slope, denominator);
        return 0;
}

static int make_affine(const struct shard_worker *worker, struct shard_curve_piece *piece)
{
        const struct decimal one = { .digits = 1 };
        struct decimal alpha, beta;
        uint64_t base, slope, denominator;
        int shift;

        if (!decimal_in_range(worker->alpha_ms) || !decimal_in_range(worker->beta_ms))
                return -EINVAL;
        *piece = (struct shard_curve_piece){ .to = SHARDS_MAX_BATCH,
                                             .base_ms = worker->alpha_ms,
                                             .slope_ms = worker->beta_ms,
                                             .samples_per_ms = 1.0 / worker->beta_ms };
        if (!decimal_quick(worker->alpha_ms, &alpha) || !decimal_quick(worker->beta_ms, &beta))
                return 0;
        shift = decimals_needed(&alpha, &beta);
        if (scale_decimal(&alpha, shift, &base) && scale_decimal(&beta, shift, &slope) &&
            scale_decimal(&one, shift, &denominator))
                keep_small(piece, base, slope, denominator);
        return 0;
}

static int make_table_piece(const struct shard_point *before, const struct shard_point *point,
                            struct shard_curve_piece *piece)
{
        struct decimal start, end, one = { .digits = 1 };
        uint64_t width = point->samples - before->samples;
        uint64_t base, top, denominator;
        int shift;

        if (!decimal_in_range(before->ms) || !decimal_in_range(point->ms))
                return -EINVAL;
        *piece = (struct shard_curve_piece){ .from = before->samples,
                                             .to = point->samples,
                                             .base_ms = before->ms,
                                             .slope_ms = (point->ms - before->ms) / (double) width };
        piece->samples_per_ms = 1.0 / piece->slope_ms;
        if (!decimal_quick(before->ms, &start) || !decimal_quick(point->ms, &end))
                return 0;
        shift = decimals_needed(&start, &end);
        if (scale_decimal(&start, shift, &base) && scale_decimal(&end, shift, &top) &&
            scale_decimal(&one, shift, &denominator) &&
            !__builtin_mul_overflow(denominator, width, &denominator)) {
                uint64_t slope = top - base;

                if (!__builtin_mul_overflow(base, width, &base))
                        keep_small(piece, base, slope, denominator);
        }
        return 0;
}

static int make_table(const struct shard_worker *worker, struct shard_curve_piece *pieces)
{
        struct shard_point before = { 0 };

        if (worker->point_count == 0)
                return -EINVAL;
        for (size_t i = 0; i < worker->point_count; i++) {
                const struct shard_point *point = &worker->points[i];
                int r;

                if (point->samples <= before.samples || point->samples > SHARDS_MAX_BATCH ||
                    !(point->ms >= before.ms))
                        return -EINVAL;
                r = make_table_piece(&before, point, &pieces[i]);
                if (r < 0)
                        return r;
                before = *point;
        }
        return 0;
}

static int make_pieces(const struct shard_worker *worker, struct shard_curve_piece *pieces)
{
        if (worker->model == SHARD_SPEED)
                return make_speed(worker, pieces);
        if (worker->model == SHARD_AFFINE)
                return make_affine(worker, pieces);
        return make_table(worker, pieces);
}

static void set_limits(struct shard_curve *curve, uint64_t batch)
{
        const struct shard_worker *worker = curve->worker;
        uint64_t most = worker->has_max && worker->max < batch ? worker->max : batch;
        uint64_t end = curve->pieces[curve->piece_count - 1].to;

        most = end < most ? end : most;
        curve->multiple = worker->multiple > 1 ? worker->multiple : 1;
        curve->least = worker->min / curve->multiple + (worker->min % curve->multiple != 0);
        if (curve->least == 0)
                curve->least = 1;
        curve->limit = most / curve->multiple;
        if (curve->limit < curve->least)
                curve->limit = 0;
        curve->real_least = (double) worker->min;
        curve->real_limit = worker->min <= most ? (double) most : 0;
}

static size_t pieces_of(const struct shard_worker *worker)
{
        return worker->model == SHARD_TABLE && worker->point_count > 0 ? worker->point_count : 1;
}

int shard_curves_make(const struct shard_worker *workers, size_t count, uint64_t batch,
                      struct shard_curves *ret, struct err *err)
{
        struct shard_curves curves = { .count = count };
        size_t piece_count = 0, at = 0;

        for (size_t i = 0; i < count; i++)
                piece_count += pieces_of(&workers[i]);
        curves.curve = calloc(count, sizeof(*curves.curve));
        curves.pieces = calloc(piece_count, sizeof(*curves.pieces));
        if (curves.curve == NULL || curves.pieces == NULL) {
                shard_curves_free(&curves);
                return err_set(err, -ENOMEM, "no memory for %zu workers", count);
        }
        for (size_t i = 0; i < count; i++) {
                struct shard_curve *curve = &curves.curve[i];

                curve->worker = &workers[i];
                curve->pieces = &curves.pieces[at];
                curve->piece_count = pieces_of(&workers[i]);
                if (make_pieces(&workers[i], &curves.pieces[at]) < 0) {
                        shard_curves_free(&curves);
                        return err_set(err, -EINVAL,
                                       "workers[%zu]: its times must be finite, not negative and not falling",
                                       i);
                }
                set_limits(curve, batch);
                at += curve->piece_count;
        }
        *ret = curves;
        return 0;
}

void shard_curves_free(struct shard_curves *curves)
{
        free(curves->curve);
        free(curves->pieces);
        *curves = (struct shard_curves){ 0 };
}

static const struct shard_curve_piece *piece_at(const struct shard_curve *curve, uint64_t samples)
{
        size_t low = 0, high = curve->piece_count - 1;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (samples <= curve->pieces[middle].to)
                        high = middle;
                else
                        low = middle + 1;
        }
        return &curve->pieces[low];
}

struct shard_curve_moment shard_curve_at(const struct shard_curves *curves, size_t worker, uint64_t share)
{
        const struct shard_curve *curve = &curves->curve[worker];
        uint64_t samples = share * curve->multiple;
        const struct shard_curve_piece *piece = piece_at(curve, samples);
        struct shard_curve_moment moment = { .worker = worker, .share = share, .piece = piece };

        if (share == 0) /* alpha is not paid by an idle worker */
                return moment;
        moment.ms = piece->base_ms + piece->slope_ms * (double) (samples - piece->from);
        if (piece->small)
                moment.numerator = piece->base + (unsigned __int128) piece->slope * (samples - piece->from);
        return moment;
}

double shard_curve_ms(const struct shard_curve_moment *moment)
{
        unsigned __int128 shifted = moment->numerator, quotient;
        int shift = 0;

        if (!moment->piece->small || moment->numerator == 0)
                return moment->ms;
        while (shifted >> 126 == 0) {
                shifted <<= 1;
                shift++;
        }
        /* 84 bits or more: that something is left of them is all that the rounding to 53 needs to know */
        quotient = shifted / moment->piece->denominator;
        quotient |= shifted % moment->piece->denominator != 0;
        return ldexp((double) quotient, -shift);
}

/* A decimal of a worker that was checked when its curve was made. */
static struct exact_product checked(double value, uint64_t times)
{
        struct decimal decimal = { 0 };

        (void) decimal_from_double(value, &decimal);
        return exact_product(decimal, times);
}

/* start (to - b) + end (b - from) over (to - from): */
static struct exact_time exact_in_table(const struct shard_curve *curve,
                                        const struct shard_curve_piece *piece, uint64_t samples)
{
        size_t index = (size_t) (piece - curve->pieces);
        const struct shard_point *points = curve->worker->points;
        const struct decimal one = { .digits = 1 };

        return (struct exact_time){ .term = { checked(index > 0 ? points[index - 1].ms : 0,
                                                      piece->to - samples),
                                              checked(points[index].ms, samples - piece->from) },
                                    .count = 2,
                                    .over = exact_product(one, piece->to - piece->from) };
}

struct exact_time shard_curve_exact(const struct shard_curves *curves,
                                    const struct shard_curve_moment *moment)
{
        const struct shard_curve *curve = &curves->curve[moment->worker];
        const struct shard_worker *worker = curve->worker;
        const struct decimal second_ms = { .digits = 1, .exponent = 3 };
        uint64_t samples = moment->share * curve->multiple;

        if (samples == 0)
                return (struct exact_time){ 0 };
        if (worker->model == SHARD_TABLE)
                return exact_in_table(curve, moment->piece, samples);
        if (worker->model == SHARD_SPEED)
                return (struct exact_time){ .term = { exact_product(second_ms, samples) },
                                            .count = 1,
                                            .over = checked(worker->speed, 1) };
        return (struct exact_time){
                .term = { checked(worker->alpha_ms, 1), checked(worker->beta_ms, samples) }, .count = 2
        };
}

/* Workers of one speed: their shares say who is later. */
static bool same_line(const struct shard_worker *a, const struct shard_worker *b)
{
        if (a == b)
                return a->model != SHARD_TABLE;
        if (a->model != b->model || a->model == SHARD_TABLE)
                return false;
        return a->model == SHARD_SPEED
                       ? a->speed == b->speed
                       : a->alpha_ms == b->alpha_ms && a->beta_ms == b->beta_ms && a->beta_ms > 0;
}

int shard_curve_compare(const struct shard_curves *curves, const struct shard_curve_moment *a,
                        const struct shard_curve_moment *b)
{
        const struct shard_curve *curve_a = &curves->curve[a->worker], *curve_b = &curves->curve[b->worker];
        struct exact_time exact_a, exact_b;

        if (a->ms < b->ms * (1 - CERTAIN))
                return -1;
        if (b->ms < a->ms * (1 - CERTAIN))
                return 1;
        if (same_line(curve_a->worker, curve_b->worker) && a->share != 0 && b->share != 0 &&
            a->piece->slope_ms > 0) {
                uint64_t samples_a = a->share * curve_a->multiple, samples_b = b->share * curve_b->multiple;

                return (samples_a > samples_b) - (samples_a < samples_b);
        }
        if (a->piece->small && b->piece->small) {
                unsigned __int128 left = a->numerator * b->piece->denominator;
                unsigned __int128 right = b->numerator * a->piece->denominator;

                return (left > right) - (left < right);
        }
        exact_a = shard_curve_exact(curves, a);
        exact_b = shard_curve_exact(curves, b);
        return exact_compare(&exact_a, &exact_b);
}

static bool within(const struct shard_curves *curves, size_t worker, uint64_t share,
                   const struct shard_curve_moment *moment, bool strictly)
{
        struct shard_curve_moment own = shard_curve_at(curves, worker, share);
        int order = shard_curve_compare(curves, &own, moment);

        return strictly ? order < 0 : order <= 0;
}

double shard_curve_samples(const struct shard_curve *curve, double ms)
{
        const struct shard_curve_piece *piece = curve->pieces;
        double samples;

        if (curve->piece_count > 1) {
                size_t low = 0, high = curve->piece_count - 1;

                while (low < high) { /* the last piece that begins by then */
                        size_t middle = (low + high + 1) / 2;

                        if (curve->pieces[middle].base_ms <= ms)
                                low = middle;
                        else
                                high = middle - 1;
                }
                piece = &curve->pieces[low];
        }
        if (ms < piece->base_ms)
                return 0;
        samples = piece->slope_ms > 0 ? (double) piece->from + (ms - piece->base_ms) * piece->samples_per_ms
                                      : (double) piece->to;
        if (samples > (double) piece->to)
                samples = (double) piece->to;
        return samples < curve->real_limit ? samples : curve->real_limit;
}

double shard_curve_last_ms(const struct shard_curve *curve)
{
        const struct shard_curve_piece *piece;

        if (curve->real_limit <= 0)
                return 0;
        piece = piece_at(curve, (uint64_t) curve->real_limit);
        return piece->base_ms + piece->slope_ms * (curve->real_limit - (double) piece->from);
}

/* *low is within, and so is what step_up() leaves there; *high is at most one step away that doubled. */
static void step_up(const struct shard_curves *curves, size_t worker, const struct shard_curve_moment *moment,
                    bool strictly, uint64_t *low, uint64_t *high)
{
        for (uint64_t step = 1; *low < *high; step *= 2) {
                uint64_t probe = *high - *low > step ? *low + step : *high;

                if (!within(curves, worker, probe, moment, strictly)) {
                        *high = probe - 1;
                        return;
                }
                *low = probe;
        }
}

/* *high + 1 is not within; ends with a *low that is, or with *low as it was. */
static void step_down(const struct shard_curves *curves, size_t worker,
                      const struct shard_curve_moment *moment, bool strictly, uint64_t *low, uint64_t *high)
{
        for (uint64_t step = 1; *low < *high; step *= 2) {
                uint64_t probe = *high - *low > step ? *high - step : *low;

                if (probe == *low || within(curves, worker, probe, moment, strictly)) {
                        *low = probe;
                        return;
                }
                *high = probe - 1;
        }
}

/* Begins at the rounded guess, doubles the step away from it, then halves what is left. */
uint64_t shard_curve_reach(const struct shard_curves *curves, size_t worker,
                           const struct shard_curve_moment *moment, bool strictly, uint64_t low,
                           uint64_t high)
{
        const struct shard_curve *curve = &curves->curve[worker];
        double guess = shard_curve_samples(curve, moment->ms) / (double) curve->multiple;
        uint64_t at = guess <= (double) low ? low : guess >= (double) high ? high : (uint64_t) guess;

        if (low >= high)
                return low;
        if (at == low || within(curves, worker, at, moment, strictly)) {
                low = at;
                step_up(curves, worker, moment, strictly, &low, &high);
        } else {
                high = at - 1;
                step_down(curves, worker, moment, strictly, &low, &high);
        }
        while (low < high) {
                uint64_t middle = low + (high - low + 1) / 2;

                if (within(curves, worker, middle, moment, strictly))
                        low = middle;
                else
                        high = middle - 1;
        }
        return low;
}
