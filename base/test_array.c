/* An array grows by zeroed elements and keeps what it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/array.h"

static void each_element_is_new_and_the_others_stay(size_t *capacity)
{
        size_t count = 0;
        long *numbers = NULL;

        for (long i = 1; i <= 100; i++) {
                long *added = array_add(&numbers, &count, capacity, sizeof(*added));

                assert_ptr_equal(added, &numbers[count - 1]);
                assert_int_equal(*added, 0);
                *added = i;
        }
        assert_int_equal(count, 100);
        for (long i = 0; i < 100; i++)
                assert_int_equal(numbers[i], i + 1);
        free(numbers);
}

static void with_and_without_room_to_spare(void **state)
{
        size_t capacity = 0;

        (void) state;
        each_element_is_new_and_the_others_stay(NULL);
        each_element_is_new_and_the_others_stay(&capacity);
        assert_true(capacity >= 100 && capacity < 200);
}

static void no_memory_changes_nothing(void **state)
{
        size_t count = SIZE_MAX / 2, capacity = count;
        char *none = NULL;

        (void) state;
        assert_null(array_add(&none, &count, NULL, 16));
        assert_null(array_add(&none, &count, &capacity, 16));
        assert_true(none == NULL && count == SIZE_MAX / 2 && capacity == count);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(with_and_without_room_to_spare),
                cmocka_unit_test(no_memory_changes_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
