/* Older pods that wait, and what younger ones may still take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/random.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

/* A simulation with departures: single-chip pods keep four nodes of eight full for ever, tried before anybody
 * else; a large pod or a gang comes now and then. Time is in seconds. */
#define NODES        4
#define SECONDS      2000
#define SINGLE_STAYS 20
#define LARGE_EVERY  200
#define LARGE_STAYS  30
#define PODS_MAX     16384
#define WAIT_MAX     (2 * SINGLE_STAYS) /* singles that are older start first, then the node empties */

struct life {
        char name[24];
        uint64_t created, ends; /* ends: 0 = it waits */
        uint32_t chips, gang;
        bool gone;
};

struct simulated {
        struct ledger *ledger;
        struct life *pods;
        size_t count;
        uint64_t longest_wait; /* of large pods */
        size_t large_started;
        bool backfills;
};

static struct ledger_pod_facts facts_of(struct simulated *s, const struct life *life)
{
        struct ledger_pod_facts facts = pod_of(s->ledger, life->name, life->chips);

        facts.created_usec = (life->created + 1) * 1000000;
        facts.request.gang_size = life->gang;
        facts.request.class_chips = life->chips * (life->gang > 1 ? life->gang : 1);
        facts.job = life->gang > 1 ? "gang" : NULL;
        return facts;
}

static void arrive(struct simulated *s, uint64_t now, uint32_t chips, uint32_t gang)
{
        struct life *life = &s->pods[s->count];
        struct ledger_pod_facts facts;

        (void) text_format(life->name, sizeof(life->name), "p%zu", s->count);
        life->created = now;
        life->chips = chips;
        life->gang = gang;
        facts = facts_of(s, life);
        assert_int_equal(ledger_pods_set(s->ledger, &facts), 0);
        assert_true(++s->count < PODS_MAX);
}

static void leave(struct simulated *s, uint64_t now)
{
        for (size_t i = 0; i < s->count; i++)
                if (!s->pods[i].gone && s->pods[i].ends != 0 && s->pods[i].ends <= now) {
                        ledger_pods_drop(s->ledger, "default", s->pods[i].name);
                        s->pods[i].gone = true;
                }
}

static bool try_pod(struct simulated *s, struct life *life, uint64_t now)
{
        struct ledger_pod *pod = ledger_pods_find(s->ledger, "default", life->name);
        struct gang_demand demand = { .keep = true };
        struct rules_context ctx = { .ledger = s->ledger,
                                     .rules = &fixture_rules,
                                     .request = &pod->request,
                                     .job = pod->job,
                                     .self = pod,
                                     .created_usec = pod->created_usec,
                                     .now_usec = (now + 1) * 1000000 };
        struct ledger_pod_part parts[LEDGER_POD_PARTS_MAX];

        rules_prepare(&ctx);
        assert_true(gang_prepare(s->ledger, &ctx, pod->job, &demand) >= 0);
        for (uint32_t i = 0; i < s->ledger->node_count; i++) {
                struct ledger_node *node = s->ledger->nodes[i];

                if (rules_judge(&ctx, node) != REASON_NONE)
                        continue;
                assert_int_equal(
                        ledger_pods_assume(s->ledger, pod, node, parts, score_parts(&ctx, node, parts)), 0);
                life->ends = now + (life->chips > 1 || life->gang > 1 ? LARGE_STAYS : SINGLE_STAYS);
                return true;
        }
        return false;
}

/* The young before the old: nothing but a reservation helps the large ones. */
static void schedule(struct simulated *s, uint64_t now)
{
        if (s->backfills)
                assert_true(backfill_update(s->ledger, &fixture_rules, (now + 1) * 1000000) >= 0);
        else
                backfill_clear(s->ledger);
        for (size_t i = s->count; i-- > 0;) {
                struct life *life = &s->pods[i];
                bool large = life->chips > 1 || life->gang > 1;

                if (life->gone || life->ends != 0)
                        continue;
                if (try_pod(s, life, now) && large)
                        s->large_started++;
                if (large && now - life->created > s->longest_wait)
                        s->longest_wait = now - life->created;
        }
}

static struct simulated run(bool backfills, uint32_t chips, uint32_t gang)
{
        struct simulated s = { .ledger = test_ledger(), .backfills = backfills };
        uint64_t seed = 7;

