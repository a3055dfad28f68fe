/* Emergencies that chips alone do not describe: what else they ask for, unlike members, equal nodes; on
 * reserves with too many borrowers to try every set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "scheduler-extender/emergency/exact.h"
#include "scheduler-extender/emergency/take_back.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define NOW UINT64_C(1000000000)

static void add_room(struct ledger *l, const char *node, int64_t cpu_milli)
{
        struct ledger_node_facts facts = { .name = node, .room = { .offered = { .cpu_milli = cpu_milli } } };

        (void) ledger_nodes_set(l, &facts);
}

/* @chips: 0 = a pod of CPUs alone. @age: seconds. */
static void lend(struct ledger *l, const char *name, const char *node, uint32_t chips, int64_t cpu_milli,
                 uint64_t age)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.node = node;
        facts.request.needs.cpu_milli = cpu_milli;
        facts.created_usec = NOW - age * 1000000;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
}

static struct ledger_pod_facts member_of(struct ledger *l, const char *name, uint32_t size, uint32_t chips,
                                         int64_t cpu_milli)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.request.emergency = true;
        facts.request.gang_size = size;
        facts.request.needs.cpu_milli = cpu_milli;
        facts.job = size > 1 ? "fire" : NULL;
        facts.created_usec = NOW;
        return facts;
}

static void ask(struct ledger *l, uint32_t size, uint32_t chips, int64_t cpu_milli)
{
        for (uint32_t m = 0; m < size; m++) {
                char name[16];
                struct ledger_pod_facts facts;

                (void) snprintf(name, sizeof(name), "fire%u", m);
                facts = member_of(l, name, size, chips, cpu_milli);
                assert_int_equal(ledger_pods_set(l, &facts), 0);
        }
}

/* For fire0 and its gang. */
static int plan(struct ledger *l, struct take_back *ret)
{
        const struct ledger_pod *self = ledger_pods_find(l, "default", "fire0");
        const struct victim_rules rules = { .takes = LEDGER_PODS_TAKES_BORROWERS, .now_usec = NOW };
        struct asked asked = { .context = { .ledger = l,
                                            .rules = &fixture_rules,
                                            .request = &self->request,
                                            .job = self->job,
                                            .self = self,
                                            .created_usec = self->created_usec,
                                            .now_usec = NOW,
                                            .unfiltered = true },
                               .job = self->job };
        struct trial trial;
        int r;

        rules_prepare(&asked.context);
        trial_begin(&trial, l);
        r = take_back_plan(&trial, &asked, &rules, ret);
        trial_end(&trial);
        return r;
}

#define NODES 12
#define PODS  8
#define CHIPS 8
#define CPUS  16
#define CASES 3000

/* Too many pods for every set to be tried; but of each node every set is, and the members are distributed. */
struct wide_case {
        uint32_t chips[NODES][PODS], cpus[NODES][PODS], clerk[NODES], members, asked_chips, asked_cpus;
        uint64_t age[NODES][PODS];
        size_t pods[NODES];
};

static void make_case(uint64_t *seed, struct wide_case *c)
{
        *c = (struct wide_case){ .members = 1 + (uint32_t) random_below(seed, 4),
                                 .asked_chips = 1 + (uint32_t) random_below(seed, CHIPS),
                                 .asked_cpus = (uint32_t) random_below(seed, CPUS + 4) };
        for (size_t n = 0; n < NODES; n++) {
                uint32_t chips = CHIPS, cpus = CPUS;

                c->clerk[n] = (uint32_t) random_below(seed, 6); /* CPUs that no borrower has */
                cpus -= c->clerk[n];
                for (size_t p = 0; p < PODS && chips > 0; p++) {
                        c->chips[n][p] = 1 + (uint32_t) random_below(seed, chips < 3 ? chips : 3);
                        c->cpus[n][p] = (uint32_t) random_below(seed, (cpus < 6 ? cpus : 6) + 1);
                        c->age[n][p] = 1 + random_below(seed, 900);
                        chips -= c->chips[n][p];
                        cpus -= c->cpus[n][p];
                        c->pods[n]++;
                        if (random_below(seed, 8) == 0)
                                break;
                }
        }
}

