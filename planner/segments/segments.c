/* The dynamic programme over (tensors, segments), in two forms: sliding minima for a cost alpha + beta bytes,
 * every begin for a measured table or a last segment of its own; and the rules of thumb beside it.
 *
 * Example: three gradients of 10 bytes, ready at 1, 2 and 3 ms; a call costs 0.5 ms + 0.1 ms a byte. All in
 * one starts at 3 and ends at 6.5. First alone, the others together: 1 + 1.5 = 2.5, then max(3, 2.5) + 2.5
 * = 5.5. One by one: 2.5, 4, 5.5. The least end is 5.5, and two segments are the fewest for it. Invariant:
 * end[k][j] is the least end of the first j tensors in at most k calls; an earlier end of the front never
 * makes the rest later, so nothing else of the front has to be known. Buckets of equal size are no
 * substitute: how early a segment may start depends on its last tensor's time, not on its bytes. */
#include "planner/segments/segments.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/segments/segment_times.h"

#define MIB             ((uint64_t) 1 << 20)
#define MAX_CELLS       ((uint64_t) 1 << 27) /* tensors x segments that are remembered */
#define MAX_TABLE_STEPS ((uint64_t) 1 << 33) /* tensors^2 x segments of a measured table */
#define UNREACHED       SEGMENT_TIME_MAX

/* end[k][j]: the earliest end of the first j tensors in at most k segments; from[k][j]: where its last
 * segment begins. Rows are made until one more segment helps nobody. */
struct ends {
        size_t width; /* tensors + 1 */
        size_t rows;
        segment_time *before, *after; /* two rows */
        uint32_t *from;               /* [rows * width] */
        segment_time *last;           /* [rows]: of all tensors */
};

const char *segment_baseline_name(enum segment_baseline baseline)
{
        static const char *const names[SEGMENTS_BASELINE_COUNT] = {
                [SEGMENTS_ONE] = "one",
                [SEGMENTS_PER_TENSOR] = "per_tensor",
                [SEGMENTS_DDP_25MB] = "ddp_25mb",
                [SEGMENTS_HOROVOD_64MB] = "horovod_64mb",
                [SEGMENTS_ASCEND_9654] = "ascend_9654",
        };

        return names[baseline];
}

static void ends_free(struct ends *ends)
{
        free(ends->before);
        free(ends->after);
        free(ends->from);
        free(ends->last);
}

