/* Who hangs and who is slow, by hand-made lines of progress. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/launcher/rank_watch.h"
#include "job/world/progress.h"

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
                progress_look(progress, &ranks[i], &before, &line, now);
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
                step(&progress, ranks, 3, i, fair, (uint64_t) i * 20 * SECOND);
                assert_int_equal(progress_slow(ranks, 3, &median), 3);
        }
        for (int64_t k = 0; k < PROGRESS_SLOW_STEPS; k++, i++) {
                assert_int_equal(progress_slow(ranks, 3, &median), 3);
                step(&progress, ranks, 3, i, slow, (uint64_t) i * 20 * SECOND);
        }
        assert_int_equal(progress_slow(ranks, 3, &median), 1);
        assert_true(median > 9.9 && median < 10.1);
        assert_int_equal(progress_slow(ranks, 3, &median), 3);
}

/* A moment in which something else had the processor: many short steps, one look. */
static void short_steps_are_not_judged_by_one_look(void **state)
{
        struct progress progress = { 0 };
        struct progress_rank ranks[3] = { { 0 } };
        double busy[3] = { 0 }, median;
        uint64_t now = 0;

        (void) state;
        for (int64_t i = 0; i < 100; i++) {
                now += 100000;
                for (size_t k = 0; k < 3; k++) { /* 30 steps of 3 ms between two looks; each 5th is of 9 ms */
                        struct progress_rank before = ranks[k];
                        struct progress_line line = { .step = 30 * (i + 1),
                                                      .epoch = -1,
                                                      .samples = 300 * (i + 1) };

                        busy[k] += 30 * (k == 1 && i % 5 == 4 ? 9.0 : 3.0);
                        line.samples_per_s = (double) line.samples * 1000 / busy[k];
                        progress_say(&ranks[k], &line, now);
                        progress_look(&progress, &ranks[k], &before, &line, now);
                }
                assert_int_equal(progress_slow(ranks, 3, &median), 3);
        }
}

/* Seconds that a rank of so many times the median goes on before it is named, at 10 ms a step and ten looks a
 * second. */
static double seconds_until_named(double ratio, unsigned rest_every)
{
        struct progress progress = { 0 };
        struct progress_rank ranks[3] = { { 0 } };
        double busy[3] = { 0 }, median;

        for (int64_t i = 0; i < 1200; i++) {
                for (size_t k = 0; k < 3; k++) {
                        struct progress_rank before = ranks[k];
                        struct progress_line line = { .step = 10 * (i + 1),
                                                      .epoch = -1,
                                                      .samples = 100 * (i + 1) };

                        busy[k] += k == 1 && (rest_every == 0 || i % rest_every != 0) ? 100 * ratio : 100;
                        line.samples_per_s = (double) line.samples * 1000 / busy[k];
                        progress_say(&ranks[k], &line, (uint64_t) i * SECOND / 10);
                        progress_look(&progress, &ranks[k], &before, &line, (uint64_t) i * SECOND / 10);
                }
                if (progress_slow(ranks, 3, &median) == 1)
                        return (double) i / 10;
        }
        return -1;
}

static void the_slower_the_sooner(void **state)
{
        (void) state;
        assert_true(seconds_until_named(1.29, 0) < 0);
        assert_float_equal(seconds_until_named(1.5, 0), 15, 0.3);
        assert_float_equal(seconds_until_named(2, 0), 4.3, 0.3);
        assert_float_equal(seconds_until_named(3, 0), 1.8, 0.3);
        assert_float_equal(seconds_until_named(100, 0), 1.2, 0.2);
        assert_true(seconds_until_named(1.5, 60) < 0); /* a neighbour that comes for six seconds at a time */
        assert_true(seconds_until_named(3, 10) < 0);   /* for one */
}

struct hour {
        struct progress progress;
        struct progress_rank ranks[4];
        struct progress_limits limits;
        double busy_ms[4];
        uint64_t now, looked;
        int64_t steps;
        unsigned alarms, stragglers;
        size_t named;
};

