/* Who stands in for whom, and without whom a job cannot go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/world/lineup.h"

/* Places by their letters: a, b: workers of the plan, s: a server of it. Spare ones follow. */
struct spare {
        const char *runtime;
        uint64_t chips;
        bool server, away;
};

static void begin(struct world *world, const struct spare *spares, size_t count)
{
        const struct world_rules rules = { .kind = WORLD_GROUPS, .migrate = true };

        assert_int_equal(world_init(world, &rules, 3 + count, 0, NULL), 0);
        for (size_t i = 0; i < world->place_count; i++) {
                struct world_place *place = &world->places[i];

                snprintf(place->name, sizeof(place->name), "%c",
                         i < 3 ? "abs"[i] : (char) ('x' + (int) i - 3));
                strcpy(place->runtime, i < 3 ? "cuda" : spares[i - 3].runtime);
                place->chips = i < 3 ? 4 : spares[i - 3].chips;
                place->server = i < 3 ? i == 2 : spares[i - 3].server;
                place->role = place->server;
                place->role_min = place->server ? 4 : 6;
                place->spare = i >= 3;
                place->there = i < 3 || !spares[i - 3].away;
        }
}

static void a_spare_group_is_as_good_as_the_lost_one(void **state)
{
        static const struct {
                const char *what;
                struct spare spare;
                bool stands_in;
        } rows[] = {
                { "as many chips", { "cuda", 4, false, false }, true },
                { "more", { "cuda", 8, false, false }, true },
                { "fewer", { "cuda", 3, false, false }, false },
                { "of another runtime", { "cann", 4, false, false }, false },
                { "a server", { "cuda", 4, true, false }, false },
                { "it is not there itself", { "cuda", 4, false, true }, false },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct world world;

                begin(&world, &rows[i].spare, 1);
                lineup_offer(&world);
                assert_false(lineup_takes_part(&world, 3)); /* nobody is lost */
                world.places[1].there = false;
                lineup_offer(&world);
                if ((world.places[1].stand_in == 3) != rows[i].stands_in ||
                    lineup_takes_part(&world, 3) != rows[i].stands_in ||
                    strcmp(world.places[1].stand_in_name, rows[i].stands_in ? "x" : "") != 0)
                        fail_msg("%s", rows[i].what);
                world.rules.migrate = false; /* nothing may move: whoever is there */
                assert_false(lineup_takes_part(&world, 3));
                world_free(&world);
        }
}

static void one_spare_group_stands_in_for_one(void **state)
{
        static const struct spare spares[] = { { "cuda", 4, false, false }, { "cuda", 4, false, false } };
        struct world world;
        size_t lacking;

        (void) state;
        begin(&world, spares, 1);
        world.places[0].there = world.places[1].there = false;
        lineup_offer(&world);
        assert_true(world.places[0].stand_in == 3 && world.places[1].stand_in == WORLD_NOBODY);
        assert_int_equal(lineup_chips(&world, 0), 4);
        assert_int_equal(lineup_needed(&world, &lacking), 1); /* four chips are fewer than six */
        assert_int_equal(lacking, 1);
        world.places[1].role_min = 4;
        assert_int_equal(lineup_needed(&world, &lacking), world.place_count);
        assert_int_equal(lacking, 1); /* which is waited for all the same */
        world.places[2].leaving =
                true; /* a server is never done without; the first that is needed is named */
        world.places[1].role_min = 6;
        assert_int_equal(lineup_needed(&world, &lacking), 1);
        assert_int_equal(lacking, 2);
        world.places[1].role_min = 4;
        assert_int_equal(lineup_needed(&world, &lacking), 2);
        world_free(&world);
        begin(&world, spares, 2);
        world.places[0].there = world.places[1].there = false;
        lineup_offer(&world);
        assert_true(world.places[0].stand_in == 3 && world.places[1].stand_in == 4);
        assert_true(lineup_takes_part(&world, 3) && lineup_takes_part(&world, 4));
        assert_int_equal(lineup_chips(&world, 0), 8);
        world_free(&world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_spare_group_is_as_good_as_the_lost_one),
                cmocka_unit_test(one_spare_group_stands_in_for_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
