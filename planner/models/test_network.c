/* Network: which operations can be, one by one and together, and each refusal with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/models/network.h"

#define BIG (NETWORK_ELEMENTS_MAX - 1)

/* clang-format off */
static const struct {
        const char *what;
        struct network_operation operation; /* the second of two */
        uint32_t link;
        const char *sentence; /* "" = it can be */
} rows[] = {
        { "a sum",                 { .name = "b", .type = OPERATOR_ELEMENTWISE, .output = { 3 }, .rank = 1 }, 0, "" },
        { "it reads the input",    { .name = "b", .type = OPERATOR_ELEMENTWISE, .output = { 3 }, .rank = 1 }, NETWORK_INPUT, "" },
        { "it reads itself",       { .name = "b", .type = OPERATOR_ELEMENTWISE, .output = { 3 }, .rank = 1 }, 1, "operators[1]: reads an operation that does not stand before it" },
        { "the name of another",   { .name = "a", .type = OPERATOR_ELEMENTWISE, .output = { 3 }, .rank = 1 }, 0, "operators: two are called 'a'; give each its own name" },
        { "no output",             { .name = "b", .type = OPERATOR_ELEMENTWISE }, 0, "operators[1].output: must be 1 to 6 sizes of 1 or more, below 2^48 together" },
        { "too many dimensions",   { .name = "b", .type = OPERATOR_ELEMENTWISE, .output = { 1, 1, 1, 1 }, .rank = NETWORK_RANK_MAX + 1 }, 0, "operators[1].output: must be " },
        { "a size of 0",           { .name = "b", .type = OPERATOR_ELEMENTWISE, .output = { 3, 0 }, .rank = 2 }, 0, "operators[1].output: must be " },
        { "too large",             { .name = "b", .type = OPERATOR_ELEMENTWISE, .output = { 1 << 25, 1 << 25 }, .rank = 2 }, 0, "operators[1].output: must be " },
        { "beyond all numbers",    { .name = "b", .type = OPERATOR_ELEMENTWISE, .output = { BIG, BIG }, .rank = 2 }, 0, "operators[1].output: must be " },
        { "too many weights",      { .name = "b", .type = OPERATOR_ELEMENTWISE, .output = { 3 }, .rank = 1, .weights = NETWORK_ELEMENTS_MAX + 1 }, 0, "operators[1].weights: more than 2^48" },
        { "nothing to sum over",   { .name = "b", .type = OPERATOR_LINEAR, .output = { 3 }, .rank = 1 }, 0, "operators[1]: a linear needs what it sums over" },
        { "no table",              { .name = "b", .type = OPERATOR_EMBEDDING, .output = { 3 }, .rank = 1 }, 0, "operators[1]: a embedding needs what it sums over" },
        { "too much work",         { .name = "b", .type = OPERATOR_MATMUL, .output = { BIG }, .rank = 1, .inner = BIG }, 0, "operators[1]: has more than 2^60 multiply-adds" },
        { "a huge kernel",         { .name = "b", .type = OPERATOR_CONV, .output = { 1 }, .rank = 1, .inner = BIG, .kernel = { BIG, 1 }, .groups = 1 }, 0, "operators[1]: has more than 2^60 multiply-adds" },
        { "a convolution",         { .name = "b", .type = OPERATOR_CONV, .output = { 4, 4 }, .rank = 2, .inner = 4, .kernel = { 3, 1 }, .groups = 2 }, 0, "" },
        { "no groups",             { .name = "b", .type = OPERATOR_CONV, .output = { 4 }, .rank = 1, .inner = 4, .kernel = { 3, 1 } }, 0, "operators[1]: groups must divide the input channels, the kernel be 1 or more" },
        { "groups that do not divide", { .name = "b", .type = OPERATOR_CONV, .output = { 4 }, .rank = 1, .inner = 4, .kernel = { 3, 1 }, .groups = 3 }, 0, "operators[1]: groups must divide" },
        { "no kernel",             { .name = "b", .type = OPERATOR_CONV, .output = { 4 }, .rank = 1, .inner = 4, .kernel = { 0, 1 }, .groups = 1 }, 0, "operators[1]: groups must divide" },
        { "half a kernel",         { .name = "b", .type = OPERATOR_CONV, .output = { 4 }, .rank = 1, .inner = 4, .kernel = { 3, 0 }, .groups = 1 }, 0, "operators[1]: groups must divide" },
};
/* clang-format on */

static void what_cannot_be_is_refused_with_its_place(void **state)
{
        const struct network_operation first = {
                .name = "a", .type = OPERATOR_ELEMENTWISE, .output = { 3 }, .rank = 1
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const char *sentence = rows[i].sentence;
                struct network network = { .count = 0 };
                struct err err = { 0 };
                int r;

                (void) network_add(&network, &first, NULL, 0);
                (void) network_add(&network, &rows[i].operation, &rows[i].link, 1);
                r = network_check(&network, &err);
                if (r != (sentence[0] == '\0' ? 0 : -EINVAL) ||
                    strncmp(err.msg, sentence, strlen(sentence)) != 0)
                        fail_msg("%s: %d %s", rows[i].what, r, err.msg);
                network_free(&network);
        }
}

static void all_together_have_an_end_too(void **state)
{
        struct network_operation large = { .type = OPERATOR_LINEAR,
                                           .output = { (uint64_t) 1 << 40 },
                                           .rank = 1,
                                           .inner = (uint64_t) 1 << 20 };
        uint32_t links[NETWORK_INPUTS_MAX + 1] = { NETWORK_INPUT };
        struct network network = { .count = 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(network_check(&network, &err), -EINVAL);
        assert_string_equal(err.msg, "operators: must not be empty; give at least one");
        for (unsigned i = 0; i < 4; i++) {
                large.name[0] = (char) ('a' + (char) i);
                (void) network_add(&network, &large, NULL, 0);
                assert_int_equal(network_check(&network, &err), i < 3 ? 0 : -EINVAL);
        }
        assert_string_equal(err.msg, "operators: have more than 2^62 multiply-adds together");
        (void) network_add(&network, &large, links, ARRAY_SIZE(links)); /* reads too much */
        assert_true(network.failed);
        assert_int_equal(network_add(&network, &large, NULL, 0), 0); /* and nothing is added any more */
        assert_int_equal(network.count, 4);
        assert_int_equal(network_check(&network, &err), -ENOMEM);
        network_free(&network);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_is_refused_with_its_place),
                cmocka_unit_test(all_together_have_an_end_too),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
