/* Stages of a job: where times come from, what memory and stages that are bound forbid, what is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "job/spec/job_yaml.h"
#include "job/stages/stage_plan.h"
#include "job/stages/stage_profile.h"
#include "tests/support/slowness.h"

static const char text_[] =
        "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n"
        "  strategy: split\n  globalBatch: 64\n  microbatches: 8\n  args: []\n"
        "  workers: [{runtime: cuda, chips: 1}, {runtime: cpu, chips: 1}]\n"
        "  profile: {samples: 4, layers: [\n"
        "    {name: a, ms: {cuda: 1, cpu: 4}, memory_bytes: 100, activation_bytes: 8},\n"
        "    {name: b, ms: {cuda: 1, cpu: 4}, memory_bytes: 100, activation_bytes: 8},\n"
        "    {name: c, ms: {cuda: 1, cpu: 4}, memory_bytes: 360000, activation_bytes: 8}]}\n";

struct bed {
        struct job job;
        struct stage_plan_worker workers[2];
        struct stage_plan plan;
        struct err err;
};

static void open_bed(struct bed *bed)
{
        *bed = (struct bed){ 0 };
        assert_int_equal(job_yaml_parse(text_, strlen(text_), &bed->job, &bed->err), 0);
        for (size_t i = 0; i < 2; i++)
                bed->workers[i] = (struct stage_plan_worker){ .role = &bed->job.workers[i],
                                                              .chips = 1,
                                                              .memory_bytes = 1000000,
                                                              .bytes_per_ms = 1e9,
                                                              .speed = 1 };
        strcpy(bed->workers[0].chip.runtime, "cuda");
        strcpy(bed->workers[1].chip.runtime, "cpu");
}

static int plan(struct bed *bed)
{
        stage_plan_free(&bed->plan);
        bed->plan = (struct stage_plan){ 0 };
        return stage_plan(&bed->job, &bed->job.profile, bed->workers, 2, true, PIPELINE_EFFORT, &bed->plan,
                          &bed->err);
}

static void assert_stages(struct bed *bed, const char *first, const char *second)
{
        CLEANUP(free_p)
        char *a = stage_plan_layers(&bed->plan.pipeline, 0), *b = stage_plan_layers(&bed->plan.pipeline, 1);

        assert_string_equal(a, first);
        assert_string_equal(b, second);
}

static void close_bed(struct bed *bed)
{
        stage_plan_free(&bed->plan);
        job_free(&bed->job);
}

static void a_small_chip_gets_what_fits(void **state)
{
        struct bed bed;

        (void) state;
        open_bed(&bed);
        assert_int_equal(plan(&bed), 0);
        assert_stages(&bed, "0:1", "2:2");
        assert_int_equal(bed.plan.times, STAGE_TIMES_PROFILE);
        assert_true(fabs(bed.plan.pipeline.period_ms - 8) <
                    0.01); /* 8 samples of a microbatch, 4 of the profile */

        bed.workers[1].memory_bytes = 100000; /* the processor cannot hold layer c, however slow that is */
        assert_int_equal(plan(&bed), 0);
        assert_stages(&bed, "1:2", "0:0");

        bed.workers[0].memory_bytes = 100000;
        assert_int_equal(plan(&bed), -EINVAL);
        assert_non_null(strstr(bed.err.msg, "layer c needs 360016 bytes"));
        close_bed(&bed);
}

/* Chips that hold the model are pipelines of their own, by their speed; where one does not, there is one. */
static void replicas_take_parts_by_speed(void **state)
{
        CLEANUP(text_free) struct text said = { 0 };
        struct bed bed;

        (void) state;
        open_bed(&bed);
        bed.job.replicas = 0;
        assert_int_equal(plan(&bed), 0);
        assert_int_equal(bed.plan.replica_count, 2);
        assert_stages(&bed, "0:2", "0:2");
        assert_int_equal(stage_plan_part(&bed.plan, 0) + stage_plan_part(&bed.plan, 1), 64);
        for (size_t i = 0; i < 2; i++) { /* four times as fast: 6 of 8 microbatches, or 7 */
                bool slow = bed.plan.pipeline.stages[i].worker == 1;

                assert_int_equal(bed.plan.replicas[i].batch, 8 * bed.plan.replicas[i].microbatches);
                assert_true(slow ? bed.plan.replicas[i].microbatches <= 2
                                 : bed.plan.replicas[i].microbatches >= 6);
        }
        stage_plan_sentence(&bed.plan, &said);
        assert_non_null(strstr(said.data, "2 replicas, 2 stages, by the profile's times: "));
        assert_non_null(strstr(said.data, " a step of 8 microbatches, "));
        assert_non_null(strstr(said.data, "; of each batch "));

        bed.workers[1].memory_bytes = 100000; /* the processor cannot hold the model */
        assert_int_equal(plan(&bed), 0);
        assert_int_equal(bed.plan.replica_count, 1);
        assert_stages(&bed, "1:2", "0:0");
        bed.job.replicas = 2;
        assert_int_equal(plan(&bed), -EINVAL);
        assert_non_null(strstr(bed.err.msg, "no such number of pipelines over the devices hold the model"));
        close_bed(&bed);
}

