/* Ranks of one and of several pipelines, each pipeline cut in its own way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "planner/splits/pipeline_ranks.h"

static uint64_t first_layer(const void *context, size_t rank)
{
        return ((const uint64_t *) context)[rank];
}

static void ranks_are_cut_where_layers_begin_anew(void **state)
{
        static const struct {
                const char *what;
                size_t ranks, rank;
                uint64_t first[5];
                struct pipeline_ranks of;
                size_t last; /* layer of ten */
        } rows[] = {
                { "one rank is a pipeline", 1, 0, { 0 }, { 0, 1, 0, 1 }, 9 },
                { "stages of one", 3, 1, { 0, 4, 7 }, { 0, 1, 0, 3 }, 6 },
                { "the last of them", 3, 2, { 0, 4, 7 }, { 0, 1, 0, 3 }, 9 },
                { "the first of two", 5, 0, { 0, 6, 0, 4, 8 }, { 0, 2, 0, 2 }, 5 },
                { "before another begins", 5, 1, { 0, 6, 0, 4, 8 }, { 0, 2, 0, 2 }, 9 },
                { "which has a cut of its own", 5, 3, { 0, 6, 0, 4, 8 }, { 1, 2, 2, 5 }, 7 },
                { "a chip each", 3, 1, { 0, 0, 0 }, { 1, 3, 1, 2 }, 9 },
                { "the last of many", 4, 3, { 0, 0, 5, 0 }, { 2, 3, 3, 4 }, 9 },
                { "whatever rank 0 has", 3, 1, { 3, 5, 0 }, { 0, 2, 0, 2 }, 9 },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct pipeline_ranks of =
                        pipeline_ranks_of(rows[i].rank, rows[i].ranks, first_layer, rows[i].first);

                if (of.index != rows[i].of.index || of.count != rows[i].of.count ||
                    of.first != rows[i].of.first || of.end != rows[i].of.end)
                        fail_msg("%s: pipeline %zu of %zu, ranks %zu to %zu", rows[i].what, of.index,
                                 of.count, of.first, of.end);
                if (pipeline_ranks_last_layer(rows[i].rank, rows[i].ranks, 10, first_layer, rows[i].first) !=
                    rows[i].last)
                        fail_msg("%s: its last layer", rows[i].what);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ranks_are_cut_where_layers_begin_anew),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
