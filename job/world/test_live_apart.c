/* New shares in a world whose ranks do not wait for each other: each has its own clock, and steps as long as
 * its own share takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/world/verdict.h"

#define BATCH     64
#define LOOK_USEC 100000

struct rank {
        double ms, said_ms;   /* a sample; by its own word */
        double begun_usec;    /* the step at hand, */
        uint64_t step, batch; /* its number, its samples */
        double busy_ms, samples;
        struct progress_rank read; /* its lines */
};

struct play {
        struct world world;
        struct rank ranks[2];
        uint64_t told, next[2]; /* the file */
        uint64_t told_usec;     /* when the last look was */
        double noise;           /* steps are up to so much longer or shorter */
        char events[256];
};

static void open_play(struct play *play, const struct rank *ranks)
{
        const struct world_rules rules = {
                .kind = WORLD_CHIPS, .hang_usec = 3600000000ULL, .global_batch = BATCH, .recut = true
        };

        *play = (struct play){ 0 };
        assert_int_equal(world_init(&play->world, &rules, 2, 0, NULL), 0);
        assert_int_equal(world_lay_out(&play->world, 2, NULL), 0);
        for (size_t i = 0; i < 2; i++) {
                struct world_place *place = &play->world.places[i];

                (void) text_format(place->name, sizeof(place->name), "cpu-%zu", i);
                (void) text_copy(place->runtime, sizeof(place->runtime), "cpu");
                place->there = place->used = true;
                play->ranks[i] = ranks[i];
                play->ranks[i].batch = BATCH / 2;
                play->world.ranks[i] = (struct world_rank){ .place = i, .batch = BATCH / 2 };
        }
        play->world.phase = WORLD_STARTING;
        assert_int_equal(verdict_on(&play->world, 0).kind, VERDICT_START);
}

/* -1 .. 1, of each step of each rank. */
static double chance(size_t rank, uint64_t step)
{
        uint32_t random = (uint32_t) (step * 2 + rank) * 2654435761U;

        random = (random ^ random >> 15) * 2246822519U;
        return (double) (random >> 8) / (1 << 23) - 1;
}

/* All steps that have ended until then, a line each. */
static void make_steps(struct play *play, size_t i, double until_usec)
{
        struct rank *rank = &play->ranks[i];

        for (;;) {
                double usec, length = 1 + play->noise * chance(i, rank->step);

                if (play->told > 0 && rank->step >= play->told)
                        rank->batch = play->next[i];
                usec = rank->ms * (double) rank->batch * 1000 * length;
                if (rank->begun_usec + usec > until_usec)
                        return;
                rank->begun_usec += usec;
                rank->busy_ms += rank->said_ms * (double) rank->batch * length;
                rank->samples += (double) rank->batch;
                progress_say(
                        &rank->read,
                        &(struct progress_line){ .epoch = -1,
                                                 .step = (int64_t) rank->step,
                                                 .samples = (int64_t) rank->samples,
                                                 .busy_seconds = rank->busy_ms / 1000,
                                                 .live = true,
                                                 .shares_step = play->told > 0 && rank->step >= play->told
                                                                        ? (int64_t) play->told
                                                                        : (int64_t) rank->read.shares_step },
                        (uint64_t) until_usec);
                rank->step++;
        }
}

static void tell(struct play *play, size_t i, uint64_t now_usec)
{
        struct progress_rank *read = &play->ranks[i].read;
        const struct progress_line line = { .epoch = -1,
                                            .step = (int64_t) read->step,
                                            .samples = (int64_t) read->samples,
                                            .busy_seconds = read->busy_seconds,
                                            .live = true,
                                            .shares_step = (int64_t) read->shares_step,
                                            .paces = read->paces,
                                            .pace_count = read->pace_count };

        if (read->reported_usec > play->told_usec)
                world_observe(&play->world,
                              &(struct world_fact){ .kind = WORLD_LINE, .index = i, .line = &line },
                              now_usec);
        read->pace_count = 0;
}

static void obey(struct play *play, const struct verdict *v)
{
        size_t length = strlen(play->events);

        if (v->kind == VERDICT_SHARE) {
                play->told = play->world.progress.live.step;
                for (size_t i = 0; i < 2; i++)
                        play->next[i] = play->world.ranks[i].batch_next;
        } else {
                (void) text_format(play->events + length, sizeof(play->events) - length, "%s%s",
                                   length == 0 ? "" : " ", v->reason);
        }
        assert_true(v->kind != VERDICT_END && v->kind != VERDICT_RESTART);
}

static void go_on(struct play *play, uint64_t seconds)
{
        for (uint64_t now = LOOK_USEC; now <= seconds * 1000000; now += LOOK_USEC) {
                struct verdict v;

                for (size_t i = 0; i < 2; i++) {
                        make_steps(play, i, (double) now);
                        tell(play, i, now);
                }
                play->told_usec = now;
                while ((v = verdict_on(&play->world, now)).kind != VERDICT_GO_ON)
                        obey(play, &v);
        }
}

/* The honest one's steps get as short as the other's get long: their mean says nothing. */
static void a_million_samples_a_second_are_found_out(void **state)
{
        static const struct rank ranks[] = { { .ms = 2, .said_ms = 2 }, { .ms = 2, .said_ms = 0.001 } };
        struct play play;

        (void) state;
        open_play(&play, ranks);
        go_on(&play, 600);
        assert_string_equal(play.events, "SharesChanged Straggler SharesChanged ProgressDoubted");
        assert_int_equal(play.ranks[1].batch, BATCH / 2);
        world_free(&play.world);
}

/* Each step up to a third longer or shorter. */
static void an_honest_chip_of_four_times_the_speed_has_four_times_the_work(void **state)
{
        static const struct rank ranks[] = { { .ms = 4, .said_ms = 4 }, { .ms = 1, .said_ms = 1 } };

        (void) state;
        for (uint32_t i = 0; i < 4; i++) {
                struct play play;

                open_play(&play, ranks);
                play.noise = i * 0.11;
                go_on(&play, 100);
                assert_null(strstr(play.events, "ProgressDoubted"));
                assert_in_range(play.ranks[1].batch, 48, 54);
                world_free(&play.world);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_million_samples_a_second_are_found_out),
                cmocka_unit_test(an_honest_chip_of_four_times_the_speed_has_four_times_the_work),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
