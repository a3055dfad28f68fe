/* Lines of a rank, one by one: what they may say, what is not believed, and what follows from numbers alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "job/world/progress.h"

#define SECOND 1000000ULL

static struct progress_line line_of(int64_t step, int64_t samples, double busy_seconds)
{
        return (struct progress_line){
                .step = step, .samples = samples, .epoch = -1, .shares_step = -1, .busy_seconds = busy_seconds
        };
}

/* The second line, after one of step 10 with 100 samples in 2 seconds. */
static void the_first_doubt_of_a_rank_stays(void **state)
{
        static const struct {
                const char *what;
                int64_t step, samples;
                double busy_seconds;
                enum progress_doubt doubt;
        } rows[] = {
                { "more of all", 11, 110, 2.2, PROGRESS_BELIEVED },
                { "nothing new", -1, -1, 0, PROGRESS_BELIEVED },
                { "steps that begin anew", 3, 110, 2.2, PROGRESS_STEP_ANEW },
                { "fewer samples", 11, 90, 2.2, PROGRESS_SAMPLES },
                { "less time", 11, 110, 1.9, PROGRESS_BUSY },
                { "more steps than there can be", INT64_MAX, 110, 2.2, PROGRESS_STEP },
                { "more samples than there can be", 11, INT64_MAX, 2.2, PROGRESS_SAMPLES },
                { "longer than anything lasts", 11, 110, 1e10, PROGRESS_BUSY_LONG },
                { "faster than any chip", 11, 1000000000000000, 2.2, PROGRESS_FAST },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct progress_line first = line_of(10, 100, 2),
                                     second = line_of(rows[i].step, rows[i].samples, rows[i].busy_seconds);
                struct progress_rank rank = { 0 };

                progress_say(&rank, &first, SECOND);
                progress_say(&rank, &second, 2 * SECOND);
                if (rank.doubt != rows[i].doubt || progress_believed(&rank) != (i < 3))
                        fail_msg("%s: %d", rows[i].what, (int) rank.doubt);
                progress_doubt(&rank, PROGRESS_SHARE, 7);
                assert_int_equal(rank.doubt, i < 3 ? PROGRESS_SHARE : rows[i].doubt);
        }
}

/* A line that cannot be read is said once, and the rank is believed all the same. */
static void what_cannot_be_read_is_said_once(void **state)
{
        struct progress_line line = line_of(1, 10, 0);
        struct progress_rank rank = { 0 };

        (void) state;
        line.doubt = PROGRESS_NO_LINE;
        progress_say(&rank, &line, SECOND);
        assert_true(rank.doubt == PROGRESS_NO_LINE && !rank.doubt_said && progress_believed(&rank));
        rank.doubt_said = true;
        progress_say(&rank, &line, 2 * SECOND);
        assert_true(rank.doubt_said);
        line.accuracy = 0.5;
        line.epoch_samples = 1000;
        line.epoch = 2;
        progress_say(&rank, &line, 3 * SECOND);
        assert_true(rank.accuracy == 0.5 && rank.epoch_samples == 1000 && rank.epoch == 2);
        line = line_of(-1, -1, 0); /* nothing of all that */
        progress_say(&rank, &line, 4 * SECOND);
        assert_true(rank.accuracy == 0.5 && rank.epoch_samples == 1000 && rank.epoch == 2 && rank.step == 1);
        assert_true(rank.moved_usec == SECOND && rank.reported_usec == 4 * SECOND);
}

static void the_last_step_follows_from_the_data(void **state)
{
        static const struct {
                uint64_t samples, batch, epochs, last;
        } rows[] = { { 1000, 64, 1, 15 }, { 1000, 64, 3, 47 }, { 64, 64, 1, 0 }, { 0, 64, 3, 0 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_equal(progress_last_step(rows[i].samples, rows[i].batch, rows[i].epochs),
                                 rows[i].last);
}

/* Each time after a pause twice as long, and not for ever. */
static void shares_are_cut_anew_more_and_more_seldom(void **state)
{
        (void) state;
        assert_true(progress_may_reshard(0, 0, 0));
        for (uint64_t n = 1; n < PROGRESS_RESHARDS_MAX; n++) {
                uint64_t pause = PROGRESS_RESHARD_PAUSE << (n - 1);

                assert_false(progress_may_reshard(n, SECOND, SECOND + pause - 1));
                assert_true(progress_may_reshard(n, SECOND, SECOND + pause));
        }
        assert_false(progress_may_reshard(PROGRESS_RESHARDS_MAX, 0, UINT64_MAX));
}

/* Of several that are silent: one that never spoke, else the one that is furthest behind, else the first. */
static void the_last_of_the_silent_is_named(void **state)
{
        static const struct {
                int64_t steps[3]; /* -1 = it never spoke */
                size_t named;
        } rows[] = {
                { { 5, 5, 5 }, 0 },  { { 5, 3, 4 }, 1 },   { { 5, 4, 3 }, 2 },
                { { 5, -1, 3 }, 1 }, { { -1, -1, 3 }, 0 }, { { -1, 7, -1 }, 0 },
        };
        const struct progress_limits limits = { .hang_usec = SECOND, .speaks = true };
        const struct progress progress = { .began_usec = 1 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct progress_rank ranks[3] = { { 0 } };

                for (size_t k = 0; k < 3; k++) {
                        struct progress_line line = line_of(rows[i].steps[k], 0, 0);

                        if (rows[i].steps[k] >= 0)
                                progress_say(&ranks[k], &line, SECOND);
                }
                assert_int_equal(progress_hung(&progress, ranks, 3, &limits, 100 * SECOND), rows[i].named);
        }
}

/* The last pace of a look stands for all lines beyond seven; a line's steps are one line's. */
static void a_line_is_one_however_many_are_read(void **state)
{
        struct progress progress = { 0 };
        struct progress_rank rank = { 0 }, before = rank;
        struct progress_line line = line_of(100, 10, 1);

        (void) state;
        progress_say(&rank, &line, SECOND);
        progress_look(&progress, &rank, &before, &line, SECOND);
        assert_true(rank.latest.steps == 0 && rank.line_steps == 0); /* its world may have begun there */
        before = rank;
        for (int i = 1; i <= 12; i++) {
                line = line_of(100 + 3 * i, 10 + 30 * i, 1 + i);
                progress_say(&rank, &line, 2 * SECOND);
        }
        progress_look(&progress, &rank, &before, &line, 2 * SECOND);
        assert_true(rank.latest.steps == 15 && rank.latest.samples == 150 && rank.line_steps == 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_doubt_of_a_rank_stays),
                cmocka_unit_test(what_cannot_be_read_is_said_once),
                cmocka_unit_test(the_last_step_follows_from_the_data),
                cmocka_unit_test(shares_are_cut_anew_more_and_more_seldom),
                cmocka_unit_test(the_last_of_the_silent_is_named),
                cmocka_unit_test(a_line_is_one_however_many_are_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
