/* The layers of a group's ranks, also where somebody else wrote them. */
#include "job/plan/job_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"

static const struct {
        const char *layers;
        size_t rank;
        bool there;
        uint32_t first, last;
} rows[] = {
        { "0:1,2:3", 0, true, 0, 1 },
        { "0:1,2:3", 1, true, 2, 3 },
        { "4:4", 0, true, 4, 4 },
        { "0:1,2:3", 2, false, 0, 0 },
        { "", 0, false, 0, 0 },
        { "", 3, false, 0, 0 },
        { "0:1,", 1, false, 0, 0 },
        { "0", 0, false, 0, 0 },
        { "0:", 0, false, 0, 0 },
        { ":1", 0, false, 0, 0 },
        { "3:2", 0, false, 0, 0 },
        { "-1:2", 0, false, 0, 0 },
        { "0:-1", 0, false, 0, 0 },
        { " 0:1", 0, false, 0, 0 },
        { "0:99999999999999999999999", 0, false, 0, 0 },
};

static void layers_of_a_rank(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                uint32_t first = 0, last = 0;
                bool there = job_group_rank_layers(rows[i].layers, rows[i].rank, &first, &last);

                if (there != rows[i].there || first != rows[i].first || last != rows[i].last)
                        fail_msg("'%s', rank %zu: %d %u:%u", rows[i].layers, rows[i].rank, there, first,
                                 last);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(layers_of_a_rank),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
