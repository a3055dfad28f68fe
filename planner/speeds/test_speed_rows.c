/* Speed table: rows as people and other programs may leave them, and the ends of what is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/speeds/speed_table.h"

#define LONG_WORD                                                                                            \
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"                     \
        "abcdefghijklmnopqrstuvwxyz"
#define GOOD "{\"alpha_ms\": 1, \"beta_ms\": 0.5}"

/* clang-format off */
static const struct {
        const char *what, *key, *row;
        bool taken;
} rows[] = {
        { "a row",                      "-/mlp/H100",            GOOD, true },
        { "a device with slashes",      "-/mlp/H100/x/y",        GOOD, true },
        { "no slash",                   "mlp",                   GOOD, false },
        { "one slash",                  "-/mlp",                 GOOD, false },
        { "no program",                 "/mlp/H100",             GOOD, false },
        { "no model",                   "-//H100",               GOOD, false },
        { "no device",                  "-/mlp/",                GOOD, false },
        { "a program too long",         LONG_WORD "/mlp/H100",   GOOD, false },
        { "a model too long",           "-/" LONG_WORD "/H100",  GOOD, false },
        { "a device too long",          "-/mlp/" LONG_WORD,      GOOD, false },
        { "no object",                  "-/mlp/H100",            "7", false },
        { "no alpha",                   "-/mlp/H100",            "{\"beta_ms\": 0.5}", true },
        { "a negative alpha",           "-/mlp/H100",            "{\"alpha_ms\": -1, \"beta_ms\": 0.5}", false },
        { "an alpha past all",          "-/mlp/H100",            "{\"alpha_ms\": 1e300, \"beta_ms\": 0.5}", false },
        { "no beta",                    "-/mlp/H100",            "{\"alpha_ms\": 1}", false },
        { "a beta of nothing",          "-/mlp/H100",            "{\"alpha_ms\": 1, \"beta_ms\": 0}", false },
        { "a beta past all",            "-/mlp/H100",            "{\"alpha_ms\": 1, \"beta_ms\": 1e300}", false },
        { "sums of nothing",            "-/mlp/H100",            "{\"alpha_ms\": 1, \"beta_ms\": 1, \"fit\": 7}", true },
        { "sums that cannot be",        "-/mlp/H100",            "{\"alpha_ms\": 1, \"beta_ms\": 1, \"fit\": {\"one\": 1, \"batch\": 9, \"batch_batch\": 1, \"weight\": 3}}", true },
        { "too much experience",        "-/mlp/H100",            "{\"alpha_ms\": 1, \"beta_ms\": 1, \"fit\": {\"one\": 1, \"batch\": 1, \"batch_batch\": 1, \"ms\": 1, \"batch_ms\": 1, \"weight\": 1e9}}", true },
        { "a deviation below 0",        "-/mlp/H100",            "{\"alpha_ms\": 1, \"beta_ms\": 1, \"fit\": {\"one\": 1, \"batch\": 1, \"batch_batch\": 1, \"ms\": 1, \"batch_ms\": 1, \"weight\": 3, \"deviation\": -1}}", true },
        { "a deviation past all",       "-/mlp/H100",            "{\"alpha_ms\": 1, \"beta_ms\": 1, \"fit\": {\"one\": 1, \"batch\": 1, \"batch_batch\": 1, \"ms\": 1, \"batch_ms\": 1, \"weight\": 3, \"deviation\": 1e9}}", true },
};

static const struct {
        const char *what, *object, *why; /* NULL: it is a table */
} objects[] = {
        { "a list",                  "[]",                              "an object" },
        { "of another kind",         "{\"kind\": \"Node\"}",            "'Node' is not SpeedTable" },
        { "speeds that are none",    "{\"speeds\": 7}",                 "speeds: an object is needed" },
        { "nothing in it",           "{}",                              NULL },
        { "in its spec",             "{\"spec\": {\"speeds\": {}}}",    NULL },
        { "a kind that is a number", "{\"kind\": 7}",                   NULL },
};

static const struct speed_table_observation in_vain[] = {
        { .program = LONG_WORD LONG_WORD LONG_WORD, .model = LONG_WORD, .device = LONG_WORD, .batch = 8, .step_ms = 4, .weight = 1 },
        { .program = NULL, .model = LONG_WORD, .device = "H100", .batch = 8, .step_ms = 4, .weight = 1 },
        { .program = "", .model = "", .device = "H100", .batch = 8, .step_ms = 4, .weight = 1 },
        { .program = "p", .model = "mlp", .device = "H100", .batch = 0, .step_ms = 4, .weight = 1 },
        { .program = "p", .model = "mlp", .device = "H100", .batch = 8, .step_ms = 0, .weight = 1 },
        { .program = "p", .model = "mlp", .device = "H100", .batch = 8, .step_ms = NAN, .weight = 1 },
        { .program = "p", .model = "mlp", .device = "H100", .batch = 8, .step_ms = 1e30, .weight = 1 },
        { .program = "p", .model = "mlp", .device = "H100", .batch = 8, .step_ms = 1e-10, .weight = 1 },
        { .program = "p", .model = "mlp", .device = "H100", .batch = 8, .step_ms = 4, .weight = 1e30 },
        { .program = "p", .model = "mlp", .device = "H100", .batch = 8, .step_ms = 4, .weight = -1 },
};
/* clang-format on */

static json_t *parsed(const char *text)
{
        json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

        assert_non_null(value);
        return value;
}

