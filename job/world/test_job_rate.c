/* The rate of a job: over half a minute, over restarts, without news. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "job/world/job_rate.h"

static void add(struct job_rate *rate, unsigned seconds, uint64_t samples, uint64_t steps)
{
        job_rate_add(rate, (struct job_rate_point){ (uint64_t) seconds * 1000000 + 5, samples, steps });
}

static bool of(const struct job_rate *rate, unsigned now_seconds, double *samples_per_s, double *step_seconds)
{
        return job_rate_of(rate, (uint64_t) now_seconds * 1000000 + 5, samples_per_s, step_seconds);
}

static void is_of_the_window(void **state)
{
        struct job_rate rate = { .count = 0 };
        double samples, step;

        (void) state;
        assert_false(of(&rate, 0, &samples, &step));
        add(&rate, 0, 0, 0);
        assert_false(of(&rate, 0, &samples, &step)); /* one point is no rate */
        add(&rate, 10, 1000, 10);
        add(&rate, 20, 3000, 30);
        assert_true(of(&rate, 20, &samples, &step));
        assert_float_equal(samples, 150, 1e-9);
        assert_float_equal(step, 20.0 / 30, 1e-9);
        add(&rate, 40, 4000, 40);
        assert_true(of(&rate, 40, &samples, &step));
        assert_float_equal(samples, 100, 1e-9);
        assert_float_equal(step, 1, 1e-9);
        assert_true(of(&rate, 70, &samples, &step));
        assert_false(of(&rate, 71, &samples, &step)); /* nothing was heard for longer than the window */
}

static void a_restart_begins_anew(void **state)
{
        struct job_rate rate = { .count = 0 };
        double samples, step;

        (void) state;
        add(&rate, 0, 5000, 50);
        add(&rate, 10, 9000, 90);
        add(&rate, 15, 6000, 60); /* from its checkpoint */
        assert_false(of(&rate, 15, &samples, &step));
        add(&rate, 20, 6500, 65);
        assert_true(of(&rate, 20, &samples, &step));
        assert_float_equal(samples, 100, 1e-9);
}

static void a_job_that_stands_has_no_step(void **state)
{
        struct job_rate rate = { .count = 0 };
        double samples, step;

        (void) state;
        for (unsigned i = 0; i < 100; i++)
                add(&rate, i, 700, 7);
        assert_true(of(&rate, 99, &samples, &step));
        assert_true(samples == 0 && isnan(step));
}

static void many_points_keep_the_window(void **state)
{
        struct job_rate rate = { .count = 0 };
        double samples, step;

        (void) state;
        for (uint64_t i = 0; i < 10000; i++) /* ten a second; twice as fast in the last half minute */
                job_rate_add(&rate, (struct job_rate_point){ i * 100000, i < 9700 ? i : 2 * i - 9700, i });
        assert_true(job_rate_of(&rate, 9999 * 100000ULL, &samples, &step));
        assert_true(samples > 18 && samples <= 20.001); /* the edge may be a little older */
        assert_float_equal(step, 0.1, 1e-6);
        assert_true(rate.count <= JOB_RATE_POINTS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(is_of_the_window),
                cmocka_unit_test(a_restart_begins_anew),
                cmocka_unit_test(a_job_that_stands_has_no_step),
                cmocka_unit_test(many_points_keep_the_window),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
