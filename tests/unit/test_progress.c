#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/progress.h"
#include "io/rank_watch.h"

#define SECOND 1000000ULL

/* One line of every rank, `ms` of it busy, and the look that sees it. */
static void step(struct progress *progress, struct progress_rank *ranks, size_t count, int64_t number,
                 const double *ms, uint64_t now)
{
        for (size_t i = 0; i < count; i++) {
                struct progress_rank before = ranks[i];
                struct progress_line line = { .step = number, .epoch = -1, .samples = 10 * (number + 1) };

                line.samples_per_s = (double) line.samples * 1000 / (before.busy_ms + ms[i]);
                progress_say(&ranks[i], &line, now);
                progress_look(progress, &ranks[i], &before, now);
        }
}

static void a_silent_rank_hangs_after_the_limit_and_five_median_steps(void **state)
{
        struct progress progress = { 0 };
        struct progress_rank ranks[2] = { { 0 } };
        const struct progress_limits limits = { .hang_usec = 2 * SECOND };
        const double ms[] = { 1, 1 };

        (void) state;
        for (int64_t i = 0; i < 6; i++) /* a second a step: five of them are more than two seconds */
                step(&progress, ranks, 2, i, ms, (uint64_t) i * SECOND);
        assert_int_equal(progress_hung(&progress, ranks, 2, &limits, 10 * SECOND), 2);
        assert_int_equal(progress_hung(&progress, ranks, 2, &limits, 10 * SECOND + 1), 0);
        step(&progress, ranks, 1, 6, ms, 9 * SECOND); /* the first goes on: the second is the one */
        assert_int_equal(progress_hung(&progress, ranks, 2, &limits, 11 * SECOND), 1);
        ranks[1].idle = true;
        assert_int_equal(progress_hung(&progress, ranks, 2, &limits, 11 * SECOND), 2);
}

static void a_program_that_never_begins_hangs_where_it_is_known_to_speak(void **state)
{
        struct progress progress = { .began_usec = SECOND };
        struct progress_rank ranks[2] = { { 0 } };
        struct progress_limits limits = { .hang_usec = 2 * SECOND };
        const double ms[] = { 1, 1 };

        (void) state;
        assert_int_equal(progress_hung(&progress, ranks, 2, &limits, 1000 * SECOND), 2);
        limits.speaks = true;
        assert_int_equal(progress_hung(&progress, ranks, 2, &limits, 11 * SECOND), 2);
        assert_int_equal(progress_hung(&progress, ranks, 2, &limits, 11 * SECOND + 1), 0);
        /* one has made its first step and waits for the other, which is the one that is named */
        step(&progress, ranks, 1, 0, ms, 2 * SECOND);
        assert_int_equal(progress_hung(&progress, ranks, 2, &limits, 9 * SECOND), 2);
        assert_int_equal(progress_hung(&progress, ranks, 2, &limits, 12 * SECOND), 1);
}

static void evaluation_after_the_last_step_is_no_hang(void **state)
{
        struct progress progress = { 0 };
        struct progress_rank ranks[1] = { { 0 } };
        struct progress_limits limits = { .hang_usec = SECOND, .last_step = 9 };
        const double ms[] = { 1 };

        (void) state;
        for (int64_t i = 0; i < 9; i++)
                step(&progress, ranks, 1, i, ms, (uint64_t) i * 1000);
        assert_int_equal(progress_hung(&progress, ranks, 1, &limits, 60 * SECOND), 0);
        step(&progress, ranks, 1, 9, ms, 9000);
        assert_int_equal(progress_hung(&progress, ranks, 1, &limits, 60 * SECOND), 1);
}

static void a_straggler_is_named_once_after_twenty_steps(void **state)
{
        struct progress progress = { 0 };
        struct progress_rank ranks[3] = { { 0 } };
        const double fair[] = { 10, 12.9, 10 }, slow[] = { 10, 13.1, 10 };
        int64_t i = 0;
        double median;

        (void) state;
        for (; i < 60; i++) {
                step(&progress, ranks, 3, i, fair, (uint64_t) i * 1000);
                assert_int_equal(progress_slow(ranks, 3, &median), 3);
        }
        for (int64_t k = 0; k < PROGRESS_SLOW_STEPS; k++, i++) {
                assert_int_equal(progress_slow(ranks, 3, &median), 3);
                step(&progress, ranks, 3, i, slow, (uint64_t) i * 1000);
        }
        assert_int_equal(progress_slow(ranks, 3, &median), 1);
        assert_true(median > 9.9 && median < 10.1);
        assert_int_equal(progress_slow(ranks, 3, &median), 3);
}

/* clang-format off */
static const struct { const char *line; bool good; int64_t step; double loss; } lines[] = {
        { "{\"step\":3,\"loss\":0.5}",          true,  3,  0.5 },
        { "{\"step\":-3}",                      true,  -3, 0 },
        { "{\"step\":\"3\",\"samples\":1e400}", false, 0,  0 },
        { "{\"step\":1.5}",                     true,  -1, 0 },
        { "[1]",                                false, 0,  0 },
        { "",                                   false, 0,  0 },
        { "step 3",                             false, 0,  0 },
};
/* clang-format on */

static void any_line_is_survived(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                struct progress_line said;
                struct progress_rank rank = { .step = 7 };
                bool good = rank_watch_line(lines[i].line, strlen(lines[i].line), &said);

                if (good != lines[i].good ||
                    (good && (said.step != lines[i].step || said.loss != lines[i].loss)))
                        fail_msg("'%s': got %d, step %lld", lines[i].line, good, (long long) said.step);
                progress_say(&rank, &said, 1);
                if (said.step < 0 && rank.step != 7)
                        fail_msg("'%s': moved the step to %llu", lines[i].line,
                                 (unsigned long long) rank.step);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_silent_rank_hangs_after_the_limit_and_five_median_steps),
                cmocka_unit_test(a_program_that_never_begins_hangs_where_it_is_known_to_speak),
                cmocka_unit_test(evaluation_after_the_last_step_is_no_hang),
                cmocka_unit_test(a_straggler_is_named_once_after_twenty_steps),
                cmocka_unit_test(any_line_is_survived),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
