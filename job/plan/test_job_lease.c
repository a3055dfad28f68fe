/* What was decided for a job is leased in the ledger of whoever reads its status, until its pods are there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/plan/job_lease.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "tests/support/job_fixture.h"
#include "tests/support/test_ledger.h"

static uint32_t leased(struct ledger *l, const char *node)
{
        return node_of(l, node)->groups[0].leased;
}

/* A job of 10 chips, planned: 8 of node a, 2 of node c. */
struct planned {
        struct ledger *ledger;
        struct job job;
        struct job_state state;
        struct job_lease lease;
};

static void plan(struct planned *p, const char *spec)
{
        struct open_groups_claim claim;
        struct err err = { 0 };

        p->ledger = job_fixture_cluster();
        p->job = job_fixture_parse(spec);
        p->state = job_state_new();
        claim = job_fixture_claim(p->ledger, &p->job);
        if (job_plan(&claim, &p->state, &err) < 0)
                fail_msg("%s", err.msg);
        p->state.phase = JOB_STARTING;
        p->lease = (struct job_lease){
                .namespace_ = "default", .name = "j", .job = &p->job, .state = &p->state
        };
        assert_int_equal(job_lease_set(p->ledger, &p->lease), 0);
}

static void end(struct planned *p)
{
        job_state_free(&p->state);
        job_free(&p->job);
        ledger_life_free(p->ledger);
}

/* The pod of a group, as the store shows it; node NULL = it is not bound. */
static void show_pod(struct planned *p, const char *name, uint32_t chips, const char *node)
{
        struct ledger_pod_facts facts = pod_of(p->ledger, name, chips);

        facts.job = "j";
        facts.node = node;
        facts.request.gang_size = 2;
        assert_int_equal(ledger_pods_set(p->ledger, &facts), 0);
}

static void places_are_leased_until_their_pods_are_bound(void **state)
{
        struct planned p;

        (void) state;
        plan(&p, "  placement: packed\n  workers: [{model: H100, chips: 10}]\n");
        assert_int_equal(leased(p.ledger, "a"), 8);
        assert_int_equal(leased(p.ledger, "c"), 2);
        show_pod(&p, "j-w0-0", 8, NULL);
        assert_int_equal(leased(p.ledger, "a"), 8);
        show_pod(&p, "j-w0-0", 8, "a");
        assert_int_equal(leased(p.ledger, "a"), 0);
        assert_int_equal(node_of(p.ledger, "a")->groups[0].held, 8);
        ledger_pods_drop(p.ledger, "default", "j-w0-0"); /* gone: its place is the job's still */
        assert_int_equal(leased(p.ledger, "a"), 8);
        assert_int_equal(gang_expire(p.ledger, &fixture_rules, UINT64_MAX - 1), 0);
        p.state.phase = JOB_FAILED;
        assert_int_equal(job_lease_set(p.ledger, &p.lease), 0);
        assert_int_equal(leased(p.ledger, "a") + leased(p.ledger, "c"), 0);
        assert_null(ledger_jobs_find(p.ledger, "default", "j"));
        end(&p);
}

/* Whoever takes the label away before the pod is bound does not make its chips count twice. */
static void a_pod_without_its_label_takes_its_place(void **state)
{
        struct ledger_pod_facts facts;
        struct planned p;

        (void) state;
        plan(&p, "  placement: packed\n  workers: [{model: H100, chips: 10}]\n");
        facts = pod_of(p.ledger, "j-w0-0", 8);
        assert_int_equal(ledger_pods_set(p.ledger, &facts), 0);
        assert_int_equal(leased(p.ledger, "a"), 8);
        assert_int_equal(ledger_pods_assume(p.ledger, ledger_pods_find(p.ledger, "default", "j-w0-0"),
                                            node_of(p.ledger, "a"), NULL, 0),
                         0);
        assert_int_equal(leased(p.ledger, "a"), 0);
        assert_int_equal(node_of(p.ledger, "a")->groups[0].held, 8);
        ledger_pods_drop(p.ledger, "default", "j-w0-0");
        assert_int_equal(leased(p.ledger, "a"), 8);
        facts.node = "a";
        facts.job = "another";
        assert_int_equal(ledger_pods_set(p.ledger, &facts), 0);
        assert_int_equal(leased(p.ledger, "a"), 0);
        p.state.phase = JOB_FAILED;
        assert_int_equal(job_lease_set(p.ledger, &p.lease), 0);
        assert_null(ledger_jobs_planning(p.ledger, "default/j-w0-0"));
        end(&p);
}

