/* The cheapest victims of a gang against all subsets, tried one by one with chips alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "scheduler-extender/emergency/take_back.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define CASES 10000
#define NODES 3
#define PODS  8
#define NOW   UINT64_C(1000000000)

/* A case small enough to try every subset. */
struct small_case {
        uint32_t total[NODES], chips[PODS], gang[PODS]; /* gang: 0 = by itself, else its number */
        int node[PODS];
        uint64_t created[PODS], started[PODS], saved[PODS]; /* seconds; saved: by number of the gang */
        bool saves[PODS], preemptible[PODS], regular[NODES];
        enum ledger_pods_takes takes;
        uint32_t members, asked[3];
};

static void make_case(uint64_t *seed, struct small_case *c)
{
        uint32_t left[NODES];
        bool alike = random_below(seed, 3) > 0, gangs = random_below(seed, 2) > 0;

        *c = (struct small_case){ .members = 1 + (uint32_t) random_below(seed, 3) };
        c->takes = 1 + (enum ledger_pods_takes) random_below(seed, 3);
        for (int n = 0; n < NODES; n++) {
                left[n] = c->total[n] = 1 + (uint32_t) random_below(seed, 8);
                c->regular[n] = c->takes != LEDGER_PODS_TAKES_BORROWERS && random_below(seed, 2) > 0;
        }
        for (int p = 0; p < PODS; p++) {
                c->chips[p] = 1 + (uint32_t) random_below(seed, 4);
                c->node[p] = (int) random_below(seed, NODES);
                c->created[p] = 1 + random_below(seed, 900);
                c->gang[p] =
                        gangs ? 1 + (uint32_t) random_below(seed, 3) : (uint32_t) random_below(seed, 6) % 4;
                c->started[p] = random_below(seed, 3) > 0 ? c->created[p] + random_below(seed, 50) : 0;
                c->saved[p] = random_below(seed, 3) > 0 ? random_below(seed, 1000) : 0;
                c->saves[p] = random_below(seed, 5) == 0;
                c->preemptible[p] = random_below(seed, 2) > 0;
                if (c->chips[p] > left[c->node[p]])
                        c->node[p] = -1; /* not in the cluster */
                else
                        left[c->node[p]] -= c->chips[p];
        }
        for (uint32_t m = 0; m < c->members; m++)
                c->asked[m] = alike && m > 0 ? c->asked[0] : 1 + (uint32_t) random_below(seed, 6);
}

static bool place(uint32_t free[NODES], const struct small_case *c, uint32_t member)
{
        if (member == c->members)
                return true;
        for (int n = 0; n < NODES; n++)
                if (free[n] >= c->asked[member]) {
                        free[n] -= c->asked[member];
                        if (place(free, c, member + 1))
                                return true;
                        free[n] += c->asked[member];
                }
        return false;
}

static bool fits_without(const struct small_case *c, unsigned set)
{
        uint32_t free[NODES];

        for (int n = 0; n < NODES; n++)
                free[n] = c->total[n];
        for (int p = 0; p < PODS; p++)
                if (c->node[p] >= 0 && (set >> p & 1) == 0)
                        free[c->node[p]] -= c->chips[p];
        return place(free, c, 0);
}

/* Chips of regular nodes that are taken, work, chips, age: the first that differs decides. */
struct loss {
        uint64_t taken, work, chips, age;
};

static void lose(struct loss *loss, const struct small_case *c, int p, bool taken)
{
        uint64_t since = c->started[p] > c->created[p] ? c->started[p] : c->created[p];

        if (c->gang[p] != 0 && c->saved[c->gang[p]] > since)
                since = c->saved[c->gang[p]];
        loss->taken += taken && c->regular[c->node[p]] ? c->chips[p] : 0;
        loss->work += c->saves[p] || since > NOW / 1000000 ? 0 : c->chips[p] * (NOW / 1000000 - since);
        loss->chips += c->chips[p];
        loss->age += NOW / 1000000 - c->created[p];
}

