/* Who is behind, by how much, and how far apart all are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/world/staleness.h"

static void workers_are_behind_the_first(void **state)
{
        struct staleness s = { .workers = 0 };

        (void) state;
        assert_true(staleness_mean(&s) == 0 && staleness_max(&s) == 0 && staleness_behind(&s, 3) == 0);
        staleness_add(&s, 10);
        assert_true(staleness_mean(&s) == 0 && staleness_max(&s) == 0);
        staleness_add(&s, 12);
        staleness_add(&s, 5);
        assert_true(staleness_mean(&s) == 3);
        assert_int_equal(staleness_max(&s), 7);
        assert_int_equal(staleness_behind(&s, 12), 0);
        assert_int_equal(staleness_behind(&s, 10), 2);
        assert_int_equal(staleness_behind(&s, 5), 7);
        staleness_add(&s, 12);
        staleness_add(&s, 12);
        staleness_add(&s, 12);
        assert_true(staleness_mean(&s) == 1.5);
        staleness_add(&s, 12);
        assert_true(staleness_mean(&s) == 1.29); /* 9 / 7 */
}

static void who_has_said_nothing_is_not_behind(void **state)
{
        (void) state;
        assert_true(staleness_is_told("ps-ssp") && staleness_is_told("ps-async"));
        assert_false(staleness_is_told("ps-sync") || staleness_is_told("allreduce") || staleness_is_told(""));
        assert_false(staleness_counts(0, 0));
        assert_true(staleness_counts(0, 1) && staleness_counts(1, 0));
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(workers_are_behind_the_first),
                                            cmocka_unit_test(who_has_said_nothing_is_not_behind) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
