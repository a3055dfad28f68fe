/* Core groups: each name finds its chip, and what is no such chip none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/inventory/core_group.h"
#include "base/cleanup.h"

/* clang-format off */
static const struct {
        const char *text, *chip; /* NULL = none */
        unsigned cores;          /* of a chip, all of them */
        size_t store_kib;
} rows[] = {
        { "SW26010", "SW26010", 260, 64 },
        { "SW26010-Pro", "SW26010-Pro", 390, 256 },
        { "sw26010p", "SW26010-Pro", 390, 256 },
        { "SW39000", "SW26010-Pro", 390, 256 },
        { "processor\t: 0\nmodel name\t: SW26010-Pro\nCPU frequency\t: 2100.00MHz\n", "SW26010-Pro", 390, 256 },
        { "processor\t: 0\nmodel name\t: SW26010\n", "SW26010", 260, 64 },
        { "SW3231", NULL, 0, 0 },
        { "", NULL, 0, 0 },
};
/* clang-format on */

static void names_find_their_chips(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct core_group *g = core_group_find(rows[i].text);

                if (rows[i].chip == NULL) {
                        assert_null(g);
                        continue;
                }
                assert_non_null(g);
                assert_string_equal(g->chip, rows[i].chip);
                assert_int_equal(g->per_chip * (g->slave_cores + 1), rows[i].cores);
                assert_int_equal(g->store_bytes >> 10, rows[i].store_kib);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(names_find_their_chips) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
