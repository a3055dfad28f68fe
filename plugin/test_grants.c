/* Grants: what was given is held until the kubelet was asked later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plugin/grants.h"

static void what_was_given_is_held_until_the_kubelet_knows(void **state)
{
        const uint64_t given = 10000000;
        struct grants grants = { .count = 0 };

        (void) state;
        assert_false(grants_has(&grants, "a", 0));
        assert_int_equal(grants_add(&grants, "a", given, 0), 0);
        assert_true(grants_has(&grants, "a", 0)); /* nobody answered yet */
        assert_true(grants_has(&grants, "a", given - 1));
        assert_true(grants_has(&grants, "a", given + GRANTS_SETTLE_USEC - 1));
        assert_false(grants_has(&grants, "a", given + GRANTS_SETTLE_USEC));
        assert_false(grants_has(&grants, "b", 0));
        grants_free(&grants);
}

static void outdated_ones_are_forgotten(void **state)
{
        struct grants grants = { .count = 0 };

        (void) state;
        assert_int_equal(grants_add(&grants, "a", 1, 0), 0);
        assert_int_equal(grants_add(&grants, "a", 2, 0), 0);
        assert_int_equal(grants.count, 1); /* once a device */
        assert_int_equal(grants_add(&grants, "b", 9000000, 8000000), 0);
        assert_int_equal(grants.count, 1);
        assert_false(grants_has(&grants, "a", 0));
        grants_free(&grants);
}

static void what_was_given_before_the_node_was_started_is_held_by_nobody(void **state)
{
        struct grants grants = { .count = 0 };

        (void) state;
        assert_int_equal(grants_add(&grants, "a", 9000000, 0), 0);
        assert_int_equal(grants_add(&grants, "b", 5, 0), 0);
        grants_resume(&grants, 1000);
        assert_false(grants_has(&grants, "a", 0));
        assert_true(grants_has(&grants, "b", 0));
        grants_free(&grants);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_was_given_is_held_until_the_kubelet_knows),
                cmocka_unit_test(what_was_given_before_the_node_was_started_is_held_by_nobody),
                cmocka_unit_test(outdated_ones_are_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