static void each_row_is_taken_or_passed_over(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                json_t *object = json_pack("{s:{s:o}}", "speeds", rows[i].key, parsed(rows[i].row));
                struct speed_table table;

                assert_non_null(object);
                assert_int_equal(speed_table_decode(object, &table, NULL), 0);
                if (table.count != rows[i].taken || (table.trouble[0] == '\0') != rows[i].taken)
                        fail_msg("%s: %zu rows, '%s'", rows[i].what, table.count, table.trouble);
                if (rows[i].taken && table.rows[0].fit.weight > 0) /* sums that make no sense are lost */
                        fail_msg("%s: weight %g", rows[i].what, table.rows[0].fit.weight);
                speed_table_free(&table);
                json_decref(object);
        }
        for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
                json_t *object = parsed(objects[i].object);
                struct speed_table table;
                struct err err = { 0 };
                int r = speed_table_decode(object, &table, &err);

                if (objects[i].why == NULL ? r != 0 : r == 0 || strstr(err.msg, objects[i].why) == NULL)
                        fail_msg("%s: %d '%s'", objects[i].what, r, err.msg);
                speed_table_free(&table);
                json_decref(object);
        }
}

static void what_was_seen_in_vain_changes_nothing(void **state)
{
        static const struct speed_table_observation good = {
                .model = "mlp", .device = "H100", .batch = 8, .step_ms = 4, .weight = 1
        };
        json_t *table = speed_table_refine(NULL, in_vain, ARRAY_SIZE(in_vain), 5000000, NULL), *next;

        (void) state;
        assert_non_null(table);
        assert_int_equal(json_object_size(speed_table_speeds(table)), 0);
        json_decref(table);
        table = parsed("{\"note\": 7}"); /* what it holds besides stays, and speeds are made */
        next = speed_table_refine(table, &good, 1, 5000000, NULL);
        assert_non_null(next);
        assert_int_equal(json_object_size(speed_table_speeds(next)), 1);
        assert_non_null(json_object_get(next, "note"));
        json_decref(next);
        json_decref(table);
        table = parsed("[]");
        assert_null(speed_table_refine(table, NULL, 0, 0, NULL));
        json_decref(table);
}

static void no_more_is_kept_than_can_be(void **state)
{
        struct speed_table table = { 0 }, more = { 0 };
        struct speed_table_row row = { .program = "-", .model = "mlp", .beta_ms = 1 };
        char device[SPEED_TABLE_DEVICE_BYTES];

        (void) state;
        for (unsigned i = 0; i <= SPEED_TABLE_KEPT_MAX; i++) {
                assert_true(text_format(row.device, sizeof(row.device), "H%u", i));
                assert_int_equal(speed_table_keep(&table, &row), 0);
        }
        assert_int_equal(table.count, SPEED_TABLE_KEPT_MAX);
        assert_null(speed_table_find(&table, NULL, "mlp", row.device)); /* the one too many */
        assert_non_null(speed_table_find(&table, NULL, "mlp", "H0"));
        (void) text_copy(row.device, sizeof(row.device), "H7");
        (void) text_copy(row.model, sizeof(row.model), "cnn"); /* of another model: another key */
        assert_int_equal(speed_table_keep(&table, &row), 0);
        (void) text_copy(row.model, sizeof(row.model), "mlp");
        row.beta_ms = 2;
        assert_int_equal(speed_table_keep(&more, &row), 0);
        assert_int_equal(speed_table_add(&table, &more), 0);
        assert_true(speed_table_find(&table, "", "mlp", "H7")->beta_ms > 1.5);
        speed_table_free(&table);
        speed_table_free(&more);
        speed_table_device(device, "H100", 1);
        assert_string_equal(device, "H100");
        speed_table_device(device, "H100", 2);
        assert_string_equal(device, "H100 (shared by 2)");
        speed_table_device(device, "H100", 1000000);
        assert_string_equal(device, "H100 (shared by 9999)");
}

/* Of a table that is written, the ones that were not touched longest go; those that make no sense first. */
static void the_oldest_rows_go(void **state)
{
        struct speed_table_observation seen = {
                .model = "new", .device = "H100", .batch = 8, .step_ms = 4, .weight = 1
        };
        json_t *speeds = json_object(), *object = json_pack("{s:o}", "speeds", speeds), *next;

        (void) state;
        for (unsigned i = 0; i < SPEED_TABLE_ROWS_MAX; i++) {
                const char *updated = i % 2 == 0 ? "2026-11-21T10:00:00Z" : "2026-11-22T10:00:00Z";
                json_t *row =
                        json_pack("{s:f, s:f, s:s}", "alpha_ms", 1.0, "beta_ms", 1.0, "updated", updated);
                char key[64];

                assert_true(text_format(key, sizeof(key), "%s%u", i == 7 ? "" : "-/mlp/H", i));
                assert_int_equal(json_object_set_new(speeds, key, row), 0);
        }
        next = speed_table_refine(object, &seen, 1, 1800000000000000, NULL);
        assert_non_null(next);
        assert_int_equal(json_object_size(speed_table_speeds(next)), SPEED_TABLE_ROWS_MAX);
        assert_null(json_object_get(speed_table_speeds(next), "7"));
        assert_non_null(json_object_get(speed_table_speeds(next), "-/mlp/H0"));
        json_decref(object);
        object = next;
        seen.model = "other";
        next = speed_table_refine(object, &seen, 1, 1800000000000000, NULL);
        assert_non_null(next);
        assert_null(json_object_get(speed_table_speeds(next), "-/mlp/H0"));
        assert_non_null(json_object_get(speed_table_speeds(next), "-/mlp/H1"));
        json_decref(object);
        json_decref(next);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_row_is_taken_or_passed_over),
                cmocka_unit_test(what_was_seen_in_vain_changes_nothing),
                cmocka_unit_test(no_more_is_kept_than_can_be),
                cmocka_unit_test(the_oldest_rows_go),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