static int compare(const struct loss *a, const struct loss *b)
{
        const uint64_t x[] = { a->taken, a->work, a->chips, a->age },
                       y[] = { b->taken, b->work, b->chips, b->age };

        for (size_t i = 0; i < ARRAY_SIZE(x); i++)
                if (x[i] != y[i])
                        return x[i] < y[i] ? -1 : 1;
        return 0;
}

static const struct loss too_much = { UINT64_MAX, 0, 0, 0 };

static bool may_go(const struct small_case *c, int p, enum ledger_pods_takes takes)
{
        return c->node[p] >= 0 && (takes == LEDGER_PODS_TAKES_ANYBODY || !c->regular[c->node[p]] ||
                                   (takes == LEDGER_PODS_TAKES_PREEMPTIBLE && c->preemptible[p]));
}

/* A gang costs all its pods, once. Regular nodes count where there is no other way. */
static struct loss cost_of(const struct small_case *c, unsigned set, bool taken)
{
        struct loss loss = { 0 };

        for (int p = 0; p < PODS; p++) {
                bool goes = c->node[p] >= 0 && (set >> p & 1) != 0;

                for (int q = 0; q < PODS && !goes && c->node[p] >= 0; q++)
                        goes = c->gang[p] != 0 && c->gang[q] == c->gang[p] && c->node[q] >= 0 &&
                               (set >> q & 1) != 0;
                if (goes)
                        lose(&loss, c, p, taken);
        }
        return loss;
}

static struct loss cheapest(const struct small_case *c, enum ledger_pods_takes takes)
{
        struct loss best = too_much;

        for (unsigned set = 0; set < 1u << PODS; set++) {
                struct loss loss = cost_of(c, set, takes == LEDGER_PODS_TAKES_PREEMPTIBLE);
                bool may = true;

                for (int p = 0; p < PODS; p++)
                        may = may && ((set >> p & 1) == 0 || may_go(c, p, takes));
                if (may && compare(&loss, &best) < 0 && fits_without(c, set))
                        best = loss;
        }
        return best;
}

/* @ret_taken: are regular nodes needed? */
static struct loss exhaustive(const struct small_case *c, bool *ret_taken)
{
        struct loss best = cheapest(c, c->takes == LEDGER_PODS_TAKES_PREEMPTIBLE ? LEDGER_PODS_TAKES_BORROWERS
                                                                                 : c->takes);

        *ret_taken = c->takes == LEDGER_PODS_TAKES_PREEMPTIBLE && best.taken == UINT64_MAX;
        return *ret_taken ? cheapest(c, c->takes) : best;
}

static const char *const node_names[NODES] = { "n0", "n1", "n2" };

static struct ledger *ledger_of(const struct small_case *c)
{
        struct ledger *l = test_ledger();

        for (int n = 0; n < NODES; n++)
                add_node(l, node_names[n], NODE_CLASS_ANY, c->regular[n] ? "regular" : "reserved", "H100",
                         c->total[n], c->total[n]);
        for (int p = 0; p < PODS; p++)
                if (c->node[p] >= 0) {
                        char name[16], job[16];
                        struct ledger_pod_facts facts;

                        (void) snprintf(name, sizeof(name), "p%d", p);
                        (void) snprintf(job, sizeof(job), "g%u", c->gang[p]);
                        facts = pod_of(l, name, c->chips[p]);
                        facts.node = node_names[c->node[p]];
                        facts.created_usec = c->created[p] * 1000000;
                        facts.started_usec = c->started[p] * 1000000;
                        facts.saves = c->saves[p];
                        facts.request.preemptible = c->preemptible[p];
                        facts.job = c->gang[p] != 0 ? job : NULL;
                        facts.request.gang_size = c->gang[p] != 0 ? 2 : 0;
                        (void) ledger_pods_set(l, &facts);
                        if (facts.job != NULL)
                                ledger_jobs_find(l, "default", job)->saved_usec =
                                        c->saved[c->gang[p]] * 1000000;
                }
        for (uint32_t m = 0; m < c->members; m++) {
                char name[16];
                struct ledger_pod_facts facts;

                (void) snprintf(name, sizeof(name), "a%u", m);
                facts = pod_of(l, name, c->asked[m]);
                facts.job = c->members > 1 ? "asks" : NULL;
                facts.request.gang_size = c->members;
                facts.created_usec = NOW;
                facts.request.emergency = true;
                (void) ledger_pods_set(l, &facts);
        }
        return l;
}

