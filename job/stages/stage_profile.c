/* Layers from JSON as they stand there; from a network, a layer for each block. */
#include "job/stages/stage_profile.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/spec/job_arguments.h"
#include "planner/models/network_bytes.h"
#include "planner/models/network_estimate.h"
#include "planner/models/network_json.h"
#include "planner/models/network_onnx.h"

#define ELEMENT_BYTES 4
#define TOKENS        128 /* of a size in ONNX that has a name alone */

static int from_network(const struct network *network, struct job_split_profile *ret, struct err *err)
{
        struct network_estimate_assumptions assumptions = network_estimate_default();
        struct network_estimate_block *blocks = NULL;
        size_t count = 0;
        int r = network_estimate_blocks(network, &blocks, &count, err);

        if (r < 0)
                return r;
        if (count > JOB_LAYERS_MAX)
                r = err_set(err, -EINVAL, "has %zu blocks of operators; at most %d can be split", count,
                            JOB_LAYERS_MAX);
        ret->layers = calloc(count + 1, sizeof(*ret->layers));
        if (r == 0 && ret->layers == NULL)
                r = err_set(err, -ENOMEM, "no memory for %zu layers", count);
        for (size_t i = 0; r == 0 && ret->layers != NULL && i < count; i++) {
                struct job_split_layer *layer = &ret->layers[ret->layer_count++];

                (void) text_copy(layer->name, sizeof(layer->name), blocks[i].name); /* cut to its field */
                layer->multiply_adds = /* an embedding only looks up: 0 would say that nobody counted */
                        blocks[i].multiply_adds > 0 ? (double) blocks[i].multiply_adds : 1;
                layer->params_bytes = blocks[i].parameters * ELEMENT_BYTES;
                layer->memory_bytes = network_estimate_memory_bytes(&blocks[i], &assumptions);
                layer->activation_bytes = blocks[i].crossing * ELEMENT_BYTES;
                layer->held_bytes = blocks[i].activations * ELEMENT_BYTES;
        }
        free(blocks);
        return r;
}

static int from_json(const char *bytes, size_t size_bytes, struct network *network,
                     struct job_split_profile *ret, struct err *err)
{
        json_error_t where;
        json_t *json = json_loadb(bytes, size_bytes, JSON_REJECT_DUPLICATES, &where);
        int r;

        if (json == NULL)
                return err_set(err, -EBADMSG, "line %d: %.150s", where.line, where.text);
        if (json_object_get(json, "operators") != NULL)
                r = network_json_decode(json, network, err);
        else
                r = job_split_decode(json, ret, err);
        json_decref(json);
        return r;
}

int stage_profile_decode(const char *bytes, size_t size_bytes, struct job_split_profile *ret, struct err *err)
{
        struct network network = { 0 };
        int r;

        *ret = (struct job_split_profile){ .samples = 1 };
        r = network_bytes_are_onnx(bytes, size_bytes)
                    ? network_onnx_decode(bytes, size_bytes, TOKENS, &network, err)
                    : from_json(bytes, size_bytes, &network, ret, err);
        if (r == 0 && network.count > 0)
                r = from_network(&network, ret, err);
        network_free(&network);
        if (r < 0)
                job_split_profile_free(ret);
        return r;
}

/* A layer of the trainer's: weights and a bias for each output, as trainer/model.c has them. */
struct known_layer {
        uint64_t weights, biases, multiply_adds,
                outputs; /* outputs: of one sample, what the next layer reads */
        uint64_t held;   /* elements of all that it computes */
};

static struct known_layer full(uint64_t inputs, uint64_t outputs)
{
        return (struct known_layer){ inputs * outputs, outputs, inputs * outputs, outputs, 3 * outputs };
}

/* A residual block: two convolutions of 3 x 3, what came in is added, as large as that. What is held: the
 * first convolution's three results, the second's two, the sum's two; of gradients one more, the branch's
 * own. */
static struct known_layer residual(uint64_t height, uint64_t width, uint64_t channels)
{
        uint64_t pixels = height * width, one = 9 * channels * channels;

