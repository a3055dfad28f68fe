/* The planners' C side under the sanitizers; that they are right is tests/oracles/planners.py's to say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/models/network_models.h"
#include "planner/segments/segments.h"
#include "planner/shards/reshard.h"
#include "planner/shards/shards.h"

static uint64_t next(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state >> 8;
}

static void a_tenth_and_three_tenths_tie_as_decimals(void **state)
{
        /* 1 / 0.1 = 3 / 0.3 as decimals, not as doubles: of the two plans of 10 s the first worker takes more
         */
        const struct shard_worker workers[] = { { .speed = 0.1 }, { .speed = 0.3 } };
        struct shard shards[2];
        struct shards_plan plan;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(shards_plan(workers, 2, 4, shards, &plan, &err), 0);
        assert_int_equal(shards[0].batch, 1);
        assert_int_equal(shards[1].batch, 3);
        assert_true(plan.step_ms == 10000);
        assert_true(plan.ideal_ms == 10000);
        assert_true(plan.equal_ms == 20000);
}

static void equals_are_broken_by_fewest_and_then_first(void **state)
{
        const struct shard_worker same[] = { { .speed = 2 }, { .speed = 2 }, { .speed = 2 } };
        const struct shard_worker free_of_charge[] = { { .model = SHARD_AFFINE }, { .model = SHARD_AFFINE } };
        struct shard shards[3];
        struct shards_plan plan;

        (void) state;
        assert_int_equal(shards_plan(same, 3, 7, shards, &plan, NULL),
                         0); /* 3 + 3 + 1 is as quick as 3 + 2 + 2 */
        assert_true(shards[0].batch == 3 && shards[1].batch == 3 && shards[2].batch == 1);
        assert_int_equal(shards_plan(free_of_charge, 2, 7, shards, &plan, NULL), 0);
        assert_true(shards[0].batch == 7 && shards[1].batch == 0 && plan.used == 1);
}

static void minima_and_multiples_are_kept(void **state)
{
        const struct shard_worker workers[] = { { .speed = 1, .multiple = 4 },
                                                { .speed = 1, .min = 5, .multiple = 3 },
                                                { .speed = 1, .max = 1, .has_max = true } };
        struct shard shards[3];
        struct shards_plan plan;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(shards_plan(workers, 3, 11, shards, &plan, &err), 0); /* 4 + 6 + 1 */
        assert_true(shards[0].batch == 4 && shards[1].batch == 6 && shards[2].batch == 1);
        assert_int_equal(shards_plan(workers, 2, 11, shards, &plan, &err), -ERANGE);
        assert_non_null(strstr(err.msg, "nearest smaller batch is 10"));
}

static void wrong_workers_are_named(void **state)
{
        const struct shard_point falling[] = { { 1, 5 }, { 2, 4 } };
        const struct shard_worker wrong[] = { { .speed = 0 },
                                              { .speed = -1 },
                                              { .model = SHARD_AFFINE, .alpha_ms = -1 },
                                              { .model = SHARD_TABLE },
                                              { .model = SHARD_TABLE, .points = falling, .point_count = 2 } };
        struct shard shards[2];
        struct shards_plan plan;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                struct shard_worker workers[] = { { .speed = 1 }, wrong[i] };
                struct err err = { 0 };

                if (shards_plan(workers, 2, 8, shards, &plan, &err) != -EINVAL ||
                    strstr(err.msg, "workers[1]") == NULL)
                        fail_msg("row %zu: %s", i, err.msg);
        }
        assert_int_equal(shards_plan(wrong, 0, 8, shards, &plan, NULL), -EINVAL);
        assert_int_equal(shards_plan(wrong, 1, 0, shards, &plan, NULL), -EINVAL);
        assert_int_equal(shards_plan(wrong, 1, SHARDS_MAX_BATCH + 1, shards, &plan, NULL), -E2BIG);
}