static struct asked asked_of(struct ledger *l, const char *pod)
{
        const struct ledger_pod *self = ledger_pods_find(l, "default", pod);
        struct asked asked = { .context = { .ledger = l,
                                            .rules = &fixture_rules,
                                            .request = &self->request,
                                            .job = self->job,
                                            .self = self,
                                            .created_usec = self->created_usec,
                                            .now_usec = NOW,
                                            .unfiltered = true },
                               .job = self->job,
                               .demand = { .kinds = self->kinds, .kind_count = self->kind_count } };

        rules_prepare(&asked.context);
        return asked;
}

static bool fits_now(struct ledger *l, const struct asked *asked)
{
        struct trial trial;
        int r;

        trial_begin(&trial, l);
        r = asked_fits(&trial, asked);
        trial_end(&trial);
        return r > 0;
}

static struct loss loss_of(victim_cost cost)
{
        return (struct loss){ .taken = (uint64_t) (cost >> 96),
                              .work = victim_chip_seconds(cost),
                              .chips = (uint64_t) (cost >> 36) & ((1 << 18) - 1),
                              .age = (uint64_t) cost & ((UINT64_C(1) << 36) - 1) };
}

/* The plan's cost, and its set taken at its word: it fits without them, and not with any of them. */
static struct loss planned(const struct small_case *c, bool taken, struct take_back *plan)
{
        struct ledger *l = ledger_of(c);
        struct asked asked = asked_of(l, "a0");
        struct victim_rules rules = { .takes = c->takes, .now_usec = NOW };
        struct trial trial;
        uint64_t generation = l->generation;
        unsigned set = 0;
        struct loss loss = too_much, told;
        int r;

        trial_begin(&trial, l);
        r = take_back_plan(&trial, &asked, &rules, plan);
        trial_end(&trial);
        assert_int_equal(l->generation, generation);
        if (r == 0) {
                for (size_t i = 0; i < plan->victims.count; i++)
                        set |= 1u << (plan->victims.pods[i]->name[1] - '0');
                loss = cost_of(c, set, taken);
                told = loss_of(plan->cost);
                for (int p = 0; p < PODS; p++)
                        assert_true((set >> p & 1) == 0 || may_go(c, p, c->takes));
                assert_true(compare(&loss, &told) == 0);
                assert_true(plan->bound <= plan->cost);
                assert_true(fits_without(c, set));
                for (int p = 0; p < PODS; p++)
                        if ((set >> p & 1) != 0)
                                assert_false(fits_without(c, set & ~(1u << p)));
                for (size_t i = 0; i < plan->victims.count; i++)
                        ledger_pods_detach(l, plan->victims.pods[i]);
                assert_true(fits_now(l, &asked));
        }
        assert_true(r == 0 || r == TAKE_BACK_E_NONE);
        take_back_free(plan);
        ledger_life_free(l);
        return loss;
}

static void the_cheapest_set_is_found_as_by_trying_all(void **state)
{
        uint64_t seed = 11;
        size_t by_bound = 0, none = 0, regular = 0;

        (void) state;
        for (int i = 0; i < CASES; i++) {
                struct small_case c;
                struct take_back plan;
                struct loss want, got;
                bool taken;

                make_case(&seed, &c);
                want = exhaustive(&c, &taken);
                got = planned(&c, taken, &plan);
                none += want.taken == UINT64_MAX;
                regular += taken && want.taken != UINT64_MAX;
                by_bound += plan.bound == plan.cost;
                if (compare(&want, &got) != 0)
                        fail_msg("case %d: want %llu regular chips, %llu chip-seconds, %llu chips, %llu s; "
                                 "got "
                                 "%llu, %llu, %llu, %llu",
                                 i, (unsigned long long) want.taken, (unsigned long long) want.work,
                                 (unsigned long long) want.chips, (unsigned long long) want.age,
                                 (unsigned long long) got.taken, (unsigned long long) got.work,
                                 (unsigned long long) got.chips, (unsigned long long) got.age);
        }
        assert_true(none > CASES / 20 && none < CASES / 2); /* both are tried */
        assert_true(by_bound > CASES / 4);
        assert_true(regular > CASES / 50);
}