/* Time passes; somebody looks ten times a second, as job/run/run_train.c has it done. */
static void pass(struct hour *h, uint64_t usec)
{
        double median;

        for (uint64_t end = h->now + usec; h->now < end;) {
                h->now = h->looked + 100000 < end ? h->looked + 100000 : end;
                if (h->now - h->looked < 100000)
                        return;
                h->looked = h->now;
                h->named = progress_hung(&h->progress, h->ranks, 4, &h->limits, h->now);
                h->alarms += h->named < 4;
                h->stragglers += progress_slow(h->ranks, 4, &median) < 4;
        }
}

static void say_step(struct hour *h, double ms)
{
        pass(h, (uint64_t) (ms * 1000));
        h->steps++;
        for (size_t i = 0; i < 4; i++) {
                struct progress_rank before = h->ranks[i];
                struct progress_line line = { .step = h->steps, .epoch = -1, .samples = 64 * h->steps };

                h->busy_ms[i] += ms * (0.9 + 0.05 * (double) ((h->steps + (int64_t) i) % 4));
                line.samples_per_s = (double) line.samples * 1000 / h->busy_ms[i];
                progress_say(&h->ranks[i], &line, h->now);
                progress_look(&h->progress, &h->ranks[i], &before, &line, h->now);
        }
}

/* Rank 0 evaluates and says that it lives; the others wait for it and say nothing. */
static void evaluate(struct hour *h, unsigned seconds, bool speaks)
{
        const struct progress_line alive = { .epoch = -1, .step = h->steps, .samples = -1 };

        for (unsigned i = 0; i < seconds; i += 5) {
                pass(h, 5 * SECOND);
                if (speaks)
                        progress_say(&h->ranks[0], &alive, h->now);
        }
}

/* Simulated: steps of 250 ms, a checkpoint of 2 s every 100 steps and one of 50 s every 2000, an evaluation
 * of 100 s every ten minutes, which is longer than a rank may be silent. */
static void a_simulated_hour_with_checkpoints_and_evaluations_has_no_alarm(void **state)
{
        struct hour h = { .limits = { .hang_usec = 60 * SECOND, .speaks = true }, .named = 4 };
        uint64_t evaluated = 0, silent;

        (void) state;
        while (h.now < 3600 * SECOND) {
                say_step(&h, 250);
                if (h.steps % 100 == 0)
                        pass(&h, h.steps % 2000 == 0 ? 50 * SECOND : 2 * SECOND);
                if (h.now - evaluated >= 600 * SECOND) {
                        evaluate(&h, 100, true);
                        evaluated = h.now;
                }
        }
        assert_true(h.steps > 9000);
        assert_int_equal(h.alarms, 0);
        assert_int_equal(h.stragglers, 0);
        /* then rank 2 is stopped: the others do one step more, and wait */
        silent = h.ranks[2].reported_usec;
        h.steps++;
        for (size_t i = 0; i < 4; i++) {
                const struct progress_line line = { .step = h.steps, .epoch = -1, .samples = -1 };

                if (i != 2)
                        progress_say(&h.ranks[i], &line, h.now);
        }
        while (h.named == 4 && h.now < silent + 120 * SECOND)
                pass(&h, 100000);
        assert_int_equal(h.named, 2);
        assert_in_range(h.now - silent, 60 * SECOND, 60 * SECOND + 500000);
}

/* One that speaks for ever and makes no step does not hide another that is silent and behind it, nor itself
 * when it falls silent. */
