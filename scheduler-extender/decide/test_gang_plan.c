/* A job's plan and gangs that have leased chips in its way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/gang_fixture.h"

/* The job `planned` has places for pods of so many chips on the nodes of `names`. */
static void plan_onto(struct ledger *l, const char *names, uint32_t chips)
{
        struct ledger_job_place places[3] = { 0 };
        size_t count = strlen(names);

        for (size_t i = 0; i < count; i++) {
                (void) text_format(places[i].pod, sizeof(places[i].pod), "planned-%zu", i);
                (void) text_format(places[i].node, sizeof(places[i].node), "%c", names[i]);
                places[i].request = pod_of(l, "planned", chips).request;
        }
        assert_int_equal(ledger_jobs_set_plan(l, "default", "planned", places, count), 0);
}

static const char *planned_word(struct ledger *l, const char *node, uint32_t chips)
{
        struct ledger_pod_facts facts = pod_of(l, "planned-0", chips);
        struct rules_context ctx = context_of(l, &facts.request);

        ctx.job = ledger_jobs_find(l, "default", "planned");
        return reason_text(rules_judge(&ctx, node_of(l, node)))->word;
}

static void a_plan_takes_chips_from_a_gang_that_has_not_begun(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 4, 4, 4);
        uint64_t departures;

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_int_equal(l->slot_total, 4); /* on a and b */
        departures = l->departure_count;
        plan_onto(l, "ab", 4); /* half of each */
        assert_int_equal(l->slot_total, 4);
        assert_int_equal(l->departure_count, departures + 2); /* who waits is asked again */
        assert_string_equal(planned_word(l, "a", 4), "");
        assert_string_equal(planned_word(l, "b", 4), "");
        assert_string_equal(gang_word(l, &m, "c", true), ""); /* planned again, around it */
        assert_int_equal(l->slot_total, 6);
        assert_string_equal(planned_word(l, "a", 4), "");
        ledger_life_free(l);
}

static void a_plan_leaves_what_it_does_not_need(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 2, 2, 2);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        plan_onto(l, "abc", 4);
        assert_int_equal(l->slot_total, 5);
        assert_string_equal(planned_word(l, "a", 4), "");
        ledger_life_free(l);
}

static void a_plan_takes_nothing_from_an_emergency(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 2, 2), again = m;

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        for (int i = 0; i < 2; i++) {
                again.name = i == 0 ? "m-0" : "m-1";
                again.request.emergency = true;
                assert_int_equal(ledger_pods_set(l, &again), 0);
        }
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        again.name = "m-0";
        assert_string_equal(gang_word(l, &again, "a", true), "");
        assert_int_equal(l->slot_total, 2);
        plan_onto(l, "ab", 4);
        assert_int_equal(l->slot_total, 4);
        assert_string_equal(planned_word(l, "a", 4), "ChipsLeased");
        ledger_life_free(l);
}

static void a_plan_waits_for_a_gang_that_is_being_placed(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts m = members_there(l, 8, 2, 2), gone = member(l, "m-1", 8, 2);

        (void) state;
        assert_string_equal(gang_word(l, &m, "a", true), "");
        assert_non_null(node_of(l, "a"));
        assert_int_equal(
                ledger_pods_assume(l, ledger_pods_find(l, "default", "m-0"), node_of(l, "a"), NULL, 0), 0);
        assert_int_equal(l->slot_total, 1); /* m-1's, on b */
        plan_onto(l, "b", 4);
        assert_int_equal(l->slot_total, 2);
        assert_string_equal(planned_word(l, "b", 4), "ChipsLeased");
        plan_onto(l, "", 0);
        gone.request.gated = true; /* one is not there: it is not being placed */
        assert_int_equal(ledger_pods_set(l, &gone), 0);
        plan_onto(l, "b", 4);
        assert_string_equal(planned_word(l, "b", 4), "");
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_plan_takes_chips_from_a_gang_that_has_not_begun),
                cmocka_unit_test(a_plan_leaves_what_it_does_not_need),
                cmocka_unit_test(a_plan_takes_nothing_from_an_emergency),
                cmocka_unit_test(a_plan_waits_for_a_gang_that_is_being_placed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
