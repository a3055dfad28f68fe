/* Between which times a job may end: a row a history. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "job/plan/progress/job_left.h"

#define ROWS 12

/* A second each; samples that were done in it. */
static const struct {
        const char *what;
        uint64_t done[ROWS];
        size_t count;
        double left_sec;            /* at the rate of now; 1000 samples are left */
        double least_sec, most_sec; /* 0 = nothing is known */
} cases[] = {
        { "ten windows",
          { 100, 80, 200, 95, 100, 90, 105, 110, 100, 120 },
          10,
          10,
          1000.0 / 120,
          1000.0 / 80 },
        { "all alike", { 100, 100, 100, 100, 100 }, 5, 10, 10, 10 },
        { "too few", { 100, 100, 100, 100 }, 4, 10, 0, 0 },
        { "of now it is slower than ever", { 100, 100, 100, 100, 100 }, 5, 40, 10, 40 },
        { "of now it is faster than ever", { 100, 100, 100, 100, 100 }, 5, 2, 2, 10 },
        /* a step of two seconds is one window, and so is what stood still before it */
        { "long steps", { 0, 100, 0, 100, 0, 100, 0, 100, 0, 100, 0, 0 }, 12, 20, 20, 20 },
        { "nothing is done", { 0, 0, 0, 0, 0, 0, 0 }, 7, 10, 0, 0 },
        { "no rate", { 100, 100, 100, 100, 100 }, 5, 0, 0, 0 },
};

static void check(size_t i, const struct job_progress_point *points, size_t count)
{
        double least = 0, most = 0;
        bool known = job_left_spread(points, count, 1000, cases[i].left_sec, &least, &most);

        if (known != (cases[i].most_sec > 0) || fabs(least - cases[i].least_sec) > 1e-9 ||
            fabs(most - cases[i].most_sec) > 1e-9)
                fail_msg("%s: %d, %g to %g", cases[i].what, known, least, most);
}

static void windows_say_how_sure_the_time_left_is(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct job_progress_point points[ROWS + 1] = { { .world = 2 } };

                for (size_t k = 0; k < cases[i].count; k++)
                        points[k + 1] = (struct job_progress_point){ .seconds = (double) k + 1,
                                                                     .world = 2,
                                                                     .samples = points[k].samples +
                                                                                cases[i].done[k] };
                check(i, points, cases[i].count + 1);
        }
}

/* What another world did, and samples that a repair took back, are in no window. */
static void a_world_stands_for_itself(void **state)
{
        struct job_progress_point points[JOB_PROGRESS_POINTS_MAX + 2] = { { .world = 0 } };
        double least, most;

        (void) state;
        for (size_t i = 1; i < 20; i++)
                points[i] = (struct job_progress_point){ .seconds = (double) i, .samples = 5000 * i };
        for (size_t i = 20; i < 26; i++)
                points[i] =
                        (struct job_progress_point){ .seconds = (double) i, .world = 1, .samples = 100 * i };
        assert_true(job_left_spread(points, 26, 1000, 10, &least, &most));
        assert_true(least == 10 && most == 10);
        points[25].samples = 0;
        assert_false(job_left_spread(points, 26, 1000, 10, &least, &most));
        assert_false(job_left_spread(points, 0, 1000, 10, &least, &most));
        for (size_t i = 0; i < JOB_PROGRESS_POINTS_MAX + 2; i++) /* more than are ever kept */
                points[i] = (struct job_progress_point){ .seconds = (double) i, .samples = 100 * i };
        assert_true(job_left_spread(points, JOB_PROGRESS_POINTS_MAX + 2, 1000, 10, &least, &most));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(windows_say_how_sure_the_time_left_is),
                cmocka_unit_test(a_world_stands_for_itself),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
