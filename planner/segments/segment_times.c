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
#define LEFT_BITS      40

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

static double last_slope(const struct segment_point *points, size_t count)
{
        const struct segment_point *end = &points[count - 1];

        if (count == 1)
                return 0;
        return (end->ms - end[-1].ms) / (double) (end->bytes - end[-1].bytes);
}

static int check_points(const char *name, const struct segment_point *points, size_t count,
                        uint64_t total_bytes, struct err *err)
{
        const struct segment_point *end = &points[count - 1];
        struct decimal unused;

        for (size_t i = 0; i < count; i++)
                if (!decimal_from_double(points[i].ms, &unused) ||
                    (i > 0 && points[i].bytes <= points[i - 1].bytes) || points[i].bytes > SEGMENTS_MAX_BYTES)
                        return err_set(err, -EINVAL,
                                       "%s[%zu]: bytes must rise, ms be finite and not negative", name, i);
        if (count > 1 && total_bytes > end->bytes &&
            end->ms + last_slope(points, count) * (double) (total_bytes - end->bytes) < 0)
                return err_set(err, -EINVAL,
                               "%s[%zu]: falls, and extended to %" PRIu64
                               " bytes it is negative; measure a point there",
                               name, count - 1, total_bytes);
        return 0;
}

static bool is_level(const struct segment_level *level)
{
        struct decimal unused;

        return decimal_from_double(level->alpha_ms, &unused) &&
               decimal_from_double(level->beta_ms_per_byte, &unused);
}

static int check_cost(const struct segment_cost *cost, uint64_t total_bytes, struct err *err)
{
        const struct segment_tail *tail = cost->tail;
        int r = 0;

        if (cost->point_count > 0)
                r = check_points("cost", cost->points, cost->point_count, total_bytes, err);
        for (size_t i = 0; r == 0 && i < cost->level_count; i++)
                if (!is_level(&cost->levels[i]))
                        r = err_set(err, -EINVAL, "levels[%zu]: must be finite and not negative", i);
        if (r == 0 && cost->point_count == 0 && cost->level_count == 0)
                r = err_set(err, -EINVAL, "cost: give alpha_ms and beta_ms_per_byte, levels or a table");
        if (r < 0 || tail == NULL)
                return r;
        if (tail->point_count == 0 || !is_level(&tail->delay))
                return err_set(err, -EINVAL,
                               "tail: a point at least, and a delay that is finite and not negative, are "
                               "wanted");
        return check_points("tail", tail->points, tail->point_count, total_bytes, err);
}

/* No call of the table costs more. */
static double most_ms(const struct segment_point *points, size_t count, uint64_t total_bytes)
{
        double most = 0;

        for (size_t i = 0; i < count; i++)
                most = fmax(most, points[i].ms);
        return most + fabs(last_slope(points, count)) * (double) total_bytes;
}

