/* The choice of levels: against rings walked rank by rank, and where it has to be one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"
#include "planner/levels/levels.h"

#define GROUPS_MOST 8
#define RANKS_MOST  64

static void near(double a, double b)
{
        if (fabs(a - b) > 1e-9)
                fail_msg("%.12g is not %.12g", a, b);
}

/* Gradients that the ranks of a node send to those of others in a ring of these members. */
static double walked(const char *const *nodes, size_t count, const char *of)
{
        double sent = 0;

        for (size_t i = 0; i < count; i++)
                if (strcmp(nodes[i], of) == 0 && strcmp(nodes[(i + 1) % count], of) != 0)
                        sent += 2 * (double) (count - 1) / (double) count;
        return sent;
}

/* The members of the ring of a cut: all ranks, or the first of each of its groups. */
static size_t members(const struct levels_group *groups, size_t count, enum levels_cut cut,
                      const char *nodes[RANKS_MOST])
{
        size_t sizes[GROUPS_MOST], leaders = levels_sizes(groups, count, cut, sizes), at = 0, ranks = 0;
        const char *of[RANKS_MOST];

        for (size_t i = 0; i < count; i++)
                for (size_t k = 0; k < groups[i].workers; k++)
                        of[ranks++] = groups[i].node;
        for (size_t i = 0; cut == LEVELS_ONE && i < ranks; i++)
                nodes[i] = of[i];
        for (size_t i = 0; cut != LEVELS_ONE && i < leaders; at += sizes[i++])
                nodes[i] = of[at];
        return cut == LEVELS_ONE ? ranks : leaders;
}

static double busiest(const struct levels_group *groups, size_t count, enum levels_cut cut)
{
        const char *nodes[RANKS_MOST];
        size_t all = members(groups, count, cut, nodes);
        double most = 0;

        for (size_t i = 0; i < count; i++)
                most = fmax(most, walked(nodes, all, groups[i].node));
        return most;
}

static void links_carry_what_a_ring_of_ranks_sends(void **state)
{
        static const char *const names[] = { "a", "b", "c" };
        uint64_t seed = 1;

        (void) state;
        for (int i = 0; i < 2000; i++) {
                struct levels_group groups[GROUPS_MOST];
                size_t count = 1 + (size_t) random_below(&seed, GROUPS_MOST);
                struct levels_choice choice;

                for (size_t k = 0; k < count; k++) /* alike links: the busiest takes the longest */
                        groups[k] = (struct levels_group){ .node = names[random_below(&seed, 3)],
                                                           .workers = 1 + (size_t) random_below(&seed, 8),
                                                           .network_mbps = 1 };
                levels_choose(groups, count, &choice);
                if (choice.nodes < 2) {
                        assert_int_equal(choice.cut, LEVELS_ONE);
                        continue;
                }
                near(choice.one_link, busiest(groups, count, LEVELS_ONE));
                near(choice.two_link,
                     fmin(busiest(groups, count, LEVELS_BY_GROUP),
                          busiest(groups, count, LEVELS_BY_NODE))); /* links take seconds, memory ms */
                assert_true(choice.cut == LEVELS_ONE || choice.two_ms <= LEVELS_WORTH * choice.one_ms);
        }
}

/* The example of the page. */
static void two_hosts_of_four(void **state)
{
        struct levels_group groups[] = { { "a", 4, 0 }, { "b", 4, 0 } };
        struct levels_choice choice;
        size_t sizes[2];

        (void) state;
        levels_choose(groups, 2, &choice);
        assert_int_equal(choice.cut, LEVELS_BY_GROUP);
        assert_int_equal(choice.unknown, 2);
        assert_int_equal(choice.network_mbps, LEVELS_NETWORK_MBPS);
        near(choice.one_ms, 14);
        near(choice.two_ms, 10);
        near(choice.one_link, 1.75);
        near(choice.two_link, 1);
        assert_int_equal(levels_sizes(groups, 2, choice.cut, sizes), 2);
        assert_true(sizes[0] == 4 && sizes[1] == 4);
}

/* What is saved on a fast link is lost inside; of one worker a host there is nothing to save. */
static void where_it_does_not_pay_there_is_one(void **state)
{
        static const struct levels_group rows[][2] = {
                { { "a", 4, 100000 }, { "b", 4, 100000 } },
                { { "a", 1, 1000 }, { "b", 1, 1000 } },
                { { "a", 4, 1000 }, { "a", 4, 1000 } },
        };
        struct levels_choice choice;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                levels_choose(rows[i], 2, &choice);
                assert_int_equal(choice.cut, LEVELS_ONE);
        }
        levels_choose(NULL, 0, &choice);
        assert_int_equal(choice.cut, LEVELS_ONE);
}

/* The slowest link decides, and groups that share one are one: four groups of two on two hosts. */
static void groups_of_one_host_share_its_link(void **state)
{
        struct levels_group groups[] = {
                { "a", 2, 10000 }, { "a", 2, 10000 }, { "b", 2, 1000 }, { "b", 2, 1000 }
        };
        struct levels_choice choice;
        size_t sizes[4];

        (void) state;
        levels_choose(groups, 4, &choice);
        assert_int_equal(choice.cut, LEVELS_BY_NODE);
        assert_int_equal(choice.network_mbps, 1000);
        near(choice.two_link, 1); /* by group it would be 1.5 */
        assert_int_equal(levels_sizes(groups, 4, choice.cut, sizes), 2);
        assert_true(sizes[0] == 4 && sizes[1] == 4);
        assert_int_equal(levels_sizes(groups, 4, LEVELS_BY_GROUP, sizes), 4);
        groups[1].node = "b"; /* hosts in turn: a b b b */
        assert_int_equal(levels_sizes(groups, 4, LEVELS_BY_NODE, sizes), 2);
        assert_true(sizes[0] == 2 && sizes[1] == 6);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(links_carry_what_a_ring_of_ranks_sends),
                cmocka_unit_test(two_hosts_of_four),
                cmocka_unit_test(where_it_does_not_pay_there_is_one),
                cmocka_unit_test(groups_of_one_host_share_its_link),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
