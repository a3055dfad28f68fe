/* Segment times: what cannot be timed is refused with its place, and units that are as fine as need be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/segments/segment_times.h"

#define LARGE (SEGMENTS_MAX_BYTES + 1)

/* clang-format off */
static const struct {
        const char *what;
        struct segment_tensor tensors[2];
        size_t tensor_count;
        struct segment_level levels[2];
        size_t level_count;
        struct segment_point points[3];
        size_t point_count;
        int result;
        const char *sentence;
} refusals[] = {
        { "no tensor",             { { NULL, 0, 0 } }, 0, { { 1, 1 } }, 1, { { 0, 0 } }, 0, -EINVAL, "tensors: give at least one" },
        { "time goes back",        { { NULL, 1, 2 }, { NULL, 1, 1 } }, 2, { { 1, 1 } }, 1, { { 0, 0 } }, 0, -EINVAL, "tensors[1].ready_ms: must not fall, be negative or infinite" },
        { "before all time",       { { NULL, 1, -1 } }, 1, { { 1, 1 } }, 1, { { 0, 0 } }, 0, -EINVAL, "tensors[0].ready_ms: must not fall, be negative or infinite" },
        { "never",                 { { NULL, 1, INFINITY } }, 1, { { 1, 1 } }, 1, { { 0, 0 } }, 0, -EINVAL, "tensors[0].ready_ms: must not fall, be negative or infinite" },
        { "too many bytes",        { { NULL, LARGE, 0 } }, 1, { { 1, 1 } }, 1, { { 0, 0 } }, 0, -E2BIG, "tensors[0].bytes: together more than 1125899906842624" },
        { "together too many",     { { NULL, LARGE - 1, 0 }, { NULL, 1, 0 } }, 2, { { 1, 1 } }, 1, { { 0, 0 } }, 0, -E2BIG, "tensors[1].bytes: together more than 1125899906842624" },
        { "no cost",               { { NULL, 1, 0 } }, 1, { { 0, 0 } }, 0, { { 0, 0 } }, 0, -EINVAL, "cost: give alpha_ms and beta_ms_per_byte, levels or a table" },
        { "a negative alpha",      { { NULL, 1, 0 } }, 1, { { 1, 1 }, { -1, 1 } }, 2, { { 0, 0 } }, 0, -EINVAL, "levels[1]: must be finite and not negative" },
        { "an infinite beta",      { { NULL, 1, 0 } }, 1, { { 1, INFINITY } }, 1, { { 0, 0 } }, 0, -EINVAL, "levels[0]: must be finite and not negative" },
        { "a negative cost",       { { NULL, 1, 0 } }, 1, { { 0, 0 } }, 0, { { 1, -1 } }, 1, -EINVAL, "cost[0]: bytes must rise, ms be finite and not negative" },
        { "bytes that do not rise", { { NULL, 1, 0 } }, 1, { { 0, 0 } }, 0, { { 1, 1 }, { 1, 2 } }, 2, -EINVAL, "cost[1]: bytes must rise, ms be finite and not negative" },
        { "a point of too many",   { { NULL, 1, 0 } }, 1, { { 0, 0 } }, 0, { { 1, 1 }, { LARGE, 2 } }, 2, -EINVAL, "cost[1]: bytes must rise, ms be finite and not negative" },
        { "a table that falls below 0", { { NULL, 100, 0 } }, 1, { { 0, 0 } }, 0, { { 1, 5 }, { 2, 1 } }, 2, -EINVAL, "cost[1]: falls, and extended to 100 bytes it is negative; measure a point there" },
};
/* clang-format on */

static void what_cannot_be_timed_is_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                const struct segment_cost cost = { .levels = refusals[i].levels,
                                                   .level_count = refusals[i].level_count,
                                                   .points = refusals[i].points,
                                                   .point_count = refusals[i].point_count };
                struct segment_times times = { 0 };
                struct err err = { 0 };
                int r = segment_times_make(refusals[i].tensors, refusals[i].tensor_count, &cost, 1, &times,
                                           &err);

                if (r != refusals[i].result || strcmp(err.msg, refusals[i].sentence) != 0)
                        fail_msg("%s: %d %s", refusals[i].what, r, err.msg);
        }
}

