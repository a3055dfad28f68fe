/* A split of which a stage becomes slow: it is named, layers move once that pays, and no more often than
 * that. Three ranks with 6 layers of 1 ms each, 4 microbatches: 8 ms of computing a step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/world/resplit.h"
#include "job/world/verdict.h"
#include "planner/splits/pipeline.h"

#define RANKS_MAX 4
#define LAYERS    6
#define SECOND    ((uint64_t) 1000000)
#define STEP      ((uint64_t) 50000) /* a look and a step */

static double ms[RANKS_MAX][LAYERS];
static struct pipeline_layer layers[LAYERS];
static struct pipeline_worker workers[RANKS_MAX];
static struct pipeline_problem problem = {
        .layers = layers, .layer_count = LAYERS, .workers = workers, .microbatches = 4
};

struct bed {
        struct world world;
        uint64_t now, step, last_step;
        double slow[RANKS_MAX];         /* times, of the chip as it is */
        double busy_seconds[RANKS_MAX]; /* of this world */
        size_t first[RANKS_MAX];
        unsigned microbatches[RANKS_MAX];         /* of its pipeline */
        char said[1024], words[WORLD_TEXT_BYTES]; /* words of the last verdict that has a reason */
};

static void fact(struct bed *bed, struct world_fact f)
{
        world_observe(&bed->world, &f, bed->now);
}

static void lay_out(struct bed *bed)
{
        assert_int_equal(world_lay_out(&bed->world, problem.worker_count, NULL), 0);
        for (size_t i = 0; i < problem.worker_count; i++) {
                bed->world.ranks[i].place = i;
                bed->busy_seconds[i] = 0;
        }
        assert_int_equal(resplit_begin(&bed->world, &problem, bed->first, false, NULL), 0);
}

/* As a starter does: times and layers that were found become the plan's. */
static void move(struct bed *bed)
{
        const struct split_state *split = &bed->world.split;

        assert_non_null(split->problem);
        for (size_t i = 0; i < problem.worker_count; i++) {
                for (size_t k = 0; k < LAYERS; k++)
                        ms[i][k] *= split->ranks[i].stretch;
                bed->first[i] = split->ranks[i].next_first;
        }
}

static void judge(struct bed *bed)
{
        static const char *const kinds[] = {
                [VERDICT_TERMINATE] = "terminate", [VERDICT_RESHARD] = "reshard"
        };
        struct verdict v;

        while ((v = verdict_on(&bed->world, bed->now)).kind != VERDICT_GO_ON) {
                size_t length = strlen(bed->said);

                if (v.kind == VERDICT_ASSIGN)
                        lay_out(bed);
                if (v.kind == VERDICT_RESHARD) {
                        move(bed);
                        fact(bed, (struct world_fact){ .kind = WORLD_MPIRUN, .code = 143 });
                }
                if (v.reason[0] != '\0')
                        (void) text_copy(bed->words, sizeof(bed->words), v.message);
                if (v.reason[0] != '\0' || v.kind == VERDICT_RESHARD)
                        (void) text_format(
                                bed->said + length, sizeof(bed->said) - length, "%s%s%s%s",
                                length == 0 ? "" : " ", v.reason, v.kind == VERDICT_TERMINATE ? "/" : "",
                                v.kind == VERDICT_TERMINATE || v.kind == VERDICT_RESHARD ? kinds[v.kind]
                                                                                         : "");
        }
}

static struct bed *open_bed_of(size_t ranks, bool resplit, uint64_t last_step)
{
        static struct bed bed;
        const struct world_rules rules = { .kind = WORLD_CHIPS,
                                           .hang_usec = 60 * SECOND,
                                           .grace_usec = 30 * SECOND,
                                           .global_batch = 64,
                                           .last_step = last_step,
                                           .speaks = true,
                                           .staged = true,
                                           .checkpoints = true,
                                           .resplit = resplit,
                                           .log = "" };

