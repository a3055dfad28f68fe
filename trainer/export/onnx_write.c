/* The parts of a model's nodes, one after the other, become ONNX operators. */
#include "trainer/export/onnx_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/version.h"
#include "io/whole_file.h"
#include "trainer/export/channels.h"
#include "trainer/export/onnx_builder.h"
#include "trainer/operators/relu.h"

#define IR_VERSION    8
#define OPSET_VERSION 13

/* How the last value lies: images channels last (as samples come) or channels first (as ONNX convolves), or
 * rows. */
enum layout { CHANNELS_LAST, CHANNELS_FIRST, ROWS };

struct laid_out {
        const char *name;
        enum layout layout;
};

struct writer {
        struct onnx_builder graph;
        const struct model *model;
        float *parameters;
        bool int8;
        enum layout layout;
        struct laid_out given[MODEL_NODES_MAX]; /* what goes into each node */
};

#define I(value) ((int64_t) (value))

/* The matrix row = window position and input channel, column = output channel, as output x input x window. */
static size_t place_in(const struct model_node *n, bool window, size_t row, size_t col, size_t cols)
{
        size_t places = n->kernel * n->kernel, channels = n->in.channels;

        return window ? (col * channels + row % channels) * places + row / channels : row * cols + col;
}

/* Writes a node's weights as an initialiser. Return: the name of the value to compute with, or NULL. */
static const char *add_weight(struct writer *w, const struct model_node *n, char *name, size_t name_bytes)
{
        bool window = n->kernel > 0;
        size_t cols = channels_of(n);
        size_t rows = n->weight_count / cols, byte = w->int8 ? 1 : sizeof(float);
        int64_t matrix[] = { I(rows), I(cols) },
                window_dims[] = { I(cols), I(n->in.channels), I(n->kernel), I(n->kernel) };
        float *values = w->parameters + n->weight;
        CLEANUP(free_p) int8_t *bytes = calloc(n->weight_count, 1);
        CLEANUP(free_p) float *scales = calloc(cols, sizeof(*scales));
        unsigned char *to;

        if (bytes == NULL || scales == NULL)
                return NULL;
        if (w->int8)
                channels_quantise(rows, cols, values, bytes, scales);
        (void) text_format(name, name_bytes, "layer%zu.weight", n->unit);
        to = onnx_builder_tensor(&w->graph, name, w->int8 ? ONNX_INT8 : ONNX_FLOAT, byte, window ? 4 : 2,
                                 window ? window_dims : matrix);
        for (size_t i = 0; to != NULL && i < n->weight_count; i++)
                memcpy(to + byte * place_in(n, window, i / cols, i % cols, cols),
                       w->int8 ? (void *) &bytes[i] : (void *) &values[i], byte);
        if (w->int8) {
                const char *before = w->graph.at;
                char scale[64];
                float *kept;
                Onnx__NodeProto *node;

                (void) text_format(scale, sizeof(scale), "%s.scale", name);
                kept = onnx_builder_tensor(&w->graph, scale, ONNX_FLOAT, sizeof(float), 1, &matrix[1]);
                if (kept != NULL)
                        memcpy(kept, scales, cols * sizeof(*scales));
                w->graph.at = name;
                node = onnx_builder_node(&w->graph, "DequantizeLinear", scale, NULL);
                onnx_builder_int(&w->graph, node, "axis", window ? 0 : 1);
                (void) text_format(name, name_bytes, "%s", w->graph.at);
                w->graph.at = before;
        }
        return to != NULL ? name : NULL;
}

static void to_layout(struct writer *w, enum layout wanted)
{
        static const int64_t first[] = { 0, 3, 1, 2 }, last[] = { 0, 2, 3, 1 };

        if (w->layout == CHANNELS_LAST && wanted == CHANNELS_FIRST)
                onnx_builder_ints(&w->graph, onnx_builder_node(&w->graph, "Transpose", NULL, NULL), "perm", 4,
                                  first);
        if (w->layout == CHANNELS_FIRST && wanted == ROWS)
                onnx_builder_ints(&w->graph, onnx_builder_node(&w->graph, "Transpose", NULL, NULL), "perm", 4,
                                  last);
        if (w->layout != ROWS && wanted == ROWS)
                onnx_builder_int(&w->graph, onnx_builder_node(&w->graph, "Flatten", NULL, NULL), "axis", 1);
        w->layout = wanted;
}

static void add_convolution(struct writer *w, const struct model_node *n)
{
        int64_t half = I(n->kernel / 2), pads[] = { half, half, half, half };
        char name[64];
        const char *weight = add_weight(w, n, name, sizeof(name));

        to_layout(w, CHANNELS_FIRST);
        if (weight != NULL)
                onnx_builder_ints(&w->graph, onnx_builder_node(&w->graph, "Conv", weight, NULL), "pads", 4,
                                  pads);
}

