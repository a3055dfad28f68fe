/* The split of nodes into classes, on histories small enough to work out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "planner/traces/class_split.h"

static const struct class_split_node four_nodes[] = {
        { 1, CLASS_SPLIT_ANY }, { 1, CLASS_SPLIT_ANY }, { 8, CLASS_SPLIT_ANY }, { 8, CLASS_SPLIT_ANY }
};

/* By hand: one node of 2, jobs of 1 (10 s), 2 (10 s), 1 (10 s), all at 0: the second waits 10 s, the third 20
 * s. */
static void waits_are_those_of_one_queue(void **state)
{
        static const struct class_split_node node[] = { { 2, CLASS_SPLIT_ANY } };
        static const struct class_split_job jobs[] = { { 0, 10, 1000, false },
                                                       { 0, 10, 2000, true },
                                                       { 0, 10, 1000, false } };
        uint8_t any = CLASS_SPLIT_ANY, multi = CLASS_SPLIT_MULTI;
        size_t impossible = 0;
        double wait = 0;

        (void) state;
        assert_int_equal(class_split_wait(node, &any, 1, jobs, 3, &wait, &impossible), 0);
        assert_true(fabs(wait - 10) < 1e-9);
        assert_int_equal(class_split_wait(node, &multi, 1, jobs, 3, &wait, &impossible), -ERANGE);
}

static void what_no_node_takes_is_counted_and_left_out(void **state)
{
        static const struct class_split_job jobs[] = { { 0, 10, 9000, true }, { 0, 10, 8000, true } };
        struct class_split split;

        (void) state;
        assert_int_equal(class_split_find(four_nodes, 4, jobs, 2, &split), 0);
        assert_int_equal(split.impossible, 1);
        assert_true(split.wait_sec < 1e-9);
        assert_in_range(split.single, 0, 3);
}

/* Eleven long single-chip jobs: when every node takes all, one of them sits on the second large node, and
 * twenty large jobs wait for it. */
static void a_split_saves_large_jobs_from_small_ones(void **state)
{
        struct class_split_job jobs[31];
        struct class_split split;

        (void) state;
        for (size_t i = 0; i < 31; i++)
                jobs[i] = i < 11 ? (struct class_split_job){ 0, 1000, 1000, false }
                                 : (struct class_split_job){ 1, 10, 8000, true };
        assert_int_equal(class_split_find(four_nodes, 4, jobs, 31, &split), 0);
        assert_int_equal(split.single, 3);
        assert_true(fabs(split.wait_sec - (1000 + 190 * 10) / 31.0) < 1e-9);
        assert_true(split.present_wait_sec > 600);
}

/* The search against every number of single nodes. */
static void the_best_of_all_numbers_is_found_on_small_clusters(void **state)
{
        uint64_t seed = 5;

        (void) state;
        for (int round = 0; round < 40; round++) {
                struct class_split_node nodes[12];
                struct class_split_job jobs[60];
                struct class_split split;
                double best = INFINITY;

                for (size_t i = 0; i < 12; i++)
                        nodes[i] = (struct class_split_node){ i < 4 ? 1 : i < 8 ? 4 : 8, CLASS_SPLIT_ANY };
                for (size_t i = 0; i < 60; i++) {
                        seed = seed * 6364136223846793005u + 1442695040888963407u;
                        jobs[i] = (struct class_split_job){ i * 3, seed >> 58,
                                                            ((seed >> 50) & 3) == 0 ? 4000 : 1000, false };
                        jobs[i].multi = jobs[i].milli > 1000;
                }
                for (size_t single = 0; single <= 12; single++) {
                        uint8_t classes[12];
                        size_t impossible;
                        double wait = 0;

                        for (size_t i = 0; i < 12; i++)
                                classes[i] = i < single ? CLASS_SPLIT_SINGLE : CLASS_SPLIT_MULTI;
                        if (class_split_wait(nodes, classes, 12, jobs, 60, &wait, &impossible) == 0 &&
                            wait < best)
                                best = wait;
                }
                assert_int_equal(class_split_find(nodes, 12, jobs, 60, &split), 0);
                assert_true(fabs(split.wait_sec - best) < 1e-9);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(waits_are_those_of_one_queue),
                cmocka_unit_test(what_no_node_takes_is_counted_and_left_out),
                cmocka_unit_test(a_split_saves_large_jobs_from_small_ones),
                cmocka_unit_test(the_best_of_all_numbers_is_found_on_small_clusters),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