        s.pods = calloc(PODS_MAX, sizeof(*s.pods));
        assert_non_null(s.pods);
        ledger_chips_mark(s.ledger, GPU);
        for (int n = 0; n < NODES; n++) {
                char name[8];

                (void) text_format(name, sizeof(name), "n%d", n);
                add_node(s.ledger, name, NODE_CLASS_ANY, "regular", "H100", 8, 8);
        }
        for (uint64_t now = 0; now < SECONDS; now++) {
                leave(&s, now);
                for (size_t k = random_below(&seed, 4); k > 0; k--)
                        arrive(&s, now, 1, 0);
                if (now % LARGE_EVERY == 50)
                        for (uint32_t m = 0; m < (gang > 1 ? gang : 1); m++)
                                arrive(&s, now, chips, gang);
                schedule(&s, now);
        }
        ledger_life_free(s.ledger);
        free(s.pods);
        return s;
}

static void eight_chip_pods_never_starve(void **state)
{
        struct simulated with = run(true, 8, 0), without = run(false, 8, 0);

        (void) state;
        assert_int_equal(with.large_started, SECONDS / LARGE_EVERY);
        assert_in_range(with.longest_wait, 0, WAIT_MAX);
        assert_true(without.longest_wait > 5 * with.longest_wait);
}

static void gangs_never_starve(void **state)
{
        struct simulated with = run(true, 8, 2), without = run(false, 8, 2);

        (void) state;
        assert_int_equal(with.large_started, 2 * SECONDS / LARGE_EVERY);
        assert_in_range(with.longest_wait, 0, WAIT_MAX);
        assert_true(without.longest_wait > 5 * with.longest_wait);
        with = run(true, 1, 16); /* sixteen single chips that must start together */
        assert_int_equal(with.large_started, 16 * SECONDS / LARGE_EVERY);
        assert_in_range(with.longest_wait, 0, WAIT_MAX);
}

static void a_gang_that_fits_holds_nothing(void **state)
{
        struct simulated s = { .ledger = test_ledger(), .backfills = true };

        (void) state;
        s.pods = calloc(8, sizeof(*s.pods));
        ledger_chips_mark(s.ledger, GPU);
        add_node(s.ledger, "a", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        add_node(s.ledger, "b", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        arrive(&s, 0, 8, 2);
        arrive(&s, 0, 8, 2);
        assert_int_equal(backfill_update(s.ledger, &fixture_rules, 1000000), 0);
        arrive(&s, 1, 8, 0);
        s.pods[2].ends = 99;
        bind_pod(s.ledger, s.pods[2].name, "b", 8);
        assert_int_equal(backfill_update(s.ledger, &fixture_rules, 1000000), 2);
        assert_non_null(node_of(s.ledger, "a")->backfills);
        assert_non_null(node_of(s.ledger, "b")->backfills);
        ledger_life_free(s.ledger);
        free(s.pods);
}

/* Its fellows may never come, and the chip is one that others can use. */
static void nothing_is_held_for_a_gang_of_which_one_is_there(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts one = pod_of(l, "one", 1);

        (void) state;
        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        bind_pod(l, "x", "a", 7);
        one.job = "gang";
        one.request.class_chips = one.request.gang_size = 2;
        assert_int_equal(ledger_pods_set(l, &one), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 0);
        one.name = one.uid = "other";
        assert_int_equal(ledger_pods_set(l, &one), 0);
        assert_true(backfill_update(l, &fixture_rules, 1000000) > 0);
        ledger_life_free(l);
}

/* Two nodes of eight, full, and pods that wait for eight, one older than the other. */
static struct ledger *two_full_nodes(void)
{
        struct ledger *l = test_ledger();

        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        bind_pod(l, "x", "a", 4);
        bind_pod(l, "y", "b", 4);
        return l;
}

static void wait_for_eight(struct ledger *l, const char *namespace_, const char *name, uint64_t created_usec)
{
        struct ledger_pod_facts facts = pod_of(l, name, 8);

        facts.namespace_ = namespace_;
        facts.created_usec = created_usec;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
}

static void a_hold_ends_and_rests_as_long(void **state)
{
        struct ledger *l = two_full_nodes();
        uint64_t now = 1000000, hold = fixture_rules.hold_usec;

        (void) state;
        wait_for_eight(l, "default", "waits", 1);
        assert_int_equal(backfill_update(l, &fixture_rules, now), 1);
        assert_int_equal(backfill_update(l, &fixture_rules, now + hold - 1), 1);
        assert_int_equal(backfill_update(l, &fixture_rules, now + hold), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, now + 2 * hold - 1), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, now + 2 * hold), 1);
        assert_int_equal(backfill_update(l, &fixture_rules, now + hold), 1); /* the clock went back */
        ledger_life_free(l);
}

