/* What was printed is not printed again, what is new or other is, and what is gone is told once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/text.h"
#include "cli/command/changes.h"

static void note(void *userdata, const char *key, const char *row)
{
        (void) key;
        text_printf(userdata, "%s;", row);
}

static void expect_gone(struct changes *changes, const char *rows)
{
        struct text gone = { 0 };

        text_append(&gone, "");
        assert_int_equal(changes_end(changes, note, &gone), 0);
        assert_string_equal(gone.data, rows);
        text_free(&gone);
}

static void test_rows(void **state)
{
        struct changes changes = { 0 };

        (void) state;
        assert_int_equal(changes_take(&changes, "a", "8 free", "a 8 free 1 s"), CHANGE_ADDED);
        assert_int_equal(changes_take(&changes, "b", "4 free", "b 4 free 1 s"), CHANGE_ADDED);
        expect_gone(&changes, "");
        assert_int_equal(changes_take(&changes, "a", "8 free", "a 8 free 3 s"),
                         CHANGE_NONE); /* it is older */
        assert_int_equal(changes_take(&changes, "b", "3 free", "b 3 free 3 s"), CHANGE_MODIFIED);
        expect_gone(&changes, "");
        assert_true(changes_know(&changes, "a"));
        expect_gone(&changes, "a 8 free 3 s;b 3 free 3 s;"); /* as they were last, by key */
        assert_false(changes_know(&changes, "a"));
        expect_gone(&changes, ""); /* once */
        assert_int_equal(changes_take(&changes, "a", "8 free", "a"), CHANGE_ADDED);
        changes_free(&changes);
}

static void test_equal_keys(void **state)
{
        struct changes changes = { 0 };

        (void) state;
        assert_int_equal(changes_take(&changes, "n", "1", "first"), CHANGE_ADDED);
        assert_int_equal(changes_take(&changes, "n", "2", "second"), CHANGE_ADDED);
        assert_int_equal(changes_take(&changes, "n", "2", "third"), CHANGE_ADDED);
        expect_gone(&changes, "");
        assert_int_equal(changes_take(&changes, "n", "1", "first"), CHANGE_NONE);
        assert_int_equal(changes_take(&changes, "n", "3", "second"), CHANGE_MODIFIED);
        expect_gone(&changes, "third;");
        changes_free(&changes);
}

static void test_names(void **state)
{
        (void) state;
        assert_string_equal(change_name(CHANGE_ADDED), "ADDED");
        assert_string_equal(change_name(CHANGE_MODIFIED), "MODIFIED");
        assert_string_equal(change_name(CHANGE_DELETED), "DELETED");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rows),
                cmocka_unit_test(test_equal_keys),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