static void add_matmul(struct writer *w, const struct model_node *n)
{
        char name[64];
        const char *weight = add_weight(w, n, name, sizeof(name));

        to_layout(w, ROWS);
        if (weight != NULL)
                (void) onnx_builder_node(&w->graph, "MatMul", weight, NULL);
}

static void add_embedding(struct writer *w, const struct model_node *n)
{
        char name[64];
        const char *table = add_weight(w, n, name, sizeof(name)), *words;
        Onnx__NodeProto *gather;

        onnx_builder_int(&w->graph, onnx_builder_node(&w->graph, "Cast", NULL, NULL), "to", ONNX_INT64);
        words = w->graph.at;
        if (table != NULL)
                w->graph.at = table;
        gather = onnx_builder_node(&w->graph, "Gather", words, NULL);
        onnx_builder_int(&w->graph, gather, "axis", 0);
        onnx_builder_int(&w->graph, onnx_builder_node(&w->graph, "Flatten", NULL, NULL), "axis", 1);
        w->layout = ROWS;
}

static void add_bias(struct writer *w, const struct model_node *n)
{
        int64_t dims[] = { I(n->bias_count), 1, 1 };
        char name[64];
        float *to;

        (void) text_format(name, sizeof(name), "layer%zu.bias", n->unit);
        to = onnx_builder_tensor(&w->graph, name, ONNX_FLOAT, sizeof(float), w->layout == ROWS ? 1 : 3, dims);
        if (to != NULL)
                memcpy(to, w->parameters + n->bias, n->bias_count * sizeof(*to));
        (void) onnx_builder_node(&w->graph, "Add", name, NULL);
}

/* low = max(x, 0), part = min(low, knee): part * part / (2 knee) + (low - part). */
static void add_relu(struct writer *w)
{
        struct onnx_builder *g = &w->graph;
        const char *x = g->at, *low, *part, *square;

        (void) onnx_builder_node(g, "Relu", NULL, NULL);
        low = g->at;
        g->at = x;
        (void) onnx_builder_node(g, "Clip", "relu.zero", "relu.knee");
        part = g->at;
        (void) onnx_builder_node(g, "Mul", part, NULL);
        (void) onnx_builder_node(g, "Mul", "relu.factor", NULL);
        square = g->at;
        g->at = low;
        (void) onnx_builder_node(g, "Sub", part, NULL);
        (void) onnx_builder_node(g, "Add", square, NULL);
}

static void add_pool(struct writer *w)
{
        static const int64_t two[] = { 2, 2 };
        Onnx__NodeProto *node;

        to_layout(w, CHANNELS_FIRST);
        node = onnx_builder_node(&w->graph, "MaxPool", NULL, NULL);
        onnx_builder_ints(&w->graph, node, "kernel_shape", 2, two);
        onnx_builder_ints(&w->graph, node, "strides", 2, two);
}

/* What the branch went around is brought to the layout of what it comes together with. */
static void add_sum(struct writer *w, const struct laid_out *other)
{
        struct laid_out now = { w->graph.at, w->layout };
        const char *second;

        w->graph.at = other->name;
        w->layout = other->layout;
        to_layout(w, now.layout);
        second = w->graph.at;
        w->graph.at = now.name;
        (void) onnx_builder_node(&w->graph, "Add", second, NULL);
}

static int add_part(struct writer *w, const struct model_node *n, enum op part, struct err *err)
{
        switch (part) {
        case OP_CONVOLUTION:
                add_convolution(w, n);
                break;
        case OP_MATMUL:
                add_matmul(w, n);
                break;
        case OP_EMBEDDING:
                add_embedding(w, n);
                break;
        case OP_BIAS:
                add_bias(w, n);
                break;
        case OP_ADD:
                add_sum(w, &w->given[model_branch_begin(w->model->nodes, (size_t) (n - w->model->nodes))]);
                break;
        case OP_RELU:
                add_relu(w);
                break;
        case OP_POOL:
                add_pool(w);
                break;
        case OP_SOFTMAX:
                onnx_builder_int(&w->graph, onnx_builder_node(&w->graph, "Softmax", NULL, NULL), "axis", 1);
                break;
        case OP_CROSS_ENTROPY: /* its input is what is asked for */
                break;
        default:
                return err_set(err, -ENOTSUP, "--export: ONNX has no operator for '%s'", op_name(part));
        }
        return 0;
}