        problem.worker_count = ranks;
        bed = (struct bed){ .now = 100 * SECOND,
                            .first = { 0, 2, 4 },
                            .slow = { 1, 1, 1, 1 },
                            .microbatches = { 4, 4, 4, 4 } };
        assert_int_equal(world_init(&bed.world, &rules, problem.worker_count, bed.now, NULL), 0);
        for (size_t i = 0; i < problem.worker_count; i++) {
                workers[i] = (struct pipeline_worker){ .chips = 1, .bytes_per_ms = 1e9, .ms = ms[i] };
                for (size_t k = 0; k < LAYERS; k++)
                        ms[i][k] = 1;
                (void) text_format(bed.world.places[i].name, WORLD_NAME_BYTES, "cpu-%zu", i);
                (void) text_copy(bed.world.places[i].runtime, sizeof(bed.world.places[i].runtime), "cpu");
                bed.world.places[i].role_min = problem.worker_count;
                fact(&bed, (struct world_fact){ .kind = WORLD_HERE, .index = i });
        }
        judge(&bed);
        return &bed;
}

static struct bed *open_bed(bool resplit, uint64_t last_step)
{
        return open_bed_of(3, resplit, last_step);
}

/* The chip itself: a millisecond a layer. */
static void one_step(struct bed *bed)
{
        for (size_t i = 0; i < problem.worker_count; i++) {
                size_t next = i + 1 < problem.worker_count ? bed->first[i + 1] : 0,
                       end = next > 0 ? next : LAYERS;
                struct progress_line line = { .step = (int64_t) bed->step,
                                              .samples = i == 0 ? (int64_t) (bed->step + 1) * 64 : 0,
                                              .shares_step = -1,
                                              .epoch = 0,
                                              .epoch_samples = -1 };

                bed->busy_seconds[i] +=
                        (double) (end - bed->first[i]) * bed->slow[i] * bed->microbatches[i] / 1000;
                line.busy_seconds = bed->busy_seconds[i];
                fact(bed, (struct world_fact){ .kind = WORLD_LINE, .index = i, .line = &line });
        }
        bed->step++;
}

static void run(struct bed *bed, double seconds)
{
        uint64_t end = bed->now + (uint64_t) (seconds * 1e6);

        while (bed->now < end) {
                bed->now += STEP;
                if (bed->world.phase == WORLD_RUNNING && !bed->world.split.moving)
                        one_step(bed);
                judge(bed);
        }
}

/* The ranks end, as asked, with a checkpoint. */
static void obey(struct bed *bed)
{
        for (size_t i = 0; i < problem.worker_count; i++)
                fact(bed, (struct world_fact){ .kind = WORLD_EXIT, .index = i, .code = 143, .asked = true });
        judge(bed);
}

