/* Gangs whose nodes say under which switch they are: beside what happens where they say nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/gang_fixture.h"

static const char *weighed_gang_word(struct ledger *l, const struct ledger_pod_facts *facts, const char *node,
                                     bool keep)
{
        struct ledger_job *job = ledger_jobs_refer(l, facts->namespace_, facts->job);
        struct rules_context ctx = { .ledger = l,
                                     .rules = &fixture_rules,
                                     .request = &facts->request,
                                     .job = job,
                                     .self = ledger_pods_find(l, facts->namespace_, facts->name),
                                     .created_usec = facts->created_usec,
                                     .now_usec = now_usec };
        struct gang_demand demand = { .kinds = facts->kind_count > 0 ? facts->kinds : NULL,
                                      .kind_count = facts->kind_count,
                                      .keep = keep };
        struct weighting *weighting = calloc(1, sizeof(*weighting));
        const char *word;

        assert_non_null(job);
        assert_non_null(weighting);
        rules_prepare(&ctx);
        weighting->fastest = fixture_rules.placement == PLACEMENT_FASTEST;
        if (weighting_build(l, job, ctx.self, &facts->request, weighting) == 0)
                ctx.weighting = weighting;
        assert_true(gang_prepare(l, &ctx, job, &demand) >= 0);
        word = reason_text(rules_judge(&ctx, node_of(l, node)))->word;
        ledger_jobs_release(l, job);
        free(weighting);
        return word;
}

static void put_under(struct ledger *l, const char *node, const char *switch_)
{
        node_of(l, node)->switch_domain = switch_ == NULL ? 0 : symbols_add(&l->symbols, switch_);
}

static int64_t first_key(struct ledger *l, const struct ledger_pod_facts *facts, const char *node)
{
        struct rules_context ctx = { .ledger = l,
                                     .rules = &fixture_rules,
                                     .request = &facts->request,
                                     .job = ledger_jobs_find(l, "default", "train"),
                                     .now_usec = now_usec };
        struct score_tuple tuple;

        rules_prepare(&ctx);
        score_tuple(&ctx, node_of(l, node), &tuple);
        return tuple.key[0];
}

/* Two members that fill a node: by the names of the nodes a and b, of which each is under another switch. */
static void members_go_under_one_switch_first(void **state)
{
        struct ledger *l = three_nodes(), *copy;
        struct ledger_pod_facts m = members_there(l, 8, 2, 2);

        (void) state;
        assert_string_equal(weighed_gang_word(l, &m, "a", true), ""); /* nobody says a switch */
        assert_non_null(node_of(l, "a")->slots);
        assert_non_null(node_of(l, "b")->slots);
        assert_int_equal(first_key(l, &m, "c"), 0);
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));

        put_under(l, "a", "s1");
        put_under(l, "b", "s2");
        put_under(l, "c", "s1");
        assert_string_equal(weighed_gang_word(l, &m, "a", true), "");
        assert_non_null(node_of(l, "a")->slots);
        assert_null(node_of(l, "b")->slots);
        assert_non_null(node_of(l, "c")->slots);
        assert_true(first_key(l, &m, "a") < first_key(l, &m, "b")); /* the score sends them where that is */
        assert_int_equal(first_key(l, &m, "a"), first_key(l, &m, "c"));
        copy = ledger_life_copy(l); /* and so does that of a what-if */
        assert_non_null(copy);
        assert_true(first_key(copy, &m, "a") < first_key(copy, &m, "b"));
        ledger_life_free(copy);
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));

        bind_pod(l, "x", "c", 1); /* no switch has room for both: they go where there is */
        assert_string_equal(weighed_gang_word(l, &m, "a", true), "");
        assert_non_null(node_of(l, "b")->slots);
        ledger_life_free(l);
}