/* No end can be later, whatever the segments: all after the last ready, one by one. */
static double latest_ms(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                        uint64_t total_bytes)
{
        double each = 0;

        if (cost->tail != NULL)
                each = most_ms(cost->tail->points, cost->tail->point_count, total_bytes) +
                       cost->tail->delay.alpha_ms + cost->tail->delay.beta_ms_per_byte * (double) total_bytes;
        if (cost->point_count > 0)
                each += most_ms(cost->points, cost->point_count, total_bytes);
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

/* The divisor that makes every slope of the table whole, too; ROUNDED_SLOPES if there is no small one.
 * @divisor: that of the tables before */
static uint64_t table_divisor(const struct segment_point *points, size_t count, uint64_t divisor,
                              bool *rounded)
{
        for (size_t i = 1; !*rounded && i < count; i++) {
                uint64_t width = points[i].bytes - points[i - 1].bytes;
                uint64_t factor = width / exact_common_divisor(width, divisor);

                *rounded = __builtin_mul_overflow(divisor, factor, &divisor) || divisor > DIVISOR_MAX;
        }
        return *rounded ? ROUNDED_SLOPES : divisor;
}

static void least_exponents(const struct segment_point *points, size_t count, int *least)
{
        for (size_t i = 0; i < count; i++)
                least_exponent(points[i].ms, least);
}

static void least_exponents_of_level(const struct segment_level *level, int *least)
{
        least_exponent(level->alpha_ms, least);
        least_exponent(level->beta_ms_per_byte, least);
}

static segment_time power_of_ten(int exponent)
{
        segment_time power = 1;

        while (exponent-- > 0)
                power *= 10;
        return power;
}

static void choose_unit(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                        size_t max_segments, struct segment_times *times)
{
        double latest = latest_ms(tensors, count, cost, times->sum[count] > 0 ? times->sum[count] : 1);
        const struct segment_tail *tail = cost->tail;
        bool rounded = false;
        int finest = 0, coarsest;

        times->divisor = table_divisor(cost->points, cost->point_count, 1, &rounded);
        for (size_t i = 0; i < count; i++)
                least_exponent(tensors[i].ready_ms, &finest);
        least_exponents(cost->points, cost->point_count, &finest);
        for (size_t i = 0; i < cost->level_count && cost->point_count == 0; i++)
                least_exponents_of_level(&cost->levels[i], &finest);
        if (tail != NULL) {
                times->divisor = table_divisor(tail->points, tail->point_count, times->divisor, &rounded);
                least_exponents(tail->points, tail->point_count, &finest);
                least_exponents_of_level(&tail->delay, &finest);
        }
        coarsest = (int) ceil(log10(fmax(latest, DECIMAL_LEAST)) + log10((double) times->divisor)) -
                   UNITS_DIGITS;
        times->exponent = finest;
        if (coarsest > finest || times->divisor > 1 ||
            tail != NULL) { /* with a divisor, or what is left of calls: all the digits there is room for */
                rounded = rounded || coarsest > finest;
                times->exponent = coarsest;
        }
        /* a rounded input moves each cost by about a decimal, a rounded slope by a unit a byte; a delay
         * counts as another call */
        times->slack =
                rounded ? (segment_time) (max_segments < count ? max_segments : count) *
                                  (4 * (segment_time) times->divisor + (segment_time) times->sum[count]) *
                                  (tail != NULL ? 2 : 1)
                        : 0;
        if (tail != NULL) /* what is left of calls is cut to LEFT_BITS, twice */
                times->slack += power_of_ten(UNITS_DIGITS) >> (LEFT_BITS - 2);
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

/* A piece before each point, one behind the last. Return: NULL without memory. */
static struct segment_time_piece *table_pieces(const struct segment_times *times,
                                               const struct segment_point *points, size_t point_count)
{
        segment_time divisor = (segment_time) times->divisor;
        struct segment_time_piece *pieces = calloc(point_count + 1, sizeof(*pieces));

        for (size_t i = 0; pieces != NULL && i <= point_count; i++) {
                size_t own = i < point_count ? i : i - 1;
                segment_time end = in_units(times, points[own].ms);

                pieces[i] = (struct segment_time_piece){ .to = i < point_count ? points[i].bytes : UINT64_MAX,
                                                         .from = points[own].bytes,
                                                         .base = end * divisor };
                if (i > 0 && own > 0)
                        pieces[i].slope = slope_of(in_units(times, points[own - 1].ms), end, times->divisor,
                                                   points[own].bytes - points[own - 1].bytes);
        }
        return pieces;
}

/* alpha + beta bytes: one piece. Return: NULL without memory. */
static struct segment_time_piece *line_piece(const struct segment_times *times,
                                             const struct segment_cost *cost)
{
        struct segment_time_piece *piece = calloc(1, sizeof(*piece));

        for (size_t i = 0; piece != NULL && i < cost->level_count; i++) {
                piece->base += in_units(times, cost->levels[i].alpha_ms) * (segment_time) times->divisor;
                piece->slope +=
                        in_units(times, cost->levels[i].beta_ms_per_byte) * (segment_time) times->divisor;
        }
        if (piece != NULL)
                piece->to = UINT64_MAX;
        return piece;
}

static int make_pieces(const struct segment_cost *cost, struct segment_times *times)
{
        const struct segment_tail *tail = cost->tail;

        times->piece_count = cost->point_count > 0 ? cost->point_count + 1 : 1;
        times->pieces = cost->point_count > 0 ? table_pieces(times, cost->points, cost->point_count)
                                              : line_piece(times, cost);
        if (times->pieces == NULL || tail == NULL)
                return times->pieces == NULL ? -ENOMEM : 0;
        times->tail_count = tail->point_count + 1;
        times->tail = table_pieces(times, tail->points, tail->point_count);
        times->delay_base = in_units(times, tail->delay.alpha_ms) * (segment_time) times->divisor;
        times->delay_slope = in_units(times, tail->delay.beta_ms_per_byte) * (segment_time) times->divisor;
        return times->tail == NULL ? -ENOMEM : 0;
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
        free(times->tail);
        *times = (struct segment_times){ 0 };
}

segment_time segment_times_left(const struct segment_times *times, uint64_t bytes, segment_time left)
{
        size_t piece = 0, tail_piece = 0;
        segment_time beside = segment_times_cost(times, bytes, &piece), last;

        if (times->tail == NULL)
                return left;
        last = segment_times_read(times->tail, times->tail_count, bytes, &tail_piece);
        if (last >= beside)
                return left;
        if (last < 0) /* a slope that was rounded */
                last = 0;
        while (beside >> LEFT_BITS != 0) { /* products of both stay within a segment_time */
                beside >>= 1;
                last >>= 1;
        }
        return left / beside * last + left % beside * last / beside;
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