static void a_cut_leaves_nobody_idle(void **state)
{
        const struct shard_worker workers[] = { { .speed = 5 }, { .speed = 1 }, { .speed = 3 } };
        struct shard shards[3];
        double step_ms;

        (void) state;
        assert_int_equal(shards_cut(workers, 3, 8, true, shards, &step_ms, NULL),
                         0); /* 5, 0, 3 in one second */
        assert_true(shards[0].batch == 4 && shards[1].batch == 1 && shards[2].batch == 3);
        assert_true(!shards[0].idle && shards[1].idle && !shards[2].idle && step_ms == 1000);
        assert_int_equal(shards_cut(workers, 3, 8, false, shards, &step_ms, NULL), 0);
        assert_true(shards[0].batch == 3 && shards[1].batch == 3 && shards[2].batch == 2 && step_ms == 3000);
        assert_int_equal(shards_cut(workers, 3, 2, false, shards, NULL, NULL), 0);
        assert_true(shards[1].batch == 1 && shards[2].batch == 0 && shards[2].idle);
        assert_int_equal(shards_cut(workers, 3, 0, true, shards, NULL, NULL), -EINVAL);
}

/* Large random plans: sums, limits, and no worker that could have taken one sample less and another one more.
 */
static void large_plans_leave_nothing_to_gain(void **state)
{
        enum { COUNT = 300 };
        uint64_t random = 42;

        (void) state;
        for (int round = 0; round < 20; round++) {
                struct shard_worker workers[COUNT] = { 0 };
                struct shard shards[COUNT];
                struct shards_plan plan;
                uint64_t batch = 1000 + next(&random) % 100000, total = 0;

                for (size_t i = 0; i < COUNT; i++) {
                        workers[i].model = next(&random) % 2 ? SHARD_SPEED : SHARD_AFFINE;
                        workers[i].speed = (double) (1 + next(&random) % 100000) / 1000;
                        workers[i].alpha_ms = (double) (next(&random) % 1000);
                        workers[i].beta_ms = (double) (1 + next(&random) % 100000) / 1000;
                }
                assert_int_equal(shards_plan(workers, COUNT, batch, shards, &plan, NULL), 0);
                for (size_t i = 0; i < COUNT; i++) {
                        total += shards[i].batch;
                        assert_true(shards[i].step_ms <= plan.step_ms);
                }
                assert_int_equal(total, batch);
                assert_true(plan.ideal_ms <= plan.step_ms);
                total = 0; /* one moment earlier the batch could not be made */
                for (size_t i = 0; i < COUNT; i++) {
                        uint64_t samples = shards[i].batch + 2;

                        while (samples > 0 &&
                               shards_ms(&workers[i], (double) samples) >= plan.step_ms * (1 - 1e-12))
                                samples--;
                        total += samples;
                }
                assert_true(total < batch);
        }
}

static void communication_leaves_the_slow_out(void **state)
{
        const struct shard_worker workers[] = { { .speed = 1000 }, { .speed = 1 }, { .speed = 1000 } };
        const struct shard_communication ring = { .alpha_ms = 1, .beta_ms_per_byte = 1e-6, .bytes = 1000000 };
        struct shard shards[3];
        struct shards_plan plan;

        (void) state;
        assert_int_equal(shards_plan_least(workers, 3, 100, &ring, shards, &plan, NULL), 0);
        assert_true(plan.used == 2 && shards[1].batch == 0 && plan.step_ms == 50);
        assert_true(shards_communication_ms(&ring, 2) == 3);
        assert_true(shards_communication_ms(&ring, 1) == 0);
        /* dear enough, one worker does it all */
        assert_int_equal(shards_plan_least(workers, 3, 100, &(struct shard_communication){ .alpha_ms = 100 },
                                           shards, &plan, NULL),
                         0);
        assert_true(plan.used == 1 && shards[0].batch == 100);
}

static void ranges_cover_the_epoch(void **state)
{
        (void) state;
        assert_int_equal(shards_begin(60000, 0, 1024), 0);
        assert_int_equal(shards_begin(60000, 1024, 1024), 60000);
        assert_int_equal(shards_begin(10, 1, 3), 3);
        assert_int_equal(shards_begin(SHARDS_MAX_BATCH, SHARDS_MAX_BATCH, SHARDS_MAX_BATCH),
                         SHARDS_MAX_BATCH);
}

