/* What a job's pods are counted as, against a walk through all of them, over random histories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define PODS  8
#define STEPS 20000

static bool is(const struct ledger_pod *pod, enum ledger_jobs_members which)
{
        bool there = !pod->ended && !pod->deleting && !pod->request.gated,
             chips = pod->request.item_count > 0;

        switch (which) {
        case LEDGER_JOBS_THERE:
                return there;
        case LEDGER_JOBS_CHIPS:
                return there && chips;
        case LEDGER_JOBS_WAIT:
                return there && chips && pod->node == NULL;
        case LEDGER_JOBS_PLACED:
                return pod->node != NULL;
        case LEDGER_JOBS_BEGUN:
                return chips && (pod->node != NULL || pod->started_usec != 0);
        default:
                return false;
        }
}

static void compare(const struct ledger *l, const char *name)
{
        const struct ledger_job *job = ledger_jobs_find(l, "default", name);

        for (enum ledger_jobs_members which = 0; job != NULL && which < LEDGER_JOBS_COUNT; which++) {
                uint32_t count = 0;

                for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                        count += is(pod, which);
                assert_int_equal(ledger_jobs_others(job, NULL, which), count);
                for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                        assert_int_equal(ledger_jobs_others(job, pod, which), count - is(pod, which));
        }
}

static void compare_ending(struct ledger *l, const char *name)
{
        const struct ledger_node *node = node_of(l, name);
        uint32_t count = 0;

        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                count += pod->request.deadline_sec != 0 || pod->deletion_usec != 0;
        assert_int_equal(node->ending, count);
        assert_int_equal(l->roster.seats[node->index].ends, count > 0);
}

static bool one_in(unsigned chance)
{
        return (unsigned) rand() % chance == 0;
}

static void set_something(struct ledger *l, const char *name)
{
        struct ledger_pod_facts facts = pod_of(l, name, one_in(3) ? 0 : 1);

        facts.uid = one_in(10) ? "other" : "one";
        facts.job = one_in(8) ? NULL : one_in(4) ? "two" : "one";
        facts.node = one_in(2) ? NULL : one_in(2) ? "a" : "b";
        facts.ended = one_in(6);
        facts.started_usec = one_in(4) ? 7 : 0;
        facts.deletion_usec = one_in(5) ? 9 : 0;
        facts.deleting = facts.deletion_usec != 0;
        facts.request.gated = one_in(5);
        facts.request.deadline_sec = one_in(4) ? 5 : 0;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
}

static void do_something(struct ledger *l, const char *name)
{
        struct ledger_pod *pod = ledger_pods_find(l, "default", name);
        struct ledger_node *node = pod == NULL ? NULL : pod->node;

        if (pod == NULL || one_in(2))
                set_something(l, name);
        else if (one_in(6))
                ledger_pods_drop(l, "default", name);
        else if (node == NULL && !pod->ended)
                assert_int_equal(ledger_pods_assume(l, pod, node_of(l, "a"), NULL, 0), 0);
        else if (pod->assumed)
                ledger_pods_forget(l, pod);
        else if (node != NULL) {
                ledger_pods_detach(l, pod);
                if (pod->job != NULL)
                        compare(l, strchr(pod->job->key, '/') + 1);
                ledger_pods_attach(l, pod, node);
        }
}

static void counts_are_those_of_a_walk(void **state)
{
        struct ledger *l = test_ledger();

        (void) state;
        srand(1);
        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        for (int step = 0; step < STEPS; step++) {
                char name[8];

                (void) text_format(name, sizeof(name), "p%d", rand() % PODS);
                do_something(l, name);
                compare(l, "one");
                compare(l, "two");
                compare_ending(l, "a");
                compare_ending(l, "b");
        }
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(counts_are_those_of_a_walk) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
