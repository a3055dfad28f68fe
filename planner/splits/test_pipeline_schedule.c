/* What a step takes as its passes go, beside a list of all passes whose times are worked out anew until none
 * changes any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "planner/splits/pipeline_schedule.h"

#define STAGES       9
#define MICROBATCHES 64

enum pass { FORWARD, BACKWARD };

static double end_ms[STAGES][MICROBATCHES][2];

/* Stage k's n-th pass, of 2 x microbatches, as the words of the header say. */
static enum pass pass_of(size_t count, unsigned microbatches, size_t k, unsigned n, unsigned *ret_microbatch)
{
        unsigned first =
                (unsigned) (count - 1 - k) < microbatches ? (unsigned) (count - 1 - k) : microbatches;
        unsigned turns = 2 * (microbatches - first);

        if (n < first) {
                *ret_microbatch = n;
                return FORWARD;
        }
        if (n < first + turns) {
                *ret_microbatch = (n - first) / 2 + ((n - first) % 2 == 0 ? first : 0);
                return (n - first) % 2 == 0 ? FORWARD : BACKWARD;
        }
        *ret_microbatch = n - microbatches;
        return BACKWARD;
}

/* What a pass needs from a neighbour, 0 = nothing. */
static double needs_ms(size_t count, size_t k, enum pass pass, unsigned m)
{
        if (pass == FORWARD)
                return k == 0 ? 0 : end_ms[k - 1][m][FORWARD];
        return k + 1 == count ? 0 : end_ms[k + 1][m][BACKWARD];
}

static double slowly(const double *load_ms, size_t count, unsigned microbatches)
{
        bool changed = true;
        double last_ms = 0;

        for (size_t k = 0; k < STAGES; k++)
                for (size_t m = 0; m < MICROBATCHES; m++)
                        end_ms[k][m][FORWARD] = end_ms[k][m][BACKWARD] = 0;
        while (changed) {
                changed = false;
                for (size_t k = 0; k < count; k++) {
                        double before_ms = 0;

                        for (unsigned n = 0; n < 2 * microbatches; n++) {
                                unsigned m = 0;
                                enum pass pass = pass_of(count, microbatches, k, n, &m);
                                double ms = fmax(before_ms, needs_ms(count, k, pass, m)) +
                                            load_ms[k] * (pass == FORWARD ? 1 : 2) / 3;

                                changed = changed || fabs(end_ms[k][m][pass] - ms) > 1e-9;
                                before_ms = end_ms[k][m][pass] = ms;
                        }
                        last_ms = fmax(last_ms, before_ms);
                }
        }
        return last_ms;
}

static void the_example_of_the_header(void **state)
{
        const double load_ms[] = { 3, 6, 3 };

        (void) state;
        assert_true(fabs(pipeline_schedule_ms(load_ms, 3, 4) - 28) < 1e-9);
}

static void alike_stages_are_what_planners_minimise(void **state)
{
        const double load_ms[] = { 5, 5, 5, 5 };

        (void) state;
        assert_true(fabs(pipeline_schedule_ms(load_ms, 4, 16) - 19 * 5) < 1e-9);
        assert_true(fabs(pipeline_schedule_ms(load_ms, 1, 16) - 16 * 5) < 1e-9);
        assert_true(fabs(pipeline_schedule_ms(load_ms, 4, 1) - 4 * 5) < 1e-9);
}

static void passes_go_as_the_list_says(void **state)
{
        double load_ms[STAGES], most = 0;
        unsigned seed = 7;

        (void) state;
        for (unsigned round = 0; round < 2000; round++) {
                size_t count = 1 + (size_t) rand_r(&seed) % STAGES;
                unsigned microbatches = 1 + (unsigned) rand_r(&seed) % (unsigned) (4 * count);
                double sum_ms = 0, largest_ms = 0, ms, compared_ms;

                for (size_t k = 0; k < count; k++) {
                        load_ms[k] = 1 + rand_r(&seed) % 100;
                        sum_ms += load_ms[k];
                        largest_ms = fmax(largest_ms, load_ms[k]);
                }
                ms = pipeline_schedule_ms(load_ms, count, microbatches);
                compared_ms = sum_ms + (microbatches - 1) * largest_ms;
                if (fabs(ms - slowly(load_ms, count, microbatches)) > 1e-6)
                        fail_msg("round %u: %g ms, by the list %g", round, ms,
                                 slowly(load_ms, count, microbatches));
                assert_true(ms <= compared_ms);
                most = fmax(most, compared_ms / ms);
        }
        assert_true(most > 1.15); /* it makes a difference */
}

/* Many microbatches, of which the first are gone through: here as many as make a difference. */
static void many_follow_one_a_largest_load(void **state)
{
        const double late_ms[] = { 10, 1, 1, 9.8 }; /* not alike before the 64th */
        const unsigned gone_through = PIPELINE_SCHEDULE_PASSES / 4;

        (void) state;
        assert_true(fabs(pipeline_schedule_ms(late_ms, 4, 64) - slowly(late_ms, 4, 64)) < 1e-6);
        assert_true(fabs(pipeline_schedule_ms(late_ms, 4, gone_through + 1000000) -
                         pipeline_schedule_ms(late_ms, 4, gone_through) - 1e7) < 1e-3);
}

static void more_stages_than_are_gone_through(void **state)
{
        double *load_ms = calloc(PIPELINE_SCHEDULE_STAGES_MAX + 1, sizeof(*load_ms));

        (void) state;
        assert_non_null(load_ms);
        load_ms[0] = 4;
        load_ms[PIPELINE_SCHEDULE_STAGES_MAX] = 2;
        assert_true(fabs(pipeline_schedule_ms(load_ms, PIPELINE_SCHEDULE_STAGES_MAX + 1, 3) - 14) < 1e-9);
        load_ms[PIPELINE_SCHEDULE_STAGES_MAX - 1] = 2;
        assert_true(pipeline_schedule_ms(load_ms, PIPELINE_SCHEDULE_STAGES_MAX, 1 << 30) < 1e11);
        free(load_ms);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_example_of_the_header),
                cmocka_unit_test(alike_stages_are_what_planners_minimise),
                cmocka_unit_test(passes_go_as_the_list_says),
                cmocka_unit_test(many_follow_one_a_largest_load),
                cmocka_unit_test(more_stages_than_are_gone_through),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
