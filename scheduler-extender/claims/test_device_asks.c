/* What claims ask for by classes of ours, put as a request for the chips of one node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/claims/device_asks.h"

enum { NVIDIA = 1, CUDA, HUAWEI, CANN, GPU, NPU_A, NPU_B, CPU }; /* symbols */

/* Eight GPUs of which three are open, and NPUs of two resources: one open, two open. */
static struct ledger_group groups[] = {
        { .vendor = NVIDIA, .runtime = CUDA, .resource = GPU, .total = 4, .usable = 4, .held = 3 },
        { .vendor = NVIDIA, .runtime = CUDA, .resource = GPU, .total = 4, .usable = 4, .held = 2 },
        { .vendor = HUAWEI, .runtime = CANN, .resource = NPU_A, .total = 4, .usable = 1 },
        { .vendor = HUAWEI, .runtime = CANN, .resource = NPU_B, .total = 4, .usable = 2 },
        { .vendor = CPU, .runtime = CPU, .resource = 0, .total = 1, .usable = 1 },
};

#define ASK(...)                                                                                             \
        {                                                                                                    \
                .choices = { __VA_ARGS__ },                                                                  \
                .choice_count =                                                                              \
                        sizeof((struct device_choice[]){ __VA_ARGS__ }) / sizeof(struct device_choice)       \
        }

/* clang-format off */
static const struct { const char *what; struct device_asks asks; uint64_t least; const char *items; } rows[] = {
        { "a vendor's",                       { 1, { ASK({ NVIDIA, 2 }) }, false },                        2, "5x2 " },
        { "a runtime's",                      { 1, { ASK({ CUDA, 2 }) }, false },                          2, "5x2 " },
        { "more than there are",              { 1, { ASK({ CUDA, 9 }) }, false },                          9, "5x9 " },
        { "nobody's",                         { 1, { ASK({ 0, 2 }) }, false },                             2, "0x2 " },
        { "one that has no resource",         { 1, { ASK({ CPU, 1 }) }, false },                           1, "0x1 " },
        { "of two resources the roomier one", { 1, { ASK({ HUAWEI, 1 }) }, false },                        1, "7x1 " },
        { "the first choice that fits",       { 1, { ASK({ CUDA, 4 }, { CANN, 2 }) }, false },             2, "7x2 " },
        { "... that is there, if none fits",  { 1, { ASK({ 0, 1 }, { CUDA, 5 }, { CANN, 3 }) }, false },   1, "5x5 " },
        { "two of one resource are one item", { 2, { ASK({ CUDA, 2 }), ASK({ NVIDIA, 1 }) }, false },      3, "5x3 " },
        { "what one takes the next has not",  { 2, { ASK({ CUDA, 2 }), ASK({ NVIDIA, 2 }, { CANN, 2 }) }, false }, 4, "5x2 7x2 " },
        { "absurd sums stay bounded",         { 2, { ASK({ CUDA, UINT32_MAX }), ASK({ CUDA, UINT32_MAX }) }, false }, 2 * (uint64_t) UINT32_MAX, "5x4096 " },
};
/* clang-format on */

static void asks_become_items(void **state)
{
        struct ledger_node *node = calloc(1, sizeof(*node) + 1);

        (void) state;
        assert_non_null(node);
        node->groups = groups;
        node->group_count = ARRAY_SIZE(groups);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct request of = { .emergency = true, .gang_size = 3 }, got;
                char items[100] = "";
                size_t length = 0;

                device_asks_on(&rows[i].asks, node, &of, &got);
                for (size_t k = 0; k < got.item_count; k++) {
                        (void) text_format(items + length, sizeof(items) - length, "%ux%u ",
                                           got.items[k].resource, got.items[k].chips);
                        length = strlen(items);
                }
                if (strcmp(items, rows[i].items) != 0 || device_asks_least(&rows[i].asks) != rows[i].least)
                        fail_msg("%s: wanted %s, got %s", rows[i].what, rows[i].items, items);
                assert_true(got.emergency && got.gang_size == 3 && !got.same_group);
        }
        free(node);
}

static void one_group_is_the_whole_request_s(void **state)
{
        struct ledger_node *node = calloc(1, sizeof(*node) + 1);
        struct device_asks asks = rows[0].asks;
        struct request of = { .item_count = 1, .items = { { .resource = GPU, .chips = 1 } } }, got;

        (void) state;
        assert_non_null(node);
        node->groups = groups;
        node->group_count = ARRAY_SIZE(groups);
        asks.asks[0].one_group = true;
        device_asks_on(&asks, node, &of, &got);
        assert_true(got.same_group);
        assert_int_equal(got.item_count, 1); /* chips by resource and by claims come of the same */
        assert_int_equal(got.items[0].chips, 3);
        free(node);
}

/* clang-format off */
static const struct { const char *what; struct device_asks asks; const char *items; } anywhere[] = {
        { "a runtime's, of all nodes",          { 1, { ASK({ CUDA, 2 }) }, false },                  "5x2 " },
        { "of two resources the one with more", { 1, { ASK({ CANN, 1 }) }, false },                  "7x1 " },
        { "the first choice that has enough",   { 1, { ASK({ CANN, 9 }, { CUDA, 9 }) }, false },     "5x9 " },
        { "... the first of all if none has",   { 1, { ASK({ CANN, 90 }, { CUDA, 90 }) }, false },   "7x90 " },
        { "nobody's is an item that none has",  { 1, { ASK({ 0, 2 }) }, false },                     "0x2 " },
        { "two of one resource are one item",   { 2, { ASK({ CUDA, 2 }), ASK({ NVIDIA, 1 }) }, false }, "5x3 " },
};
/* clang-format on */

static void a_plan_asks_for_the_same_everywhere(void **state)
{
        struct ledger_node *node = calloc(1, sizeof(*node) + 1), *nodes[2] = { node, node };
        struct ledger *ledger = calloc(1, sizeof(*ledger));

        (void) state;
        assert_true(node != NULL && ledger != NULL);
        node->groups = groups;
        node->group_count = ARRAY_SIZE(groups);
        ledger->nodes = nodes;
        ledger->node_count = 2;
        for (size_t i = 0; i < ARRAY_SIZE(anywhere); i++) {
                struct request got = { .gang_size = 3,
                                       .item_count = 1,
                                       .items = { { .resource = 99, .chips = 1 } } };
                char items[100] = "";
                size_t length = 0;

                device_asks_anywhere(&anywhere[i].asks, ledger, &got);
                for (size_t k = 0; k + 1 < got.item_count; k++) {
                        (void) text_format(items + length, sizeof(items) - length, "%ux%u ",
                                           got.items[k].resource, got.items[k].chips);
                        length = strlen(items);
                }
                if (strcmp(items, anywhere[i].items) != 0)
                        fail_msg("%s: wanted %s, got %s", anywhere[i].what, anywhere[i].items, items);
                assert_int_equal(got.items[got.item_count - 1].resource, 99); /* what it had comes last */
        }
        free(ledger);
        free(node);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(asks_become_items),
                cmocka_unit_test(one_group_is_the_whole_request_s),
                cmocka_unit_test(a_plan_asks_for_the_same_everywhere),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
