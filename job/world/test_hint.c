/* What is said of a rank that failed beside how it ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/world/hint.h"

/* Rank 1 of three failed; rank 2 may have ended before or after it. */
static const struct {
        const char *words, *says;
        bool ended;
        int exit_code;
        uint64_t usec;
} rows[] = {
        { .words = "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
          .says = "its share is 24 of 64 samples a step" },
        { .words = "terminate called after throwing 'std::bad_alloc'", .says = "smaller spec.globalBatch" },
        { .words = "DefaultCPUAllocator: can't allocate memory", .says = "chips with more memory" },
        { .words = "Parameter indices which did not receive grad for rank 1: 2 3",
          .says = "find_unused_parameters=True" },
        { .words = "Connection closed by peer",
          .says = "rank 2 (cpu on c) had ended before it, with exit code 0",
          .ended = true,
          .usec = 4 },
        { .words = "",
          .says = "rank 2 (cpu on c) had ended before it",
          .ended = true,
          .exit_code = 0,
          .usec = 4 },
        { .words = "Connection closed by peer", .says = NULL, .ended = true, .exit_code = 0, .usec = 6 },
        { .words = "Connection closed by peer", .says = NULL, .ended = true, .exit_code = 7, .usec = 4 },
        { .words = "ValueError: no such layer", .says = NULL, .ended = true, .exit_code = 0, .usec = 4 },
};

static void what_may_be_done_is_said_where_it_is_known(void **state)
{
        const struct world_rules rules = { .kind = WORLD_CHIPS, .global_batch = 64 };
        struct world world;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct text to = { 0 };

                assert_int_equal(world_init(&world, &rules, 3, 0, NULL), 0);
                assert_int_equal(world_lay_out(&world, 3, NULL), 0);
                (void) text_copy(world.places[2].name, sizeof(world.places[2].name), "c");
                (void) text_copy(world.places[2].runtime, sizeof(world.places[2].runtime), "cpu");
                (void) text_copy(world.words, sizeof(world.words), rows[i].words);
                for (size_t k = 0; k < 3; k++)
                        world.ranks[k] = (struct world_rank){ .place = k, .batch = 24 };
                world.ranks[1].ended = true;
                world.ranks[1].exit_code = 1;
                world.ranks[1].ended_usec = 5;
                world.ranks[2].ended = rows[i].ended;
                world.ranks[2].exit_code = rows[i].exit_code;
                world.ranks[2].ended_usec = rows[i].usec;
                hint_add(&world, 1, &to);
                if (rows[i].says == NULL)
                        assert_null(to.data);
                else
                        assert_non_null(strstr(to.data, rows[i].says));
                text_free(&to);
                world_free(&world);
        }
}

/* clang-format off */
static const struct { const char *text, *words; } ends[] = {
        { "",                                                                              "" },
        { "\n \n",                                                                        "" },
        { "one",                                                                           "one" },
        { "first\n{\"loss\":1}\n\n",                                                      "{\"loss\":1}" },
        { "Traceback:\n  File \"x\"\nRuntimeError: closed by peer\n\nAt:\n  /x/reduce.py(46): done\n\n", "RuntimeError: closed by peer" },
        { "  all of it\n  is indented\n",                                                  "  is indented" },
};
/* clang-format on */

static void the_last_words_are_no_trace(void **state)
{
        const char *words;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                assert_int_equal(hint_words(ends[i].text, &words), strlen(ends[i].words));
                assert_memory_equal(words, ends[i].words, strlen(ends[i].words));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_last_words_are_no_trace),
                cmocka_unit_test(what_may_be_done_is_said_where_it_is_known),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