static void bound_stages_are_kept(void **state)
{
        struct job_split_stage bound[] = { { .first = 0, .last = 0 }, { .first = 1, .last = 2 } };
        struct bed bed;

        (void) state;
        open_bed(&bed);
        bed.job.stages = bound;
        bed.job.stage_count = 1;
        strcpy(bound[0].on.runtime, "cuda"); /* the slow processor has the rest, if it is so wanted */
        assert_int_equal(plan(&bed), 0);
        assert_stages(&bed, "0:0", "1:2");

        strcpy(bound[0].on.runtime, "rocm");
        assert_int_equal(plan(&bed), -EINVAL);
        assert_non_null(strstr(bed.err.msg, "spec.stages[0].on: none of the job's chips is such; name one"));

        strcpy(bound[0].on.runtime, "cpu");
        bed.job.stage_count = 2;
        strcpy(bound[1].on.runtime, "cpu"); /* two stages, one processor */
        assert_int_equal(plan(&bed), -EINVAL);
        assert_non_null(
                strstr(bed.err.msg, "no split of the model is possible with spec.stages as they are"));

        bed.job.stage_count = 1; /* the whole model on one of two chips */
        bound[0] = (struct job_split_stage){ .first = 0, .last = 2, .on.runtime = "cuda" };
        assert_int_equal(plan(&bed), -EINVAL);
        assert_non_null(strstr(bed.err.msg, "spec.stages: 1 stages leave 0 layers to the other chips, and "
                                            "each of the job's 2 chips is to hold one at least; ask for 1"));
        bed.job.stages = NULL;
        bed.job.stage_count = 0;
        close_bed(&bed);
}

static void times_are_the_first_that_are_known(void **state)
{
        static const double measured[] = { 1, 1, 100 };
        CLEANUP(text_free) struct text said = { 0 };
        struct bed bed;

        (void) state;
        open_bed(&bed);
        bed.workers[0].layer_ms = bed.workers[1].layer_ms = measured; /* rather than the profile's */
        assert_int_equal(plan(&bed), 0);
        assert_int_equal(bed.plan.times, STAGE_TIMES_MEASURED);
        assert_true(fabs(bed.plan.pipeline.period_ms - 100) < 0.01);
        bed.workers[0].begin_ms = bed.workers[1].begin_ms = 5; /* once a stage */
        assert_int_equal(plan(&bed), 0);
        assert_true(fabs(bed.plan.pipeline.period_ms - 105) < 0.01);
        stage_ranks_stretch(&bed.plan.ranks, 1, 3);
        assert_true(fabs(bed.plan.ranks.problem.workers[1].begin_ms - 15) < 1e-9 &&
                    fabs(bed.plan.ranks.problem.workers[0].begin_ms - 5) < 1e-9);
        bed.workers[0].layer_ms = bed.workers[1].layer_ms = NULL;

        for (size_t i = 0; i < 3; i++) { /* multiply-adds alone: speeds are spread over them */
                free(bed.job.profile.layers[i].ms);
                bed.job.profile.layers[i].ms = NULL;
                bed.job.profile.layers[i].ms_count = 0;
                bed.job.profile.layers[i].multiply_adds = i == 0 ? 2 : 1;
        }
        bed.workers[0].samples_per_s = 1000;
        bed.workers[1].samples_per_s = 3000;
        assert_int_equal(plan(&bed), 0);
        assert_int_equal(bed.plan.times, STAGE_TIMES_SPEEDS);
        assert_stages(&bed, "2:2",
                      "0:1"); /* 8 samples at 1000 / s, a quarter of the work: 2 ms, and so here */
        assert_true(fabs(bed.plan.pipeline.period_ms - 2) < 0.01);

        bed.workers[0].samples_per_s = bed.workers[1].samples_per_s = 0;
        bed.workers[1].speed = 3;
        assert_int_equal(plan(&bed), 0);
        assert_int_equal(bed.plan.times, STAGE_TIMES_COMPARED);
        assert_stages(&bed, "2:2", "0:1");
        stage_plan_sentence(&bed.plan, &said);
        assert_non_null(strstr(said.data, "; stages 0:1,2:2")); /* at the end, as the list may be long */
        assert_string_equal(strrchr(said.data, ' '), " 0:1,2:2");
        assert_null(strstr(said.data, "ms a microbatch")); /* no figure that nobody saw */

        strcpy(bed.job.profile.layers[0].name,
               "a"); /* times of one chip, and a mere comparison of the other */
        bed.job.profile.layers[0].ms = calloc(1, sizeof(*bed.job.profile.layers[0].ms));
        bed.job.profile.layers[0].ms_count = 1;
        strcpy(bed.job.profile.layers[0].ms[0].key, "cuda");
        assert_int_equal(plan(&bed), -EINVAL);
        assert_non_null(strstr(bed.err.msg, "has times of cuda and none of cpu; give ms"));
        close_bed(&bed);
}

