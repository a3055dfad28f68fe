/* A file of measurements is taken as a whole or not at all, and applied to the same cards alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "agent/inventory/measured_json.h"
#include "base/cleanup.h"
#include "base/text.h"

#define ROW                                                                                                  \
        "\"group\": \"cpu-0\", \"vendor\": \"cpu\", \"model\": \"Xeon\", \"kernel\": \"sgemm-openblas\", "   \
        "\"precision\": \"fp32\", \"gflops\": 14.25, \"time\": \"2026-11-21T10:00:00Z\""
#define FILE_OF(rows) "{\"version\": 1, \"measured\": [" rows "]}"

/* clang-format off */
static const struct { const char *what, *text, *error; /* NULL = accepted */ } files[] = {
        { "one group",             FILE_OF("{" ROW "}"),                                    NULL },
        { "none",                  FILE_OF(""),                                             NULL },
        { "no list",               "{\"version\": 1}",                                      NULL },
        { "another version",       "{\"version\": 2, \"measured\": []}",                    "version" },
        { "no version",            "{\"measured\": []}",                                    "version" },
        { "no object",             "[]",                                                    "object" },
        { "a stranger's field",    FILE_OF("{" ROW ", \"x\": 1}"),                          "measured[0].x" },
        { "a field is missing",    FILE_OF("{\"group\": \"cpu-0\"}"),                       "measured[0].vendor" },
        { "no row",                FILE_OF("7"),                                            "measured[0]" },
        { "a text for a number",   FILE_OF("{\"group\": 7, \"vendor\": \"\", \"model\": \"\", \"kernel\": \"\", \"gflops\": 1, \"time\": \"\"}"), "measured[0].group" },
        { "no such precision",     FILE_OF("{\"group\": \"g\", \"vendor\": \"v\", \"model\": \"m\", \"kernel\": \"k\", \"precision\": \"tf32\"}"), "measured[0].precision" },
        { "the second is wrong",   FILE_OF("{" ROW "}, {}"),                                "measured[1].group" },
};
/* clang-format on */

static void a_file_is_taken_whole_or_refused_with_the_place(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                json_t *value = json_loads(files[i].text, 0, NULL);
                struct measured_json_list list = { NULL, 0 };
                struct err err = { 0 };
                int r = measured_json_decode(value, &list, &err);

                if ((r == 0) != (files[i].error == NULL) ||
                    (r < 0 && (r != -EBADMSG || strstr(err.msg, files[i].error) == NULL)))
                        fail_msg("%s: %d '%s'", files[i].what, r, err.msg);
                measured_json_free(&list);
                json_decref(value);
        }
}

static void numbers_have_bounds(void **state)
{
        static const char *const wrong[] = { "0", "-1", "1e10", "\"14\"", "null", "true" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                struct measured_json_list list = { NULL, 0 };
                struct err err = { 0 };
                char text[400];
                json_t *value;

                (void) text_format(
                        text, sizeof(text),
                        FILE_OF("{\"group\": \"g\", \"vendor\": \"v\", \"model\": \"m\", \"kernel\": "
                                "\"k\", \"gflops\": %s, \"time\": \"2026-11-21T10:00:00Z\"}"),
                        wrong[i]);
                value = json_loads(text, 0, NULL);
                if (measured_json_decode(value, &list, &err) != -EBADMSG)
                        fail_msg("gflops %s is taken", wrong[i]);
                json_decref(value);
        }
}

static void a_figure_goes_to_the_same_group_alone(void **state)
{
        CLEANUP(inventory_free) struct inventory inventory;
        struct measured_json_list list = { NULL, 0 };
        struct device_group *group;
        struct err err = { 0 };
        json_t *value = json_loads(files[0].text, 0, NULL), *again;

        (void) state;
        assert_int_equal(measured_json_decode(value, &list, &err), 0);
        inventory_init(&inventory);
        group = inventory_add_group(&inventory);
        assert_non_null(group);
        (void) text_copy(group->name, sizeof(group->name), "cpu-0");
        (void) text_copy(group->vendor, sizeof(group->vendor), "cpu");
        (void) text_copy(group->model, sizeof(group->model), "another Xeon");
        measured_json_apply(&list, &inventory);
        assert_string_equal(group->measured_kernel, "");
        (void) text_copy(group->model, sizeof(group->model), "Xeon");
        measured_json_apply(&list, &inventory);
        assert_string_equal(group->measured_kernel, "sgemm-openblas");
        again = measured_json_encode(&inventory);
        assert_true(json_equal(value, again));
        json_decref(again);
        json_decref(value);
        measured_json_free(&list);
}

static void a_figure_of_before_is_of_single_precision(void **state)
{
        struct measured_json_list list = { NULL, 0 };
        struct err err = { 0 };
        json_t *value = json_loads(files[0].text, 0, NULL);

        (void) state;
        (void) json_object_del(json_array_get(json_object_get(value, "measured"), 0), "precision");
        assert_int_equal(measured_json_decode(value, &list, &err), 0);
        assert_string_equal(list.groups[0].measured_precision, "fp32");
        measured_json_free(&list);
        json_decref(value);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_file_is_taken_whole_or_refused_with_the_place),
                cmocka_unit_test(numbers_have_bounds),
                cmocka_unit_test(a_figure_goes_to_the_same_group_alone),
                cmocka_unit_test(a_figure_of_before_is_of_single_precision),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
