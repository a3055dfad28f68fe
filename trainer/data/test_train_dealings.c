/* Dealings: what is printed is read again, and what nobody printed is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/data/dealings.h"

#define BATCH 40

/* clang-format off */
static const struct {
        const char *text;
        size_t count; /* 0 = refused */
} rows[] = {
        { "0 0 blocks shuffled 40\n", 1 },
        { "0 0.25 blocks shuffled 20,12,8\n107 0 round-robin as-it-lies 0,40\n", 2 },
        { "", 0 },
        { "\n", 0 },
        { "1 0 blocks shuffled 40\n", 0 },
        { "0 0 blocks shuffled 39\n", 0 },
        { "0 0 blocks shuffled 41\n", 0 },
        { "0 0 blocks shuffled 18446744073709551615,41\n", 0 },
        { "0 0 blocks shuffled 20,,20\n", 0 },
        { "0 0 blocks shuffled\n", 0 },
        { "0 0 blocks 40\n", 0 },
        { "0 1.5 blocks shuffled 40\n", 0 },
        { "0 nan blocks shuffled 40\n", 0 },
        { "0 0 spiral shuffled 40\n", 0 },
        { "0 0 blocks sorted 40\n", 0 },
        { "0 0 blocks shuffled 40\n0 0 blocks shuffled 20,20\n", 0 },
        { "0 0 blocks shuffled 40\n9 0 blocks shuffled 20,20\n8 0 blocks shuffled 40\n", 0 },
        { "0 0 blocks shuffled 40\n\n9 0 blocks shuffled 20,20\n", 0 },
};
/* clang-format on */

static void what_is_printed_is_read(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct dealings d = { 0 };
                struct err err = { 0 };
                CLEANUP(text_free) struct text printed = { 0 };
                int r = dealings_parse(rows[i].text, BATCH, &d, &err);

                if (rows[i].count == 0) {
                        if (r != -EINVAL || err.msg[0] == '\0')
                                fail_msg("row %zu: %d", i, r);
                        continue;
                }
                assert_int_equal(r, 0);
                assert_int_equal(d.count, rows[i].count);
                dealings_print(&d, &printed);
                assert_string_equal(printed.data, rows[i].text);
                dealings_free(&d);
        }
}

static void add(struct dealings *d, uint64_t from, size_t first, int wanted)
{
        size_t shares[] = { first, BATCH - first };
        struct dealing one = { .from = from, .workers = 2, .shares = shares };
        struct err err = { 0 };

        assert_int_equal(dealings_add(d, &one, &err), wanted);
}

static void what_changes_nothing_is_not_noted(void **state)
{
        struct dealings d = { 0 };

        (void) state;
        add(&d, 0, 10, 0);
        add(&d, 7, 10, 0); /* the same shares */
        assert_int_equal(d.count, 1);
        add(&d, 7, 20, 0);
        add(&d, 7, 30, 0); /* no step was done with 20 */
        assert_int_equal(d.count, 2);
        assert_int_equal(d.list[1].shares[0], 30);
        for (uint64_t from = 8; d.count < DEALINGS_MAX; from++)
                add(&d, from, from % 2, 0);
        add(&d, 5000, 20, -E2BIG);
        dealings_free(&d);
}

/* A checkpoint holds no more than is read again. */
static void what_could_not_be_read_is_not_noted(void **state)
{
        static size_t shares[DEALINGS_WORKERS_MAX + 1];
        struct dealing one = { .workers = DEALINGS_WORKERS_MAX + 1, .shares = shares };
        struct dealings d = { 0 }, again = { 0 };
        CLEANUP(text_free) struct text printed = { 0 };
        struct err err = { 0 };
        int r;

        (void) state;
        assert_int_equal(dealings_add(&d, &one, &err), -E2BIG);
        one.workers--;
        for (size_t i = 0; i < DEALINGS_WORKERS_MAX; i++)
                shares[i] = 1234567;
        do {
                r = dealings_add(&d, &one, &err);
                one.from++;
                shares[one.from % 2]++; /* the batch stays */
                shares[(one.from + 1) % 2]--;
        } while (r == 0);
        assert_int_equal(r, -E2BIG);
        dealings_print(&d, &printed);
        assert_int_equal(printed.size_bytes, d.text_bytes);
        assert_true(d.count < DEALINGS_MAX && printed.size_bytes <= DEALINGS_TEXT_MAX);
        assert_true(printed.size_bytes + printed.size_bytes / d.count > DEALINGS_TEXT_MAX);
        assert_int_equal(dealings_parse(printed.data, (size_t) 1234567 * DEALINGS_WORKERS_MAX, &again, &err),
                         0);
        assert_int_equal(again.count, d.count);
        dealings_free(&d);
        dealings_free(&again);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_printed_is_read),
                cmocka_unit_test(what_changes_nothing_is_not_noted),
                cmocka_unit_test(what_could_not_be_read_is_not_noted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