static void what_pays(void **state)
{
        static const struct {
                const char *what;
                struct resplit_case facts;
                bool pays;
        } rows[] = {
                { "a third of a step, thousands to come", { 75, 50, 3000, 5000 }, true },
                { "twice what it costs, to the step", { 75, 50, 3000, 240 }, true },
                { "a step less", { 75, 50, 3000, 239 }, false },
                { "a tenth is not reached, however many steps", { 109, 100, 3000, UINT32_MAX }, false },
                { "a little more is", { 111, 100, 3000, 1000 }, true },
                { "nothing is left", { 75, 50, 0.1, 0 }, false },
                { "what is not known", { 0, 0, 0, 5000 }, false },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (resplit_pays(&rows[i].facts) != rows[i].pays)
                        fail_msg("%s", rows[i].what);
}

static void a_slow_stage_is_named_and_its_layers_move(void **state)
{
        struct bed *bed = open_bed(true, 100000);

        (void) state;
        run(bed, 5);
        assert_string_equal(bed->said, "");
        bed->slow[1] = 3;
        run(bed, 8);
        assert_string_equal(bed->said, "Straggler Resplitting/terminate");
        assert_non_null(strstr(bed->words, "stages 0:1,2:2,3:5")); /* 8, 12 and 12 ms */
        assert_true(bed->world.split.ranks[1].stretch > 2.9 && bed->world.split.ranks[1].stretch < 3.1);
        assert_true(bed->world.split.ranks[0].stretch > 0.99 && bed->world.split.ranks[0].stretch < 1.01);
        obey(bed);
        run(bed, 60);
        assert_string_equal(bed->said, "Straggler Resplitting/terminate reshard Resumed");
        assert_int_equal(bed->first[1], 2);
        assert_int_equal(bed->first[2], 3);
        assert_int_equal(bed->world.reshards, 1);
        assert_int_equal(bed->world.restarts, 0); /* no fault */
        bed->slow[1] = 1;                         /* well again: 8, 4, 12 ms */
        run(bed, 8);
        assert_string_equal(bed->said,
                            "Straggler Resplitting/terminate reshard Resumed Resplitting/terminate");
        assert_non_null(strstr(bed->words, "stages 0:1,2:3,4:5"));
        world_free(&bed->world);
}

/* Steps of a second (simulated: the plan's times are), a grace time of two: they are given three steps. */
static void ranks_that_move_layers_have_the_time_of_three_steps(void **state)
{
        struct bed *bed = open_bed(true, 100000);
        struct world *world = &bed->world;

        (void) state;
        bed->slow[1] = 3;
        run(bed, 8);
        assert_string_equal(bed->said, "Straggler Resplitting/terminate");
        assert_true(world->split.step_ms > 0);
        world->rules.grace_usec = 2 * SECOND;
        world->split.step_ms = 1000;
        bed->now = world->terminated_usec;
        run(bed, 2.9);
        assert_string_equal(bed->said, "Straggler Resplitting/terminate");
        run(bed, 0.2);
        assert_non_null(strstr(bed->said, "terminate reshard"));
        assert_int_equal(resplit_grace_seconds(world, 2), RESPLIT_PATIENCE_MAX_SEC);
        world->rules.resplit = false;
        assert_int_equal(resplit_grace_seconds(world, 2), 2);
        world_free(world);

        bed = open_bed(true, 100000); /* a cancelled job has its grace time, whatever it was doing */
        bed->slow[1] = 3;
        run(bed, 8);
        world->rules.grace_usec = 2 * SECOND;
        world->split.step_ms = 1e9;
        assert_int_equal(resplit_patience_usec(world), RESPLIT_PATIENCE_MAX_SEC * SECOND);
        world->cancelled = true;
        assert_int_equal(resplit_patience_usec(world), 2 * SECOND);
        world_free(world);
}

/* Two pipelines, 48 and 16 of 64 samples: ranks 0 and 1 hold the layers once, rank 2 holds all of them. The
 * layers of the first one move within it, by its three of four microbatches. */
static void layers_move_within_their_pipeline(void **state)
{
        struct bed *bed = open_bed(true, 100000);
        struct world *world = &bed->world;
        static const size_t first[] = { 0, 3, 0 };

        (void) state;
        world->ranks[0].batch = world->ranks[1].batch = 24;
        world->ranks[2].batch = 16;
        free(world->split.ranks);
        assert_int_equal(resplit_begin(world, world->split.problem, first, false, NULL), 0);
        assert_int_equal(resplit_last(world, 0), 2);
        assert_int_equal(resplit_last(world, 1), 5);
        assert_int_equal(resplit_last(world, 2), 5);
        assert_true(world->seen[0].planned_ms == 3 * 3 && world->seen[2].planned_ms == 6);
        memcpy(bed->first, first, sizeof(first));
        bed->microbatches[0] = bed->microbatches[1] = 3;
        bed->microbatches[2] = 1;
        run(bed, 5);
        assert_string_equal(bed->said, "");
        bed->slow[1] = 3;
        run(bed, 8);
        assert_string_equal(bed->said, "Straggler Resplitting/terminate");
        assert_non_null(strstr(bed->words, "stages 0:4,5:5,0:5"));
        world_free(world);
}

/* Two pipelines of two, half of a batch and two microbatches each. The second one is cut badly, 1 layer and
 * 5, but is what it was planned to be; of the first one a stage becomes slow: 2 x 3 and 2 x 9 ms. Cut anew it
 * takes 5 and 3 ms a microbatch, as long as the second one does as it is: that one stays. */
static void a_pipeline_that_holds_nobody_up_keeps_its_layers(void **state)
{
        struct bed *bed = open_bed_of(4, true, 100000);
        struct world *world = &bed->world;
        static const size_t first[] = { 0, 3, 0, 1 };

        (void) state;
        for (size_t i = 0; i < 4; i++) {
                world->ranks[i].batch = 16;
                bed->microbatches[i] = 2;
        }
        free(world->split.ranks);
        assert_int_equal(resplit_begin(world, world->split.problem, first, false, NULL), 0);
        memcpy(bed->first, first, sizeof(first));
        run(bed, 5);
        assert_string_equal(bed->said, "");
        bed->slow[1] = 3;
        run(bed, 8);
        assert_string_equal(bed->said, "Straggler Resplitting/terminate");
        assert_non_null(strstr(bed->words, "stages 0:4,5:5,0:0,1:5"));
        world_free(world);
}

static void words_say_who_where_and_how_much(void **state)
{
        struct bed *bed = open_bed(false, 100000);

        (void) state;
        bed->slow[2] = 2;
        run(bed, 8);
        assert_string_equal(bed->said, "Straggler");
        assert_non_null(strstr(bed->words,
                               "rank 2 (cpu on cpu-2), stage 2 with layers 4:5, is slow: it computes "
                               "16 ms a step, planned are 8: 2.0 times as long"));
        run(bed, 60); /* turned off: it stays as it is */
        assert_string_equal(bed->said, "Straggler");
        world_free(&bed->world);
}

/* A layer of no known work is planned as next to nothing: it is no slow stage, and hides none. */
static void a_stage_that_holds_nobody_up_is_not_judged(void **state)
{
        struct bed *bed = open_bed(false, 100000);

        (void) state;
        for (size_t k = 0; k < LAYERS; k++)
                ms[1][k] = 1e-6;
        lay_out(bed);
        bed->slow[1] = 0.05;
        run(bed, 8);
        assert_string_equal(bed->said, "");
        bed->slow[0] =
                6; /* the others take less than a quarter then: they are compared with it all the same */
        run(bed, 8);
        assert_string_equal(bed->said, "Straggler");
        assert_non_null(strstr(bed->words, "rank 0"));
        world_free(&bed->world);
}

static void near_the_end_it_stays_and_says_so_once(void **state)
{
        struct bed *bed = open_bed(true, 300);

        (void) state;
        bed->slow[1] = 3;
        bed->now += 9 * SECOND; /* its start took nine seconds, and so would another */
        run(bed, 13);
        assert_string_equal(bed->said, "Straggler SplitStays");
        world_free(&bed->world);
}

/* One that comes and goes again moves layers at once, after 10 s, 20 s, 40 s..., and at most eight times. */
static void it_never_flaps(void **state)
{
        struct bed *bed = open_bed(true, 0);
        uint64_t least[] = { 0, 10, 20, 40, 80 }, last = 0;
        size_t moves = 0;

        (void) state;
        run(bed, 60);
        for (size_t i = 0; i < 4000 && moves < ARRAY_SIZE(least); i++) {
                bed->slow[1] = i / 6 % 2 == 0 ? 4 : 1;
                run(bed, 1);
                if (!bed->world.split.moving)
                        continue;
                assert_true(moves == 0 || bed->now - last >= least[moves] * SECOND);
                last = bed->now;
                moves++;
                obey(bed);
        }
        assert_int_equal(bed->world.reshards, ARRAY_SIZE(least));
        world_free(&bed->world);
}

/* The job was at its end when the ranks were asked to stop. */
static void a_good_end_is_one(void **state)
{
        struct bed *bed = open_bed(true, 100000);

        (void) state;
        bed->slow[1] = 3;
        run(bed, 8);
        for (size_t i = 0; i < problem.worker_count; i++)
                fact(bed, (struct world_fact){ .kind = WORLD_EXIT, .index = i });
        fact(bed, (struct world_fact){ .kind = WORLD_MPIRUN });
        judge(bed);
        assert_string_equal(bed->said, "Straggler Resplitting/terminate Completed");
        world_free(&bed->world);
}

static void ranks_that_do_not_end_are_ended(void **state)
{
        struct bed *bed = open_bed(true, 100000);

        (void) state;
        bed->slow[1] = 3;
        run(bed, 8);
        assert_string_equal(bed->said, "Straggler Resplitting/terminate");
        run(bed, 32);
        assert_non_null(strstr(bed->said, "Resplitting/terminate reshard"));
        world_free(&bed->world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_pays),
                cmocka_unit_test(a_slow_stage_is_named_and_its_layers_move),
                cmocka_unit_test(ranks_that_move_layers_have_the_time_of_three_steps),
                cmocka_unit_test(layers_move_within_their_pipeline),
                cmocka_unit_test(a_pipeline_that_holds_nobody_up_keeps_its_layers),
                cmocka_unit_test(words_say_who_where_and_how_much),
                cmocka_unit_test(a_stage_that_holds_nobody_up_is_not_judged),
                cmocka_unit_test(near_the_end_it_stays_and_says_so_once),
                cmocka_unit_test(it_never_flaps),
                cmocka_unit_test(a_good_end_is_one),
                cmocka_unit_test(ranks_that_do_not_end_are_ended),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