/* Work, chips, age: the first that differs decides. */
static victim_cost cost_of(const struct wide_case *c, size_t n, unsigned set)
{
        uint64_t work = 0, chips = 0, age = 0;

        for (size_t p = 0; p < c->pods[n]; p++)
                if ((set >> p & 1) != 0) {
                        work += c->chips[n][p] * c->age[n][p];
                        chips += c->chips[n][p];
                        age += c->age[n][p];
                }
        return (victim_cost) work << 64 | (victim_cost) chips << 32 | age;
}

static uint32_t members_on(const struct wide_case *c, size_t n, unsigned set)
{
        uint32_t chips = CHIPS, cpus = CPUS - c->clerk[n], members;

        for (size_t p = 0; p < c->pods[n]; p++)
                if ((set >> p & 1) == 0) {
                        chips -= c->chips[n][p];
                        cpus -= c->cpus[n][p];
                }
        members = chips / c->asked_chips;
        return c->asked_cpus == 0 || cpus / c->asked_cpus >= members ? members : cpus / c->asked_cpus;
}

static victim_cost cheapest(const struct wide_case *c)
{
        victim_cost best[5] = { 0 }, on_node[5];

        for (size_t m = 1; m <= c->members; m++)
                best[m] = VICTIM_COST_MAX;
        for (size_t n = 0; n < NODES; n++) {
                for (size_t m = 0; m <= c->members; m++)
                        on_node[m] = m == 0 ? 0 : VICTIM_COST_MAX;
                for (unsigned set = 0; set < 1u << c->pods[n]; set++)
                        for (size_t m = members_on(c, n, set) < c->members ? members_on(c, n, set)
                                                                           : c->members;
                             m > 0; m--)
                                if (cost_of(c, n, set) < on_node[m])
                                        on_node[m] = cost_of(c, n, set);
                for (size_t m = c->members; m > 0; m--)
                        for (size_t e = 1; e <= m; e++)
                                if (best[m - e] != VICTIM_COST_MAX && on_node[e] != VICTIM_COST_MAX &&
                                    best[m - e] + on_node[e] < best[m])
                                        best[m] = best[m - e] + on_node[e];
        }
        return best[c->members];
}

static struct ledger *ledger_of(const struct wide_case *c)
{
        struct ledger *l = test_ledger();

        for (size_t n = 0; n < NODES; n++) {
                char node[48], name[48];

                (void) snprintf(node, sizeof(node), "r%02zu", n);
                add_node(l, node, NODE_CLASS_ANY, "reserved", "H100", CHIPS, CHIPS);
                add_room(l, node, CPUS * 1000);
                (void) snprintf(name, sizeof(name), "c%zu", n);
                lend(l, name, node, 0, c->clerk[n] * 1000, 1);
                for (size_t p = 0; p < c->pods[n]; p++) {
                        (void) snprintf(name, sizeof(name), "b%zu-%zu", n, p);
                        lend(l, name, node, c->chips[n][p], c->cpus[n][p] * 1000, c->age[n][p]);
                }
        }
        ask(l, c->members, c->asked_chips, c->asked_cpus * 1000);
        return l;
}

static victim_cost planned_cost(const struct take_back *p)
{
        uint64_t age = 0;

        for (size_t i = 0; i < p->victims.count; i++)
                age += (NOW - p->victims.pods[i]->created_usec) / 1000000;
        return (victim_cost) victim_chip_seconds(p->cost) << 64 | (victim_cost) p->chips << 32 | age;
}

