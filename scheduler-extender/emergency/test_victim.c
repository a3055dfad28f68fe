/* What somebody loses who goes for an emergency, and whose work nobody loses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "job/spec/job.h"
#include "scheduler-extender/emergency/victim.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define SECOND UINT64_C(1000000)
#define NOW    (1000 * SECOND)

/* A borrower of four chips since second 400, of the job "j". */
static struct ledger_pod *borrower(struct ledger *l)
{
        struct ledger_pod_facts facts = pod_of(l, "p", 4);
        struct ledger_pod *pod;

        ledger_chips_mark(l, GPU);
        add_node(l, "r", NODE_CLASS_ANY, "reserved", "H100", 8, 8);
        facts.node = "r";
        facts.job = "j";
        facts.created_usec = 300 * SECOND;
        facts.started_usec = 400 * SECOND;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        pod = ledger_pods_find(l, "default", "p");
        assert_non_null(pod);
        return pod;
}

static uint64_t lost(struct ledger *l, const struct ledger_pod *pod)
{
        const struct victim_rules rules = { .takes = LEDGER_PODS_TAKES_BORROWERS, .now_usec = NOW };

        return victim_chip_seconds(victim_pod_cost(&rules, l, pod));
}

static void work_is_what_no_checkpoint_has(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod *pod = borrower(l);

        (void) state;
        assert_int_equal(lost(l, pod), 4 * 600);
        pod->job->saved_usec = 350 * SECOND; /* by those who ran before it */
        assert_int_equal(lost(l, pod), 4 * 600);
        pod->job->saved_usec = 900 * SECOND;
        assert_int_equal(lost(l, pod), 4 * 100);
        pod->job->saved_usec = 2000 * SECOND; /* by another clock */
        assert_int_equal(lost(l, pod), 0);
        pod->job->saved_usec = 0;
        pod->saves = true;
        assert_int_equal(lost(l, pod), 0);
        ledger_life_free(l);
}

/* clang-format off */
static const struct { const char *what; bool given, claim, data, args; uint64_t lost; } jobs[] = {
        { "the reference trainer with a checkpoint",      true,  true,  true,  false, 0 },
        { "... that has no volume, and goes with its pod", true,  false, true,  false, 2400 },
        { "... without one",                              false, false, true,  false, 2400 },
        { "a program with arguments of its own",          true,  true,  true,  true,  2400 },
        { "a program that reads its data by itself",      true,  true,  false, false, 2400 },
};
/* clang-format on */

static void the_reference_trainer_saves_when_it_is_asked_to_end(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
                struct ledger *l = test_ledger();
                struct ledger_pod *pod = borrower(l);
                struct job *job = malloc(sizeof(*job));

                assert_non_null(job);
                job_init(job);
                job->checkpoint.given = jobs[i].given;
                if (jobs[i].claim)
                        (void) text_copy(job->checkpoint.claim, sizeof(job->checkpoint.claim), "volume");
                job->data.given = jobs[i].data;
                job->has_args = jobs[i].args;
                assert_int_equal(ledger_jobs_set_training(l, "default", "j", job), 0);
                if (lost(l, pod) != jobs[i].lost)
                        fail_msg("%s: %llu", jobs[i].what, (unsigned long long) lost(l, pod));
                ledger_life_free(l);
        }
}

static void who_was_asked_or_refused_is_left_alone_for_a_minute(void **state)
{
        const struct victim_rules rules = { .takes = LEDGER_PODS_TAKES_BORROWERS, .now_usec = NOW };
        struct ledger *l = test_ledger();
        struct ledger_pod *pod = borrower(l);

        (void) state;
        assert_true(victim_may_go(&rules, l, pod, NULL));
        assert_false(victim_may_go(&rules, l, pod, pod->job)); /* nobody goes for his own gang */
        pod->evicted_usec = NOW - VICTIM_AGAIN_USEC + 1;
        assert_false(victim_may_go(&rules, l, pod, NULL));
        pod->evicted_usec--;
        assert_true(victim_may_go(&rules, l, pod, NULL));
        pod->evicted_usec = NOW + 1; /* by a clock that went back */
        assert_true(victim_may_go(&rules, l, pod, NULL));
        pod->evicted_usec = 0;
        pod->spared_usec = NOW - VICTIM_AGAIN_USEC + 1;
        assert_false(victim_may_go(&rules, l, pod, NULL));
        pod->spared_usec--;
        assert_true(victim_may_go(&rules, l, pod, NULL));
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(work_is_what_no_checkpoint_has),
                cmocka_unit_test(the_reference_trainer_saves_when_it_is_asked_to_end),
                cmocka_unit_test(who_was_asked_or_refused_is_left_alone_for_a_minute),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