static void a_gone_worker_forces_a_change(void **state)
{
        struct sample_range held[] = { { 0, 50 }, { 50, 100 } };
        const struct reshard_worker workers[] = {
                { .model = { .speed = 10 }, .batch = 5, .ranges = { &held[0], 1 } },
                { .gone = true, .batch = 5, .ranges = { &held[1], 1 } }
        };
        const struct reshard_request request = {
                .workers = workers, .count = 2, .batch = 10, .steps = 3, .cost_ms = 1e9
        };
        struct reshard_plan plan;

        (void) state;
        assert_int_equal(reshard_plan_make(&request, &plan, NULL), 0);
        assert_true(plan.change && plan.forced);
        assert_int_equal(plan.remaining, 70);
        assert_int_equal(sample_ranges_total(&plan.shares[0].rest), 70);
        assert_int_equal(plan.shares[0].rest.range[0].begin, 15);
        assert_int_equal(sample_ranges_total(&plan.shares[1].rest), 0);
        assert_int_equal(sample_ranges_total(&plan.shares[1].used), 15);
        reshard_plan_free(&plan);
}

static void segments_are_the_best_of_all_cuts(void **state)
{
        enum { COUNT = 9 };
        uint64_t random = 7;

        (void) state;
        for (int round = 0; round < 200; round++) {
                struct segment_tensor tensors[COUNT];
                struct segment_level level = { .alpha_ms = (double) (next(&random) % 8),
                                               .beta_ms_per_byte = (double) (next(&random) % 4) / 4 };
                struct segment_cost cost = { .levels = &level, .level_count = 1 };
                struct segments_plan plan;
                double best = 1e300, ready = 0;

                for (size_t i = 0; i < COUNT; i++) {
                        ready += (double) (next(&random) % 10);
                        tensors[i] =
                                (struct segment_tensor){ .bytes = next(&random) % 30, .ready_ms = ready };
                }
                for (unsigned cuts = 0; cuts < 1u << (COUNT - 1); cuts++) {
                        double end = 0, bytes = 0;

                        for (size_t i = 0; i < COUNT; i++) {
                                bytes += (double) tensors[i].bytes;
                                if (i + 1 < COUNT && !(cuts >> i & 1))
                                        continue;
                                end = (end > tensors[i].ready_ms ? end : tensors[i].ready_ms) +
                                      level.alpha_ms + level.beta_ms_per_byte * bytes;
                                bytes = 0;
                        }
                        best = end < best ? end : best;
                }
                assert_int_equal(segments_plan(tensors, COUNT, &cost, COUNT, &plan, NULL), 0);
                if (plan.end_ms != best) /* quarters are doubles: nothing is rounded on either side */
                        fail_msg("round %d: %.17g, best is %.17g", round, plan.end_ms, best);
                assert_true(plan.segments[plan.segment_count - 1].last == COUNT - 1);
                segments_plan_free(&plan);
        }
}

/* Linear between the points, constant below the first, extended by the last slope. */
static double of_table(const struct segment_point *points, size_t count, double bytes)
{
        size_t i = 1;

        if (bytes <= (double) points[0].bytes)
                return points[0].ms;
        while (i + 1 < count && bytes > (double) points[i].bytes)
                i++;
        return points[i].ms + (points[i].ms - points[i - 1].ms) /
                                      (double) (points[i].bytes - points[i - 1].bytes) *
                                      (bytes - (double) points[i].bytes);
}

/* Calls that travel beside computing cost by one table and put the rest off; the last one, and what is left
 * of them when computing is done, by another. Widths are powers of two: only what is left is rounded. */