static void holds_of_one_namespace_have_a_share(void **state)
{
        struct ledger *l = two_full_nodes();

        (void) state;
        wait_for_eight(l, "greedy", "first", 1);
        wait_for_eight(l, "greedy", "second", 2);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        wait_for_eight(l, "modest", "third", 3);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 2);
        ledger_life_free(l);
}

static void a_label_is_the_word_of_its_owner_alone(void **state)
{
        struct ledger *l = two_full_nodes();
        struct ledger_pod_facts brief = pod_of(l, "brief", 1), ends = pod_of(l, "x", 4);
        struct rules_context ctx;

        (void) state;
        brief.request.deadline_sec = ends.request.deadline_sec = 10;
        ends.node = "a";
        ends.started_usec = 100;
        ledger_pods_drop(l, "default", "x");
        assert_int_equal(ledger_pods_set(l, &ends), 0);
        wait_for_eight(l, "elsewhere", "waits", 1);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_null(node_of(l, "b")->backfills); /* equal: nobody is known to end */
        assert_true(node_of(l, "a")->backfills->start_usec == UINT64_MAX);
        ledger_pods_drop(l, "default", "x");
        ends.request.deadline_kept = true;
        assert_int_equal(ledger_pods_set(l, &ends), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_true(node_of(l, "a")->backfills->start_usec == 10000100);

        brief.request.deadline_sec = 5; /* it would end in time */
        ctx = context_of(l, &brief.request);
        ctx.created_usec = 1000;
        ctx.namespace_ = "default";
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_HELD_FOR_OLDER);
        brief.request.deadline_kept = true;
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_NONE);
        brief.request.deadline_kept = false;
        ctx.namespace_ = "elsewhere";
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_NONE);
        ledger_life_free(l);
}

/* Nothing else on the node says when it ends. */
static void who_is_being_deleted_ends(void **state)
{
        struct ledger *l = two_full_nodes();
        struct ledger_pod_facts gone = pod_of(l, "y", 4);

        (void) state;
        wait_for_eight(l, "elsewhere", "waits", 1);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_non_null(node_of(l, "a")->backfills);
        gone.node = "b";
        gone.deleting = true;
        gone.deletion_usec = 5000000;
        assert_int_equal(ledger_pods_set(l, &gone), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_null(node_of(l, "a")->backfills);
        assert_non_null(node_of(l, "b")->backfills);
        assert_int_equal(node_of(l, "b")->backfills->start_usec, 5000000);
        ledger_pods_drop(l, "default", "y");
        assert_int_equal(node_of(l, "b")->ending, 0);
        ledger_life_free(l);
}

/* A finalizer keeps b's pod: when its chips come free nobody knows, and those of a are due in five seconds.
 */
static void who_should_be_gone_has_no_end(void **state)
{
        struct ledger *l = two_full_nodes();
        struct ledger_pod_facts gone = pod_of(l, "y", 4), brief = pod_of(l, "x", 4);
        uint64_t now = 1000000000;

        (void) state;
        wait_for_eight(l, "elsewhere", "waits", 1);
        brief.node = "a";
        brief.started_usec = now;
        brief.request.deadline_sec = 5;
        brief.request.deadline_kept = true;
        ledger_pods_drop(l, "default", "x");
        assert_int_equal(ledger_pods_set(l, &brief), 0);
        gone.node = "b";
        gone.deleting = true;
        gone.deletion_usec = now - BACKFILL_OVERDUE_USEC;
        assert_int_equal(ledger_pods_set(l, &gone), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, now), 1);
        assert_non_null(node_of(l, "b")->backfills);
        assert_int_equal(backfill_update(l, &fixture_rules, now + 1), 1);
        assert_null(node_of(l, "b")->backfills);
        assert_int_equal(node_of(l, "a")->backfills->start_usec, now + 5000000);
        ledger_life_free(l);
}