static void add_constant(struct onnx_builder *g, const char *name, float value)
{
        float *to = onnx_builder_tensor(g, name, ONNX_FLOAT, sizeof(value), 0, NULL);

        if (to != NULL)
                *to = value;
}

static int add_model(struct writer *w, struct err *err)
{
        add_constant(&w->graph, "relu.zero", 0);
        add_constant(&w->graph, "relu.knee", RELU_KNEE);
        add_constant(&w->graph, "relu.factor", 0.5F / RELU_KNEE);
        for (size_t i = 0; i < w->model->node_count; i++) {
                const struct model_node *n = &w->model->nodes[i];

                w->given[i] = (struct laid_out){ w->graph.at, w->layout };
                for (size_t k = 0; k < n->part_count; k++)
                        if (add_part(w, n, n->parts[k], err) < 0)
                                return err->code;
        }
        return 0;
}

struct value { /* what goes in or comes out, with all that its type is made of */
        Onnx__ValueInfoProto value;
        Onnx__TypeProto type;
        Onnx__TypeProto__Tensor tensor;
        Onnx__TensorShapeProto shape;
        Onnx__TensorShapeProto__Dimension dims[4], *list[4];
};

/* @sizes: after the first dimension, which is how many samples there are */
static void describe(struct value *v, char *name, size_t count, const size_t *sizes)
{
        static char samples[] = "N";

        onnx__value_info_proto__init(&v->value);
        onnx__type_proto__init(&v->type);
        onnx__type_proto__tensor__init(&v->tensor);
        onnx__tensor_shape_proto__init(&v->shape);
        for (size_t i = 0; i <= count; i++) {
                onnx__tensor_shape_proto__dimension__init(&v->dims[i]);
                v->list[i] = &v->dims[i];
                v->dims[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
                v->dims[i].dim_value = i > 0 ? I(sizes[i - 1]) : 0;
        }
        v->dims[0].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        v->dims[0].dim_param = samples;
        v->shape.n_dim = count + 1;
        v->shape.dim = v->list;
        v->tensor.elem_type = ONNX_FLOAT;
        v->tensor.shape = &v->shape;
        v->type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
        v->type.tensor_type = &v->tensor;
        v->value.name = name;
        v->value.type = &v->type;
}

static int pack(struct writer *w, const char *path, struct err *err)
{
        Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
        Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
        Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets = &opset;
        struct value in, out;
        Onnx__ValueInfoProto *inputs = &in.value, *outputs = &out.value;
        const struct shape *s = &w->model->input;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t size = 0;
        bool text = w->model->nodes[0].vocabulary > 0;

        describe(&in, (char[]){ "samples" }, text ? 1 : 3,
                 text ? (size_t[]){ shape_size(s) } : (size_t[]){ s->height, s->width, s->channels });
        describe(&out, (char *) w->graph.at, 1, &w->model->classes);
        graph.name = (char *) w->model->name;
        graph.n_node = w->graph.node_count;
        graph.node = w->graph.nodes;
        graph.n_initializer = w->graph.tensor_count;
        graph.initializer = w->graph.tensors;
        graph.n_input = graph.n_output = 1;
        graph.input = &inputs;
        graph.output = &outputs;
        opset.version = OPSET_VERSION;
        model.ir_version = IR_VERSION;
        model.producer_name = (char[]){ "remuda-train" };
        model.producer_version = (char[]){ REMUDA_VERSION };
        model.graph = &graph;
        model.n_opset_import = 1;
        model.opset_import = &opsets;
        bytes = pb_pack(&model, &size);
        if (bytes == NULL)
                return err_set(err, -ENOMEM, "--export: no memory for the file");
        if (whole_file_write(path, (const char *) bytes, size, 0666, 0, err) < 0)
                return err_wrap(err, err->code, "--export: file");
        return 0;
}

int onnx_write(const struct model *m, float *parameters, bool int8, const char *path, struct err *err)
{
        struct writer w = { .model = m, .int8 = int8 };
        int r;

        w.parameters = parameters;
        onnx_builder_init(&w.graph, "samples");
        r = add_model(&w, err);
        if (r == 0) { /* the last value by the name that people look for */
                Onnx__NodeProto *last = w.graph.node_count > 0 ? w.graph.nodes[w.graph.node_count - 1] : NULL;
                char *name = pb_arena_copy(&w.graph.arena, "probabilities");

                if (last != NULL && name != NULL)
                        w.graph.at = last->output[0] = name;
                r = w.graph.arena.failed ? err_set(err, -ENOMEM, "--export: no memory for the model") : 0;
        }
        if (r == 0)
                r = pack(&w, path, err);
        onnx_builder_free(&w.graph);
        return r;
}
