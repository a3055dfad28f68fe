#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/cleanup.h"
#include "tests/unit/cluster_fixture.h"

static const char *gang_word(struct ledger *l, const struct pod_facts *facts, const char *node, bool keep)
{
        struct ledger_job *job = ledger_hold_job(l, facts->namespace_, facts->job);
        struct question q = {
                .ledger = l, .rules = &fixture_rules, .ask = &facts->ask, .job = job, .now_usec = 1000000
        };
        struct gang_request request = { .kinds = facts->kind_count > 0 ? facts->kinds : NULL,
                                        .kind_count = facts->kind_count,
                                        .keep = keep };
        const char *word;

        question_prepare(&q);
        assert_true(gang_prepare(l, &q, job, &request) >= 0);
        word = reason_text(rules_judge(&q, node_of(l, node)))->word;
        ledger_release_job(l, job);
        return word;
}

static struct pod_facts member(struct ledger *l, const char *name, uint32_t chips, uint32_t size)
{
        struct pod_facts facts = pod_of(l, name, chips);

        facts.job = "train";
        facts.ask.gang_size = size;
        facts.ask.class_chips = (uint64_t) chips * size;
        return facts;
}

static struct ledger *three_nodes(void)
{
        struct ledger *l = ledger_new();

        ledger_mark_chips(l, GPU);
        add_node(l, "a", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "c", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        return l;
}

static void two_of_eight_get_a_lease_and_others_are_told(void **state)
{
        struct ledger *l = three_nodes();
        struct pod_facts m = member(l, "m-0", 8, 2), other = pod_of(l, "other", 8);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 2);
        assert_string_equal(word_for(l, &other.ask, "a"), "ChipsLeased");
        assert_string_equal(word_for(l, &other.ask, "b"), "ChipsLeased");
        assert_string_equal(word_for(l, &other.ask, "c"), "");
        assert_string_equal(gang_word(l, &m, "a", true), ""); /* again: the same lease */
        assert_int_equal(l->slot_total, 2);
        assert_int_equal(gang_expire(l, 1000000 + 60000001), 1);
        assert_string_equal(word_for(l, &other.ask, "a"), "");
        ledger_free(l);
}

static void a_gang_that_does_not_fit_leaves_nothing(void **state)
{
        struct ledger *l = three_nodes();
        struct pod_facts m = member(l, "m-0", 8, 4);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        assert_int_equal(l->slot_total, 0);
        m = member(l, "m-0", 8, 3);
        bind_pod(l, "x", "c", 8);
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        assert_string_equal(gang_word(l, &m, "c", true), "ChipsBusy");
        ledger_free(l);
}

static void a_bound_member_gives_up_its_slot(void **state)
{
        struct ledger *l = three_nodes();
        struct pod_facts first = member(l, "m-0", 8, 2), second = member(l, "m-1", 8, 2);

        (void) state;
        assert_string_equal(gang_word(l, &first, "a", true), "");
        assert_int_equal(ledger_set_pod(l, &first), 0);
        assert_int_equal(ledger_assume(l, ledger_find_pod(l, "default", "m-0"), node_of(l, "c"), NULL, 0), 0);
        assert_int_equal(l->slot_total, 1);
        assert_string_equal(gang_word(l, &second, "a", true), "");
        assert_string_equal(gang_word(l, &second, "c", true), "ChipsBusy");
        second.node = "a";
        assert_int_equal(ledger_set_pod(l, &second), 0);
        assert_int_equal(l->slot_total, 0);
        ledger_free(l);
}

static void prioritize_makes_no_lease(void **state)
{
        struct ledger *l = three_nodes();
        struct pod_facts m = member(l, "m-0", 8, 2);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", false), "");
        assert_int_equal(l->slot_total, 0);
        ledger_free(l);
}

static void members_of_different_size_are_searched_for(void **state)
{
        struct ledger *l = ledger_new();
        struct pod_facts m = member(l, "m", 3, 3);

        (void) state;
        ledger_mark_chips(l, GPU);
        add_node(l, "six", NODE_CLASS_ANY, "regular", "H100", 8, 6);
        add_node(l, "four", NODE_CLASS_ANY, "regular", "H100", 4, 4);
        m.kinds[0] = (struct gang_member){ .resource = m.ask.items[0].resource, .chips = 3, .members = 2 };
        m.kinds[1] = (struct gang_member){ .resource = m.ask.items[0].resource, .chips = 4, .members = 1 };
        m.kind_count = 2;
        assert_string_equal(gang_word(l, &m, "six", true), "");
        assert_int_equal(l->slot_total, 3);
        ledger_free(l);
}

static void equal_nodes_stay_with_one_configuration(void **state)
{
        struct ledger *l = three_nodes();
        struct pod_facts m = member(l, "m-0", 8, 3);

        (void) state;
        add_node(l, "d", NODE_CLASS_MULTI, "regular", "A100", 8, 8);
        m.ask.equal_nodes = true;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_string_equal(gang_word(l, &m, "d", true), "UnequalNode");
        ledger_drop_lease(l, ledger_find_job(l, "default", "train"));
        m.ask.gang_size = 4;
        assert_string_equal(gang_word(l, &m, "a", true), "GangDoesNotFit");
        ledger_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(two_of_eight_get_a_lease_and_others_are_told),
                cmocka_unit_test(a_gang_that_does_not_fit_leaves_nothing),
                cmocka_unit_test(a_bound_member_gives_up_its_slot),
                cmocka_unit_test(prioritize_makes_no_lease),
                cmocka_unit_test(members_of_different_size_are_searched_for),
                cmocka_unit_test(equal_nodes_stay_with_one_configuration),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