static void a_last_segment_of_its_own_is_planned_exactly(void **state)
{
        enum { COUNT = 8, MOST = 4 };
        uint64_t random = 11;

        (void) state;
        for (int round = 0; round < 300; round++) {
                struct segment_tensor tensors[COUNT];
                struct segment_point beside[] = { { 0, (double) (next(&random) % 4) },
                                                  { 64, 0 },
                                                  { 320, 0 } };
                struct segment_point last[] = { { 16, (double) (next(&random) % 4) }, { 80, 0 } };
                struct segment_tail tail = { .points = last,
                                             .point_count = 2,
                                             .delay = { (double) (next(&random) % 3) / 2,
                                                        (double) (next(&random) % 3) / 64 } };
                struct segment_cost cost = { .points = beside, .point_count = 3, .tail = &tail };
                struct segments_plan plan;
                double best = 1e300, one = 0, ready = 0;
                bool rounded = false; /* of the best cut something is left when computing is done */

                beside[1].ms = beside[0].ms + (double) (next(&random) % 8);
                beside[2].ms = beside[1].ms + (double) (next(&random) % 16);
                last[1].ms = last[0].ms + (double) (next(&random) % 8);
                for (size_t i = 0; i < COUNT; i++) {
                        ready += (double) (next(&random) % 10);
                        tensors[i] =
                                (struct segment_tensor){ .bytes = next(&random) % 40, .ready_ms = ready };
                }
                for (unsigned cuts = 0; cuts < 1u << (COUNT - 1); cuts++) {
                        double end = 0, bytes = 0, sent = 0;
                        bool left = false;
                        int before = 0;

                        if (__builtin_popcount(cuts) >= MOST)
                                continue;
                        for (size_t i = 0; i < COUNT; i++) {
                                bytes += (double) tensors[i].bytes;
                                if (i + 1 == COUNT) {
                                        double at = ready + before * tail.delay.alpha_ms +
                                                    sent * tail.delay.beta_ms_per_byte;

                                        left = end > at &&
                                               of_table(last, 2, sent) < of_table(beside, 3, sent);
                                        if (left)
                                                end = at + (end - at) * of_table(last, 2, sent) /
                                                                   of_table(beside, 3, sent);
                                        end = (end > at ? end : at) + of_table(last, 2, bytes);
                                } else if (cuts >> i & 1) {
                                        end = (end > tensors[i].ready_ms ? end : tensors[i].ready_ms) +
                                              of_table(beside, 3, bytes);
                                        sent += bytes;
                                        before++;
                                        bytes = 0;
                                }
                        }
                        rounded = end < best ? left : rounded;
                        best = end < best ? end : best;
                        one = cuts == 0 ? end : one;
                }
                assert_int_equal(segments_plan(tensors, COUNT, &cost, MOST, &plan, NULL), 0);
                if (fabs(plan.end_ms - best) > (rounded ? 1e-11 * best : 0) ||
                    plan.baseline_exposed_ms[SEGMENTS_ONE] != one - ready)
                        fail_msg("round %d: %.17g, best is %.17g", round, plan.end_ms, best);
                assert_true(plan.segments[plan.segment_count - 1].last == COUNT - 1);
                assert_true(plan.segments[plan.segment_count - 1].end_ms == plan.end_ms);
                segments_plan_free(&plan);
        }
}

/* A sum alone takes half as long as beside computing, whatever its bytes: any cut ends when all in one does.
 */
static void of_ends_that_are_equal_but_for_rounding_the_fewest_count(void **state)
{
        static const uint64_t first_bytes[] = { 100, 300, 333, 500, 700, 900, 999 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(first_bytes); i++) {
                const struct segment_tensor tensors[] = { { .bytes = first_bytes[i] },
                                                          { .bytes = 1000 - first_bytes[i] } };
                const struct segment_point beside[] = { { 0, 0 }, { 1000, 0.3 } },
                                           last[] = { { 0, 0 }, { 1000, 0.15 } };
                const struct segment_tail tail = { .points = last, .point_count = 2 };
                const struct segment_cost cost = { .points = beside, .point_count = 2, .tail = &tail };
                struct segments_plan plan;

                assert_int_equal(segments_plan(tensors, 2, &cost, 2, &plan, NULL), 0);
                if (plan.segment_count != 1)
                        fail_msg("%zu segments of %d and more bytes", plan.segment_count,
                                 (int) first_bytes[i]);
                segments_plan_free(&plan);
        }
}

static void wrong_segments_are_named(void **state)
{
        const struct segment_tensor falling[] = { { .bytes = 1, .ready_ms = 5 },
                                                  { .bytes = 1, .ready_ms = 4 } },
                                    huge[] = { { .bytes = SEGMENTS_MAX_BYTES }, { .bytes = 1 } };
        const struct segment_level level = { 1, 1 }, negative = { -1, 1 };
        const struct segment_point table[] = { { 10, 5 }, { 20, 1 } };
        struct segment_cost cost = { .levels = &level, .level_count = 1 };
        struct segments_plan plan;

        (void) state;
        assert_int_equal(segments_plan(falling, 2, &cost, 8, &plan, NULL), -EINVAL);
        assert_int_equal(segments_plan(falling, 0, &cost, 8, &plan, NULL), -EINVAL);
        assert_int_equal(segments_plan(falling, 1, &cost, 0, &plan, NULL), -EINVAL);
        assert_int_equal(segments_plan(huge, 2, &cost, 8, &plan, NULL), -E2BIG);
        cost.levels = &negative;
        assert_int_equal(segments_plan(falling, 1, &cost, 8, &plan, NULL), -EINVAL);
        cost = (struct segment_cost){ .points = table, .point_count = 2 };
        assert_int_equal(segments_plan(huge, 1, &cost, 8, &plan, NULL),
                         -EINVAL); /* its cost would be negative */
        assert_int_equal(segments_plan(falling, 1, &cost, 8, &plan, NULL), 0);
        segments_plan_free(&plan);
        cost.tail = &(struct segment_tail){ .points = table };
        assert_int_equal(segments_plan(falling, 1, &cost, 8, &plan, NULL), -EINVAL); /* a tail of no cost */
        cost.tail = &(struct segment_tail){ .points = table, .point_count = 1, .delay = { -1, 0 } };
        assert_int_equal(segments_plan(falling, 1, &cost, 8, &plan, NULL), -EINVAL);
}

