/* Lines of JSON: one object each, of a length that the reader allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_line.h"

static void a_line_comes_back_if_it_is_not_too_long(void **state)
{
        CLEANUP(text_free) struct text out = { 0 };
        struct err err = { 0 };
        json_t *read;

        (void) state;
        json_line_append(&out, json_pack("{s:s}", "a", "b\n"));
        json_line_append(&out, NULL); /* what there was no memory for is no line */
        assert_string_equal(out.data, "{\"a\":\"b\\n\"}\n");
        read = json_line_load(out.data, out.size_bytes - 1, out.size_bytes - 1, &err);
        assert_string_equal(json_string_value(json_object_get(read, "a")), "b\n");
        json_decref(read);
        assert_null(json_line_load(out.data, out.size_bytes - 1, out.size_bytes - 2, &err));
        assert_string_equal(err.msg, "a line that is not JSON");
        assert_null(json_line_load("{\"a\":1,\"a\":2}", 13, 100, NULL));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_line_comes_back_if_it_is_not_too_long),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
