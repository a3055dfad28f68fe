/* Chooses the unit of time and converts times, lines and tables to it.
 *
 * Example: ready at 1.25 ms, a call of 0.5 ms + 8.5e-7 ms a byte. The finest decimal is 1e-8: 125000000,
 * 50000000 and 85 units. A table with points 3 bytes apart needs thirds: divisor 3, a unit of 1e-k / 3 ms. */
#include "planner/segments/segment_times.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "planner/shards/exact.h"

#define UNITS_DIGITS   36                   /* all times stay below 10^36 units, a margin of 170 */
#define DIVISOR_MAX    ((uint64_t) 1 << 50) /* of a table; beyond it slopes are rounded */
#define ROUNDED_SLOPES ((uint64_t) 1 << 50)

static int check_tensors(const struct segment_tensor *tensors, size_t count, struct err *err)
{
        uint64_t total = 0;
        double ready_ms = 0;

        if (count == 0)
                return err_set(err, -EINVAL, "tensors: give at least one");
        if (count > SEGMENTS_MAX_TENSORS)
                return err_set(err, -E2BIG, "tensors: %zu are more than %zu", count, SEGMENTS_MAX_TENSORS);
        for (size_t i = 0; i < count; i++) {
                struct decimal unused;

                if (!decimal_from_double(tensors[i].ready_ms, &unused) || tensors[i].ready_ms < ready_ms)
                        return err_set(err, -EINVAL,
                                       "tensors[%zu].ready_ms: must not fall, be negative or infinite", i);
                if (tensors[i].bytes > SEGMENTS_MAX_BYTES || total + tensors[i].bytes > SEGMENTS_MAX_BYTES)
                        return err_set(err, -E2BIG, "tensors[%zu].bytes: together more than %" PRIu64, i,
                                       SEGMENTS_MAX_BYTES);
                ready_ms = tensors[i].ready_ms;
                total += tensors[i].bytes;
        }
        return 0;
}

static double last_slope(const struct segment_cost *cost)
{
        const struct segment_point *end = &cost->points[cost->point_count - 1];

        if (cost->point_count == 1)
                return 0;
        return (end->ms - end[-1].ms) / (double) (end->bytes - end[-1].bytes);
}

static int check_cost(const struct segment_cost *cost, uint64_t total_bytes, struct err *err)
{
        struct decimal unused;

        for (size_t i = 0; i < cost->point_count; i++) {
                if (!decimal_from_double(cost->points[i].ms, &unused) ||
                    (i > 0 && cost->points[i].bytes <= cost->points[i - 1].bytes) ||
                    cost->points[i].bytes > SEGMENTS_MAX_BYTES)
                        return err_set(err, -EINVAL,
                                       "cost[%zu]: bytes must rise, ms be finite and not negative", i);
        }
        if (cost->point_count > 1) {
                const struct segment_point *end = &cost->points[cost->point_count - 1];

                if (total_bytes > end->bytes &&
                    end->ms + last_slope(cost) * (double) (total_bytes - end->bytes) < 0)
                        return err_set(err, -EINVAL,
                                       "cost[%zu]: falls, and extended to %" PRIu64
                                       " bytes it is negative; measure a point there",
                                       cost->point_count - 1, total_bytes);
        }
        for (size_t i = 0; i < cost->level_count; i++)
                if (!decimal_from_double(cost->levels[i].alpha_ms, &unused) ||
                    !decimal_from_double(cost->levels[i].beta_ms_per_byte, &unused))
                        return err_set(err, -EINVAL, "levels[%zu]: must be finite and not negative", i);
        if (cost->point_count == 0 && cost->level_count == 0)
                return err_set(err, -EINVAL, "cost: give alpha_ms and beta_ms_per_byte, levels or a table");
        return 0;
}

/* No end can be later, whatever the segments: all after the last ready, one by one. */
static double latest_ms(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                        uint64_t total_bytes)
{
        double each = 0;

        for (size_t i = 0; i < cost->point_count; i++)
                each = fmax(each, cost->points[i].ms);
        if (cost->point_count > 0)
                each += fabs(last_slope(cost)) * (double) total_bytes;
        else
                for (size_t i = 0; i < cost->level_count; i++)
                        each += cost->levels[i].alpha_ms +
                                cost->levels[i].beta_ms_per_byte * (double) total_bytes;
        return tensors[count - 1].ready_ms + each * (double) count;
}

static void least_exponent(double value, int *least)
{
        struct decimal decimal = { 0 };

        (void) decimal_from_double(value, &decimal);
        if (decimal.digits != 0 && decimal.exponent < *least)
                *least = decimal.exponent;
}

/* The divisor that makes every slope of the table whole; ROUNDED_SLOPES if there is no small one. */
static uint64_t table_divisor(const struct segment_cost *cost, bool *ret_rounded)
{
        uint64_t divisor = 1;

        *ret_rounded = false;
        for (size_t i = 1; i < cost->point_count; i++) {
                uint64_t width = cost->points[i].bytes - cost->points[i - 1].bytes;
                uint64_t factor = width / exact_common_divisor(width, divisor);

                if (__builtin_mul_overflow(divisor, factor, &divisor) || divisor > DIVISOR_MAX) {
                        *ret_rounded = true;
                        return ROUNDED_SLOPES;
                }
        }
        return divisor;
}