/* A member that is bound says where the others are to be. */
static void members_follow_one_that_is_bound(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts first = member(l, "m-0", 8, 2), second = member(l, "m-1", 8, 2);

        (void) state;
        put_under(l, "a", "s2");
        put_under(l, "b", "s1");
        put_under(l, "c", "s1");
        first.node = "c";
        assert_int_equal(ledger_pods_set(l, &first), 0);
        assert_int_equal(ledger_pods_set(l, &second), 0);
        assert_string_equal(weighed_gang_word(l, &second, "b", true), "");
        assert_non_null(node_of(l, "b")->slots);
        ledger_life_free(l);
}

/* To be near one another is no reason to take the reserve. */
static void a_switch_is_no_reason_to_borrow(void **state)
{
        struct ledger *l = test_ledger();
        struct rules lending = fixture_rules, before = fixture_rules;
        struct ledger_pod_facts m;

        (void) state;
        now_usec = 1000000;
        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "c", NODE_CLASS_MULTI, "reserved", "H100", 8, 8);
        put_under(l, "a", "s1");
        put_under(l, "b", "s2");
        put_under(l, "c", "s1");
        lending.lend_reserve = true;
        fixture_rules = lending;
        for (int i = 0; i < 2; i++) {
                m = member(l, i == 0 ? "m-0" : "m-1", 8, 2);
                m.request.preemptible = true;
                assert_int_equal(ledger_pods_set(l, &m), 0);
        }
        assert_string_equal(weighed_gang_word(l, &m, "a", true), "");
        assert_null(node_of(l, "c")->slots);
        fixture_rules = before;
        ledger_life_free(l);
}

/* Who asks for the fastest chips gets them, under however many switches. */
static void a_switch_is_no_reason_for_slower_chips(void **state)
{
        struct ledger *l = test_ledger();
        struct rules fastest = fixture_rules, before = fixture_rules;
        struct ledger_pod_facts m;

        (void) state;
        now_usec = 1000000;
        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_MULTI, "regular", "A100", 8, 8);
        add_node(l, "c", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        node_of(l, "b")->groups[0].figures.tflops[CHIP_SPEED_BF16] = 10;
        put_under(l, "a", "s1");
        put_under(l, "b", "s1");
        put_under(l, "c", "s2");
        m = members_there(l, 8, 2, 2);
        assert_string_equal(weighed_gang_word(l, &m, "a", true), "");
        assert_non_null(node_of(l, "b")->slots); /* packed: one is as good as another */
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        fastest.placement = PLACEMENT_FASTEST;
        fixture_rules = fastest;
        assert_string_equal(weighed_gang_word(l, &m, "a", true), "");
        fixture_rules = before;
        assert_non_null(node_of(l, "a")->slots);
        assert_null(node_of(l, "b")->slots);
        assert_non_null(node_of(l, "c")->slots);
        ledger_life_free(l);
}

/* The one switch with room for both is the last of a hundred. */
static void there_may_be_many_switches(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts m;
        char name[8], switch_[8];

        (void) state;
        now_usec = 1000000;
        ledger_chips_mark(l, GPU);
        for (int i = 0; i <= 100; i++) {
                (void) text_format(name, sizeof(name), "n-%03d", i);
                (void) text_format(switch_, sizeof(switch_), "s%d", i < 100 ? i : 99);
                add_node(l, name, NODE_CLASS_MULTI, "regular", "H100", 8, 8);
                put_under(l, name, switch_);
        }
        m = members_there(l, 8, 2, 2);
        assert_string_equal(weighed_gang_word(l, &m, "n-099", true), "");
        assert_non_null(node_of(l, "n-099")->slots);
        assert_non_null(node_of(l, "n-100")->slots);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(members_go_under_one_switch_first),
                cmocka_unit_test(members_follow_one_that_is_bound),
                cmocka_unit_test(a_switch_is_no_reason_to_borrow),
                cmocka_unit_test(a_switch_is_no_reason_for_slower_chips),
                cmocka_unit_test(there_may_be_many_switches),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
