/* Whom a lease larger than its namespace's share waits for, and for how long that is looked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler-extender/decide/gang_share.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define OTHER_CHIP "example.com/chip"

static struct ledger *three_nodes(void)
{
        struct ledger *l = test_ledger();

        ledger_chips_mark(l, GPU);
        ledger_chips_mark(l, OTHER_CHIP);
        add_node(l, "a", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "c", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        bind_pod(l, "x", "c", 8);
        assert_int_equal(l->node_count, 3);
        return l;
}

/* May a gang that came at 300 keep a lease of all of a and b? */
static bool allows(struct ledger *l)
{
        struct ledger_pod_facts m = pod_of(l, "m-0", 8);
        struct ledger_job *job = ledger_jobs_refer(l, "default", "train");
        struct rules_context ctx = { .ledger = l,
                                     .rules = &fixture_rules,
                                     .request = &m.request,
                                     .job = job,
                                     .created_usec = 300,
                                     .now_usec = 1000000 };
        bool allowed;

        assert_non_null(job);
        assert_int_equal(ledger_jobs_add_slot(l, job, node_of(l, "a"), &m.request), 0);
        assert_int_equal(ledger_jobs_add_slot(l, job, node_of(l, "b"), &m.request), 0);
        allowed = gang_share_allows(&ctx, job);
        ledger_jobs_drop_lease(l, job);
        ledger_jobs_release(l, job);
        return allowed;
}

/* A pod of another namespace. */
static void put_stranger(struct ledger *l, const char *name, uint32_t chips, uint32_t gang_size)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.namespace_ = "elsewhere";
        facts.created_usec = 200;
        if (gang_size > 0) {
                facts.job = "pair";
                facts.request.gang_size = gang_size;
                facts.request.class_chips = (uint64_t) chips * gang_size;
        }
        assert_int_equal(ledger_pods_set(l, &facts), 0);
}

/* A gang of which one is there could not begin on those nodes if nobody had leased them. */
static void a_gang_that_is_not_there_keeps_nobody_waiting(void **state)
{
        struct ledger *l = three_nodes();

        (void) state;
        put_stranger(l, "p-0", 1, 2);
        assert_true(allows(l));
        put_stranger(l, "p-1", 1, 2);
        assert_false(allows(l));
        ledger_life_free(l);
}

/* Whoever makes many pods of two kinds makes nobody wait for the look at all of them. */
static void the_look_at_who_is_kept_out_ends(void **state)
{
        struct ledger *l = three_nodes();
        uint32_t chip = symbols_add(&l->symbols, OTHER_CHIP);
        char name[16];

        (void) state;
        for (int i = 0; i < 1000; i++) {
                (void) text_format(name, sizeof(name), "s-%d", i);
                add_node(l, name, NODE_CLASS_SINGLE, "regular", "H100", 1, 0);
        }
        put_stranger(l, "p", 2, 0); /* it is kept out, and looked at last */
        for (int i = 0; i < 150; i++) {
                struct ledger_pod_facts facts;

                (void) text_format(name, sizeof(name), "q-%d", i);
                facts = pod_of(l, name, 9);
                facts.request.class_chips = 4;
                facts.namespace_ = "elsewhere";
                facts.created_usec = 200;
                if (i % 2 == 0)
                        facts.request.items[0].resource = chip;
                assert_int_equal(ledger_pods_set(l, &facts), 0);
        }
        assert_false(allows(l)); /* there is no overflow to look for */
        fixture_rules.overflow = OVERFLOW_MULTI_TO_SINGLE;
        fixture_rules.overflow_percent = 100;
        assert_true(allows(l));
        fixture_rules.overflow = OVERFLOW_NONE;
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_gang_that_is_not_there_keeps_nobody_waiting),
                cmocka_unit_test(the_look_at_who_is_kept_out_ends),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