        return (struct known_layer){ 2 * one, 2 * channels, 2 * pixels * one, pixels * channels,
                                     7 * pixels * channels + pixels * channels / 2 };
}

/* 5 x 5, as large as its input; then halved both ways. */
static struct known_layer convolution(uint64_t height, uint64_t width, uint64_t from, uint64_t to)
{
        uint64_t pixels = height * width;

        return (struct known_layer){ 25 * from * to, to, pixels * 25 * from * to,
                                     (height / 2) * (width / 2) * to,
                                     3 * pixels * to + (height / 2) * (width / 2) * to };
}

/* "resize:HxW" of the steps; 28 x 28 without. Return: false where a size cannot be told. */
static bool image_of(const char *preprocess, uint64_t *height, uint64_t *width)
{
        static const char step[] = "resize:";
        const char *at = strstr(preprocess, step);
        unsigned long long h = 28, w = 28;

        if (at != NULL) {
                char *end;

                h = strtoull(at + strlen(step), &end, 10);
                if (*end != 'x' || !isdigit((unsigned char) end[1]))
                        return false;
                w = strtoull(end + 1, NULL, 10);
        }
        *height = h;
        *width = w;
        return h >= 4 && w >= 4 && h <= 65536 && w <= 65536;
}

bool stage_profile_trainer(const struct job *job, struct job_split_profile *ret)
{
        struct known_layer known[6];
        uint64_t height, width;
        size_t count = 0;

        if (!job_arguments_taken(job) || job->data.format != JOB_FORMAT_IDX ||
            !image_of(job->data.preprocess, &height, &width))
                return false;
        if (strcmp(job->model, "mlp") == 0) {
                known[count++] = full(height * width, 256);
                known[count++] = full(256, 128);
                known[count++] = full(128, 10);
        } else if (strcmp(job->model, "cnn") == 0) {
                known[count++] = convolution(height, width, 1, 8);
                known[count++] = convolution(height / 2, width / 2, 8, 24);
                known[count++] = full((height / 4) * (width / 4) * 24, 128);
                known[count++] = full(128, 10);
        } else if (strcmp(job->model, "resnet") == 0) {
                known[count++] = convolution(height, width, 1, 8);
                known[count++] = residual(height / 2, width / 2, 8);
                known[count++] = convolution(height / 2, width / 2, 8, 24);
                known[count++] = residual(height / 4, width / 4, 24);
                known[count++] = full((height / 4) * (width / 4) * 24, 128);
                known[count++] = full(128, 10);
        }
        ret->layers = count > 0 ? calloc(count + 1, sizeof(*ret->layers)) : NULL;
        if (ret->layers == NULL)
                return false;
        ret->layer_count = count;
        for (size_t i = 0; i < count; i++)
                ret->layers[i] = (struct job_split_layer){
                        .multiply_adds = (double) known[i].multiply_adds,
                        .params_bytes = (known[i].weights + known[i].biases) * ELEMENT_BYTES,
                        .memory_bytes =
                                3 * (known[i].weights + known[i].biases) * ELEMENT_BYTES, /* momentum */
                        .activation_bytes = known[i].outputs * ELEMENT_BYTES,
                        .held_bytes = 2 * known[i].held * ELEMENT_BYTES, /* with their gradients */
                };
        return true;
}

const struct job_split_profile *stage_profile_of(const struct job *job, size_t ranks,
                                                 struct job_split_profile *own)
{
        if (job->profile.layer_count > 0)
                return &job->profile;
        return stage_profile_trainer(job, own) ||
                               stage_profile_bare(job->stages, job->stage_count, ranks, own)
                       ? own
                       : NULL;
}

bool stage_profile_bare(const struct job_split_stage *stages, size_t count, size_t ranks,
                        struct job_split_profile *ret)
{
        for (size_t i = 0; i < count; i++)
                if (stages[i].first != (i == 0 ? 0 : stages[i - 1].last + 1))
                        return false;
        if (count == 0 || count != ranks)
                return false;
        ret->layers = calloc(stages[count - 1].last + 2, sizeof(*ret->layers));
        ret->layer_count = ret->layers == NULL ? 0 : (size_t) stages[count - 1].last + 1;
        return ret->layers != NULL;
}