/* The mlp has three layers, whatever its stages bind. */
static void a_known_model_is_not_taken_for_its_stages(void **state)
{
        struct job_split_stage front[] = { { .first = 0, .last = 0 }, { .first = 1, .last = 1 } };
        struct job_split_profile own = { .samples = 1 };
        struct bed bed;

        (void) state;
        open_bed(&bed);
        assert_ptr_equal(stage_profile_of(&bed.job, 2, &own), &bed.job.profile);
        job_split_profile_free(&bed.job.profile);
        assert_null(stage_profile_of(&bed.job, 2, &own));
        bed.job.stages = front;
        bed.job.stage_count = 2;
        assert_ptr_equal(stage_profile_of(&bed.job, 2, &own), &own); /* of a program that nobody knows */
        assert_int_equal(own.layer_count, 2);
        job_split_profile_free(&own);
        own.samples = 1;
        bed.job.has_args = false;
        bed.job.data.given = true;
        assert_ptr_equal(stage_profile_of(&bed.job, 2, &own), &own);
        assert_int_equal(own.layer_count, 3);
        job_split_profile_free(&own);
        bed.job.stages = NULL;
        bed.job.stage_count = 0;
        close_bed(&bed);
}

static void a_link_that_nobody_knows_is_assumed(void **state)
{
        CLEANUP(text_free) struct text inside = { 0 }, outside = { 0 };
        struct bed bed;
        double inside_ms;

        (void) state;
        open_bed(&bed);
        for (size_t i = 0; i < 3; i++)
                bed.job.profile.layers[i].activation_bytes = 1000000;
        for (size_t i = 0; i < 2; i++) {
                bed.workers[i].bytes_per_ms = 0;
                bed.workers[i].memory_bytes = 0;
        }
        assert_int_equal(plan(&bed), 0);
        stage_plan_sentence(&bed.plan, &inside);
        assert_non_null(strstr(inside.data, "links assumed at 1 GB/s"));
        inside_ms = bed.plan.pipeline.period_ms;
        bed.workers[0].leaves_node = bed.workers[1].leaves_node = true;
        assert_int_equal(plan(&bed), 0);
        stage_plan_sentence(&bed.plan, &outside);
        assert_non_null(strstr(outside.data, "links assumed at 1 Gbit/s"));
        assert_true(fabs(bed.plan.pipeline.period_ms - inside_ms - 4e6 * (1 / 125000.0 - 1e-6)) < 1e-6);
        assert_true(stage_plan_link(1000, true) == 125000 && stage_plan_link(1000, false) == 0);
        close_bed(&bed);
}

#define MANY_WORKERS 256

/* All that a job may have: layers, kinds of chips in its profile, groups. A bound that is generous for slow
 * machines and other tests beside it. */
static void the_largest_job_is_planned_at_once(void **state)
{
        CLEANUP(free_p) struct stage_plan_worker *workers = calloc(MANY_WORKERS, sizeof(*workers));
        struct job_split_profile profile = { .samples = 1, .layer_count = JOB_LAYERS_MAX };
        struct stage_plan ret = { 0 };
        struct bed bed;
        clock_t began;
        double slow = slowness(), sec;

        (void) state;
        open_bed(&bed);
        profile.layers = calloc(JOB_LAYERS_MAX, sizeof(*profile.layers));
        assert_true(workers != NULL && profile.layers != NULL);
        for (size_t i = 0; i < JOB_LAYERS_MAX; i++) {
                struct job_split_layer *layer = &profile.layers[i];

                layer->ms_count = JOB_LAYER_KEYS_MAX;
                layer->ms = calloc(JOB_LAYER_KEYS_MAX, sizeof(*layer->ms));
                layer->activation_bytes = 1000;
                assert_non_null(layer->ms);
                for (size_t k = 0; k < JOB_LAYER_KEYS_MAX; k++) {
                        layer->ms[k].ms = 1 + (double) k / 8;
                        (void) text_format(layer->ms[k].key, sizeof(layer->ms[k].key), "chip-%zu", k);
                }
        }
        for (size_t w = 0; w < MANY_WORKERS; w++) {
                workers[w] =
                        (struct stage_plan_worker){ .role = &bed.job.workers[0], .chips = 1, .speed = 1 };
                (void) text_format(workers[w].chip.model, sizeof(workers[w].chip.model), "chip-%zu",
                                   w % JOB_LAYER_KEYS_MAX);
        }
        began = clock();
        assert_int_equal(stage_plan(&bed.job, &profile, workers, MANY_WORKERS, true, PIPELINE_EFFORT_LOOP,
                                    &ret, &bed.err),
                         0);
        sec = (double) (clock() - began) / CLOCKS_PER_SEC;
        print_message("%.1f ms, the machine %.1f times slower than a quiet one\n", sec * 1e3, slow);
        assert_true(within(sec, 1, slow));
        assert_int_equal(ret.pipeline.stage_count, MANY_WORKERS);
        stage_plan_free(&ret);
        job_split_profile_free(&profile);
        close_bed(&bed);
}