static void choose_unit(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                        size_t max_segments, struct segment_times *times)
{
        double latest = latest_ms(tensors, count, cost, times->sum[count]);
        bool rounded = false;
        int finest = 0, coarsest;

        times->divisor = table_divisor(cost, &rounded);
        for (size_t i = 0; i < count; i++)
                least_exponent(tensors[i].ready_ms, &finest);
        for (size_t i = 0; i < cost->point_count; i++)
                least_exponent(cost->points[i].ms, &finest);
        for (size_t i = 0; i < cost->level_count && cost->point_count == 0; i++) {
                least_exponent(cost->levels[i].alpha_ms, &finest);
                least_exponent(cost->levels[i].beta_ms_per_byte, &finest);
        }
        coarsest = (int) ceil(log10(fmax(latest, DECIMAL_LEAST)) + log10((double) times->divisor)) -
                   UNITS_DIGITS;
        times->exponent = finest;
        if (coarsest > finest || times->divisor > 1) { /* with a divisor: all the digits there is room for */
                rounded = rounded || coarsest > finest;
                times->exponent = coarsest;
        }
        /* a rounded input moves each cost by about a decimal, a rounded slope by a unit a byte */
        times->slack =
                rounded ? (segment_time) (max_segments < count ? max_segments : count) *
                                  (4 * (segment_time) times->divisor + (segment_time) times->sum[count])
                        : 0;
}

static segment_time power_of_ten(int exponent)
{
        segment_time power = 1;

        while (exponent-- > 0)
                power *= 10;
        return power;
}

/* A checked number in units, without the divisor; halves rounded up. */
static segment_time in_units(const struct segment_times *times, double value)
{
        struct decimal decimal = { 0 };
        int shift;

        (void) decimal_from_double(value, &decimal);
        if (decimal.digits == 0)
                return 0;
        shift = decimal.exponent - times->exponent;
        if (shift >= 0)
                return (segment_time) decimal.digits * power_of_ten(shift);
        if (shift < -18)
                return 0;
        return ((segment_time) decimal.digits + power_of_ten(-shift) / 2) / power_of_ten(-shift);
}

/* (end - start) x divisor / width, rounded to the nearest: exact where the divisor is a multiple of width. */
static segment_time slope_of(segment_time start, segment_time end, uint64_t divisor, uint64_t width)
{
        segment_time rise = end - start, whole = rise / (segment_time) width,
                     rest = rise % (segment_time) width;
        segment_time half = (segment_time) width / 2;

        rest *= (segment_time) divisor;
        return whole * (segment_time) divisor + (rest < 0 ? rest - half : rest + half) / (segment_time) width;
}

static int make_pieces(const struct segment_cost *cost, struct segment_times *times)
{
        segment_time divisor = (segment_time) times->divisor;
        size_t count = cost->point_count > 0 ? cost->point_count + 1 : 1;

        times->pieces = calloc(count, sizeof(*times->pieces));
        if (times->pieces == NULL)
                return -ENOMEM;
        times->piece_count = count;
        if (cost->point_count == 0) {
                times->pieces[0].to = UINT64_MAX;
                for (size_t i = 0; i < cost->level_count; i++) {
                        times->pieces[0].base += in_units(times, cost->levels[i].alpha_ms);
                        times->pieces[0].slope += in_units(times, cost->levels[i].beta_ms_per_byte);
                }
                return 0;
        }
        for (size_t i = 0; i < count; i++) {
                size_t own = i < cost->point_count ? i : i - 1;
                struct segment_time_piece *piece = &times->pieces[i];
                segment_time end = in_units(times, cost->points[own].ms);

                *piece = (struct segment_time_piece){ .to = i < cost->point_count ? cost->points[i].bytes
                                                                                  : UINT64_MAX,
                                                      .from = cost->points[own].bytes,
                                                      .base = end * divisor };
                if (i > 0 && own > 0)
                        piece->slope =
                                slope_of(in_units(times, cost->points[own - 1].ms), end, times->divisor,
                                         cost->points[own].bytes - cost->points[own - 1].bytes);
        }
        return 0;
}

int segment_times_make(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                       size_t max_segments, struct segment_times *ret, struct err *err)
{
        struct segment_times times = { 0 };
        int r = check_tensors(tensors, count, err);

        if (r < 0)
                return r;
        times.ready = calloc(count, sizeof(*times.ready));
        times.sum = calloc(count + 1, sizeof(*times.sum));
        if (times.ready == NULL || times.sum == NULL) {
                segment_times_free(&times);
                return err_set(err, -ENOMEM, "no memory for %zu tensors", count);
        }
        for (size_t i = 0; i < count; i++)
                times.sum[i + 1] = times.sum[i] + tensors[i].bytes;
        r = check_cost(cost, times.sum[count], err);
        if (r < 0) {
                segment_times_free(&times);
                return r;
        }
        choose_unit(tensors, count, cost, max_segments, &times);
        for (size_t i = 0; i < count; i++)
                times.ready[i] = in_units(&times, tensors[i].ready_ms) * (segment_time) times.divisor;
        if (make_pieces(cost, &times) < 0) {
                segment_times_free(&times);
                return err_set(err, -ENOMEM, "no memory for a table of %zu points", cost->point_count);
        }
        *ret = times;
        return 0;
}

void segment_times_free(struct segment_times *times)
{
        free(times->ready);
        free(times->sum);
        free(times->pieces);
        *times = (struct segment_times){ 0 };
}

double segment_times_ms(const struct segment_times *times, segment_time time)
{
        unsigned __int128 size = time < 0 ? -(unsigned __int128) time : (unsigned __int128) time;
        double ms;

        if (times->divisor > 1)
                size = (size + times->divisor / 2) / times->divisor;
        ms = decimal_to_double(size, times->exponent);
        return time < 0 ? -ms : ms;
}
