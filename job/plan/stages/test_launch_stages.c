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

static void what_cannot_be_said_is_refused(void **state)
{
        CLEANUP(text_free) struct text out = { 0 };
        struct launch_world world = make();
        struct err err = { 0 };

        (void) state;
        layers[4].name[0] = '\0';
        assert_int_equal(launch_stages_pipelining(&world, &out, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "layer 4 of the profile has no name; name it"));
        ranks[1].layers = NULL;
        assert_int_equal(launch_stages_megatron(&world, &out, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "rank 1 has no layers; write strategy: split"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(torch_takes_names_megatron_a_layout),
                cmocka_unit_test(what_cannot_be_said_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