/* Chips and CPUs, of which either may be what there is too little of. */
static void what_is_lacking_beside_chips_is_freed_at_least_cost(void **state)
{
        uint64_t seed = 23;
        size_t none = 0, free = 0, exact = 0;

        (void) state;
        for (int i = 0; i < CASES; i++) {
                struct wide_case c;
                struct take_back p;
                struct ledger *l;
                victim_cost want;
                int r;

                make_case(&seed, &c);
                l = ledger_of(&c);
                want = cheapest(&c);
                r = plan(l, &p);
                none += want == VICTIM_COST_MAX;
                free += want == 0;
                exact += p.bound == p.cost;
                if (r != (want == VICTIM_COST_MAX ? TAKE_BACK_E_NONE : 0))
                        fail_msg("case %d: %d", i, r);
                if (r == 0 && planned_cost(&p) != want)
                        fail_msg("case %d: %llu chip-seconds, and at least %llu", i,
                                 (unsigned long long) victim_chip_seconds(p.cost),
                                 (unsigned long long) (want >> 64));
                take_back_free(&p);
                ledger_life_free(l);
        }
        assert_true(none > CASES / 50 && none < CASES / 2);
        assert_true(free > CASES / 100 && free < CASES / 2);
        assert_true(exact + none > CASES * 99 / 100);
}

/* Of three dozen borrowers none has to go for chips, and one for CPUs. */
static void who_has_the_cpus_of_idle_chips_goes(void **state)
{
        struct ledger *l = test_ledger();
        struct take_back p;

        (void) state;
        for (unsigned n = 0; n < 18; n++) {
                char node[48], name[48];

                (void) snprintf(node, sizeof(node), "r%02u", n);
                add_node(l, node, NODE_CLASS_ANY, "reserved", "H100", 8, 8);
                add_room(l, node, 64000);
                (void) snprintf(name, sizeof(name), "hog%u", n);
                lend(l, name, node, 2, 56000, n == 11 ? 100 : 500);
                (void) snprintf(name, sizeof(name), "small%u", n);
                lend(l, name, node, 2, 4000, 10); /* younger, and of no use */
        }
        ask(l, 1, 4, 16000);
        assert_int_equal(plan(l, &p), 0);
        assert_int_equal(p.victims.count, 1);
        assert_string_equal(p.victims.pods[0]->name, "hog11");
        assert_true(p.bound == p.cost);
        take_back_free(&p);
        ledger_life_free(l);
}

/* @split: half of each node is lent to somebody who has computed for long. */
static struct ledger *reserve_of_models(unsigned nodes, unsigned models, bool split)
{
        static const char *const names[] = { "H100", "A100", "H200", "B200", "V100" };
        struct ledger *l = test_ledger();

        for (unsigned n = 0; n < nodes; n++) {
                char node[48], name[48];

                (void) snprintf(node, sizeof(node), "r%03u", n);
                add_node(l, node, NODE_CLASS_ANY, "reserved", names[n % models], 8, 8);
                (void) snprintf(name, sizeof(name), "b%u", n);
                lend(l, name, node, split ? 4 : 8, 0, 100 + n);
                (void) snprintf(name, sizeof(name), "old%u", n);
                if (split)
                        lend(l, name, node, 4, 0, 800 + n);
        }
        return l;
}

/* Victims are chosen as if any nodes would do: that of so many enough are equal takes more of them, and
 * whoever need not go then stays. */
