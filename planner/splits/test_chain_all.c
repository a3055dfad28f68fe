/* Every device has layers, and no other order or cut is better: all of them are tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "planner/splits/chain_all.h"

#define DEVICES 7
#define LAYERS  9

static double ms[DEVICES][LAYERS];
static struct chain_class classes[DEVICES];
static uint64_t zeros[LAYERS];

static struct chain_problem make(size_t devices, size_t layers, unsigned *seed)
{
        for (size_t i = 0; i < devices; i++) {
                double pace = 0.1 + (double) (rand_r(seed) % 100) / 10;

                for (size_t k = 0; k < layers; k++)
                        ms[i][k] = pace * (1 + rand_r(seed) % 9);
                classes[i] = (struct chain_class){
                        .count = 1, .memory_bytes = 1, .bytes_per_ms = 1e6, .ms = ms[i]
                };
        }
        return (struct chain_problem){ .layer_count = layers,
                                       .memory_bytes = zeros,
                                       .activation_bytes = zeros,
                                       .class_count = devices,
                                       .classes = classes,
                                       .schedule = CHAIN_GPIPE,
                                       .microbatches = 4 };
}

/* The least largest load, where the devices of the mask are left for the layers from `begin` on. */
static double brute(size_t devices, size_t layers, unsigned left, size_t begin)
{
        double best = left == 0 && begin == layers ? 0 : INFINITY;

        for (size_t i = 0; i < devices; i++) {
                double load = 0;

                for (size_t end = begin; (left & 1u << i) != 0 && end < layers; end++) {
                        double rest, largest;

                        load += ms[i][end];
                        rest = brute(devices, layers, left & ~(1u << i), end + 1);
                        largest = rest > load ? rest : load;
                        best = largest < best ? largest : best;
                }
        }
        return best;
}

static double load_of(const struct chain_problem *problem, const size_t *order, const size_t *first)
{
        double largest = 0;

        assert_int_equal(first[0], 0);
        for (size_t k = 0; k < problem->class_count; k++) {
                size_t end = k + 1 < problem->class_count ? first[k + 1] : problem->layer_count;
                double load = 0;

                assert_true(first[k] < end);
                for (size_t j = first[k]; j < end; j++)
                        load += ms[order[k]][j];
                largest = load > largest ? load : largest;
        }
        return largest;
}

static void nothing_is_better_while_all_have_layers(void **state)
{
        unsigned seed = 7;

        (void) state;
        for (unsigned round = 0; round < 60; round++) {
                size_t devices = 2 + round % 4, layers = devices + (unsigned) rand_r(&seed) % 4,
                       order[DEVICES], first[DEVICES];
                struct chain_problem problem = make(devices, layers, &seed);
                struct chain_plan plan = { 0 };

                assert_int_equal(chain_split(&problem, &plan, NULL), 0);
                assert_int_equal(chain_all(&problem, &plan, order, first), 0);
                assert_true(fabs(load_of(&problem, order, first) -
                                 brute(devices, layers, (1u << devices) - 1, 0)) < 1e-9);
                chain_plan_free(&plan);
        }
}

static void many_devices_keep_the_order_of_the_plan(void **state)
{
        size_t order[DEVICES], first[DEVICES];
        struct chain_plan plan = { 0 };
        struct chain_problem problem;
        unsigned seed = 3;

        (void) state;
        problem = make(DEVICES, LAYERS, &seed);
        assert_int_equal(chain_split(&problem, &plan, NULL), 0);
        assert_true(plan.stage_count < DEVICES);
        assert_int_equal(chain_all(&problem, &plan, order, first), 0);
        for (size_t k = 0; k < plan.stage_count; k++)
                assert_int_equal(order[k], plan.stages[k].class_index);
        (void) load_of(&problem, order, first);
        chain_plan_free(&plan);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_better_while_all_have_layers),
                cmocka_unit_test(many_devices_keep_the_order_of_the_plan),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
