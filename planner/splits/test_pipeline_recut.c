/* A pipeline whose workers stay where they are: what its step takes now, and with the best cut, against every
 * cut there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "planner/splits/pipeline_recut.h"

#define WORKERS 3
#define LAYERS  6

static double ms[WORKERS][LAYERS];
static struct pipeline_layer layers[LAYERS];
static struct pipeline_worker workers[WORKERS];

static struct pipeline_problem problem_of(size_t count, unsigned microbatches)
{
        for (size_t w = 0; w < count; w++)
                workers[w] = (struct pipeline_worker){ .chips = 1, .bytes_per_ms = 1000, .ms = ms[w] };
        for (size_t i = 0; i < LAYERS; i++)
                layers[i] = (struct pipeline_layer){ 0 };
        return (struct pipeline_problem){ .layers = layers,
                                          .layer_count = LAYERS,
                                          .workers = workers,
                                          .worker_count = count,
                                          .microbatches = microbatches };
}

static void the_example_of_the_header(void **state)
{
        struct pipeline_problem problem = problem_of(2, 8);
        const size_t now[] = { 0, 3 };
        struct pipeline_recut recut;
        size_t first[2];

        (void) state;
        for (size_t i = 0; i < LAYERS; i++) {
                ms[0][i] = 1;
                ms[1][i] = 3;
        }
        assert_int_equal(pipeline_recut(&problem, now, first, &recut), 0);
        assert_int_equal(first[0], 0);
        assert_int_equal(first[1], 5);
        assert_true(fabs(recut.now_ms - 75) < 1e-9 && fabs(recut.next_ms - 43) < 1e-9);
        layers[5].begin = PIPELINE_NO_BEGIN; /* bound to the layer before */
        assert_int_equal(pipeline_recut(&problem, now, first, &recut), 0);
        assert_int_equal(first[1], 4);
        layers[5].begin = PIPELINE_MAY_BEGIN;
        workers[0].memory_bytes = 4; /* room for four layers */
        for (size_t i = 0; i < LAYERS; i++)
                layers[i].state_bytes = 1;
        assert_int_equal(pipeline_recut(&problem, now, first, &recut), 0);
        assert_int_equal(first[1], 4);
        workers[0].memory_bytes = workers[1].memory_bytes = 2;
        assert_int_equal(pipeline_recut(&problem, now, first, &recut), PIPELINE_NO_FIT);
}

static double load_of(const struct pipeline_problem *p, size_t w, size_t begin, size_t end)
{
        double load = p->workers[w].begin_ms;

        for (size_t i = begin; i < end; i++)
                load += p->workers[w].ms[i];
        if (begin > 0)
                load += 2 * (double) p->layers[begin - 1].output_bytes / 1000;
        if (end < LAYERS)
                load += 2 * (double) p->layers[end - 1].output_bytes / 1000;
        return load;
}

/* The least largest load of three stages. */
static double every_cut(const struct pipeline_problem *p)
{
        double best = INFINITY;

        for (size_t a = 1; a < LAYERS - 1; a++)
                for (size_t b = a + 1; b < LAYERS; b++)
                        best = fmin(best, fmax(load_of(p, 0, 0, a),
                                               fmax(load_of(p, 1, a, b), load_of(p, 2, b, LAYERS))));
        return best;
}

static void the_cut_is_the_best_of_its_order(void **state)
{
        struct pipeline_problem problem = problem_of(WORKERS, 1000000); /* the period alone counts */
        uint32_t random = 1;

        (void) state;
        for (int round = 0; round < 500; round++) {
                const size_t now[] = { 0, 2, 4 };
                struct pipeline_recut recut;
                size_t first[WORKERS];
                double best, taken;

                for (size_t i = 0; i < WORKERS * LAYERS; i++) {
                        random = random * 1664525 + 1013904223;
                        ms[i / LAYERS][i % LAYERS] = random >> 24;
                        layers[i % LAYERS].output_bytes = (random >> 8 & 0xff) * 100;
                }
                for (size_t w = 0; w < WORKERS; w++)
                        workers[w].begin_ms = (random >> (8 * w) & 0xff) / 4.0;
                best = every_cut(&problem);
                assert_int_equal(pipeline_recut(&problem, now, first, &recut), 0);
                taken = fmax(load_of(&problem, 0, 0, first[1]), fmax(load_of(&problem, 1, first[1], first[2]),
                                                                     load_of(&problem, 2, first[2], LAYERS)));
                assert_true(fabs(taken - best) <= 1e-6 * best);
                assert_true(recut.now_ms >= recut.next_ms * (1 - 1e-6));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_example_of_the_header),
                cmocka_unit_test(the_cut_is_the_best_of_its_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