static int add_row(struct ends *ends, struct err *err)
{
        uint32_t *from;
        segment_time *last;

        if ((ends->rows + 1) * (uint64_t) ends->width > MAX_CELLS)
                return err_set(err, -E2BIG,
                               "max_segments: %zu tensors in more than %zu segments are too many to plan",
                               ends->width - 1, ends->rows);
        from = realloc(ends->from, (ends->rows + 1) * ends->width * sizeof(*from));
        if (from != NULL)
                ends->from = from;
        last = realloc(ends->last, (ends->rows + 1) * sizeof(*last));
        if (last != NULL)
                ends->last = last;
        if (from == NULL || last == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu tensors", ends->width - 1);
        memset(from + ends->rows * ends->width, 0, ends->width * sizeof(*from));
        last[ends->rows++] = 0;
        return 0;
}

/* One row where cost is alpha + beta bytes. `before` does not fall: of those that have ended by ready the
 * last is the best, of those that have not the least `before - beta bytes`, kept in a sliding window. */
static void fill_line_row(const struct segment_times *times, struct ends *ends, uint32_t *from,
                          uint32_t *window)
{
        const segment_time *before = ends->before;
        segment_time *after = ends->after;
        segment_time alpha = times->pieces[0].base, beta = times->pieces[0].slope;
        size_t ended = 0, head = 0, tail = 0;

        after[0] = 0;
        for (size_t j = 1; j < ends->width; j++) {
                segment_time ready = times->ready[j - 1], end;
                segment_time entering = before[j - 1] - beta * (segment_time) times->sum[j - 1];

                if (before[j - 1] != UNREACHED) {
                        while (tail > head &&
                               before[window[tail - 1]] -
                                               beta * (segment_time) times->sum[window[tail - 1]] >=
                                       entering)
                                tail--;
                        window[tail++] = (uint32_t) (j - 1);
                }
                while (ended + 1 < j && before[ended + 1] <= ready)
                        ended++;
                while (head < tail && window[head] <= ended)
                        head++;
                end = ready + alpha + beta * (segment_time) (times->sum[j] - times->sum[ended]);
                from[j] = (uint32_t) ended;
                if (head < tail) {
                        size_t i = window[head];
                        segment_time other =
                                before[i] + alpha + beta * (segment_time) (times->sum[j] - times->sum[i]);

                        if (other < end) {
                                end = other;
                                from[j] = (uint32_t) i;
                        }
                }
                after[j] = end;
        }
}

/* Return: does one more segment help anybody? */
static bool next_row(struct ends *ends)
{
        bool better = memcmp(ends->before, ends->after, ends->width * sizeof(*ends->after)) != 0;
        segment_time *swap = ends->before;

        ends->last[ends->rows - 1] = ends->after[ends->width - 1];
        ends->before = ends->after;
        ends->after = swap;
        return better;
}

static int fill_line(const struct segment_times *times, size_t max_segments, struct ends *ends,
                     struct err *err)
{
        CLEANUP(free_p) uint32_t *window = calloc(ends->width, sizeof(*window));

        if (window == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu tensors", ends->width - 1);
        assert(ends->before != NULL && ends->after != NULL);
        for (size_t k = 0; k < max_segments; k++) {
                int r = add_row(ends, err);

                if (r < 0)
                        return r;
                assert(ends->rows == k + 1 && ends->from != NULL && ends->last != NULL);
                fill_line_row(times, ends, ends->from + k * ends->width, window);
                if (!next_row(ends))
                        break;
        }
        return 0;
}

/* All rows at once for any cost: the cost of i .. j - 1 is worked out once for all numbers of segments.
 * @end: [tensors + 1][rows + 1] */
static void fill_table_column(const struct segment_times *times, struct ends *ends, size_t j,
                              segment_time *end)
{
        size_t rows = ends->rows;
        segment_time ready = times->ready[j - 1];
        segment_time *own = end + j * (rows + 1);
        size_t piece = 0;

        for (size_t k = 0; k <= rows; k++)
                own[k] = UNREACHED;
        for (size_t i = j; i-- > 0;) {
                segment_time cost = segment_times_cost(times, times->sum[j] - times->sum[i], &piece);
                const segment_time *other = end + i * (rows + 1);

                /* more segments never end later: from the most down, until even `ready` would be too late */
                for (size_t k = rows; k > 0 && other[k - 1] != UNREACHED; k--) {
                        segment_time start = other[k - 1] > ready ? other[k - 1] : ready;

                        if (start + cost < own[k]) {
                                own[k] = start + cost;
                                ends->from[(k - 1) * ends->width + j] = (uint32_t) i;
                        }
                }
        }
}

/* The last call costs other than those before it, which put it off: of the plans with k calls before it, the
 * one that ends first. Invariant: last[k] is the least end of all tensors in at most k + 1 calls.
 * @end: as above */
static void fill_tail(const struct segment_times *times, struct ends *ends, const segment_time *end)
{
        size_t count = ends->width - 1;

        for (size_t k = 0; k < ends->rows; k++) {
                segment_time best = UNREACHED;

                for (size_t i = k > 0 ? 1 : 0; i < (k > 0 ? count : 1); i++) {
                        segment_time before = end[i * (ends->rows + 1) + k], own;

                        if (before == UNREACHED)
                                continue;
                        own = segment_times_last(times, count, i, k, before, NULL);
                        if (own < best) {
                                best = own;
                                ends->from[k * ends->width + count] = (uint32_t) i;
                        }
                }
                ends->last[k] = k > 0 && ends->last[k - 1] < best ? ends->last[k - 1] : best;
        }
}

static int fill_table(const struct segment_times *times, size_t max_segments, struct ends *ends,
                      struct err *err)
{
        CLEANUP(free_p) segment_time *end = NULL;
        size_t count = ends->width - 1;
        size_t rows = max_segments < count ? max_segments : count;

        if ((unsigned __int128) count * count * rows > MAX_TABLE_STEPS)
                return err_set(
                        err, -E2BIG,
                        "max_segments: %zu tensors in %zu segments are too many to plan by a measured table",
                        count, rows);
        while (ends->rows < rows) {
                int r = add_row(ends, err);

                if (r < 0)
                        return r;
        }
        assert(rows > 0 && ends->from != NULL && ends->last != NULL);
        end = calloc(ends->width * (rows + 1), sizeof(*end));
        if (end == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu tensors", count);
        for (size_t j = 1; j <= count; j++)
                fill_table_column(times, ends, j, end);
        for (size_t k = 1; k <= rows; k++)
                ends->last[k - 1] = end[count * (rows + 1) + k];
        if (times->tail != NULL)
                fill_tail(times, ends, end);
        return 0;
}

/* Fewest segments whose end is the best: then the cuts, from the last one back. */
static size_t trace(const struct ends *ends, const struct segment_times *times, size_t *cuts)
{
        segment_time best;
        size_t count = 0, j = ends->width - 1;

        assert(ends->rows > 0 && ends->last != NULL && ends->from != NULL);
        best = ends->last[ends->rows - 1] + times->slack;
        while (count + 1 < ends->rows && ends->last[count] > best)
                count++;
        count++;
        for (size_t k = count; k-- > 0;) {
                cuts[k] = j - 1;
                j = ends->from[k * ends->width + j];
        }
        assert(j == 0);
        return count;
}

/* Runs the segments that end with the tensors of `cuts`, one after the other. @ret: may be NULL. */
static segment_time run(const struct segment_times *times, const size_t *cuts, size_t count,
                        struct segment *ret)
{
        segment_time end = 0;
        size_t first = 0;

        for (size_t k = 0; k < count; k++) {
                uint64_t bytes = times->sum[cuts[k] + 1] - times->sum[first];
                segment_time start = end > times->ready[cuts[k]] ? end : times->ready[cuts[k]];
                size_t piece = 0;

                end = k + 1 < count ? start + segment_times_cost(times, bytes, &piece)
                                    : segment_times_last(times, cuts[k] + 1, first, k, end, &start);
                if (ret != NULL)
                        ret[k] = (struct segment){ .first = first,
                                                   .last = cuts[k],
                                                   .bytes = bytes,
                                                   .start_ms = segment_times_ms(times, start),
                                                   .end_ms = segment_times_ms(times, end) };
                first = cuts[k] + 1;
        }
        return end;
}

/* Buckets that close once they reach their size. */
static size_t cut_buckets(const struct segment_tensor *tensors, size_t count, uint64_t first_bytes,
                          uint64_t bytes, size_t *cuts)
{
        uint64_t wanted = first_bytes, held = 0;
        size_t used = 0;

        for (size_t i = 0; i < count; i++) {
                held += tensors[i].bytes;
                if (held >= wanted || i + 1 == count) {
                        cuts[used++] = i;
                        held = 0;
                        wanted = bytes;
                }
        }
        return used;
}

static size_t cut_ascend(const struct segment_times *times, size_t count, size_t *cuts)
{
        size_t used = 0;

        for (size_t i = 0; i < count; i++)
                if ((unsigned __int128) times->sum[i + 1] * 10000 >=
                    (unsigned __int128) times->sum[count] * 9654) {
                        cuts[used++] = i;
                        break;
                }
        if (cuts[0] + 1 < count)
                cuts[used++] = count - 1;
        return used;
}

static size_t cut_baseline(enum segment_baseline baseline, const struct segment_tensor *tensors, size_t count,
                           const struct segment_times *times, size_t *cuts)
{
        switch (baseline) {
        case SEGMENTS_PER_TENSOR:
                return cut_buckets(tensors, count, 0, 0, cuts);
        case SEGMENTS_DDP_25MB:
                return cut_buckets(tensors, count, MIB, 25 * MIB, cuts);
        case SEGMENTS_HOROVOD_64MB:
                return cut_buckets(tensors, count, 64 * MIB, 64 * MIB, cuts);
        case SEGMENTS_ASCEND_9654:
                return cut_ascend(times, count, cuts);
        case SEGMENTS_ONE:
        case SEGMENTS_BASELINE_COUNT:
                break;
        }
        cuts[0] = count - 1;
        return 1;
}

static int fill_plan(const struct segment_tensor *tensors, size_t count, const struct segment_times *times,
                     const struct ends *ends, struct segments_plan *plan, struct err *err)
{
        CLEANUP(free_p) size_t *cuts = calloc(count, sizeof(*cuts));
        segment_time last_ready = times->ready[count - 1], end;

        if (cuts == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu tensors", count);
        plan->segment_count = trace(ends, times, cuts);
        plan->segments = calloc(plan->segment_count, sizeof(*plan->segments));
        if (plan->segments == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu segments", plan->segment_count);
        end = run(times, cuts, plan->segment_count, plan->segments);
        plan->end_ms = segment_times_ms(times, end);
        plan->exposed_ms = segment_times_ms(times, end - last_ready);
        for (size_t b = 0; b < SEGMENTS_BASELINE_COUNT; b++) {
                plan->baseline_segments[b] =
                        cut_baseline((enum segment_baseline) b, tensors, count, times, cuts);
                end = run(times, cuts, plan->baseline_segments[b], NULL);
                plan->baseline_exposed_ms[b] = segment_times_ms(times, end - last_ready);
        }
        return 0;
}

int segments_plan(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                  size_t max_segments, struct segments_plan *ret, struct err *err)
{
        struct segments_plan plan = { 0 };
        struct segment_times times;
        struct ends ends = { .width = count + 1 };
        int r;

        if (max_segments == 0)
                return err_set(err, -EINVAL, "max_segments: must be at least 1");
        r = segment_times_make(tensors, count, cost, max_segments, &times, err);
        if (r < 0)
                return r;
        ends.before = calloc(ends.width, sizeof(*ends.before));
        ends.after = calloc(ends.width, sizeof(*ends.after));
        if (ends.before == NULL || ends.after == NULL)
                r = err_set(err, -ENOMEM, "no memory for %zu tensors", count);
        for (size_t j = 1; ends.before != NULL && j < ends.width; j++)
                ends.before[j] = UNREACHED;
        if (r == 0)
                r = times.piece_count == 1 && times.tail == NULL
                            ? fill_line(&times, max_segments, &ends, err)
                            : fill_table(&times, max_segments, &ends, err);
        if (r == 0)
                r = fill_plan(tensors, count, &times, &ends, &plan, err);
        ends_free(&ends);
        segment_times_free(&times);
        if (r < 0) {
                segments_plan_free(&plan);
                return r;
        }
        *ret = plan;
        return 0;
}

int segments_foretell(const struct segment_tensor *tensors, size_t count, const struct segment_cost *cost,
                      const size_t *last, size_t segments, double *ret_end_ms, struct err *err)
{
        struct segment_times times;
        int r;

        for (size_t i = 0; i < segments; i++)
                if (i > 0 && last[i] <= last[i - 1])
                        return err_set(err, -EINVAL, "segments[%zu]: last tensors must rise", i);
        if (segments == 0 || last[segments - 1] + 1 != count)
                return err_set(err, -EINVAL, "segments: the last one must end with the last tensor");
        r = segment_times_make(tensors, count, cost, segments, &times, err);
        if (r < 0)
                return r;
        *ret_end_ms = segment_times_ms(&times, run(&times, last, segments, NULL));
        segment_times_free(&times);
        return 0;
}

void segments_plan_free(struct segments_plan *plan)
{
        free(plan->segments);
        *plan = (struct segments_plan){ 0 };
}
