/* Ranges: lists as the kernel writes them, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/ranges.h"

static void members_are_told_in_their_order(void **state)
{
        unsigned members[8] = { 0 };

        (void) state;
        assert_int_equal(ranges_parse("0-2,8,10-11", members, ARRAY_SIZE(members)), 6);
        for (size_t i = 0; i < 6; i++)
                assert_int_equal(members[i], ((const unsigned[]){ 0, 1, 2, 8, 10, 11 })[i]);
        assert_int_equal(ranges_parse("", members, ARRAY_SIZE(members)), 0);
        assert_int_equal(ranges_parse("999999999", members, ARRAY_SIZE(members)), 1);
        assert_int_equal(members[0], 999999999);
}

static void more_than_there_is_room_for_are_counted(void **state)
{
        unsigned members[2] = { 7, 7 };

        (void) state;
        assert_int_equal(ranges_parse("4-9", members, 1), 6);
        assert_int_equal(members[0], 4);
        assert_int_equal(members[1], 7);
        assert_int_equal(ranges_parse("0-65534", NULL, 0), 65535);
}

static void what_is_no_list_is_refused(void **state)
{
        static const char *const wrong[] = { "x",   "-1",    "1-",      "1,",        "1,,2",      ",1",
                                             "3-1", "1-2-3", "1 2",     "1;2",       "1\n",       "1-x",
                                             "+1",  " 1",    "0-65536", "0,0-65535", "1000000000" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                if (ranges_parse(wrong[i], NULL, 0) != -EINVAL)
                        fail_msg("'%s' was taken", wrong[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(members_are_told_in_their_order),
                cmocka_unit_test(more_than_there_is_room_for_are_counted),
                cmocka_unit_test(what_is_no_list_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
