/* What new shares would gain, worked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/world/recut.h"

/* Batch 64 over four lines: three need 16 ms for 16 samples, one 48. By the exact plan 19 + 19 + 19 + 7: 21
 * ms. */
static void the_gain_is_what_the_exact_plan_promises(void **state)
{
        const struct world_rules rules = { .global_batch = 64 };
        struct world world;
        struct recut_line line;

        (void) state;
        assert_int_equal(world_init(&world, &rules, 1, 0, NULL), 0);
        assert_int_equal(world_lay_out(&world, 4, NULL), 0);
        for (size_t i = 0; i < 4; i++) {
                world.ranks[i].batch = 16;
                world.seen[i].usual_busy_ms = i == 3 ? 48 : 16;
        }
        assert_true(recut_gain(&world) > 48.0 / 20.0 - 1e-9 && recut_gain(&world) < 48.0 / 20.0 + 1e-9);
        world.seen[0].usual_busy_ms = 0; /* not seen, not planned: nothing is known */
        assert_true(recut_gain(&world) == 0);
        world.ranks[0] = (struct world_rank){ .batch = 16, .alpha_ms = 2, .beta_ms = 0.5 };
        assert_true(recut_line(&world, 0, &line) && line.alpha_ms == 2 && line.beta_ms == 0.5);
        world.seen[0].usual_busy_ms = 30; /* planned: 10 */
        assert_true(recut_line(&world, 0, &line) && line.alpha_ms == 6 && line.beta_ms == 1.5);
        world_free(&world);
}

static const struct window_pace pace = { 1, 16, 30 };

/* Three ranks: 20 + 1 b, 1.25 b, and one whose word is not believed. */
static void what_a_world_has_shown_is_whole_or_nothing(void **state)
{
        const struct world_rules rules = { .global_batch = 64 };
        struct world world;
        struct recut_line lines[3];

        (void) state;
        assert_int_equal(world_init(&world, &rules, 1, 0, NULL), 0);
        assert_int_equal(world_lay_out(&world, 3, NULL), 0);
        assert_false(recut_learned(&world, lines)); /* nothing was seen */
        world.ranks[0] = (struct world_rank){ .batch = 16, .alpha_ms = 10, .beta_ms = 0.5 };
        world.ranks[1] = (struct world_rank){ .batch = 24 };
        world.ranks[2] = (struct world_rank){ .batch = 24 };
        for (size_t i = 0; i < 3; i++) {
                for (size_t k = 0; k < 4; k++)
                        window_add(&world.seen[i].window, &pace, 30);
                world.seen[i].usual_busy_ms = i == 0 ? 36 : 30;
        }
        assert_true(recut_learned(&world, lines));
        assert_true(lines[0].alpha_ms == 20 && lines[0].beta_ms == 1 && lines[1].beta_ms == 1.25 &&
                    lines[2].beta_ms == 1.25);
        world.seen[2].usual_busy_ms = 0.001; /* it says; but */
        progress_doubt(&world.seen[2], PROGRESS_UNTRUE, 1);
        assert_true(recut_learned(&world, lines));
        assert_true(lines[2].alpha_ms == 0 && lines[2].beta_ms == 1.5); /* 36 ms for 24 */
        world.seen[1].usual_busy_ms = 1e-30;                            /* no chip is that fast */
        assert_false(recut_learned(&world, lines));
        world.seen[1].usual_busy_ms = 1e15; /* nor that slow */
        assert_false(recut_learned(&world, lines));
        world.seen[1].usual_busy_ms = 0; /* it was never planned, either */
        assert_false(recut_learned(&world, lines));
        world.seen[1].usual_busy_ms = 30;
        world.seen[1].window = (struct window){ 0 }; /* three steps are none */
        assert_false(recut_learned(&world, lines));
        world.progress.live.step = 7; /* new shares were told by what was seen */
        assert_true(recut_learned(&world, lines));
        world_free(&world);
}

/* A line that has no length is that of a chip without a fixed part; what was not planned has none. */
static void a_line_is_stretched_to_what_was_seen(void **state)
{
        const struct world_rules rules = { .global_batch = 64 };
        struct recut_line line = recut_stretch(5, 0, 10, 20);
        struct world world;

        (void) state;
        assert_true(line.alpha_ms == 0 && line.beta_ms == 2);
        line = recut_stretch(0, 0, 10, 20);
        assert_true(line.alpha_ms == 0 && line.beta_ms == 2);
        assert_int_equal(world_init(&world, &rules, 1, 0, NULL), 0);
        assert_int_equal(world_lay_out(&world, 1, NULL), 0);
        world.seen[0].usual_busy_ms = 30;
        assert_false(recut_line(&world, 0, &line)); /* it has no share to be seen with */
        world_free(&world);
}

/* Servers take nothing of a batch: with one or without, the workers' gain and lines are the same. */
static void servers_have_no_part_in_it(void **state)
{
        const struct world_rules rules = { .global_batch = 48 };
        struct recut_line lines[4];
        double gain[2];
        struct world world;

        (void) state;
        for (size_t servers = 0; servers < 2; servers++) {
                assert_int_equal(world_init(&world, &rules, 2, 0, NULL), 0);
                assert_int_equal(world_lay_out(&world, 3 + servers, NULL), 0);
                world.places[1].server = true;
                for (size_t i = 0; i < world.rank_count; i++) {
                        world.ranks[i].place = i == 3;
                        world.ranks[i].batch = i == 3 ? 0 : 16;
                        world.seen[i].usual_busy_ms = i == 2 ? 48 : 16;
                        for (size_t k = 0; k < 4; k++)
                                window_add(&world.seen[i].window, &pace, 30);
                }
                gain[servers] = recut_gain(&world);
                assert_true(recut_learned(&world, lines) && lines[2].beta_ms == 3);
                assert_true(servers == 0 || (lines[3].alpha_ms == 0 && lines[3].beta_ms == 0));
                progress_doubt(&world.seen[1], PROGRESS_UNTRUE, 1);
                assert_true(recut_gain(&world) == 0); /* whose word is not believed promises nothing */
                world.ranks[1].batch = 0;             /* and of one without a share nothing follows */
                assert_false(recut_learned(&world, lines));
                world.ranks[0].place = world.ranks[1].place = world.ranks[2].place = 1;
                assert_true(recut_gain(&world) == 0);
                assert_false(recut_learned(&world, lines));
                world_free(&world);
        }
        assert_true(gain[0] > 1 && gain[0] == gain[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_gain_is_what_the_exact_plan_promises),
                cmocka_unit_test(what_a_world_has_shown_is_whole_or_nothing),
                cmocka_unit_test(a_line_is_stretched_to_what_was_seen),
                cmocka_unit_test(servers_have_no_part_in_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
