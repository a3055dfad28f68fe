/* Facts of ranks and places: the first word on a loss counts, what comes back is as good as new, and nobody
 * is what the world does not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "job/world/blame.h"

static void begin(struct world *world)
{
        const struct world_rules rules = { .kind = WORLD_GROUPS, .global_batch = 64 };

        assert_int_equal(world_init(world, &rules, 2, 0, NULL), 0);
        assert_int_equal(world_lay_out(world, 2, NULL), 0);
}

static void see(struct world *world, struct world_fact fact, uint64_t now)
{
        world_observe(world, &fact, now);
}

static void the_first_word_on_a_loss_counts(void **state)
{
        struct world world;
        const struct world_place *place;

        (void) state;
        begin(&world);
        place = &world.places[1];
        see(&world, (struct world_fact){ .kind = WORLD_LOST, .index = 1, .code = WORLD_LEFT }, 1);
        assert_int_equal(place->loss, WORLD_LEFT); /* also of one that never came */
        assert_string_equal(place->why, "");
        see(&world, (struct world_fact){ .kind = WORLD_HERE, .index = 1 }, 2);
        see(&world, (struct world_fact){ .kind = WORLD_READY, .index = 1 }, 2);
        assert_true(place->there && place->ready && place->loss == WORLD_NOT_LOST && !place->loss_unsaid);
        see(&world,
            (struct world_fact){
                    .kind = WORLD_LOST, .index = 1, .code = WORLD_NODE_LOST, .text = "node n is lost" },
            3);
        see(&world, (struct world_fact){ .kind = WORLD_LOST, .index = 1, .code = WORLD_GONE, .text = "gone" },
            4);
        assert_true(!place->there && !place->ready && place->loss == WORLD_NODE_LOST);
        assert_string_equal(place->why, "node n is lost");
        see(&world, (struct world_fact){ .kind = WORLD_HERE, .index = 1 }, 5);
        assert_true(place->there && place->loss == WORLD_NOT_LOST && place->why[0] == '\0');
        assert_false(world.places[0].there);
        world_free(&world);
}

static void who_is_stopped_is_so_since_the_first_look(void **state)
{
        struct world world;

        (void) state;
        begin(&world);
        for (uint64_t now = 5; now < 8; now++)
                see(&world, (struct world_fact){ .kind = WORLD_STOPPED, .index = 1, .code = 1 }, now);
        assert_true(world.ranks[1].stopped_usec == 5 && !world.ranks[1].stuck);
        see(&world, (struct world_fact){ .kind = WORLD_STOPPED, .index = 1, .code = 2 }, 8);
        assert_true(world.ranks[1].stopped_usec == 0 && world.ranks[1].stuck);
        see(&world, (struct world_fact){ .kind = WORLD_STOPPED, .index = 1, .code = 0 }, 9);
        assert_true(world.ranks[1].stopped_usec == 0 && !world.ranks[1].stuck);
        assert_true(world.ranks[0].stopped_usec == 0);
        world_free(&world);
}

/* Whose steps begin anew in each epoch says its own samples all the same. */
static void steps_that_begin_anew_are_no_foreign_samples(void **state)
{
        static const struct {
                int64_t steps, samples; /* of an epoch, of a step */
                enum progress_doubt doubt;
        } rows[] = {
                { 20, 8, PROGRESS_STEP_ANEW },
                { 1000, 8, PROGRESS_BELIEVED },
                { 1000, 16, PROGRESS_SHARE },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct world world;

                begin(&world);
                world.ranks[1].batch = world.ranks[1].batch_next = 8;
                for (int64_t n = 1; n <= 840; n += 7) { /* not each line is looked at */
                        struct progress_line line = { .step = (n - 1) % rows[i].steps,
                                                      .samples = n * rows[i].samples,
                                                      .busy_seconds = (double) n / 50,
                                                      .shares_step = -1,
                                                      .live = true,
                                                      .epoch = -1 };

                        see(&world, (struct world_fact){ .kind = WORLD_LINE, .index = 1, .line = &line },
                            (uint64_t) n * 20000);
                }
                if (world.seen[1].doubt != rows[i].doubt)
                        fail_msg("epochs of %lld steps: doubt %d", (long long) rows[i].steps,
                                 (int) world.seen[1].doubt);
                world_free(&world);
        }
}

static void nobody_is_what_the_world_does_not_have(void **state)
{
        struct world world;

        (void) state;
        begin(&world);
        see(&world, (struct world_fact){ .kind = WORLD_EXIT, .index = 2, .code = 7 }, 1);
        see(&world, (struct world_fact){ .kind = WORLD_LOST, .index = 2, .code = WORLD_GONE }, 1);
        assert_int_equal(blame_find(&world), 2);
        assert_true(world.places[0].loss == WORLD_NOT_LOST && world.places[1].loss == WORLD_NOT_LOST);
        see(&world, (struct world_fact){ .kind = WORLD_EXIT, .index = 0, .code = 7 }, 1);
        assert_int_equal(blame_find(&world), 0);
        assert_false(world_has_ended(&world));
        see(&world, (struct world_fact){ .kind = WORLD_EXIT, .index = 1 }, 2);
        assert_true(world_has_ended(&world));
        world_free(&world);
}

/* Whoever could not tell the ranks their new shares says so: none are told any more. */
static void shares_that_were_not_told_are_the_last(void **state)
{
        struct world world;

        (void) state;
        begin(&world);
        world.progress.live.under_way = true;
        see(&world, (struct world_fact){ .kind = WORLD_UNTOLD }, 1);
        assert_true(!world.progress.live.under_way && world.progress.live.off);
        world_free(&world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_word_on_a_loss_counts),
                cmocka_unit_test(who_is_stopped_is_so_since_the_first_look),
                cmocka_unit_test(steps_that_begin_anew_are_no_foreign_samples),
                cmocka_unit_test(nobody_is_what_the_world_does_not_have),
                cmocka_unit_test(shares_that_were_not_told_are_the_last),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