/* A chip is only borrowed here. */
static void plan_against_borrowers(struct ledger *l, struct ledger_pod_facts *asks, struct take_back *plan)
{
        const struct victim_rules rules = { .takes = LEDGER_PODS_TAKES_BORROWERS, .now_usec = NOW };
        struct trial trial;
        struct asked asked;

        asks->request.emergency = true;
        (void) ledger_pods_set(l, asks);
        asked = asked_of(l, asks->name);
        trial_begin(&trial, l);
        assert_int_equal(take_back_plan(&trial, &asked, &rules, plan), 0);
        trial_end(&trial);
}

/* Reserved nodes of 24 one-chip borrowers: every set of them has as many chips, only their ages differ. */
static void alike_borrowers_are_not_combined(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts fire = pod_of(l, "fire", 12);
        struct take_back plan;
        char name[32], node[16];

        (void) state;
        for (int n = 0; n < 20; n++) {
                (void) snprintf(node, sizeof(node), "r%02d", n);
                add_node(l, node, NODE_CLASS_ANY, "reserved", "H100", 24, 24);
                for (int p = 0; p < 24; p++) {
                        struct ledger_pod_facts pod;

                        (void) snprintf(name, sizeof(name), "b-%d-%d", n, p);
                        pod = pod_of(l, name, 1);
                        pod.node = node;
                        pod.created_usec = (uint64_t) (1 + n + 20 * p) * 1000000;
                        (void) ledger_pods_set(l, &pod);
                }
        }
        plan_against_borrowers(l, &fire, &plan);
        assert_int_equal(plan.victims.count, 12);
        for (size_t i = 0; i < plan.victims.count; i++) {
                assert_string_equal(plan.victims.pods[i]->node->name, "r19"); /* whose are the youngest */
                assert_true(plan.victims.pods[i]->created_usec >= (1 + 19 + 20 * 12) * UINT64_C(1000000));
        }
        assert_true(plan.bound == plan.cost);
        /* 24 pods x 12 chips a node; three looks at the nodes, one at the pods */
        assert_true(plan.steps < 20000 + TRIAL_NODE_STEPS * (3 * 21 + 480 + 12));
        take_back_free(&plan);
        ledger_life_free(l);
}

#define MANY_NODES 80

/* Gangs of 2 to 8 pods of 1 to 8 chips fill the reserve, each over several nodes. */
static struct ledger *reserve_of_gangs(uint64_t *seed, bool backwards)
{
        struct ledger *l = test_ledger();
        char name[32], node[16], job[16];
        int serial = 0, gang = 0, left = 0;

        for (int n = 0; n < MANY_NODES; n++) {
                (void) snprintf(node, sizeof(node), "r%02d", backwards ? MANY_NODES - n : n);
                add_node(l, node, NODE_CLASS_ANY, "reserved", "H100", 8, 8);
                for (uint32_t open = 8; open > 0; serial++) {
                        uint32_t chips = 1u << random_below(seed, 4);
                        struct ledger_pod_facts pod;

                        if (chips > open)
                                continue;
                        (void) snprintf(name, sizeof(name), "b%d", serial);
                        (void) snprintf(job, sizeof(job), "g%d", gang);
                        pod = pod_of(l, name, chips);
                        pod.node = node;
                        pod.job = job;
                        pod.request.gang_size = 2;
                        pod.created_usec = NOW - (1 + random_below(seed, 900)) * 1000000;
                        assert_int_equal(ledger_pods_set(l, &pod), 0);
                        left = left == 0 ? 1 + (int) random_below(seed, 7) : left - 1;
                        gang += left == 0;
                        open -= chips;
                }
        }
        return l;
}

