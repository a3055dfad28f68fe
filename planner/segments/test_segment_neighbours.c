/* What lies beside a plan: one place less, more or moved; earliest first, and never one segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>

#include "base/cleanup.h"
#include "planner/segments/segment_neighbours.h"

/* Four layers of a weight and a bias each, ready together; a call takes 1 ms and 1 ms a byte. */
static const struct segment_tensor tensors[] = {
        { NULL, 1, 10 }, { NULL, 9, 10 }, { NULL, 1, 20 }, { NULL, 9, 20 },
        { NULL, 1, 30 }, { NULL, 9, 30 }, { NULL, 1, 40 }, { NULL, 1, 40 },
};
static const struct segment_level level = { 1, 1 };
static const struct segment_cost cost = { .levels = &level, .level_count = 1 };

static void assert_is(const struct segment_neighbour *n, size_t count, const size_t *last)
{
        assert_int_equal(n->count, count);
        for (size_t i = 0; i < count; i++)
                assert_int_equal(n->last[i], last[i]);
}

static void test_beside_a_plan(void **state)
{
        struct segments_plan plan;
        struct segment_neighbour found[10] = { 0 };
        double end_ms;
        int n;

        (void) state;
        assert_int_equal(segments_plan(tensors, 8, &cost, 8, &plan, NULL), 0);
        assert_int_equal(plan.segment_count, 4); /* 1, 3, 5 and 7 */
        n = segment_neighbours(tensors, 8, &cost, &plan, 1e9, found, 10, NULL);
        /* each of three places less; none more and none moved, as all are taken */
        assert_int_equal(n, 3);
        for (int i = 1; i < n; i++)
                assert_true(found[i].end_ms >= found[i - 1].end_ms);
        for (int i = 0; i < n; i++) {
                assert_int_equal(found[i].count, 3);
                assert_int_equal(segments_foretell(tensors, 8, &cost, found[i].last, 3, &end_ms, NULL), 0);
                assert_true(end_ms == found[i].end_ms && end_ms >= plan.end_ms);
        }
        assert_int_equal(segment_neighbours(tensors, 8, &cost, &plan, 1e9, found, 1, NULL), 1);
        assert_int_equal(segment_neighbours(tensors, 8, &cost, &plan, plan.end_ms - 1, found, 10, NULL), 0);
        segments_plan_free(&plan);
}

static void test_one_segment_has_neighbours_and_is_none(void **state)
{
        struct segment one = { .first = 0, .last = 7 };
        struct segments_plan plan = { .segments = &one, .segment_count = 1 };
        struct segment two[] = { { .first = 0, .last = 3 }, { .first = 4, .last = 7 } };
        struct segment_neighbour found[10] = { 0 };
        int n;

        (void) state;
        n = segment_neighbours(tensors, 8, &cost, &plan, 1e9, found, 10, NULL);
        assert_int_equal(n, 3);
        assert_is(&found[0], 2, (const size_t[]){ 3, 7 }); /* at 20 for 21 ms, then 13: at 54 */
        plan = (struct segments_plan){ .segments = two, .segment_count = 2 };
        n = segment_neighbours(tensors, 8, &cost, &plan, 1e9, found, 10, NULL);
        assert_int_equal(n, 4); /* 1 or 5 in place of 3, 1 or 5 beside it; without it is one segment */
        for (int i = 0; i < n; i++)
                assert_true(found[i].count > 1);
}

/* The second one begins when its last tensor is ready, long after the first one has ended. */
static void test_foretells_any_cut(void **state)
{
        const size_t last[] = { 1, 7 }, wrong[] = { 3, 1, 7 }, short_of[] = { 1, 6 };
        double end_ms = 0;

        (void) state;
        assert_int_equal(segments_foretell(tensors, 8, &cost, last, 2, &end_ms, NULL), 0);
        assert_true(end_ms == 40 + 1 + 22);
        assert_int_equal(segments_foretell(tensors, 8, &cost, wrong, 3, &end_ms, NULL), -EINVAL);
        assert_int_equal(segments_foretell(tensors, 8, &cost, short_of, 2, &end_ms, NULL), -EINVAL);
        assert_int_equal(segments_foretell(tensors, 8, &cost, last, 0, &end_ms, NULL), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_beside_a_plan),
                cmocka_unit_test(test_one_segment_has_neighbours_and_is_none),
                cmocka_unit_test(test_foretells_any_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