/* What a quota or a policy refuses holds nobody's chips, and does not fit any more where they were taken once
 * it is made. */
static void refused_pods_lease_nothing(void **state)
{
        struct open_groups_claim claim;
        struct planned p;

        (void) state;
        plan(&p, "  placement: packed\n  workers: [{model: H100, chips: 10}]\n");
        assert_int_equal(leased(p.ledger, "a"), 8);
        job_state_set_condition(&p.state, JOB_CONDITION_PODS_CREATED, false, 1, "PodNotCreated", "quota");
        assert_int_equal(job_lease_set(p.ledger, &p.lease), 0);
        assert_int_equal(leased(p.ledger, "a") + leased(p.ledger, "c"), 0);
        claim = job_fixture_claim(p.ledger, &p.job);
        bind_pod(p.ledger, "other", "a", 1);
        job_state_set_condition(&p.state, JOB_CONDITION_PODS_CREATED, true, 2, "Created", "");
        assert_int_equal(job_lease_set(p.ledger, &p.lease), 0);
        assert_int_equal(leased(p.ledger, "a"), 8);
        assert_false(job_lease_fits(&claim, "default", &p.state.groups[0]));
        end(&p);
}

static void a_moved_group_moves_its_lease(void **state)
{
        struct planned p;

        (void) state;
        plan(&p, "  placement: packed\n  workers: [{model: H100, chips: 3}]\n");
        assert_int_equal(leased(p.ledger, "b"), 3);
        job_group_lose(&p.state.groups[0]);
        assert_int_equal(job_lease_set(p.ledger, &p.lease), 0);
        assert_int_equal(leased(p.ledger, "b"), 0);
        (void) text_copy(p.state.groups[0].node, sizeof(p.state.groups[0].node), "a");
        assert_int_equal(job_lease_set(p.ledger, &p.lease), 0);
        assert_int_equal(leased(p.ledger, "a"), 3);
        show_pod(&p, "j-w0-0", 3, "b"); /* the old pod is not the new place's */
        assert_int_equal(leased(p.ledger, "a"), 3);
        show_pod(&p, "j-w0-0-r1", 3, "a");
        assert_int_equal(leased(p.ledger, "a"), 0);
        end(&p);
}

static void a_node_that_is_seen_late_is_leased_then(void **state)
{
        struct planned p;

        (void) state;
        plan(&p, "  placement: packed\n  workers: [{model: H100, chips: 3}]\n");
        (void) text_copy(p.state.groups[0].node, sizeof(p.state.groups[0].node), "late");
        assert_int_equal(job_lease_set(p.ledger, &p.lease), 0);
        assert_int_equal(leased(p.ledger, "b"), 0);
        add_node(p.ledger, "late", NODE_CLASS_ANY, "regular", "H100", 4, 4);
        ledger_jobs_keep_plans(p.ledger);
        assert_int_equal(leased(p.ledger, "late"), 3);
        end(&p);
}

static void a_copy_has_the_same_leases(void **state)
{
        struct ledger *copy;
        struct planned p;

        (void) state;
        plan(&p, "  placement: packed\n  workers: [{model: H100, chips: 10}]\n");
        show_pod(&p, "j-w0-0", 8, "a");
        copy = ledger_life_copy(p.ledger);
        assert_non_null(copy);
        assert_int_equal(leased(copy, "a"), 0);
        assert_int_equal(leased(copy, "c"), 2);
        ledger_pods_drop(copy, "default", "j-w0-0");
        assert_int_equal(leased(copy, "a"), 8);
        assert_int_equal(leased(p.ledger, "a"), 0);
        ledger_life_free(copy);
        end(&p);
}

/* Two processes decide at one time: what one leased, the other may have bound a moment before. */
static void what_others_took_meanwhile_does_not_fit(void **state)
{
        struct open_groups_claim claim;
        struct planned p;

        (void) state;
        plan(&p, "  placement: packed\n  workers: [{model: H100, chips: 10}]\n");
        claim = job_fixture_claim(p.ledger, &p.job);
        assert_true(job_lease_fits(&claim, "default", &p.state.groups[0]));
        bind_pod(p.ledger, "other", "a", 1);
        assert_false(job_lease_fits(&claim, "default", &p.state.groups[0]));
        assert_true(job_lease_fits(&claim, "default", &p.state.groups[1]));
        show_pod(&p, "j-w0-0", 8, "a"); /* bound all the same: it is the kubelet's to judge */
        assert_true(job_lease_fits(&claim, "default", &p.state.groups[0]));
        end(&p);
}