/* clang-format off */
static const struct {
        const char *what;
        struct segment_tensor tensor;
        struct segment_level level;
        bool exact; /* no input is rounded */
} units[] = {
        { "whole numbers",                     { NULL, 100, 5 },         { 1, 2 },        true },
        { "many digits",                       { NULL, 100, 0.000001 },  { 0.001, 1e-9 }, true },
        { "nothing at all",                    { NULL, 0, 0 },           { 0, 0 },        true },
        { "far apart, and of many digits",     { NULL, 1 << 30, 1e20 },  { 1e-20, 1e-28 }, false },
        { "the largest beside the smallest",   { NULL, 1, 1e30 },        { 1e-30, 0 },    false },
};
/* clang-format on */

static void a_unit_is_as_fine_as_there_is_room_for(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                const struct segment_cost cost = { .levels = &units[i].level, .level_count = 1 };
                double ready_ms = units[i].tensor.ready_ms,
                       cost_ms = units[i].level.alpha_ms +
                                 units[i].level.beta_ms_per_byte * (double) units[i].tensor.bytes,
                       got_ms;
                struct segment_times times = { 0 };
                struct err err = { 0 };
                size_t piece = 0;

                if (segment_times_make(&units[i].tensor, 1, &cost, 9, &times, &err) < 0)
                        fail_msg("%s: %s", units[i].what, err.msg);
                assert_int_equal(times.slack == 0, units[i].exact);
                got_ms = segment_times_ms(&times, times.ready[0]);
                if (fabs(got_ms - ready_ms) > 1e-12 * ready_ms)
                        fail_msg("%s: ready at %g, not %g", units[i].what, got_ms, ready_ms);
                got_ms = segment_times_ms(&times, segment_times_cost(&times, units[i].tensor.bytes, &piece));
                if (units[i].exact && fabs(got_ms - cost_ms) > 1e-12 * cost_ms)
                        fail_msg("%s: costs %g, not %g", units[i].what, got_ms, cost_ms);
                segment_times_free(&times);
        }
}

/* clang-format off */
static const struct {
        const char *what;
        double beside_ms, last_ms; /* of 64 bytes */
        double left_ms, as_last_ms;
} rests[] = {
        { "half as fast beside computing",   8, 4,               5,     2.5 },
        { "no faster alone",                 8, 8,               5,     5 },
        { "slower alone",                    4, 8,               5,     5 },
        { "nothing of it is left",           8, 4,               0,     0 },
        { "alone it takes no time",          8, 0,               5,     0 },
        { "neither does",                    0, 0,               5,     5 },
        { "hours, of many digits",           4000000.1, 1234.5678,    4e6,   1234.5678 * 4e6 / 4000000.1 },
        { "thirds",                          3, 1,               1,     1.0 / 3 },
};
/* clang-format on */

static void what_is_left_goes_on_as_alone(void **state)
{
        const struct segment_tensor tensor = { NULL, 64, 0.5 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rests); i++) {
                const struct segment_point beside[] = { { 64, rests[i].beside_ms } };
                const struct segment_point last[] = { { 64, rests[i].last_ms } };
                const struct segment_tail tail = { .points = last, .point_count = 1 };
                const struct segment_cost cost = { .points = beside, .point_count = 1, .tail = &tail };
                struct segment_times times = { 0 };
                struct err err = { 0 };
                segment_time left;
                double got_ms;

                if (segment_times_make(&tensor, 1, &cost, 9, &times, &err) < 0)
                        fail_msg("%s: %s", rests[i].what, err.msg);
                left = times.ready[0] / 5 *
                       (segment_time) (rests[i].left_ms * 10); /* 0.5 ms are a whole number of units */
                got_ms = segment_times_ms(&times, segment_times_left(&times, 64, left));
                if (fabs(got_ms - rests[i].as_last_ms) > 1e-11 * rests[i].left_ms)
                        fail_msg("%s: %.17g, not %.17g", rests[i].what, got_ms, rests[i].as_last_ms);
                segment_times_free(&times);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_timed_is_refused),
                cmocka_unit_test(a_unit_is_as_fine_as_there_is_room_for),
                cmocka_unit_test(what_is_left_goes_on_as_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
