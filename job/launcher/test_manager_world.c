/* What the manager learns of its chips while a world runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "job/launcher/manager.h"
#include "job/launcher/manager_world.h"
#include "job/launcher/subtask.h"

#define CHIPS 64

/* Lists of a file that are empty, or are none of its business, have no room for what is learned. */
static void lists_of_a_file_have_no_room(void **state)
{
        const struct world_rules rules = { .kind = WORLD_GROUPS, .global_batch = 2 * CHIPS };
        CLEANUP(free_p) struct manager *manager = calloc(1, sizeof(*manager));
        json_t *plan = json_loads("{\"job\":\"j\",\"global_batch\":128,\"groups\":[{\"name\":\"a\","
                                  "\"runtime\":\"cpu\",\"chips\":64,\"chip_speeds\":[],"
                                  "\"chip_alpha_ms\":[1]}]}",
                                  0, NULL);
        const Subtask__Group *group;

        (void) state;
        assert_non_null(manager);
        pb_arena_init(&manager->plan_arena, (size_t) 1 << 20);
        assert_int_equal(subtask_read(plan, &manager->plan_arena, &manager->plan, NULL), 0);
        group = manager->plan->groups[0];
        assert_int_equal(world_init(&manager->world, &rules, 1, 0, NULL), 0);
        assert_int_equal(world_lay_out(&manager->world, CHIPS, NULL), 0);
        manager->world.progress.live.step = 1;
        for (size_t i = 0; i < CHIPS; i++)
                manager->world.ranks[i] =
                        (struct world_rank){ .batch = 2, .alpha_ms = 1 + (double) i, .beta_ms = 4 };
        manager_world_adopt(manager, true);
        assert_int_equal(group->n_chip_speeds, CHIPS);
        assert_int_equal(group->n_chip_alpha_ms, CHIPS);
        for (size_t i = 0; i < CHIPS; i++) {
                assert_true(group->chip_speeds[i] == 250);
                assert_true(group->chip_alpha_ms[i] == 1 + (double) i);
                assert_int_equal(group->chip_batches[i], 2);
        }
        world_free(&manager->world);
        pb_arena_free(&manager->plan_arena);
        json_decref(plan);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_of_a_file_have_no_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