static void profiles_come_from_files_and_models(void **state)
{
        static const char network[] =
                "{\"name\": \"n\", \"input\": [8], \"operators\": [{\"name\": \"a\", \"type\": \"linear\", "
                "\"output\": [4], "
                "\"inner\": 8}, {\"name\": \"b\", \"type\": \"linear\", \"output\": [2], \"inner\": 4}]}";
        static const char lookup[] =
                "{\"name\": \"n\", \"input\": [8], \"operators\": [{\"name\": \"a\", \"type\": "
                "\"embedding\", "
                "\"output\": [8], \"inner\": 100}, {\"name\": \"b\", \"type\": \"linear\", \"output\": [4], "
                "\"inner\": 8}]}";
        const struct job_split_stage gap[] = { { .first = 0, .last = 0 }, { .first = 2, .last = 2 } },
                                     whole[] = { { .first = 0, .last = 0 }, { .first = 1, .last = 2 } };
        struct job_split_profile profile;
        struct err err = { 0 };
        struct bed bed;

        (void) state;
        assert_int_equal(stage_profile_decode(network, strlen(network), &profile, &err), 0);
        assert_int_equal(profile.layer_count, 2);
        assert_true(profile.layers[0].multiply_adds == 32 && profile.layers[1].multiply_adds == 8);
        assert_int_equal(profile.layers[0].memory_bytes, 32 * 16);
        assert_int_equal(profile.layers[0].activation_bytes, 4 * 4);
        job_split_profile_free(&profile);
        assert_true(stage_profile_decode("{", 1, &profile, &err) < 0);
        assert_true(stage_profile_decode("\010\001", 2, &profile, &err) < 0);
        assert_int_equal(stage_profile_decode(lookup, strlen(lookup), &profile, &err), 0);
        assert_int_equal(profile.layer_count, 2);
        assert_true(profile.layers[0].multiply_adds == 1); /* 0 would throw the others' away */
        assert_true(profile.layers[1].multiply_adds == 32);
        job_split_profile_free(&profile);
        assert_false(stage_profile_bare(gap, 2, 2, &profile));
        assert_false(stage_profile_bare(whole, 2, 3, &profile)); /* what does the third rank hold? */
        assert_true(stage_profile_bare(whole, 2, 2, &profile));
        assert_int_equal(profile.layer_count, 3);
        job_split_profile_free(&profile);

        open_bed(&bed);
        assert_false(stage_profile_trainer(&bed.job, &profile)); /* a program of one's own */
        bed.job.has_args = false;
        bed.job.data.given = true;
        assert_true(stage_profile_trainer(&bed.job, &profile));
        assert_int_equal(profile.layer_count, 3);
        assert_int_equal(profile.layers[0].params_bytes, (784 * 256 + 256) * 4);
        job_split_profile_free(&profile);
        strcpy(bed.job.model, "cnn");
        strcpy(bed.job.data.preprocess, "resize:14x14,normalise");
        assert_true(stage_profile_trainer(&bed.job, &profile));
        assert_int_equal(profile.layer_count, 4);
        assert_int_equal(profile.layers[2].params_bytes, (3 * 3 * 24 * 128 + 128) * 4);
        job_split_profile_free(&profile);
        bed.job.data.format = JOB_FORMAT_TEXT;
        assert_false(stage_profile_trainer(&bed.job, &profile));
        close_bed(&bed);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_small_chip_gets_what_fits),
                cmocka_unit_test(replicas_take_parts_by_speed),
                cmocka_unit_test(bound_stages_are_kept),
                cmocka_unit_test(times_are_the_first_that_are_known),
                cmocka_unit_test(a_known_model_is_not_taken_for_its_stages),
                cmocka_unit_test(a_link_that_nobody_knows_is_assumed),
                cmocka_unit_test(the_largest_job_is_planned_at_once),
                cmocka_unit_test(profiles_come_from_files_and_models),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
