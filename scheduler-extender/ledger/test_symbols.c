/* Symbols: names come back, and one bringer cannot fill the table of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/text.h"
#include "scheduler-extender/ledger/symbols.h"

static void a_name_has_one_number(void **state)
{
        struct symbols symbols = { 0 };
        uint32_t a = symbols_add(&symbols, "nvidia.com/gpu");

        (void) state;
        assert_int_equal(symbols_add(&symbols, ""), 0);
        assert_true(a != 0 && symbols_add(&symbols, "nvidia.com/gpu") == a &&
                    symbols_add(&symbols, "H100") != a);
        assert_string_equal(symbols_name(&symbols, a), "nvidia.com/gpu");
        assert_int_equal(symbols_find(&symbols, "nvidia.com/gpu-and-more", 14), a);
        assert_int_equal(symbols_find(&symbols, "nvidia", 6), 0);
        symbols_free(&symbols);
}

/* A stolen token of one agent that writes another inventory each time: the other nodes' names still have
 * room. */
static void a_bringer_of_ever_new_names_is_stopped_alone(void **state)
{
        struct symbols symbols = { 0 };
        uint16_t hostile = 0, other = 0;
        char name[32];

        (void) state;
        assert_int_not_equal(symbols_add_of(&symbols, "H100", &other), 0);
        for (unsigned i = 0; i < 100000; i++) {
                (void) text_format(name, sizeof(name), "model-%u", i);
                if ((symbols_add_of(&symbols, name, &hostile) != 0) != (i < SYMBOLS_OF_ONE))
                        fail_msg("%u", i);
        }
        assert_int_equal(symbols.count, 1 + SYMBOLS_OF_ONE);
        assert_int_equal(symbols.refused, 100000 - SYMBOLS_OF_ONE);
        assert_int_not_equal(symbols_add_of(&symbols, "H100", &hostile), 0); /* what is known is nobody's */
        assert_int_not_equal(symbols_add_of(&symbols, "model-1", &hostile), 0);
        assert_int_not_equal(symbols_add_of(&symbols, "H200", &other), 0);
        assert_int_equal(other, 2);
        symbols_free(&symbols);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_name_has_one_number),
                cmocka_unit_test(a_bringer_of_ever_new_names_is_stopped_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
