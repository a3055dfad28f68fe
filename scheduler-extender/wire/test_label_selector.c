/* Selectors of kubectl's language, and whom they choose: one a row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "scheduler-extender/decide/node_match.h"
#include "scheduler-extender/wire/label_selector.h"

/* The node has the labels zone=a, empty= and example.com/disk=ssd. */
/* clang-format off */
static const struct {
        const char *selector;
        bool chosen;
} chosen[] = {
        { "", true },
        { "  ", true },
        { "zone=a", true },
        { "zone==a", true },
        { " zone = a ", true },
        { "zone=b", false },
        { "zon=a", false },
        { "zone!=b", true },
        { "zone != a", false },
        { "other!=x", true },
        { "empty=", true },
        { "zone=", false },
        { "zone in (b, a)", true },
        { "zone in (b,c)", false },
        { "zone in(a)", true },
        { "zone notin (b,c)", true },
        { "zone notin (a)", false },
        { "other notin (a)", true },
        { "other in (a)", false },
        { "empty in ()", true },
        { "zone", true },
        { "other", false },
        { "!other", true },
        { "! zone", false },
        { "example.com/disk=ssd", true },
        { "example.com/disk=ssd,zone=a,!spot", true },
        { "example.com/disk=ssd,zone=b", false },
        { "zone in (a,b),example.com/disk notin (hdd)", true },
};

static const struct {
        const char *selector, *what;
} refused[] = {
        { "=a", "no label's name at '=a'" },
        { "zone=a,", "no label's name at ''" },
        { ",zone", "no label's name at ',zone'" },
        { "!", "no label's name" },
        { "-zone", "no label's name at '-zone'" },
        { "Ex/ample/zone", "no label's name" },
        { "/zone", "no label's name" },
        { "a\tb=c", "no label's name" },
        { "a\nb", "no label's name" },
        { "zone=a b", "no comma at 'b'" },
        { "zone=a=b", "no comma at '=b'" },
        { "zone=-a", "no label's value at '-a'" },
        { "zone=a\tb", "no label's value" },
        { "zone in a", "no '(' at 'a'" },
        { "zone in (a", "no ')' at ''" },
        { "zone in (a b)", "no ')' at 'b)'" },
        { "zone in (-a,b)", "no label's value at '-a,b)'" },
        { "zone is (a)", "no operator at 'is (a)'" },
        { "zone (a)", "no comma at '(a)'" },
        { "!zone=a", "no comma at '=a'" },
};
/* clang-format on */

static void test_chosen(void **state)
{
        struct node_match_table matches = { 0 };
        struct node_match_traits traits = { 0 };

        (void) state;
        assert_int_equal(node_match_set_traits(&matches, &traits,
                                               "zone=a\nempty=\nexample.com/disk=ssd\n!k=v:NoSchedule\n"),
                         0);
        for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++) {
                struct text text = { 0 };
                struct err err = { 0 };

                print_message("%s\n", chosen[i].selector);
                assert_int_equal(label_selector_parse(chosen[i].selector, &text, &err), 0);
                assert_int_equal(node_match_selects(text.data == NULL ? "" : text.data, "n", &traits),
                                 chosen[i].chosen);
                text_free(&text);
        }
        node_match_free_traits(&matches, &traits);
        node_match_free(&matches);
}

static void expect_refused(const char *selector, const char *what)
{
        struct text text = { 0 };
        struct err err = { 0 };

        print_message("%s\n", selector);
        assert_int_equal(label_selector_parse(selector, &text, &err), -EINVAL);
        assert_non_null(strstr(err.msg, what));
        text_free(&text);
}

static void test_refused(void **state)
{
        char long_[512];

        (void) state;
        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
                expect_refused(refused[i].selector, refused[i].what);
        memset(long_, 'a', sizeof(long_) - 1);
        long_[sizeof(long_) - 1] = '\0';
        expect_refused(long_, "no label's name");
        memcpy(long_, "a=", 2);
        expect_refused(long_, "no label's value");
        memcpy(long_, "a ", 2);
        expect_refused(long_, "no operator");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_chosen),
                cmocka_unit_test(test_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