static void shipped_models_have_their_published_totals(void **state)
{
        (void) state;
        for (const struct network_model *model = network_models; model->name != NULL; model++) {
                struct network network;
                struct network_totals totals;
                double off;

                assert_int_equal(network_model_build(model, model->default_tokens, &network, NULL), 0);
                assert_int_equal(network_check(&network, NULL), 0);
                totals = network_totals(&network);
                if (totals.parameters != model->published_parameters)
                        fail_msg("%s: %llu parameters, published are %llu", model->name,
                                 (unsigned long long) totals.parameters,
                                 (unsigned long long) model->published_parameters);
                off = (double) totals.multiply_adds / model->published_multiply_adds;
                if (model->published_multiply_adds > 0 &&
                    (off < 1 - model->tolerance || off > 1 + model->tolerance))
                        fail_msg("%s: %.6g multiply-adds, published are %.6g", model->name,
                                 (double) totals.multiply_adds, model->published_multiply_adds);
                network_free(&network);
        }
        assert_ptr_equal(network_model_find("ResNet-50"), network_model_find("resnet_50"));
        assert_ptr_equal(network_model_find("GPT-2 small"), network_model_find("gpt2"));
        assert_null(network_model_find("resnet51"));
        assert_int_equal(
                network_model_build(network_model_find("bert-base"), 513, &(struct network){ 0 }, NULL),
                -EINVAL);
}

static void a_cut_counts_what_is_read_behind_it(void **state)
{
        /* a -> b -> c, and a -> c: behind a and behind b the output of a is still needed */
        const struct network_operation sizes[] = {
                { .name = "a", .type = OPERATOR_ELEMENTWISE, .output = { 10 }, .rank = 1 },
                { .name = "b", .type = OPERATOR_ELEMENTWISE, .output = { 3 }, .rank = 1 },
                { .name = "c", .type = OPERATOR_ELEMENTWISE, .output = { 1 }, .rank = 1 },
        };
        const uint32_t input = NETWORK_INPUT;
        struct network network = { 0 };
        uint64_t crossing[3];
        uint32_t a, b;

        (void) state;
        a = network_add(&network, &sizes[0], &input, 1);
        b = network_add(&network, &sizes[1], &a, 1);
        (void) network_add(&network, &sizes[2], (uint32_t[]){ a, b }, 2);
        assert_int_equal(network_check(&network, NULL), 0);
        assert_int_equal(network_crossing(&network, crossing, NULL), 0);
        assert_true(crossing[0] == 10 && crossing[1] == 13 && crossing[2] == 1);
        network_free(&network);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_tenth_and_three_tenths_tie_as_decimals),
                cmocka_unit_test(equals_are_broken_by_fewest_and_then_first),
                cmocka_unit_test(minima_and_multiples_are_kept),
                cmocka_unit_test(wrong_workers_are_named),
                cmocka_unit_test(a_cut_leaves_nobody_idle),
                cmocka_unit_test(large_plans_leave_nothing_to_gain),
                cmocka_unit_test(communication_leaves_the_slow_out),
                cmocka_unit_test(ranges_cover_the_epoch),
                cmocka_unit_test(a_gone_worker_forces_a_change),
                cmocka_unit_test(segments_are_the_best_of_all_cuts),
                cmocka_unit_test(a_last_segment_of_its_own_is_planned_exactly),
                cmocka_unit_test(of_ends_that_are_equal_but_for_rounding_the_fewest_count),
                cmocka_unit_test(wrong_segments_are_named),
                cmocka_unit_test(shipped_models_have_their_published_totals),
                cmocka_unit_test(a_cut_counts_what_is_read_behind_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
