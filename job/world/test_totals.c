/* What the ranks of a world say, taken together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/world/totals.h"

static void samples_add_up_and_the_furthest_is_how_far_it_is(void **state)
{
        const struct world_rules rules = { .global_batch = 40 };
        struct world world;
        struct totals all;

        (void) state;
        assert_int_equal(world_init(&world, &rules, 1, 0, NULL), 0);
        all = totals_of(&world); /* nobody speaks yet */
        assert_true(all.samples == 0 && all.step == 0 && all.epoch == 0 && all.epoch_samples == 0 &&
                    all.loss == 0);
        assert_int_equal(world_lay_out(&world, 3, NULL), 0);
        world.ranks[0].batch = 30;
        world.ranks[1].batch = 10; /* the third is a server */
        world.seen[0] = (struct progress_rank){
                .reported = true, .samples = 300, .step = 9, .epoch = 1, .loss = 0.5, .epoch_samples = 1000
        };
        world.seen[1] =
                (struct progress_rank){ .reported = true, .samples = 80, .step = 7, .epoch = 2, .loss = 1.5 };
        all = totals_of(&world);
        assert_int_equal(all.samples, 380);
        assert_int_equal(all.step, 9);
        assert_int_equal(all.epoch, 2);
        assert_int_equal(all.epoch_samples, 1000);
        assert_true(all.loss == 0.75); /* by their batches */
        world.seen[1].loss = 0;        /* it says none */
        assert_true(totals_of(&world).loss == 0.5);
        world.seen[0].loss = 0;
        assert_true(totals_of(&world).loss == 0);
        world.rules.staged = true; /* of a pipeline: the last stage's, whatever the first one evaluated */
        world.seen[0].loss = 0.3;
        world.seen[2].loss = 0.427;
        assert_true(totals_of(&world).loss == 0.427);
        world_free(&world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(samples_add_up_and_the_furthest_is_how_far_it_is),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
