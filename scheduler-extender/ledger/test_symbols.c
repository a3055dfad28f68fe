/* Symbols: names come back, one bringer cannot fill the table of all, and places are given back. */
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

/* Whoever still holds the number of a name that is gone holds nothing, for ever. */
static void a_place_that_is_taken_again_has_another_number(void **state)
{
        struct symbols symbols = { 0 };
        uint32_t kept = symbols_keep(&symbols, "nvidia.com/gpu"), used = symbols_add(&symbols, "H100"),
                 gone = symbols_add(&symbols, "H200"), again;
        bool uses[3] = { false };

        (void) state;
        assert_int_equal(symbols.added, 3);
        uses[symbols_index(&symbols, used)] = true;
        symbols_release(&symbols, uses);
        assert_true(symbols.count == 2 && symbols.released == 1 && symbols.added == 0);
        assert_string_equal(symbols_name(&symbols, kept), "nvidia.com/gpu");
        assert_string_equal(symbols_name(&symbols, used), "H100");
        assert_string_equal(symbols_name(&symbols, gone), "");
        assert_int_equal(symbols_index(&symbols, gone), SYMBOLS_NONE);
        assert_int_equal(symbols_find(&symbols, "H200", 4), 0);
        again = symbols_add(&symbols, "B200");
        assert_true(symbols.top == 3 && symbols.count == 3 && again != gone && again != 0);
        assert_string_equal(symbols_name(&symbols, again), "B200");
        assert_string_equal(symbols_name(&symbols, gone), "");
        assert_int_equal(symbols_add(&symbols, "H100"), used);
        symbols_free(&symbols);
}

/* Full, and every other name goes: there is room for as many as went, whatever they are called. */
static void a_full_table_has_room_again(void **state)
{
        static bool uses[SYMBOLS_MAX];
        struct symbols symbols = { 0 }, copy = { 0 };
        char name[32];

        (void) state;
        for (unsigned i = 0; i < SYMBOLS_MAX; i++) {
                (void) text_format(name, sizeof(name), "name-%u", i);
                assert_int_not_equal(symbols_add(&symbols, name), 0);
                uses[i] = i % 2 == 0;
        }
        assert_int_equal(symbols_add(&symbols, "one more"), 0);
        symbols_release(&symbols, uses);
        assert_int_equal(symbols.count, SYMBOLS_MAX / 2);
        assert_int_equal(symbols_copy(&symbols, &copy), 0);
        for (unsigned i = 0; i < SYMBOLS_MAX; i++) {
                uint32_t symbol;

                (void) text_format(name, sizeof(name), "name-%u", i);
                symbol = symbols_find(&symbols, name, strlen(name));
                if ((symbol != 0) != (i % 2 == 0) || symbols_find(&copy, name, strlen(name)) != symbol)
                        fail_msg("%s", name);
                (void) text_format(name, sizeof(name), "other-%u", i);
                if ((symbols_add(&symbols, name) != 0) != (i < SYMBOLS_MAX / 2))
                        fail_msg("%s", name);
        }
        assert_int_equal(symbols_add(&copy, "other-0"), symbols_find(&symbols, "other-0", 7));
        symbols_free(&copy);
        symbols_free(&symbols);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_name_has_one_number),
                cmocka_unit_test(a_bringer_of_ever_new_names_is_stopped_alone),
                cmocka_unit_test(a_place_that_is_taken_again_has_another_number),
                cmocka_unit_test(a_full_table_has_room_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