/* Too many sets to try: that none is cheaper is shown by what the gangs' nodes have learnt to bear. */
static void of_many_gangs_the_cheapest_go(void **state)
{
        struct victim_rules rules = { .takes = LEDGER_PODS_TAKES_BORROWERS, .now_usec = NOW };
        uint64_t seed = 17;

        (void) state;
        for (int i = 0; i < 6; i++) {
                struct ledger *l = reserve_of_gangs(&seed, i >= 3); /* nodes come in any order */
                struct take_back plan;
                struct asked asked;
                struct trial trial;
                char name[16];

                for (int m = 0; m < 16; m++) {
                        struct ledger_pod_facts fire;

                        (void) snprintf(name, sizeof(name), "fire%d", m);
                        fire = pod_of(l, name, 8);
                        fire.request.emergency = true;
                        fire.request.gang_size = 16;
                        fire.job = "fire";
                        assert_int_equal(ledger_pods_set(l, &fire), 0);
                }
                asked = asked_of(l, "fire0");
                trial_begin(&trial, l);
                assert_int_equal(take_back_plan(&trial, &asked, &rules, &plan), 0);
                trial_end(&trial);
                if (plan.bound != plan.cost)
                        fail_msg("case %d: %llu chip-seconds, at least %llu", i,
                                 (unsigned long long) victim_chip_seconds(plan.cost),
                                 (unsigned long long) victim_chip_seconds(plan.bound));
                take_back_free(&plan);
                ledger_life_free(l);
        }
}

/* Whatever the order in which they came. */
static void of_equal_borrowers_the_first_names_go(void **state)
{
        for (unsigned turn = 0; turn < 8; turn++) {
                struct ledger *l = test_ledger();
                struct ledger_pod_facts fire = pod_of(l, "fire", 3);
                struct take_back plan;

                (void) state;
                add_node(l, "r", NODE_CLASS_ANY, "reserved", "H100", 8, 8);
                for (unsigned p = 0; p < 8; p++) {
                        char name[8];
                        struct ledger_pod_facts pod;

                        (void) snprintf(name, sizeof(name), "b%u", (3 * p + turn) % 8);
                        pod = pod_of(l, name, 1);
                        pod.node = "r";
                        pod.created_usec = 1000000;
                        (void) ledger_pods_set(l, &pod);
                }
                plan_against_borrowers(l, &fire, &plan);
                assert_int_equal(plan.victims.count, 3);
                for (size_t i = 0; i < plan.victims.count; i++)
                        assert_true(plan.victims.pods[i]->name[1] < '3');
                take_back_free(&plan);
                ledger_life_free(l);
        }
}

/* Nobody goes from where CPU-only pods leave no room, however cheap he is. */
static void nobody_goes_where_there_is_no_room_beside_chips(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts fire = pod_of(l, "fire", 8);
        struct take_back plan;
        char name[32], node[16];

        (void) state;
        for (unsigned n = 0; n < 30; n++) {
                struct ledger_pod_facts borrower, clerk;
                struct ledger_node_facts facts = { .name = node,
                                                   .room = { .offered = { .cpu_milli = 64000 } } };

                (void) snprintf(node, sizeof(node), "r%02u", n);
                add_node(l, node, NODE_CLASS_ANY, "reserved", "H100", 8, 8);
                (void) ledger_nodes_set(l, &facts);
                (void) snprintf(name, sizeof(name), "b%u", n);
                borrower = pod_of(l, name, 8);
                borrower.node = node;
                borrower.created_usec = (uint64_t) (900 - n) * 1000000; /* the younger is the cheaper */
                borrower.request.needs.cpu_milli = 2000;
                (void) ledger_pods_set(l, &borrower);
                (void) snprintf(name, sizeof(name), "c%u", n);
                clerk = pod_of(l, name, 8);
                clerk.node = node;
                clerk.request.item_count = 0;
                clerk.request.needs.cpu_milli = n < 10 ? 60000 : 10000;
                (void) ledger_pods_set(l, &clerk);
        }
        fire.request.needs.cpu_milli = 8000;
        plan_against_borrowers(l, &fire, &plan);
        assert_int_equal(plan.victims.count, 1);
        assert_string_equal(plan.victims.pods[0]->node->name, "r10");
        take_back_free(&plan);
        ledger_life_free(l);
}

