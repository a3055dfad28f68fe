/* Tile plan: what is planned fits, and what a larger store saves is what the formula says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "trainer/sunway/tile_plan.h"

/* clang-format off */
static const struct kernels_matmul shapes[] = {
        { .rows = 1024, .cols = 1024, .inner = 1024 },
        { .rows = 4096, .cols = 256, .inner = 784 },
        { .rows = 784, .cols = 256, .inner = 4096, .transpose_a = true, .accumulate = true },
        { .rows = 128, .cols = 256, .inner = 784 },
        { .rows = 128, .cols = 256, .inner = 128, .transpose_b = true },
        { .rows = 100352, .cols = 8, .inner = 25 },
        { .rows = 25, .cols = 8, .inner = 100352, .transpose_a = true, .accumulate = true },
        { .rows = 128, .cols = 10, .inner = 128 },
        { .rows = 1, .cols = 1, .inner = 1 },
        { .rows = 1, .cols = 40000, .inner = 3, .transpose_b = true },
};
/* clang-format on */
static const size_t rooms[] = { 10000, 59000, 124000, 255000 }, cores[] = { 1, 4, 64 };

/* The rates of one chip for all, so that the room alone differs. */
static struct tile_plan_rule rule_for(size_t shape, size_t room, size_t core, size_t buffers)
{
        return (struct tile_plan_rule){ .m = shapes[shape],
                                        .room_bytes = rooms[room],
                                        .cores = cores[core],
                                        .buffers = buffers,
                                        .flops_per_usec = 2.3e6 / 64,
                                        .bytes_per_usec = 51.2e3 };
}

static void tiles_fit(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(shapes) * ARRAY_SIZE(rooms) * ARRAY_SIZE(cores) * 2; i++) {
                struct tile_plan_rule r = rule_for(i / 2 / ARRAY_SIZE(rooms) / ARRAY_SIZE(cores),
                                                   i / 2 / ARRAY_SIZE(cores) % ARRAY_SIZE(rooms),
                                                   i / 2 % ARRAY_SIZE(cores), 1 + i % 2);
                struct tile_plan t = tile_plan_best(&r);

                assert_in_range(t.rows, 1, r.m.rows);
                assert_in_range(t.cols, 1, r.m.cols);
                assert_in_range(t.inner, 1, r.m.inner);
                assert_true(tile_plan_room_bytes(&t, r.buffers, r.m.transpose_b) <= r.room_bytes);
        }
}

static void a_larger_store_is_never_worse(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(shapes) * ARRAY_SIZE(cores) * 2; i++) {
                double before = -1;

                for (size_t room = 0; room < ARRAY_SIZE(rooms); room++) {
                        struct tile_plan_rule r = rule_for(i / 2 / ARRAY_SIZE(cores), room,
                                                           i / 2 % ARRAY_SIZE(cores), 1 + i % 2);
                        struct tile_plan t = tile_plan_best(&r);
                        double usec = tile_plan_usec(&r, &t);

                        assert_true(before < 0 || usec <= before);
                        before = usec;
                }
        }
}

/* Second buffers take room: what is planned without them may be larger, never smaller. */
static void buffers_are_in_the_room(void **state)
{
        struct tile_plan t = { 64, 64, 32 };

        (void) state;
        assert_int_equal(tile_plan_room_bytes(&t, 1, false), (64 * 64 + 64 * 32 + 32 * 64) * 4);
        assert_int_equal(tile_plan_room_bytes(&t, 2, false), (64 * 64 + 2 * (64 * 32 + 32 * 64)) * 4);
        assert_int_equal(tile_plan_room_bytes(&t, 2, true),
                         (64 * 64 + 2 * (64 * 32 + 32 * 64) + 32 * 64) * 4);
}

/* The example of the header: of 64 KB, and of 256. */
static void traffic_is_what_the_formula_says(void **state)
{
        struct tile_plan_rule small = rule_for(0, 1, 2, 2), large = rule_for(0, 3, 2, 2);
        struct tile_plan s = tile_plan_best(&small), l = tile_plan_best(&large);
        uint64_t m = (uint64_t) 1 << 20;

        (void) state;
        assert_int_equal(s.rows, 64);
        assert_int_equal(s.cols, 64);
        assert_int_equal(tile_plan_traffic_bytes(&s, &small.m), 4 * (16 * m + 16 * m + m));
        assert_int_equal(l.rows, 128);
        assert_int_equal(l.cols, 160);
        assert_int_equal(tile_plan_traffic_bytes(&l, &large.m), 4 * (7 * m + 8 * m + m));
}

/* 256 x 256 x 784: by the group's rate 16 large tiles are best, which keep 16 of 64 engines busy. */
static void where_each_core_has_its_rate_the_busiest_counts(void **state)
{
        (void) state;
        for (size_t buffers = 1; buffers <= 2; buffers++) {
                struct tile_plan_rule group = rule_for(0, 1, 2, buffers), each;
                struct tile_plan of_group, of_each;

                group.m.rows = group.m.cols = 256;
                group.m.inner = 784;
                each = group;
                each.core_bytes_per_usec = 200;
                of_group = tile_plan_best(&group);
                of_each = tile_plan_best(&each);
                assert_true(tile_plan_usec(&each, &of_each) < 0.9 * tile_plan_usec(&each, &of_group));
                assert_true(tile_plan_traffic_bytes(&of_each, &each.m) >
                            tile_plan_traffic_bytes(&of_group, &group.m));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tiles_fit),
                cmocka_unit_test(a_larger_store_is_never_worse),
                cmocka_unit_test(buffers_are_in_the_room),
                cmocka_unit_test(traffic_is_what_the_formula_says),
                cmocka_unit_test(where_each_core_has_its_rate_the_busiest_counts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
