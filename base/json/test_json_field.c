/* A wrong field is named by its whole path; what is absent leaves its target alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"

static int read_total(const char *json, int64_t *total, struct err *err)
{
        json_t *object = json_loads(json, 0, NULL);
        struct json_field root = json_field_root(object), status = json_field_get(&root, "status"), groups,
                          group;
        int r;

        assert_non_null(object);
        r = json_field_array(&status, "groups", 4, &groups, err);
        if (r == 0) {
                group = json_field_at(&groups, 2);
                r = json_field_int64(&group, "total", 0, 1024, total, err);
        }
        json_decref(object);
        return r;
}

/* clang-format off */
static const struct {
        const char *what, *json;
        int result;
        int64_t total;
        const char *message;
} totals[] = {
        { "a number",     "{\"status\":{\"groups\":[{},{},{\"total\":8}]}}",     0,                 8,  "" },
        { "8.0 is whole", "{\"status\":{\"groups\":[{},{},{\"total\":8.0}]}}",   0,                 8,  "" },
        { "largest",      "{\"status\":{\"groups\":[{},{},{\"total\":1024}]}}",  0,                 1024, "" },
        { "too large",    "{\"status\":{\"groups\":[{},{},{\"total\":1025}]}}",  -EBADMSG,         -1,
          "status.groups[2].total: must be a whole number in 0..1024, not 1025" },
        { "negative",     "{\"status\":{\"groups\":[{},{},{\"total\":-1}]}}",    -EBADMSG,         -1,
          "status.groups[2].total: must be a whole number in 0..1024, not -1" },
        { "a fraction",   "{\"status\":{\"groups\":[{},{},{\"total\":1.5}]}}",   -EBADMSG,         -1,
          "status.groups[2].total: must be a whole number in 0..1024, not 1.5" },
        { "text",         "{\"status\":{\"groups\":[{},{},{\"total\":\"8\"}]}}", -EBADMSG,         -1,
          "status.groups[2].total: must be a whole number, not the string '8'" },
        { "beyond 2^53",  "{\"status\":{\"groups\":[{},{},{\"total\":1e17}]}}",  -EBADMSG,         -1,
          "status.groups[2].total: must be a whole number in 0..1024, not 1e+17" },
        { "a word",       "{\"status\":{\"groups\":[{},{},{\"total\":false}]}}", -EBADMSG,         -1,
          "status.groups[2].total: must be a whole number, not true or false" },
        { "a list",       "{\"status\":{\"groups\":[{},{},{\"total\":[]}]}}",    -EBADMSG,         -1,
          "status.groups[2].total: must be a whole number, not a list" },
        { "null",         "{\"status\":{\"groups\":[{},{},{\"total\":null}]}}",  JSON_FIELD_ABSENT, -1, "" },
        { "absent",       "{\"status\":{\"groups\":[{},{},{}]}}",                JSON_FIELD_ABSENT, -1, "" },
        { "no element",   "{\"status\":{\"groups\":[]}}",                        JSON_FIELD_ABSENT, -1, "" },
        { "no parent",    "{}",                                                  JSON_FIELD_ABSENT, -1, "" },
        { "not a list",   "{\"status\":{\"groups\":{}}}",                        -EBADMSG,         -1,
          "status.groups: must be a list, not an object" },
        { "long list",    "{\"status\":{\"groups\":[1,2,3,4,5]}}",               -EBADMSG,         -1,
          "status.groups: must have at most 4 elements, not 5" },
};
/* clang-format on */

static void says_where_a_number_is_wrong(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(totals); i++) {
                struct err err = { 0 };
                int64_t total = -1;
                int r = read_total(totals[i].json, &total, &err);

                if (r != totals[i].result || total != totals[i].total ||
                    strcmp(err.msg, totals[i].message) != 0)
                        fail_msg("%s: got %d, %lld, '%s'", totals[i].what, r, (long long) total, err.msg);
        }
}

