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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_gain_is_what_the_exact_plan_promises),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