static void waiting_has_an_end(void **state)
{
        struct hour h = { .limits = { .hang_usec = 60 * SECOND, .speaks = true }, .named = 4 };

        (void) state;
        for (int i = 0; i < 50; i++)
                say_step(&h, 250);
        h.ranks[3].step--;
        evaluate(&h, 100, true);
        assert_int_equal(h.named, 3);
        h.ranks[3].step++;
        h.alarms = 0;
        evaluate(&h, 30, true);
        evaluate(&h, 65, false);
        assert_true(h.alarms > 0);
        assert_int_equal(h.named, 0);
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

/* What is there and is no such number is as much a lie as a negative one; null says nothing. */
static void a_field_that_is_no_number_is_doubted(void **state)
{
        static const struct {
                const char *line;
                enum progress_doubt doubt;
                double figure; /* 0: none */
        } rows[] = {
                { "{\"step\":3,\"samples\":4,\"busy_seconds\":0.5}", PROGRESS_BELIEVED, 0 },
                { "{\"step\":null,\"samples\":null,\"busy_seconds\":null,\"samples_per_s\":null}",
                  PROGRESS_BELIEVED, 0 },
                { "{\"step\":\"3\"}", PROGRESS_STEP, 0 },
                { "{\"step\":3,\"samples\":\"many\"}", PROGRESS_SAMPLES, 0 },
                { "{\"step\":3,\"samples\":[4]}", PROGRESS_SAMPLES, 0 },
                { "{\"step\":3,\"busy_seconds\":true}", PROGRESS_BUSY, 0 },
                { "{\"step\":3,\"samples_per_s\":{}}", PROGRESS_RATE, 0 },
                { "{\"step\":2.5}", PROGRESS_STEP, 2.5 },
                { "{\"step\":-2}", PROGRESS_STEP, -2 },
                { "{\"step\":1e18}", PROGRESS_STEP, 1e18 },
                { "{\"step\":1000000000000000000}", PROGRESS_STEP, 1e18 },
                { "{\"step\":3,\"samples\":1000000000000000000}", PROGRESS_SAMPLES, 1e18 },
                { "{\"step\":3,\"samples\":4.5}", PROGRESS_SAMPLES, 4.5 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct progress_rank rank = { 0 };
                struct progress_line said;

                assert_true(rank_watch_line(rows[i].line, strlen(rows[i].line), &said));
                progress_say(&rank, &said, SECOND);
                if (rank.doubt != rows[i].doubt || (rows[i].figure != 0 && rank.doubted != rows[i].figure))
                        fail_msg("'%s': doubt %d, figure %g", rows[i].line, (int) rank.doubt, rank.doubted);
        }
}

/* Who says how far and how fast it is may be told new shares, unless it says that it takes none. */
static void a_line_says_whether_shares_may_change(void **state)
{
        static const struct {
                const char *line;
                bool live, says_shares;
        } rows[] = {
                { "{\"step\":3,\"samples\":4,\"busy_seconds\":0.5,\"loss\":1}", true, false },
                { "{\"step\":3,\"samples\":4,\"busy_seconds\":0.5,\"shares_step\":0}", true, true },
                { "{\"step\":3,\"samples\":4,\"busy_seconds\":0.5,\"shares_step\":null}", false, false },
                { "{\"step\":3,\"samples\":4,\"busy_seconds\":0.5,\"shares_step\":-1}", false, false },
                { "{\"step\":3,\"samples\":4,\"busy_seconds\":0}", false, false },
                { "{\"step\":3,\"samples\":4,\"samples_per_s\":8}", false, false },
                { "{\"step\":3,\"busy_seconds\":0.5}", false, false },
                { "{\"samples\":4,\"busy_seconds\":0.5}", false, false },
                { "{\"shares_step\":7}", true, true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct progress_rank rank = { 0 };
                struct progress_line said;

                assert_true(rank_watch_line(rows[i].line, strlen(rows[i].line), &said));
                progress_say(&rank, &said, SECOND);
                if (rank.live != rows[i].live || rank.says_shares != rows[i].says_shares)
                        fail_msg("'%s': live %d, says %d", rows[i].line, rank.live, rank.says_shares);
        }
}

/* Of a rank that says the samples of all: its share, of each step that it has made in this world. */
static void samples_of_who_is_not_believed_are_its_share(void **state)
{
        struct progress_rank rank = { 0 };
        struct progress_line line = { .step = 500, .samples = 3200000000, .epoch = -1 };

        (void) state;
        assert_int_equal(progress_samples(&rank, 16), 0);
        progress_say(&rank, &line, SECOND);
        assert_int_equal(progress_samples(&rank, 16), 3200000000);
        progress_doubt(&rank, PROGRESS_SHARE, 32);
        assert_int_equal(progress_samples(&rank, 16), 16);
        line.step = 509;
        progress_say(&rank, &line, 2 * SECOND);
        assert_int_equal(progress_samples(&rank, 16), 160);
        line.step = INT64_MAX;
        progress_say(&rank, &line, 3 * SECOND);
        assert_int_equal(progress_samples(&rank, 16), 160); /* that many steps say nothing */
        progress_settle(&rank, 16, 510);                    /* from there on it has a quarter */
        assert_int_equal(progress_samples(&rank, 4), 160);
        line.step = 519;
        progress_say(&rank, &line, 4 * SECOND);
        assert_int_equal(progress_samples(&rank, 4), 200);
        progress_settle(&rank, 4, 515); /* as was known late */
        assert_int_equal(progress_samples(&rank, 2), 180 + 10);
        line.step = 3; /* steps counted anew: totals do not fall */
        progress_say(&rank, &line, 5 * SECOND);
        assert_int_equal(progress_samples(&rank, 2), 190);
}

/* Edges on both sides. */
static void figures_beyond_all_bounds_are_doubted_and_not_taken(void **state)
{
        static const struct {
                int64_t samples;
                double busy_seconds, samples_per_s;
                enum progress_doubt doubt;
                double speed;
        } rows[] = {
                { 1000, 1e-9, 0, PROGRESS_BELIEVED, 1e12 },  { 1000, 0.9e-9, 0, PROGRESS_FAST, 0 },
                { 1000, 5e-324, 0, PROGRESS_FAST, 0 },       { 1000, 0, 1e12, PROGRESS_BELIEVED, 1e12 },
                { 1000, 0, 1.1e12, PROGRESS_FAST, 0 },       { 1000, 0, 1e308, PROGRESS_FAST, 0 },
                { 1000, 0, 1e-9, PROGRESS_BELIEVED, 1e-9 },  { 1000, 0, 0.9e-9, PROGRESS_RATE, 0 },
                { 1000, 0, 5e-324, PROGRESS_RATE, 0 },       { 1000, 1e9, 0, PROGRESS_BELIEVED, 1e-6 },
                { 1000, 1.1e9, 0, PROGRESS_BUSY_LONG, 0 },   { 1000, 1e308, 0, PROGRESS_BUSY_LONG, 0 },
                { 1000, 10, 1e308, PROGRESS_BELIEVED, 100 }, /* totals are exact */
                { 0, 1e-300, 0, PROGRESS_BELIEVED, 0 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct progress_rank rank = { 0 };
                const struct progress_line line = { .step = 1,
                                                    .epoch = -1,
                                                    .samples = rows[i].samples,
                                                    .busy_seconds = rows[i].busy_seconds,
                                                    .samples_per_s = rows[i].samples_per_s,
                                                    .has_loss = true,
                                                    .loss = rows[i].samples_per_s };
                double speed;

                progress_say(&rank, &line, SECOND);
                speed = progress_speed(&rank);
                if (rank.doubt != rows[i].doubt || speed > 1.000001 * rows[i].speed ||
                    speed < 0.999999 * rows[i].speed || rank.loss > PROGRESS_LOSS_MAX)
                        fail_msg("row %zu: doubt %d, speed %g, loss %g", i, (int) rank.doubt, speed,
                                 rank.loss);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_silent_rank_hangs_after_the_limit_and_five_median_steps),
                cmocka_unit_test(a_program_that_never_begins_hangs_where_it_is_known_to_speak),
                cmocka_unit_test(evaluation_after_the_last_step_is_no_hang),
                cmocka_unit_test(a_straggler_is_named_once_after_twenty_steps),
                cmocka_unit_test(short_steps_are_not_judged_by_one_look),
                cmocka_unit_test(the_slower_the_sooner),
                cmocka_unit_test(a_simulated_hour_with_checkpoints_and_evaluations_has_no_alarm),
                cmocka_unit_test(waiting_has_an_end),
                cmocka_unit_test(any_line_is_survived),
                cmocka_unit_test(a_field_that_is_no_number_is_doubted),
                cmocka_unit_test(a_line_says_whether_shares_may_change),
                cmocka_unit_test(samples_of_who_is_not_believed_are_its_share),
                cmocka_unit_test(figures_beyond_all_bounds_are_doubted_and_not_taken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
