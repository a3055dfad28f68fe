/* Convolutional networks, as their keepers (torchvision) write them. */
#include "planner/models/network_vision.h"

#include <stdio.h>

/* Where the next operation goes: the last output, its channels and its edge. */
struct flow {
        struct network *network;
        char block[NETWORK_BLOCK_BYTES];
        uint32_t at; /* NETWORK_INPUT at first */
        uint64_t channels, edge;
};

static uint32_t add(struct flow *flow, const char *name, struct network_operation operation)
{
        operation.output[0] = flow->channels;
        operation.output[1] = operation.output[2] = flow->edge;
        operation.rank = 3;
        flow->at = network_add_named(flow->network, flow->block, name, &operation, &flow->at, 1);
        return flow->at;
}

static void conv(struct flow *flow, const char *name, uint64_t channels, uint64_t kernel, uint64_t stride,
                 uint64_t padding, bool bias)
{
        uint64_t inner = flow->channels;

        flow->channels = channels;
        flow->edge = (flow->edge + 2 * padding - kernel) / stride + 1;
        add(flow, name,
            (struct network_operation){ .type = OPERATOR_CONV,
                                        .inner = inner,
                                        .kernel = { kernel, kernel },
                                        .groups = 1,
                                        .bias = bias });
}

static void norm(struct flow *flow, const char *name)
{
        add(flow, name, (struct network_operation){ .type = OPERATOR_BATCH_NORM });
}

static void relu(struct flow *flow, const char *name)
{
        add(flow, name, (struct network_operation){ .type = OPERATOR_ELEMENTWISE });
}

static void pool(struct flow *flow, const char *name, uint64_t edge)
{
        flow->edge = edge;
        add(flow, name, (struct network_operation){ .type = OPERATOR_POOL });
}

static void linear(struct flow *flow, const char *name, uint64_t features)
{
        struct network_operation operation = { .type = OPERATOR_LINEAR,
                                               .inner = flow->channels * flow->edge * flow->edge,
                                               .output = { features },
                                               .rank = 1,
                                               .bias = true };

        flow->at = network_add_named(flow->network, flow->block, name, &operation, &flow->at, 1);
        flow->channels = features;
        flow->edge = 1;
}

static void relu_features(struct flow *flow, const char *name)
{
        struct network_operation operation = { .type = OPERATOR_ELEMENTWISE,
                                               .output = { flow->channels },
                                               .rank = 1 };

        flow->at = network_add_named(flow->network, flow->block, name, &operation, &flow->at, 1);
}

static void begin_image(struct flow *flow, struct network *network)
{
        network->input[0] = 3;
        network->input[1] = network->input[2] = 224;
        network->input_rank = 3;
        *flow = (struct flow){ .network = network, .at = NETWORK_INPUT, .channels = 3, .edge = 224 };
}

static void name_block(struct flow *flow, const char *kind, unsigned stage, unsigned unit)
{
        (void) snprintf(flow->block, sizeof(flow->block), "%s%u.%u", kind, stage, unit);
}

/* Two ways meet. */
static void join(struct flow *flow, const char *name, enum network_operator type, uint32_t a, uint32_t b)
{
        struct network_operation operation = { .type = type,
                                               .output = { flow->channels, flow->edge, flow->edge },
                                               .rank = 3 };

        flow->at = network_add_named(flow->network, flow->block, name, &operation, (uint32_t[]){ a, b }, 2);
}

/* One residual block: two 3x3 convolutions, or 1x1, 3x3, 1x1 with four times the channels out. */
static void residual(struct flow *flow, uint64_t width, uint64_t stride, bool bottleneck)
{
        struct flow skip = *flow;
        uint64_t out = bottleneck ? 4 * width : width;

        if (bottleneck) {
                conv(flow, "conv1", width, 1, 1, 0, false);
                norm(flow, "bn1");
                relu(flow, "relu1");
        }
        conv(flow, bottleneck ? "conv2" : "conv1", width, 3, stride, 1, false);
        norm(flow, bottleneck ? "bn2" : "bn1");
        relu(flow, bottleneck ? "relu2" : "relu1");
        conv(flow, bottleneck ? "conv3" : "conv2", out, bottleneck ? 1 : 3, 1, bottleneck ? 0 : 1, false);
        norm(flow, bottleneck ? "bn3" : "bn2");
        if (stride != 1 || skip.channels != out) {
                conv(&skip, "downsample.conv", out, 1, stride, 0, false);
                norm(&skip, "downsample.bn");
        }
        join(flow, "add", OPERATOR_ELEMENTWISE, flow->at, skip.at);
        relu(flow, "relu");
}