static void only_borrowers_make_room_for_an_emergency(void **state)
{
        struct open_groups_claim claim;
        struct ledger_pod_facts facts;
        struct planned p;

        (void) state;
        plan(&p, "  placement: packed\n  workers: [{model: H100, chips: 3}]\n");
        node_of(p.ledger, "b")->reserved = true;
        facts = pod_of(p.ledger, "borrower", 4);
        facts.node = "b";
        facts.request.preemptible = true;
        assert_int_equal(ledger_pods_set(p.ledger, &facts), 0);
        claim = job_fixture_claim(p.ledger, &p.job);
        assert_false(job_lease_fits(&claim, "default", &p.state.groups[0]));
        claim.takes = LEDGER_PODS_TAKES_BORROWERS;
        assert_true(job_lease_fits(&claim, "default", &p.state.groups[0]));
        end(&p);
}

/* A borrower that others bound says of no group that it is there: its chips are lent once. */
static void a_borrowers_chips_are_lent_once(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts facts;
        struct ledger_node *node;
        uint32_t lent = 0;

        (void) state;
        add_node(l, "n", NODE_CLASS_ANY, "reserved", "H100", 4, 4);
        add_two_groups(l, "n", 4, 4, 100, 100);
        node = node_of(l, "n");
        node->reserved = true;
        facts = pod_of(l, "borrower", 5);
        facts.node = "n";
        facts.request.preemptible = true;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        for (uint32_t g = 0; g < node->group_count; g++)
                lent += open_groups_lent(node, &node->groups[g], LEDGER_PODS_TAKES_BORROWERS);
        assert_int_equal(node->group_count, 2);
        assert_int_equal(lent, 5);
        ledger_life_free(l);
}

/* Only what outlives the pods counts as saved, and of that the last step that is known. */
static void the_last_checkpoint_is_known_by_the_progress(void **state)
{
        static const struct {
                const char *checkpoint;
                struct job_progress progress;
                uint64_t saved_sec;
        } cases[] = {
#define AT(STEP, SPEED) { .step = (STEP), .samples_per_s = (SPEED), .time_usec = 5000000000 }
                { "  checkpoint: {path: /c, claim: c, everySteps: 100}\n", AT(1000, 512), 5000 },
                { "  checkpoint: {path: /c, claim: c, everySteps: 100}\n", AT(1040, 512),
                  4980 }, /* 2 steps/s */
                { "  checkpoint: {path: /c, claim: c, everySteps: 100}\n", AT(1000, 0), 5000 },
                { "  checkpoint: {path: /c, claim: c, everySteps: 100}\n", AT(1040, 0), 0 },
                { "  checkpoint: {path: /c, claim: c, everySteps: 100}\n", AT(1040, -1), 0 },
                { "  checkpoint: {path: /c, claim: c, everySteps: 100}\n", AT(1040, 0.01), 0 },
                { "  checkpoint: {path: /c, claim: c, everySteps: 100}\n", AT(99, 512), 0 },
                { "  checkpoint: {path: /c, everySteps: 100}\n", AT(1000, 512), 0 },
                { "", AT(1000, 512), 0 },
#undef AT
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char spec[256];
                struct planned p;

                (void) text_format(spec, sizeof(spec),
                                   "  globalBatch: 256\n%s  workers: [{model: H100, chips: 3}]\n",
                                   cases[i].checkpoint);
                plan(&p, spec);
                p.state.progress = cases[i].progress;
                assert_int_equal(job_state_saved_usec(&p.job, &p.state), cases[i].saved_sec * 1000000);
                end(&p);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(places_are_leased_until_their_pods_are_bound),
                cmocka_unit_test(a_pod_without_its_label_takes_its_place),
                cmocka_unit_test(refused_pods_lease_nothing),
                cmocka_unit_test(a_moved_group_moves_its_lease),
                cmocka_unit_test(a_node_that_is_seen_late_is_leased_then),
                cmocka_unit_test(a_copy_has_the_same_leases),
                cmocka_unit_test(what_others_took_meanwhile_does_not_fit),
                cmocka_unit_test(only_borrowers_make_room_for_an_emergency),
                cmocka_unit_test(a_borrowers_chips_are_lent_once),
                cmocka_unit_test(the_last_checkpoint_is_known_by_the_progress),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
