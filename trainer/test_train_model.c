/* Models: what planners say of the trainer's layers, without a trainer, is so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/text.h"
#include "job/stages/stage_profile.h"
#include "trainer/model.h"
#include "trainer/operators/node_buffers.h"

static void assert_same(const char *name, const char *preprocess, size_t height, size_t width)
{
        const struct model_size size = { .input = { height, width, 1 }, .classes = 10 };
        struct job job = { .data = { .given = true, .format = JOB_FORMAT_IDX } };
        struct job_split_profile profile = { .samples = 1 };
        struct model model;
        struct err err = { 0 };

        (void) text_copy(job.model, sizeof(job.model), name);
        (void) text_copy(job.data.preprocess, sizeof(job.data.preprocess), preprocess);
        assert_int_equal(model_build(name, &size, &model, &err), 0);
        assert_true(stage_profile_trainer(&job, &profile));
        assert_int_equal(profile.layer_count, model.layer_count);
        for (size_t l = 0; l < model.layer_count; l++) {
                uint64_t parameters = 0, outputs = 0, held = 0; /* but for poolings' choices, and the loss */

                for (size_t n = 0; n < model.node_count; n++)
                        if (model.nodes[n].layer == l) {
                                parameters += model.nodes[n].weight_count + model.nodes[n].bias_count;
                                outputs = shape_size(&model.nodes[n].out); /* of its last operator */
                                if (l + 1 < model.layer_count)
                                        held += node_buffers_held_bytes(&model.nodes[n]) -
                                                (model_has(&model.nodes[n], OP_POOL) ? outputs : 0);
                        }
                assert_int_equal(profile.layers[l].params_bytes, parameters * sizeof(float));
                assert_int_equal(profile.layers[l].activation_bytes, outputs * sizeof(float));
                if (l + 1 < model.layer_count)
                        assert_int_equal(profile.layers[l].held_bytes, held);
        }
        job_split_profile_free(&profile);
}

static void layers_are_what_planners_take_them_for(void **state)
{
        (void) state;
        assert_same("mlp", "", 28, 28);
        assert_same("mlp", "resize:12x20", 12, 20);
        assert_same("cnn", "", 28, 28);
        assert_same("cnn", "resize:12x20", 12, 20);
        assert_same("resnet", "", 28, 28);
        assert_same("resnet", "resize:12x20", 12, 20);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(layers_are_what_planners_take_them_for) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