static void reads_every_type(void **state)
{
        json_t *object = json_loads("{\"s\":\"text\",\"b\":true,\"d\":0.5,\"u\":7,\"c\":\"packed\",\"o\":{}}",
                                    0, NULL);
        struct json_field root = json_field_root(object), inner;
        static const char *const choices[] = { "uniform", "packed", NULL };
        char field[5] = "";
        bool flag = false;
        double number = 0;
        unsigned u = 0, choice = 9;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(json_field_text(&root, "s", field, sizeof(field), &err), 0);
        assert_string_equal(field, "text");
        assert_int_equal(json_field_text(&root, "s", field, 4, &err), -EBADMSG);
        assert_string_equal(err.msg, "s: must have at most 3 bytes, not 4");
        assert_int_equal(json_field_bool(&root, "b", &flag, &err), 0);
        assert_true(flag);
        assert_int_equal(json_field_bool(&root, "u", &flag, &err), -EBADMSG);
        assert_string_equal(err.msg, "u: must be true or false, not a number");
        assert_int_equal(json_field_double(&root, "d", 0, 1, &number, &err), 0);
        assert_true(number == 0.5);
        assert_int_equal(json_field_double(&root, "u", 0, 1, &number, &err), -EBADMSG);
        assert_int_equal(json_field_unsigned(&root, "u", 0, 7, &u, &err), 0);
        assert_int_equal(u, 7);
        assert_int_equal(json_field_choice(&root, "c", choices, &choice, &err), 0);
        assert_int_equal(choice, 1);
        assert_int_equal(json_field_choice(&root, "s", choices, &choice, &err), -EBADMSG);
        assert_string_equal(err.msg, "s: must be one of uniform, packed, not 'text'");
        assert_int_equal(json_field_object(&root, "o", &inner, &err), 0);
        assert_int_equal(json_field_require(&inner, "name", &err), -EBADMSG);
        assert_string_equal(err.msg, "o.name: is missing");
        assert_int_equal(json_field_is_object(&root, &err), 0);
        json_decref(object);
}

/* What is absent is no error, and changes nothing; null is absent, and no object. */
static void what_is_absent_stays_as_it_was(void **state)
{
        static const char *const choices[] = { "uniform", NULL };
        json_t *object = json_loads("{\"n\":null,\"z\":\"a\\u0000b\"}", JSON_ALLOW_NUL, NULL);
        struct json_field root = json_field_root(object), null = json_field_get(&root, "n"), inner;
        const char *text = "as it was";
        struct err err = { 0 };
        unsigned choice = 7;
        double number = 7;
        bool flag = true;

        (void) state;
        assert_int_equal(json_field_string(&root, "n", &text, &err), JSON_FIELD_ABSENT);
        assert_int_equal(json_field_bool(&root, "x", &flag, &err), JSON_FIELD_ABSENT);
        assert_int_equal(json_field_double(&root, "x", 0, 1, &number, &err), JSON_FIELD_ABSENT);
        assert_int_equal(json_field_choice(&root, "x", choices, &choice, &err), JSON_FIELD_ABSENT);
        assert_int_equal(json_field_unsigned(&root, "x", 0, 1, &choice, &err), JSON_FIELD_ABSENT);
        assert_int_equal(json_field_object(&root, "n", &inner, &err), JSON_FIELD_ABSENT);
        assert_true(flag && number == 7 && choice == 7 && err.code == 0);
        assert_string_equal(text, "as it was");
        assert_int_equal(json_field_is_object(&null, &err), -EBADMSG);
        assert_string_equal(err.msg, "n: must be an object, not null");
        assert_int_equal(json_field_string(&root, "z", &text, &err), -EBADMSG);
        assert_string_equal(err.msg, "z: must not contain a NUL character");
        assert_int_equal(json_field_double(&root, "z", 0, 1, &number, NULL), -EBADMSG);
        json_decref(object);
}

static void unknown_members_are_named(void **state)
{
        static const char *const names[] = { "workers", "servers", NULL };
        json_t *object =
                json_loads("{\"spec\":{\"workers\":1,\"wrokers\":2},\"good\":{\"workers\":1}}", 0, NULL);
        struct json_field root = json_field_root(object), spec = json_field_get(&root, "spec"),
                          good = json_field_get(&root, "good");
        struct err err = { 0 };

        (void) state;
        assert_int_equal(json_field_only(&good, names, JSON_FIELD_UNKNOWN, &err), 0);
        assert_int_equal(json_field_only(&spec, names, JSON_FIELD_UNKNOWN, &err), -EBADMSG);
        assert_string_equal(err.msg, "spec.wrokers: is not known here; known: workers, servers");
        json_decref(object);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(says_where_a_number_is_wrong),
                cmocka_unit_test(reads_every_type),
                cmocka_unit_test(what_is_absent_stays_as_it_was),
                cmocka_unit_test(unknown_members_are_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