struct deleted {
        const char *what;
        int seconds;    /* until the pods are gone that are being deleted; 0 = nobody knows */
        unsigned grace; /* of an eviction */
        bool asked;     /* it was evicted two minutes ago */
        bool leaves;
        const char *goes;
};

/* Who is being deleted with an hour's grace has its chips for that hour: its eviction shortens that. */
static void who_goes_in_an_hour_has_not_gone(void **state)
{
        static const struct deleted rows[] = {
                { "within a minute", 50, 30, false, true, "stays" },
                { "nobody knows when", 0, 30, false, true, "stays" },
                { "as soon as who is evicted", 110, 120, false, true, "stays" },
                { "later than who is evicted", 130, 120, false, false, "going" },
                { "in an hour", 3600, 30, false, false, "going" },
                { "in an hour, whatever it is asked", 3600, 30, true, false, "stays" },
                { "just now", -50, 30, true, true, "stays" },
                { "long ago, and something keeps it", -70, 30, true, false, "stays" },
                { "long ago, and nobody evicted it", -70, 30, false, false, "stays" },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct ledger *l = test_ledger();
                struct ledger_pod_facts fire = pod_of(l, "fire", 8), going = pod_of(l, "going", 8),
                                        stays = pod_of(l, "stays", 8);
                struct victim_rules rules = { .takes = LEDGER_PODS_TAKES_BORROWERS,
                                              .now_usec = NOW,
                                              .grace_usec = rows[i].grace * UINT64_C(1000000) };
                struct take_back plan;
                struct trial trial;
                struct asked asked;

                add_node(l, "r", NODE_CLASS_ANY, "reserved", "H100", 8, 8);
                add_node(l, "s", NODE_CLASS_ANY, "reserved", "H100", 8, 8);
                going.node = "r";
                going.created_usec = stays.created_usec = 1000000;
                going.deleting = true;
                going.deletion_usec =
                        rows[i].seconds == 0 ? 0 : NOW + (uint64_t) (rows[i].seconds * INT64_C(1000000));
                (void) ledger_pods_set(l, &going);
                ledger_pods_find(l, "default", "going")->evicted_usec =
                        rows[i].asked ? NOW - 120 * UINT64_C(1000000) : 0;
                stays.node = "s";
                (void) ledger_pods_set(l, &stays);
                fire.request.emergency = true;
                (void) ledger_pods_set(l, &fire);
                if (victim_leaves(&rules, ledger_pods_find(l, "default", "going")) != rows[i].leaves)
                        fail_msg("%s", rows[i].what);
                asked = asked_of(l, "fire");
                trial_begin(&trial, l);
                assert_int_equal(take_back_plan(&trial, &asked, &rules, &plan), 0);
                trial_end(&trial);
                assert_int_equal(plan.victims.count, 1); /* the work of the other one is worth more */
                if (strcmp(plan.victims.pods[0]->name, rows[i].goes) != 0)
                        fail_msg("%s: %s", rows[i].what, plan.victims.pods[0]->name);
                take_back_free(&plan);
                ledger_life_free(l);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_cheapest_set_is_found_as_by_trying_all),
                cmocka_unit_test(alike_borrowers_are_not_combined),
                cmocka_unit_test(of_many_gangs_the_cheapest_go),
                cmocka_unit_test(of_equal_borrowers_the_first_names_go),
                cmocka_unit_test(nobody_goes_where_there_is_no_room_beside_chips),
                cmocka_unit_test(who_goes_in_an_hour_has_not_gone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
