/* Who is named of several ranks that ended badly: the same one, in whatever order their ends and mpirun's are
 * heard of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/world/verdict.h"

#define RANKS  4
#define FACTS  (RANKS + 1) /* and mpirun's end */
#define ORDERS 120
#define RUNS   (-1)
#define MSEC   1000ULL
#define BEGIN  (100000 * MSEC)

struct end {
        int code; /* RUNS = it goes on */
        bool asked;
        uint64_t msec;
};

/* clang-format off */
static const struct { const char *why; struct end ends[RANKS]; bool mpirun; const char *says; } rows[] = {
        { "a killed rank takes its neighbours along",
          { { 1, false, 5 }, { 1, false, 6 }, { 1, false, 7 }, { 137, false, 0 } }, true, "rank 3 of group g1 was killed by signal 9" },
        { "also when it is reaped long after them",
          { { 1, false, 5 }, { 1, false, 6 }, { 1, false, 7 }, { 137, false, 400 } }, true, "rank 3 of group g1 was killed by signal 9" },
        { "also when some of them hang",
          { { 1, false, 5 }, { RUNS, false, 0 }, { RUNS, false, 0 }, { 137, false, 0 } }, false, "rank 3 of group g1 was killed by signal 9" },
        { "whom its neighbours' end killed died of SIGPIPE or SIGABRT",
          { { 141, false, 1 }, { 134, false, 2 }, { 139, false, 9 }, { 1, false, 4 } }, true, "rank 2 of group g1 was killed by signal 11" },
        { "mpirun asks the others to end",
          { { 143, true, 1 }, { 1, false, 5 }, { 143, true, 2 }, { 137, true, 3 } }, true, "rank 1 of group g0 ended with exit code 1" },
        { "who is asked to end may do so with any code",
          { { RUNS, false, 0 }, { 7, true, 1 }, { 143, true, 2 }, { 9, false, 3 } }, true, "rank 3 of group g1 ended with exit code 9" },
        { "somebody else's SIGTERM is nobody's consequence",
          { { 1, false, 1 }, { 143, false, 2 }, { RUNS, false, 0 }, { 1, false, 3 } }, true, "rank 1 of group g0 was killed by signal 15" },
        { "of those that failed the first",
          { { 1, false, 9 }, { 1, false, 8 }, { 6, false, 3 }, { 1, false, 4 } }, true, "rank 2 of group g1 ended with exit code 6" },
        { "of those that were killed, too",
          { { 137, false, 9 }, { 139, false, 3 }, { 1, false, 1 }, { 1, false, 4 } }, true, "rank 1 of group g0 was killed by signal 11" },
        { "of those that were asked to end, when there are no others",
          { { 143, true, 9 }, { 143, true, 3 }, { 0, true, 1 }, { 143, true, 4 } }, true, "rank 1 of group g0 was killed by signal 15" },
        { "at the same moment the lowest",
          { { 0, false, 1 }, { 8, false, 2 }, { 6, false, 2 }, { 7, false, 2 } }, true, "rank 1 of group g0 ended with exit code 8" },
        { "what is no signal's number is a code",
          { { 255, false, 1 }, { 1, false, 2 }, { 193, false, 3 }, { 1, false, 4 } }, true, "rank 0 of group g0 ended with exit code 255" },
};
/* clang-format on */

static void open_world(struct world *world)
{
        const struct world_rules rules = {
                .kind = WORLD_GROUPS, .restart_max = 1, .log = "", .hang_usec = 60000 * MSEC, .speaks = true
        };

        assert_int_equal(world_init(world, &rules, 2, BEGIN, NULL), 0);
        assert_int_equal(world_lay_out(world, RANKS, NULL), 0);
        for (size_t i = 0; i < RANKS; i++)
                world->ranks[i] = (struct world_rank){ .place = i / 2, .batch = 1 };
        for (size_t i = 0; i < 2; i++) {
                (void) text_format(world->places[i].name, sizeof(world->places[i].name), "g%zu", i);
                world->places[i].chips = 2;
                world->places[i].there = world->places[i].used = true;
        }
        world->phase = WORLD_RUNNING;
        world->mpirun_runs = true;
        world->progress.began_usec = BEGIN;
}

static void hear(struct world *world, const struct end *ends, size_t what, uint64_t now)
{
        const struct world_fact exited = { .kind = WORLD_EXIT,
                                           .index = what,
                                           .code = what < RANKS ? ends[what].code : 0,
                                           .asked = what < RANKS && ends[what].asked,
                                           .usec = BEGIN + (what < RANKS ? ends[what].msec * MSEC : 0) };
        const struct world_fact mpirun = { .kind = WORLD_MPIRUN, .code = 1 };

        world_observe(world, what < RANKS ? &exited : &mpirun, now);
}

/* The order of this number. */
static void order_of(size_t number, size_t order[FACTS])
{
        for (size_t i = 0; i < FACTS; i++)
                order[i] = i;
        for (size_t i = FACTS; i > 1; i--) {
                size_t k = number % i, last = order[i - 1];

                order[i - 1] = order[k];
                order[k] = last;
                number /= i;
        }
}

/* A look every 50 ms; of what is heard, something every 150. */
static struct verdict told(size_t row, size_t number)
{
        struct verdict v = { .kind = VERDICT_GO_ON };
        size_t order[FACTS], next = 0;
        struct world world;

        order_of(number, order);
        open_world(&world);
        for (uint64_t msec = 0; v.kind == VERDICT_GO_ON && msec < 3000; msec += 50) {
                uint64_t now = BEGIN + (500 + msec) * MSEC;

                if (msec % 150 == 0 && next < FACTS) {
                        size_t what = order[next++];

                        if (what < RANKS ? rows[row].ends[what].code != RUNS : rows[row].mpirun)
                                hear(&world, rows[row].ends, what, now);
                }
                v = verdict_on(&world, now);
        }
        world_free(&world);
        return v;
}

static void the_order_of_hearing_changes_nothing(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                for (size_t k = 0; k < ORDERS; k++) {
                        struct verdict v = told(i, k);

                        if (v.kind != VERDICT_RESTART || !text_starts_with(v.message, rows[i].says))
                                fail_msg("%s: order %zu: want '%s', got '%s'", rows[i].why, k, rows[i].says,
                                         v.message);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(the_order_of_hearing_changes_nothing) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
