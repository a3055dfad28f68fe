/* The cut is the same whatever the order of the ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/speeds/speed_cut.h"

#define RANKS_MAX 6

struct given {
        double speed;
        uint32_t entry;
        const char *node, *group;
        uint64_t batch; /* it gets */
};

/* clang-format off */
static const struct { const char *what; uint64_t batch; bool by_speed; struct given ranks[RANKS_MAX + 1]; } cases[] = {
        { "in proportion", 1024, true,   { { 989000, 0, "a", "g", 909 }, { 125000, 1, "b", "g", 115 } } },
        { "the last one is given what is left", 64, true,
          { { 3, 0, "a", "g", 22 }, { 3, 0, "b", "g", 22 }, { 3, 0, "c", "g", 20 } } },
        { "it is the last by node", 64, true,
          { { 3, 0, "c", "g", 20 }, { 3, 0, "a", "g", 22 }, { 3, 0, "b", "g", 22 } } },
        { "by group", 5, true,
          { { 3, 0, "a", "h", 2 }, { 3, 0, "a", "g", 3 } } },
        { "by entry, before all", 5, true,
          { { 3, 1, "a", "g", 2 }, { 3, 0, "b", "g", 3 } } },
        { "or as given", 5, true,
          { { 3, 0, "a", "g", 3 }, { 3, 0, "a", "g", 2 } } },
        { "the last one, even if it is the slow one", 64, true,
          { { 9, 0, "a", "g", 28 }, { 9, 0, "b", "g", 28 }, { 3, 1, "a", "g", 8 } } },
        { "whoever was placed takes part", 4, true,
          { { 1, 0, "a", "g", 1 }, { 1000, 1, "b", "g", 3 } } },
        { "as many for each", 9, false,
          { { 1, 1, "a", "g", 2 }, { 1000, 2, "b", "g", 2 }, { 1, 0, "c", "g", 3 }, { 1, 1, "b", "g", 2 } } },
};
/* clang-format on */

static size_t take(const struct given *ranks, struct shard_worker *workers, struct speed_cut_place *places)
{
        size_t count = 0;

        for (; ranks[count].speed > 0; count++) {
                workers[count] = (struct shard_worker){ .model = SHARD_SPEED, .speed = ranks[count].speed };
                places[count] =
                        (struct speed_cut_place){ ranks[count].entry, ranks[count].node, ranks[count].group };
        }
        return count;
}

static void ranks_get_what_is_theirs(void **state)
{
        (void) state;
        for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
                struct shard_worker workers[RANKS_MAX];
                struct speed_cut_place places[RANKS_MAX];
                struct shard shards[RANKS_MAX];
                size_t count = take(cases[c].ranks, workers, places);
                double step_ms = 0, slowest = 0;

                assert_int_equal(speed_cut(workers, places, count, cases[c].batch, cases[c].by_speed, shards,
                                           &step_ms, NULL),
                                 0);
                for (size_t i = 0; i < count; i++) {
                        double ms = shards_ms(&workers[i], (double) shards[i].batch);

                        if (shards[i].batch != cases[c].ranks[i].batch)
                                fail_msg("%s: %zu has %llu", cases[c].what, i,
                                         (unsigned long long) shards[i].batch);
                        slowest = ms > slowest ? ms : slowest;
                }
                assert_true(step_ms == slowest);
        }
}

struct dealt {
        struct shard_worker worker;
        struct speed_cut_place place;
        uint64_t batch;
};

static void deal(struct dealt *ranks, size_t count)
{
        static const char *const names[] = { "a", "b", "c", "d", "e", "f" };

        for (size_t i = 0; i < count; i++) {
                ranks[i].place = (struct speed_cut_place){ (uint32_t) rand() % 3, names[i], "g" };
                ranks[i].worker = (struct shard_worker){ .model = SHARD_AFFINE,
                                                         .alpha_ms = rand() % 3,
                                                         .beta_ms = 1 + rand() % 4 };
        }
}

static void cut_them(struct dealt *ranks, size_t count, uint64_t batch, double *ret_step_ms)
{
        struct shard_worker workers[RANKS_MAX] = { 0 };
        struct speed_cut_place places[RANKS_MAX] = { 0 };
        struct shard shards[RANKS_MAX];

        for (size_t i = 0; i < count; i++) {
                workers[i] = ranks[i].worker;
                places[i] = ranks[i].place;
        }
        assert_int_equal(speed_cut(workers, places, count, batch, true, shards, ret_step_ms, NULL), 0);
        for (size_t i = 0; i < count; i++)
                ranks[i].batch = shards[i].batch;
}

static void the_order_of_the_ranks_does_not_matter(void **state)
{
        (void) state;
        srand(7);
        for (unsigned n = 0; n < 2000; n++) {
                struct dealt ranks[RANKS_MAX], other[RANKS_MAX];
                struct shard_worker workers[RANKS_MAX];
                struct shard exact[RANKS_MAX];
                size_t count = 1 + (size_t) rand() % RANKS_MAX;
                uint64_t batch = count + (uint64_t) rand() % 60;
                double step_ms, other_ms, exact_ms;

                deal(ranks, count);
                for (size_t i = 0; i < count; i++) {
                        other[count - 1 - i] = ranks[i];
                        workers[i] = ranks[i].worker;
                }
                cut_them(ranks, count, batch, &step_ms);
                cut_them(other, count, batch, &other_ms);
                assert_int_equal(shards_cut(workers, count, batch, true, exact, &exact_ms, NULL), 0);
                assert_true(step_ms == other_ms && step_ms > 0 && exact_ms > 0);
                for (size_t i = 0; i < count; i++)
                        assert_int_equal(ranks[i].batch, other[count - 1 - i].batch);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ranks_get_what_is_theirs),
                cmocka_unit_test(the_order_of_the_ranks_does_not_matter),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
