/* Pipelines: a list of layers is cut into the replicas that cover the model; what does not cover it is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/strategies/pipelines.h"

#define RANKS_MAX 12

struct list {
        size_t ranks;
        struct pipelines_layers of[RANKS_MAX];
};

static struct list parse(const char *text)
{
        struct list l = { 0 };

        for (char *at = (char *) text; *at != '\0';) {
                struct pipelines_layers *own = &l.of[l.ranks++];

                own->first = strtoull(at, &at, 10);
                own->last = strtoull(at + 1, &at, 10);
                at += *at == ',';
        }
        return l;
}

static struct pipelines cut(const char *text)
{
        struct list l = parse(text);
        struct pipelines p = { 0 };

        assert_int_equal(pipelines_cut(l.of, l.ranks, &p, NULL), 0);
        return p;
}

/* clang-format off */
static const struct {
        const char *layers;
        size_t model; /* layers */
        size_t count; /* pipelines */
        const char *refused; /* a word of it; NULL = taken */
} rows[] = {
        { "0:9",                     10, 1, NULL },
        { "0:5,6:9",                 10, 1, NULL },
        { "0:5,6:9,0:3,4:7,8:9",     10, 2, NULL },
        { "0:0,0:0,0:0",              1, 3, NULL },
        { "0:2,0:0,1:1,2:2",          3, 2, NULL },
        { "1:9",                     10, 1, "stage 0 cannot run: layers 1:9" },
        { "0:5,7:9",                 10, 1, "stage 1 cannot run: layers 7:9, but it must begin with layer 6" },
        { "0:5,5:9",                 10, 1, "stage 1" },
        { "0:5",                     10, 1, "end with layer 5" },
        { "0:5,6:10",                10, 1, "up to 9" },
        { "0:5,0:9",                 10, 2, "pipeline 0 (ranks 0 to 0) ends with layer 5" },
        { "0:5,6:9,0:3,4:8",         10, 2, "pipeline 1 (ranks 2 to 3) ends with layer 8" },
        { "0:5,6:9,0:3,5:9",         10, 2, "rank 3, stage 1 of pipeline 1, cannot run: layers 5:9" },
        { "0:5,6:9,0:3,4:3,4:9",     10, 2, "rank 3" },
        { "0:5,6:9,1:3,4:9",         10, 1, "stage 2" },
        { "0:0,1:1,2:2,3:3,0:0,1:1", 3, 2, "4 stages" },
        { "0:0,1:1,0:0",             3, 2, "pipeline 0" },
        { "0:18446744073709551615",  3, 1, "stage 0" },
};
/* clang-format on */

static void lists_are_cut_and_checked(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct pipelines p = cut(rows[i].layers);
                struct err err = { 0 };
                int r = pipelines_check(&p, rows[i].model, "m", &err);

                if (p.count != rows[i].count || (r == 0) != (rows[i].refused == NULL) ||
                    (r < 0 && (r != -EINVAL || strstr(err.msg, rows[i].refused) == NULL)))
                        fail_msg("%s: %zu pipelines, %d, %s", rows[i].layers, p.count, r, err.msg);
                pipelines_free(&p);
        }
}

static void nobody_said_is_one_pipeline(void **state)
{
        struct pipelines_layers none[] = { { .first = PIPELINES_NOT_ASSIGNED },
                                           { .first = PIPELINES_NOT_ASSIGNED } };
        struct pipelines p;

        (void) state;
        assert_int_equal(pipelines_cut(none, 2, &p, NULL), 0);
        assert_int_equal(p.count, 1);
        assert_int_equal(pipelines_stages(&p, 0), 2);
        pipelines_free(&p);
}

static void ranks_know_their_places(void **state)
{
        static const size_t of[] = { 0, 0, 1, 1, 1 }, stage[] = { 0, 1, 0, 1, 2 };
        struct pipelines p = cut("0:5,6:9,0:3,4:7,8:9");

        (void) state;
        for (int rank = 0; rank < 5; rank++) {
                assert_int_equal(p.of[rank], of[rank]);
                assert_int_equal(pipelines_stage(&p, rank), stage[rank]);
                assert_int_equal(pipelines_takes_samples(&p, rank), rank != 3);
        }
        assert_int_equal(pipelines_stages(&p, 0), 2);
        assert_int_equal(pipelines_stages(&p, 1), 3);
        assert_int_equal(p.begin[2], 5);
        pipelines_free(&p);
}

static size_t holders(const struct pipelines *p, size_t pipeline, size_t begin, size_t end)
{
        size_t count = 0;

        for (int rank = p->begin[pipeline]; rank < p->begin[pipeline + 1]; rank++) {
                bool holds = pipelines_holds(p, rank, begin);

                count += holds;
                for (size_t layer = begin; layer < end; layer++)
                        assert_int_equal(pipelines_holds(p, rank, layer), holds);
        }
        return count;
}

/* On which a sum relies: the runs cover each layer once, and in each the holders stay the same, one of each
 * pipeline. */
static void runs_have_one_holder_a_pipeline(void **state)
{
        static const char *const lists[] = { "0:9", "0:5,6:9", "0:5,6:9,0:3,4:7,8:9",
                                             "0:9,0:0,1:9,0:4,5:5,6:9,0:8,9:9" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                struct pipelines p = cut(lists[i]);
                size_t end;

                for (size_t begin = 0; begin < 10; begin = end) {
                        end = pipelines_run_end(&p, begin);
                        assert_in_range(end, begin + 1, 10);
                        for (size_t pipeline = 0; pipeline < p.count; pipeline++)
                                assert_int_equal(holders(&p, pipeline, begin, end), 1);
                }
                pipelines_free(&p);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_are_cut_and_checked),
                cmocka_unit_test(nobody_said_is_one_pipeline),
                cmocka_unit_test(ranks_know_their_places),
                cmocka_unit_test(runs_have_one_holder_a_pipeline),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
