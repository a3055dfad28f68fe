/* A value that is made under a name is there once, of zeros, with a name of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/name_map.h"

struct value {
        struct name_map_entry entry;
        unsigned count;
        char last;
};

static void test_make(void **state)
{
        struct name_map map = { 0 };
        char name[32];
        struct value *value;

        (void) state;
        for (unsigned round = 1; round <= 2; round++)
                for (unsigned i = 0; i < 1000; i++) {
                        (void) snprintf(name, sizeof(name), "node-%u", i);
                        value = (struct value *) name_map_make(&map, name, sizeof(*value));
                        assert_non_null(value);
                        assert_int_equal(value->last, 0);
                        assert_int_equal(++value->count, round);
                        assert_ptr_not_equal(value->entry.key, name);
                        assert_string_equal(value->entry.key, name);
                        assert_ptr_equal(name_map_find(&map, name), value);
                }
        assert_int_equal(map.count, 1000);
        for (struct name_map_entry *e = name_map_first(&map), *next; e != NULL; e = next) {
                next = name_map_next(&map, e);
                name_map_remove(&map, e);
                free(e);
        }
        assert_int_equal(map.count, 0);
        name_map_free(&map);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_make) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