static void equal_nodes_are_found_among_unlike_ones(void **state)
{
        static const struct {
                unsigned nodes, models;
                uint32_t members;
                bool split;
        } rows[] = { { 40, 2, 2, false },  { 40, 2, 2, true },    { 60, 2, 12, false }, { 60, 2, 12, true },
                     { 80, 2, 30, false }, { 100, 5, 20, false }, { 330, 5, 64, false } };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct ledger *l = reserve_of_models(rows[i].nodes, rows[i].models, rows[i].split);
                struct take_back p;
                uint64_t work = 0, least = 0;
                uint32_t chips = rows[i].split ? 4 : 8;

                for (uint32_t m = 0; m < rows[i].members; m++) {
                        char name[16];
                        struct ledger_pod_facts facts;

                        (void) snprintf(name, sizeof(name), "fire%u", m);
                        facts = member_of(l, name, rows[i].members, chips, 0);
                        facts.request.equal_nodes = true;
                        least += chips * (100 + m * rows[i].models); /* the cheapest of one model */
                        assert_int_equal(ledger_pods_set(l, &facts), 0);
                }
                if (plan(l, &p) != 0)
                        fail_msg("%u members, %u models: nothing helps", rows[i].members, rows[i].models);
                assert_int_equal(p.victims.count, rows[i].members);
                for (size_t v = 0; v < p.victims.count; v++) {
                        assert_null(rules_difference(p.victims.pods[v]->node, p.victims.pods[0]->node));
                        work += chips * (NOW - p.victims.pods[v]->created_usec) / 1000000;
                }
                assert_int_equal(victim_chip_seconds(p.cost), work); /* of those who go, not of all tried */
                assert_int_equal(work, least);
                take_back_free(&p);
                ledger_life_free(l);
        }
}

/* Members of 8 and of 1 chips, 16 and 2 CPUs. */
static void members_that_differ_have_room_made_shape_by_shape(void **state)
{
        struct ledger *l = test_ledger();
        struct take_back p;

        (void) state;
        for (unsigned n = 0; n < 30; n++) {
                char node[48], name[48];

                (void) snprintf(node, sizeof(node), "r%02u", n);
                add_node(l, node, NODE_CLASS_ANY, "reserved", "H100", 8, 8);
                add_room(l, node, 32000);
                (void) snprintf(name, sizeof(name), "b%u", n);
                lend(l, name, node, n % 2 == 0 ? 8 : 7, 31000, 100 + n); /* on odd nodes a chip is idle */
        }
        for (unsigned m = 0; m < 4; m++) {
                char name[16];
                struct ledger_pod_facts facts;

                (void) snprintf(name, sizeof(name), "fire%u", m);
                facts = member_of(l, name, 4, m < 2 ? 8 : 1, m < 2 ? 30000 : 2000);
                assert_int_equal(ledger_pods_set(l, &facts), 0);
        }
        assert_int_equal(plan(l, &p), 0);
        assert_int_equal(p.victims.count,
                         3); /* two for the large ones, which leave 2 CPUs each, one chip none */
        take_back_free(&p);
        ledger_life_free(l);
}

/* Which of sixteen borrowers on each of 2,000 nodes have the CPUs: every set of each node would take more
 * than 0.1 s, those of the nodes that are chosen are worked out. */
static void room_beside_chips_is_looked_for_by_steps(void **state)
{
        struct ledger *l = test_ledger();
        uint64_t seed = 5;
        struct take_back p;

        (void) state;
        for (uint32_t n = 0; n < 2000; n++) {
                char node[48], name[48];

                (void) snprintf(node, sizeof(node), "r%04u", n);
                add_node(l, node, NODE_CLASS_ANY, "reserved", "H100", 16, 16);
                add_room(l, node, 128000);
                for (uint32_t k = 0; k < 16; k++) {
                        (void) snprintf(name, sizeof(name), "b%u-%u", n, k);
                        lend(l, name, node, 1, 3000 + (int64_t) random_below(&seed, 5000),
                             1 + random_below(&seed, 90000));
                }
        }
        ask(l, 8, 1, 40000);
        assert_int_equal(plan(l, &p), 0);
        assert_true(p.victims.count >= 8);
        assert_true(p.bound > 0 && p.cost == p.bound);   /* proven to be the cheapest */
        assert_true(p.steps < TAKE_BACK_STEPS * 3 / 10); /* of all nodes it would be more */
        take_back_free(&p);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_lacking_beside_chips_is_freed_at_least_cost),
                cmocka_unit_test(who_has_the_cpus_of_idle_chips_goes),
                cmocka_unit_test(equal_nodes_are_found_among_unlike_ones),
                cmocka_unit_test(members_that_differ_have_room_made_shape_by_shape),
                cmocka_unit_test(room_beside_chips_is_looked_for_by_steps),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