void network_vision_resnet(struct network *network, const unsigned units[4], bool bottleneck)
{
        struct flow flow;

        begin_image(&flow, network);
        (void) snprintf(flow.block, sizeof(flow.block), "stem");
        conv(&flow, "conv", 64, 7, 2, 3, false);
        norm(&flow, "bn");
        relu(&flow, "relu");
        pool(&flow, "maxpool", 56);
        for (unsigned stage = 0; stage < 4; stage++)
                for (unsigned unit = 0; unit < units[stage]; unit++) {
                        name_block(&flow, "layer", stage + 1, unit);
                        residual(&flow, (uint64_t) 64 << stage, stage > 0 && unit == 0 ? 2 : 1, bottleneck);
                }
        (void) snprintf(flow.block, sizeof(flow.block), "head");
        pool(&flow, "avgpool", 1);
        linear(&flow, "fc", 1000);
}

void network_vision_vgg16(struct network *network)
{
        static const struct {
                unsigned convolutions;
                uint64_t channels;
        } stages[] = { { 2, 64 }, { 2, 128 }, { 3, 256 }, { 3, 512 }, { 3, 512 } };
        struct flow flow;
        char name[32];

        begin_image(&flow, network);
        for (unsigned stage = 0; stage < 5; stage++) {
                for (unsigned i = 0; i < stages[stage].convolutions; i++) {
                        name_block(&flow, "conv", stage + 1, i + 1);
                        conv(&flow, "conv", stages[stage].channels, 3, 1, 1, true);
                        relu(&flow, "relu");
                }
                pool(&flow, "maxpool", flow.edge / 2);
        }
        for (unsigned i = 6; i <= 8; i++) {
                (void) snprintf(flow.block, sizeof(flow.block), "fc%u", i);
                (void) snprintf(name, sizeof(name), "linear");
                linear(&flow, name, i < 8 ? 4096 : 1000);
                if (i < 8)
                        relu_features(&flow, "relu");
        }
}

/* One dense layer: 32 channels more, next to all that came before. */
static void dense(struct flow *flow)
{
        struct flow before = *flow;

        norm(flow, "norm1");
        relu(flow, "relu1");
        conv(flow, "conv1", 128, 1, 1, 0, false);
        norm(flow, "norm2");
        relu(flow, "relu2");
        conv(flow, "conv2", 32, 3, 1, 1, false);
        flow->channels += before.channels;
        join(flow, "concat", OPERATOR_JOIN, before.at, flow->at);
}

void network_vision_densenet121(struct network *network)
{
        static const unsigned layers[4] = { 6, 12, 24, 16 };
        struct flow flow;

        begin_image(&flow, network);
        (void) snprintf(flow.block, sizeof(flow.block), "stem");
        conv(&flow, "conv", 64, 7, 2, 3, false);
        norm(&flow, "norm");
        relu(&flow, "relu");
        pool(&flow, "maxpool", 56);
        for (unsigned stage = 0; stage < 4; stage++) {
                for (unsigned i = 0; i < layers[stage]; i++) {
                        name_block(&flow, "dense", stage + 1, i + 1);
                        dense(&flow);
                }
                if (stage == 3)
                        break;
                (void) snprintf(flow.block, sizeof(flow.block), "transition%u", stage + 1);
                norm(&flow, "norm");
                relu(&flow, "relu");
                conv(&flow, "conv", flow.channels / 2, 1, 1, 0, false);
                pool(&flow, "avgpool", flow.edge / 2);
        }
        (void) snprintf(flow.block, sizeof(flow.block), "head");
        norm(&flow, "norm");
        relu(&flow, "relu");
        pool(&flow, "avgpool", 1);
        linear(&flow, "classifier", 1000);
}
