/* Numbers: a row is what is found look after look, and the numbers that it has to have then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/inventory/numbers.h"
#include "base/cleanup.h"
#include "base/text.h"

/* "id@slot id@slot:" - devices in the order in which discovery counts them; '+' before one: it has the
 * ordinal of the one before it, '/' a change of vendor. No '@': it is no PCI device. */
/* clang-format off */
static const struct {
        const char *what, *looks[4], *numbers[4];
} rows[] = {
        { "as they are counted", { "a@1 b@2 c@3" }, { "0 1 2" } },
        { "one is lost, and is back", { "a@1 b@2 c@3", "a@1 c@3", "c@3", "a@1 b@2 c@3" }, { "0 1 2", "0 2", "2", "0 1 2" } },
        { "a number is given to nobody else", { "a@1 b@2", "b@2", "b@2 d@4", "a@1 b@2 d@4" }, { "0 1", "1", "1 2", "0 1 2" } },
        { "one comes before others", { "b@2 c@3", "a@1 b@2 c@3" }, { "0 1", "2 0 1" } },
        { "another in its slot has the slot's", { "a@1 b@2", "a@1 x@2", "a@1 b@2" }, { "0 1", "0 1", "0 1" } },
        { "it takes its number to another slot", { "a@1 b@2", "b@1 c@2", "a@3 b@1 c@2" }, { "0 1", "1 2", "0 1 2" } },
        { "its id is gone with its driver", { "a@1 b@2", "1@1 b@2", "b@2" }, { "0 1", "0 1", "1" } },
        { "parts of one have one number", { "a@1 b@2 c@3", "a@1 p@2 +q@2 c@3", "p@2 +q@2 c@3" }, { "0 1 2", "0 1 1 2", "1 1 2" } },
        { "parts that are counted one by one", { "a@1 b@2", "p@1 q@1 b@2", "a@1 b@2" }, { "0 1", "0 2 1", "0 1" } },
        { "each vendor counts for itself", { "a@1 b@2 /v@3 w@4", "b@2 /w@4" }, { "0 1 0 1", "1 1" } },
        { "no PCI device", { "cpu-0 cpu-1", "cpu-1", "cpu-1 cpu-2" }, { "0 1", "1", "1 2" } },
        { "nothing", { "", "a@1", "" }, { "", "0", "" } },
};
/* clang-format on */

static void find(const char *look, struct inventory *inventory)
{
        char words[128], *rest = words, *word;
        unsigned vendor = 0, ordinal = 0;

        inventory_init(inventory);
        assert_true(text_copy(words, sizeof(words), look));
        while ((word = strtok_r(rest, " ", &rest)) != NULL) {
                struct device *d = inventory_add_device(inventory);
                char *slot;

                assert_non_null(d);
                if (*word == '/') {
                        word++;
                        vendor++;
                        ordinal = 0;
                }
                d->ordinal = d->index = *word == '+' ? ordinal - 1 : ordinal++;
                word += *word == '+';
                slot = strchr(word, '@');
                if (slot != NULL) {
                        *slot = '\0';
                        (void) text_format(d->pci, sizeof(d->pci), "0000:0%s:00.0", slot + 1);
                }
                (void) text_copy(d->id, sizeof(d->id), word);
                (void) text_format(d->vendor, sizeof(d->vendor), "v%u", vendor);
        }
}

static void a_number_stays(void **state)
{
        size_t wrong = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct numbers numbers = { 0 };

                for (size_t l = 0; l < ARRAY_SIZE(rows[i].looks) && rows[i].looks[l] != NULL; l++) {
                        CLEANUP(text_free) struct text got = { 0 };
                        struct inventory inventory;

                        find(rows[i].looks[l], &inventory);
                        assert_int_equal(numbers_keep(&numbers, &inventory), 0);
                        for (size_t d = 0; d < inventory.device_count; d++)
                                text_printf(&got, "%s%u", d > 0 ? " " : "", inventory.devices[d].index);
                        if (strcmp(got.data != NULL ? got.data : "", rows[i].numbers[l]) != 0) {
                                print_error("%s, look %zu: want %s, got %s\n", rows[i].what, l,
                                            rows[i].numbers[l], got.data);
                                wrong++;
                        }
                        inventory_free(&inventory);
                }
                numbers_free(&numbers);
        }
        assert_int_equal(wrong, 0);
}

static void what_a_fresh_look_would_say_is_known(void **state)
{
        static const struct {
                const char *look;
                bool moved;
        } looks[] = { { "a@1 b@2", false }, { "b@2", true }, { "a@1 b@2", false }, { "a@1 b@2 c@3", false } };
        struct numbers numbers = { 0 };
        uint64_t hash = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
                struct inventory inventory;

                find(looks[i].look, &inventory);
                assert_int_equal(numbers_keep(&numbers, &inventory), 0);
                assert_int_equal(numbers.moved, looks[i].moved);
                assert_true((numbers_hash(&numbers) == hash) == (i == 1 || i == 2));
                hash = numbers_hash(&numbers);
                inventory_free(&inventory);
        }
        numbers_free(&numbers);
}

static void many_that_come_and_go_have_an_end(void **state)
{
        struct numbers numbers = { 0 };

        (void) state;
        for (unsigned i = 0; i < NUMBERS_MAX + 3; i++) {
                char look[16];
                struct inventory inventory;

                (void) text_format(look, sizeof(look), "p-%u", i);
                find(look, &inventory);
                assert_int_equal(numbers_keep(&numbers, &inventory), 0);
                assert_int_equal(inventory.devices[0].index, i < NUMBERS_MAX ? i : NUMBERS_MAX);
                inventory_free(&inventory);
        }
        assert_int_equal(numbers.count, NUMBERS_MAX);
        numbers_free(&numbers);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_number_stays),
                cmocka_unit_test(what_a_fresh_look_would_say_is_known),
                cmocka_unit_test(many_that_come_and_go_have_an_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
