/* Stages in the words of torch and Megatron. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/plan/stages/launch_stages.h"

static const uint64_t cut[][2] = { { 0, 2 }, { 3, 3 }, { 4, 7 } };
static struct job_split_layer layers[8];
static struct launch_rank ranks[3];

static struct launch_world make(void)
{
        static const struct job_split_profile profile = { .samples = 1, .layers = layers, .layer_count = 8 };

        for (size_t i = 0; i < 8; i++)
                (void) text_format(layers[i].name, sizeof(layers[i].name), "block.%zu", i);
        for (size_t i = 0; i < 3; i++)
                ranks[i].layers = cut[i];
        return (struct launch_world){ .ranks = ranks, .count = 3, .profile = &profile, .microbatches = 8 };
}

static void torch_takes_names_megatron_a_layout(void **state)
{
        CLEANUP(text_free) struct text python = { 0 }, options = { 0 };
        struct launch_world world = make();

        (void) state;
        assert_int_equal(launch_stages_pipelining(&world, &python, NULL), 0);
        assert_non_null(strstr(python.data, "layers_per_stage = [3, 1, 4]\n"));
        assert_non_null(strstr(
                python.data,
                "split_spec = {\"block.3\": SplitPoint.BEGINNING, \"block.4\": SplitPoint.BEGINNING}\n"));
        assert_non_null(strstr(python.data, "n_microbatches = 8\n"));
        assert_int_equal(launch_stages_megatron(&world, &options, NULL), 0);
        assert_string_equal(options.data, "# Megatron-Core: --num-layers 6 --pipeline-model-parallel-size 3 "
                                          "--pipeline-model-parallel-layout 'Et*2|t*1|t*3,L'\n");
}

/* Several pipelines: each has its cut and its part of the microbatches. */
static void pipelines_are_told_apart(void **state)
{
        static const uint64_t own[][2] = { { 0, 4 }, { 5, 7 }, { 0, 7 } };
        CLEANUP(text_free) struct text python = { 0 };
        struct launch_world world = make();
        struct launch_pipeline second;
        struct err err = { 0 };

        (void) state;
        world.global_batch = 64;
        for (size_t i = 0; i < 3; i++) {
                ranks[i].layers = own[i];
                ranks[i].batch = i < 2 ? 24 : 16;
        }
        second = launch_pipeline_of(&world, 2);
        assert_true(second.index == 1 && second.count == 2 && second.first == 2 && second.end == 3);
        assert_int_equal(second.batch, 16);
        assert_int_equal(launch_pipeline_of(&world, 1).batch, 48);
        assert_int_equal(launch_stages_pipelining(&world, &python, NULL), 0);
        assert_non_null(strstr(python.data, "if pipeline == 0:  # REMUDA_PIPELINE; 48 samples of each batch\n"
                                            "    first_rank, stages = 0, 2\n"
                                            "    layers_per_stage = [5, 3]\n"
                                            "    split_spec = {\"block.5\": SplitPoint.BEGINNING}\n"
                                            "    n_microbatches = 6\n"
                                            "elif pipeline == 1:"));
        assert_non_null(strstr(python.data, "    layers_per_stage = [8]\n    split_spec = {}\n"
                                            "    n_microbatches = 2\n"));
        world.global_batch = 60; /* 31.5 of 45: the trainer makes 32 of them */
        world.microbatches = 45;
        ranks[0].batch = ranks[1].batch = 21;
        ranks[2].batch = 18;
        assert_int_equal(launch_stages_pipelining(&world, &python, NULL), 0);
        assert_non_null(strstr(python.data, "    n_microbatches = 32\n"));
        assert_int_equal(launch_stages_megatron(&world, &python, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "Megatron-Core cuts all of its pipelines alike"));
}

static void what_cannot_be_said_is_refused(void **state)
{
        CLEANUP(text_free) struct text out = { 0 };
        struct launch_world world = make();
        struct err err = { 0 };

        (void) state;
        layers[4].name[0] = '\0';
        assert_int_equal(launch_stages_pipelining(&world, &out, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "layer 4 of the profile has no name; name it"));
        strcpy(layers[4].name, layers[6].name);
        assert_int_equal(launch_stages_pipelining(&world, &out, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "layers 4 and 6 of the profile are both named 'block.6'; name each"));
        ranks[1].layers = NULL;
        assert_int_equal(launch_stages_megatron(&world, &out, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "rank 1 has no layers; write strategy: split"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(torch_takes_names_megatron_a_layout),
                cmocka_unit_test(pipelines_are_told_apart),
                cmocka_unit_test(what_cannot_be_said_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