/* A label of theirs that says sooner than the deletion is their word alone. */
static void others_end_by_their_deletion(void **state)
{
        struct ledger *l = two_full_nodes();
        struct ledger_pod_facts gone = pod_of(l, "y", 4);

        (void) state;
        wait_for_eight(l, "elsewhere", "waits", 1);
        ledger_pods_drop(l, "default", "y");
        gone.node = "b";
        gone.started_usec = 1000000;
        gone.request.deadline_sec = 1;
        gone.deleting = true;
        gone.deletion_usec = 5000000;
        assert_int_equal(ledger_pods_set(l, &gone), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_int_equal(node_of(l, "b")->backfills->start_usec, 5000000);
        ledger_life_free(l);
}

/* A job's plan leased its chips before they were held, or beside what is held. */
static void a_lease_is_not_held_back(void **state)
{
        struct ledger *l = two_full_nodes();
        struct ledger_job_place place = { .node = "a" };
        struct ledger_pod_facts member;
        struct rules_context ctx;

        (void) state;
        member = pod_of(l, "j-w0-0", 1);
        place.request = member.request;
        (void) text_copy(place.pod, sizeof(place.pod), "j-w0-0");
        wait_for_eight(l, "default", "waits", 1);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_non_null(node_of(l, "a")->backfills);
        ctx = context_of(l, &member.request);
        ctx.created_usec = 1000;
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_HELD_FOR_OLDER);
        assert_int_equal(ledger_jobs_set_plan(l, "default", "j", &place, 1), 0);
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_HELD_FOR_OLDER);
        ctx.job = ledger_jobs_find(l, "default", "j");
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_NONE);
        member.request.items[0].chips = 2; /* more than is leased: beside that it waits as others do */
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_HELD_FOR_OLDER);
        member.request.items[0].chips = 1;
        ((struct ledger_pod *) node_of(l, "a")->backfills->pod)->request.emergency = true;
        assert_int_equal(rules_judge(&ctx, node_of(l, "a")), REASON_HELD_FOR_OLDER);
        ledger_life_free(l);
}

/* A stream of single chips, always one more than has ended, against one older pod of eight. */
static void eight_chips_do_not_starve_behind_single_ones(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts big = pod_of(l, "big", 8);
        char names[200][16];
        int bound = 0, ended = 0, started_at = -1;

        (void) state;
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        for (; bound < 8; bound++) {
                (void) snprintf(names[bound], sizeof(names[bound]), "s%d", bound);
                bind_pod(l, names[bound], "a", 1);
        }
        big.created_usec = 2000;
        (void) ledger_pods_set(l, &big);
        for (int step = 0; step < 100 && started_at < 0; step++) {
                struct ledger_pod_facts small;
                struct rules_context ctx;

                assert_true(backfill_update(l, &fixture_rules, 1000000) >= 0);
                if (ended < bound)
                        ledger_pods_drop(l, "default", names[ended++]);
                assert_true(backfill_update(l, &fixture_rules, 1000000) >= 0);
                (void) snprintf(names[bound], sizeof(names[bound]), "s%d", bound);
                small = pod_of(l, names[bound], 1); /* younger: created after */
                small.created_usec = 3000;
                ctx = context_of(l, &small.request);
                ctx.created_usec = 3000;
                if (rules_judge(&ctx, node_of(l, "a")) == REASON_NONE)
                        bind_pod(l, names[bound++], "a", 1);
                ctx = context_of(l, &big.request);
                ctx.created_usec = 2000;
                ctx.self = ledger_pods_find(l, "default", "big");
                if (rules_judge(&ctx, node_of(l, "a")) == REASON_NONE)
                        started_at = step;
        }
        assert_int_equal(started_at, 7); /* as soon as the eight that ran have ended */
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(eight_chip_pods_never_starve),
                cmocka_unit_test(gangs_never_starve),
                cmocka_unit_test(a_gang_that_fits_holds_nothing),
                cmocka_unit_test(nothing_is_held_for_a_gang_of_which_one_is_there),
                cmocka_unit_test(a_hold_ends_and_rests_as_long),
                cmocka_unit_test(holds_of_one_namespace_have_a_share),
                cmocka_unit_test(a_label_is_the_word_of_its_owner_alone),
                cmocka_unit_test(who_is_being_deleted_ends),
                cmocka_unit_test(who_should_be_gone_has_no_end),
                cmocka_unit_test(others_end_by_their_deletion),
                cmocka_unit_test(a_lease_is_not_held_back),
                cmocka_unit_test(eight_chips_do_not_starve_behind_single_ones),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
