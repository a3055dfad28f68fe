/* Which domains have chips enough for a gang. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/neighbours/domains.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

static uint32_t by_first_letter(const struct rules_context *ctx, const struct ledger_node *node)
{
        (void) ctx;
        return node->name[0] == 'x' ? 0 : (uint32_t) (node->name[0] - 'a' + 1);
}

static void those_with_chips_enough_are_counted(void **state)
{
        struct ledger *l = test_ledger();
        const char *const names[] = { "a1", "b1", "a2", "x1", "x2" };
        struct ledger_pod_facts facts = pod_of(l, "p", 8);
        struct rules_context ctx = { .ledger = l, .rules = &fixture_rules, .request = &facts.request };
        struct domains domains = { .of = by_first_letter, .wanted = 16 };

        (void) state;
        ledger_chips_mark(l, GPU);
        for (size_t i = 0; i < 5; i++)
                add_node(l, names[i], NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        assert_true(domains_init(&domains, &ctx));
        for (size_t i = 0; i < 5; i++)
                domains_add(&domains, &ctx, node_of(l, names[i]));
        assert_int_equal(domains.enough, 1);
        assert_true(domains_have(&domains, 1));
        assert_false(domains_have(&domains, 2));
        assert_false(domains_have(&domains, 0)); /* none is no domain, whatever is there */
        assert_false(domains_take(&domains, 2));
        assert_true(domains_take(&domains, 1));
        assert_false(domains_take(&domains, 1));
        assert_int_equal(domains.enough, 0);
        domains_free(&domains);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(those_with_chips_enough_are_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
