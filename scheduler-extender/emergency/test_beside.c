/* The cheapest set of a node's pods that frees chips and what goes beside them, against every set there is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/random.h"

#include "scheduler-extender/emergency/beside.h"

#define CASES   20000
#define ITEMS   12
#define MEMBERS 3

struct node_case {
        struct beside beside;
        struct curve_item items[CURVE_PODS];
        uint32_t chips, members;
};

static bool frees_enough(const struct node_case *c, uint64_t set)
{
        uint32_t chips = 0;

        for (size_t i = 0; i < c->beside.item_count; i++)
                chips += (set >> i & 1) != 0 ? c->items[i].chips : 0;
        return chips >= c->chips && beside_suffices(&c->beside, set, c->members);
}

static victim_cost cheapest(const struct node_case *c)
{
        victim_cost best = VICTIM_COST_MAX;

        for (uint64_t set = 0; set < UINT64_C(1) << c->beside.item_count; set++) {
                victim_cost price = 0;

                for (size_t i = 0; i < c->beside.item_count; i++)
                        price += (set >> i & 1) != 0 ? c->items[i].price : 0;
                if (price < best && frees_enough(c, set))
                        best = price;
        }
        return best;
}

/* Work lost, and ages in the low bits; some alike in every bit, some that cost nothing, some that may not go.
 */
static victim_cost price_of(uint64_t *seed)
{
        static const victim_cost usual[] = { 0, 1, (victim_cost) 7 << 54, VICTIM_COST_BARRED };

        if (random_below(seed, 3) == 0)
                return usual[random_below(seed, ARRAY_SIZE(usual))];
        return (victim_cost) random_below(seed, 1000) << 54 | (victim_cost) 1 << 36 | random_below(seed, 3);
}

static void make_case(struct node_case *c, uint64_t *seed, size_t most)
{
        bool alike = random_below(seed, 4) == 0; /* equal pods, as of one workload */

        *c = (struct node_case){ .chips = (uint32_t) random_below(seed, 4),
                                 .members = 1 + (uint32_t) random_below(seed, MEMBERS) };
        c->beside.item_count = random_below(seed, most + 1);
        c->beside.kind_count = 1 + random_below(seed, 3);
        for (size_t k = 0; k < c->beside.kind_count; k++)
                c->beside.kinds[k] = (struct node_room_kind){
                        .what = NODE_ROOM_CPU,
                        .asked = 1 + (int64_t) random_below(seed, 8000),
                        .left = (int64_t) random_below(seed, 12000) - 1000,
                };
        for (size_t i = 0; i < c->beside.item_count; i++) {
                c->items[i].chips = 1 + (uint32_t) random_below(seed, 2);
                c->items[i].price = price_of(seed);
                for (size_t k = 0; k < c->beside.kind_count; k++)
                        c->beside.freed[i][k] =
                                random_below(seed, 5) == 0 ? 0 : 500 * (int64_t) random_below(seed, 12);
                if (alike && i > 0) {
                        c->items[i].chips = c->items[0].chips;
                        for (size_t k = 0; k < c->beside.kind_count; k++)
                                c->beside.freed[i][k] = c->beside.freed[0][k];
                }
        }
}

static victim_cost solve(const struct node_case *c, size_t most, uint64_t *set, bool *exact, size_t *steps)
{
        *exact = true;
        *steps = 0;
        return beside_solve(&c->beside, c->items, c->chips, c->members, most, set, exact, steps);
}

static void no_set_that_suffices_is_cheaper(void **state)
{
        uint64_t seed = 3;
        unsigned none = 0, empty = 0;

        (void) state;
        for (unsigned n = 0; n < CASES; n++) {
                static struct node_case c;
                victim_cost price;
                size_t steps;
                uint64_t set;
                bool exact;

                make_case(&c, &seed, ITEMS);
                price = solve(&c, BESIDE_STEPS, &set, &exact, &steps);
                if (!exact || price != cheapest(&c) || (price != VICTIM_COST_MAX && !frees_enough(&c, set)))
                        fail_msg("case %u of seed 3: not the cheapest of %zu pods", n, c.beside.item_count);
                none += price == VICTIM_COST_MAX;
                empty += price != VICTIM_COST_MAX && set == 0;
        }
        assert_true(none > CASES / 20 && none < CASES / 2); /* all kinds are tried */
        assert_true(empty > CASES / 100 && empty < CASES / 2);
}

/* Sixty-four pods of unlike CPUs and ages: of all sets a few hundred are looked at. Some set is found with as
 * many steps as there are pods, and is not said to be the cheapest. */
static void the_sets_of_a_full_node_are_few(void **state)
{
        uint64_t seed = 5;

        (void) state;
        for (unsigned n = 0; n < 200; n++) {
                static struct node_case c;
                victim_cost price, quick;
                bool exact, quick_exact;
                size_t steps;
                uint64_t set;

                c = (struct node_case){ .chips = 1, .members = 1 };
                c.beside.item_count = CURVE_PODS;
                c.beside.kind_count = 1;
                c.beside.kinds[0] = (struct node_room_kind){ .what = NODE_ROOM_CPU, .asked = 40000 };
                for (size_t i = 0; i < CURVE_PODS; i++) {
                        c.items[i].chips = 1;
                        c.items[i].price = (victim_cost) (1 + random_below(&seed, n % 2 > 0 ? 100000 : 2))
                                                   << 54 |
                                           random_below(&seed, 100000);
                        c.beside.freed[i][0] = 4000 + (int64_t) random_below(&seed, 4000);
                }
                price = solve(&c, BESIDE_STEPS, &set, &exact, &steps);
                if (!exact || !frees_enough(&c, set))
                        fail_msg("case %u: not all sets are known after %zu steps", n, steps);
                quick = solve(&c, CURVE_PODS + 1, &set, &quick_exact, &steps);
                assert_true(frees_enough(&c, set) && quick >= price && (quick == price || !quick_exact));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_set_that_suffices_is_cheaper),
                cmocka_unit_test(the_sets_of_a_full_node_are_few),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
