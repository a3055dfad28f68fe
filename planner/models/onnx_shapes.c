/* The shape rules, one for each kind of ONNX operator, and their table. */
#include "planner/models/onnx_shapes.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

/* What a shape rule sees: the inputs whose shapes are known, and the output to fill. */
struct rule {
        struct onnx_graph *graph;
        const Onnx__NodeProto *node;
        const struct onnx_graph_value *in[3]; /* NULL = not given */
        struct network_operation *operation;
        int64_t dims[ONNX_RANK_MAX];
        size_t rank;
};

static int wrong(const struct rule *rule, const char *what)
{
        return err_set(rule->graph->err, -EBADMSG, "operator %.80s '%.80s': %s", rule->node->op_type,
                       rule->node->name, what);
}

static void copy_shape(struct rule *rule, const struct onnx_graph_value *from)
{
        memcpy(rule->dims, from->dims, sizeof(rule->dims));
        rule->rank = from->rank;
}

static int same_shape(struct rule *rule)
{
        rule->operation->type = OPERATOR_ELEMENTWISE;
        copy_shape(rule, rule->in[0]);
        return 0;
}

/* An axis or a bound: from the end where it is below 0. It may be any number. */
static int64_t from_end(int64_t index, int64_t size)
{
        return index < 0 ? index + size : index;
}

static int64_t axis_of(const struct rule *rule, int64_t otherwise)
{
        return from_end(onnx_graph_integer(rule->node, "axis", otherwise), (int64_t) rule->in[0]->rank);
}

/* Dimensions from the end, 1 stretches. */
static int broadcast(struct rule *rule, const struct onnx_graph_value *a, const struct onnx_graph_value *b,
                     size_t skip)
{
        size_t rank = a->rank > b->rank ? a->rank : b->rank;

        for (size_t i = skip; i < rank; i++) { /* i-th from the end */
                int64_t x = i < a->rank ? a->dims[a->rank - 1 - i] : 1,
                        y = i < b->rank ? b->dims[b->rank - 1 - i] : 1;

                if (x != y && x != 1 && y != 1)
                        return wrong(rule, "shapes that do not fit each other");
                rule->dims[rank - 1 - i] = x == 1 ? y : x;
        }
        rule->rank = rank;
        return 0;
}

static int binary(struct rule *rule)
{
        rule->operation->type = OPERATOR_ELEMENTWISE;
        if (rule->in[1] == NULL)
                return same_shape(rule);
        return broadcast(rule, rule->in[0], rule->in[1], 0);
}

static int64_t list_at(const Onnx__AttributeProto *list, size_t index, int64_t otherwise)
{
        return list != NULL && index < list->n_ints ? list->ints[index] : otherwise;
}

/* Windows that slide over every dimension but the first two. */
static int slide(struct rule *rule, const int64_t *kernel, size_t spatial, int64_t channels)
{
        const Onnx__AttributeProto *strides = onnx_graph_attribute(rule->node, "strides");
        const Onnx__AttributeProto *pads = onnx_graph_attribute(rule->node, "pads");
        const Onnx__AttributeProto *dilations = onnx_graph_attribute(rule->node, "dilations");
        const Onnx__AttributeProto *automatic = onnx_graph_attribute(rule->node, "auto_pad");
        bool same = automatic != NULL && automatic->s.len >= 4 && memcmp(automatic->s.data, "SAME", 4) == 0;
        bool up = onnx_graph_integer(rule->node, "ceil_mode", 0) != 0;

        rule->rank = spatial + 2;
        rule->dims[0] = rule->in[0]->dims[0];
        rule->dims[1] = channels;
        for (size_t i = 0; i < spatial; i++) {
                int64_t stride = list_at(strides, i, 1), dilation = list_at(dilations, i, 1);
                int64_t in = rule->in[0]->dims[i + 2], padding, room;

                if (stride < 1 || stride > 1 << 20 || dilation < 1 || dilation > 1 << 20 ||
                    __builtin_add_overflow(list_at(pads, i, 0), list_at(pads, i + spatial, 0), &padding) ||
                    padding < 0 || padding > 1 << 20 || kernel[i] < 1 || kernel[i] > 1 << 20)
                        return wrong(rule, "a window that cannot be");
                room = in + padding - dilation * (kernel[i] - 1) - 1;
                if (!same && room < 0)
                        return wrong(rule, "a window larger than its input");
                rule->dims[i + 2] =
                        same ? (in + stride - 1) / stride : (up ? room + stride - 1 : room) / stride + 1;
        }
        return 0;
}

static int conv(struct rule *rule)
{
        const struct onnx_graph_value *weight = rule->in[1];
        int64_t group = onnx_graph_integer(rule->node, "group", 1), channels;

        if (weight == NULL || weight->rank < 3 || weight->rank != rule->in[0]->rank || weight->rank > 5 ||
            group < 1 || __builtin_mul_overflow(weight->dims[1], group, &channels) ||
            channels != rule->in[0]->dims[1])
                return wrong(rule, "weights that do not fit the input");
        rule->operation->type = OPERATOR_CONV;
        rule->operation->inner = (uint64_t) channels;
        rule->operation->groups = (uint64_t) group;
        rule->operation->kernel[0] = (uint64_t) weight->dims[2];
        rule->operation->kernel[1] = 1;
        for (size_t i = 3; i < weight->rank; i++)
                rule->operation->kernel[1] *= (uint64_t) weight->dims[i];
        rule->operation->bias = rule->in[2] != NULL;
        return slide(rule, weight->dims + 2, weight->rank - 2, weight->dims[0]);
}

static int pool(struct rule *rule)
{
        const Onnx__AttributeProto *kernel = onnx_graph_attribute(rule->node, "kernel_shape");

        rule->operation->type = OPERATOR_POOL;
        if (rule->in[0]->rank < 3 || kernel == NULL || kernel->n_ints != rule->in[0]->rank - 2)
                return wrong(rule, "a kernel_shape that does not fit the input");
        return slide(rule, kernel->ints, kernel->n_ints, rule->in[0]->dims[1]);
}

static int global_pool(struct rule *rule)
{
        rule->operation->type = OPERATOR_POOL;
        copy_shape(rule, rule->in[0]);
        for (size_t i = 2; i < rule->rank; i++)
                rule->dims[i] = 1;
        return 0;
}

static int gemm(struct rule *rule)
{
        const struct onnx_graph_value *a = rule->in[0], *b = rule->in[1];
        bool turned_a = onnx_graph_integer(rule->node, "transA", 0) != 0,
             turned_b = onnx_graph_integer(rule->node, "transB", 0) != 0;

        if (b == NULL || a->rank != 2 || b->rank != 2 || a->dims[!turned_a] != b->dims[turned_b])
                return wrong(rule, "matrices that do not fit each other");
        rule->operation->type = b->weight ? OPERATOR_LINEAR : OPERATOR_MATMUL;
        rule->operation->inner = (uint64_t) a->dims[!turned_a];
        rule->operation->bias = b->weight && rule->in[2] != NULL;
        rule->dims[0] = a->dims[turned_a];
        rule->dims[1] = b->dims[!turned_b];
        rule->rank = 2;
        return 0;
}

static int matmul(struct rule *rule)
{
        const struct onnx_graph_value *a = rule->in[0], *b = rule->in[1];
        int r;

        if (b == NULL || a->rank < 2 || b->rank < 2 || a->dims[a->rank - 1] != b->dims[b->rank - 2])
                return wrong(rule, "matrices that do not fit each other");
        rule->operation->type = b->weight && b->rank == 2 ? OPERATOR_LINEAR : OPERATOR_MATMUL;
        rule->operation->inner = (uint64_t) a->dims[a->rank - 1];
        r = broadcast(rule, a, b, 2);
        if (r < 0)
                return r;
        rule->dims[rule->rank - 2] = a->dims[a->rank - 2];
        rule->dims[rule->rank - 1] = b->dims[b->rank - 1];
        return 0;
}

static int batch_norm(struct rule *rule)
{
        rule->operation->type = OPERATOR_BATCH_NORM;
        copy_shape(rule, rule->in[0]);
        return rule->rank >= 2 ? 0 : wrong(rule, "an input without channels");
}

static int layer_norm(struct rule *rule)
{
        rule->operation->type = OPERATOR_LAYER_NORM;
        copy_shape(rule, rule->in[0]);
        return 0;
}

static int gather(struct rule *rule)
{
        const struct onnx_graph_value *data = rule->in[0], *indices = rule->in[1];
        int64_t axis = axis_of(rule, 0);
        size_t at = 0;

        if (indices == NULL || axis < 0 || axis >= (int64_t) data->rank ||
            data->rank + indices->rank > ONNX_RANK_MAX + 1)
                return wrong(rule, "an axis that is not there");
        rule->operation->type =
                data->weight && data->rank == 2 && axis == 0 ? OPERATOR_EMBEDDING : OPERATOR_JOIN;
        rule->operation->inner = rule->operation->type == OPERATOR_EMBEDDING ? (uint64_t) data->dims[0] : 0;
        for (size_t i = 0; i < data->rank; i++) {
                if ((int64_t) i != axis) {
                        rule->dims[at++] = data->dims[i];
                        continue;
                }
                for (size_t j = 0; j < indices->rank && !(indices->folded && indices->vector_size == 1); j++)
                        rule->dims[at++] = indices->dims[j];
        }
        rule->rank = at;
        return 0;
}

static int concat(struct rule *rule)
{
        int64_t axis = axis_of(rule, 0);

        rule->operation->type = OPERATOR_JOIN;
        copy_shape(rule, rule->in[0]);
        if (axis < 0 || axis >= (int64_t) rule->rank)
                return wrong(rule, "an axis that is not there");
        for (size_t i = 1; i < rule->node->n_input; i++) {
                const struct onnx_graph_value *part = onnx_graph_find(rule->graph, rule->node->input[i]);

                if (part == NULL || !part->known || part->rank != rule->rank ||
                    __builtin_add_overflow(rule->dims[axis], part->dims[axis], &rule->dims[axis]))
                        return wrong(rule, "parts that do not fit each other");
        }
        return 0;
}

static int flatten(struct rule *rule)
{
        int64_t axis = axis_of(rule, 1);

        rule->operation->type = OPERATOR_JOIN;
        rule->rank = 2;
        rule->dims[0] = rule->dims[1] = 1;
        for (size_t i = 0; i < rule->in[0]->rank; i++)
                if (__builtin_mul_overflow(rule->dims[(int64_t) i >= axis], rule->in[0]->dims[i],
                                           &rule->dims[(int64_t) i >= axis]))
                        return wrong(rule, "more elements than can be counted");
        return 0;
}

static bool count_elements(const int64_t *dims, size_t rank, int64_t *ret)
{
        int64_t count = 1;

        for (size_t i = 0; i < rank; i++)
                if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count))
                        return false;
        *ret = count;
        return true;
}

/* 0 keeps a dimension, -1 takes what is left; a batch that was written into the file becomes one sample. */
static int reshape(struct rule *rule)
{
        const struct onnx_graph_value *shape = rule->in[1];
        int64_t total, rest = 1, open = -1;

        rule->operation->type = OPERATOR_JOIN;
        if (shape == NULL || !shape->folded || shape->vector_size > ONNX_RANK_MAX ||
            !count_elements(rule->in[0]->dims, rule->in[0]->rank, &total))
                return wrong(rule, "a shape that is not constant; export the model with fixed sizes");
        rule->rank = shape->vector_size;
        for (size_t i = 0; i < rule->rank; i++) {
                rule->dims[i] = shape->vector[i] == 0 && i < rule->in[0]->rank ? rule->in[0]->dims[i]
                                                                               : shape->vector[i];
                if (i == 0 && rule->graph->batch > 1 && rule->dims[0] == rule->graph->batch)
                        rule->dims[0] = 1;
                if (rule->dims[i] == -1 && open < 0)
                        open = (int64_t) i;
                else if (rule->dims[i] < 1 || __builtin_mul_overflow(rest, rule->dims[i], &rest))
                        return wrong(rule, "a shape that cannot be");
        }
        if (open >= 0)
                rule->dims[open] = total / rest;
        return total % rest == 0 && (open >= 0 || total == rest)
                       ? 0
                       : wrong(rule, "a shape with another number of elements");
}

static int transpose(struct rule *rule)
{
        const Onnx__AttributeProto *order = onnx_graph_attribute(rule->node, "perm");

        rule->operation->type = OPERATOR_JOIN;
        rule->rank = rule->in[0]->rank;
        for (size_t i = 0; i < rule->rank; i++) {
                int64_t from = list_at(order, i, (int64_t) (rule->rank - 1 - i));

                if (from < 0 || from >= (int64_t) rule->rank)
                        return wrong(rule, "an order that cannot be");
                rule->dims[i] = rule->in[0]->dims[from];
        }
        return 0;
}

/* Axes from an attribute or, since opset 13, a constant input. */
static bool has_axis(const struct rule *rule, size_t axis, size_t rank, bool otherwise)
{
        const Onnx__AttributeProto *list = onnx_graph_attribute(rule->node, "axes");
        const struct onnx_graph_value *input = rule->in[1];
        size_t count = list != NULL ? list->n_ints : input != NULL && input->folded ? input->vector_size : 0;

        for (size_t i = 0; i < count; i++) {
                if (from_end(list != NULL ? list->ints[i] : input->vector[i], (int64_t) rank) ==
                    (int64_t) axis)
                        return true;
        }
        return count == 0 && otherwise;
}

static int reduce(struct rule *rule)
{
        bool keep = onnx_graph_integer(rule->node, "keepdims", 1) != 0;

        rule->operation->type = OPERATOR_POOL;
        for (size_t i = 0; i < rule->in[0]->rank; i++) {
                bool gone = has_axis(rule, i, rule->in[0]->rank, true);

                if (!gone || keep)
                        rule->dims[rule->rank++] = gone ? 1 : rule->in[0]->dims[i];
        }
        return 0;
}

static int squeeze(struct rule *rule)
{
        rule->operation->type = OPERATOR_JOIN;
        for (size_t i = 0; i < rule->in[0]->rank; i++)
                if (!has_axis(rule, i, rule->in[0]->rank, rule->in[0]->dims[i] == 1))
                        rule->dims[rule->rank++] = rule->in[0]->dims[i];
        return 0;
}

static int unsqueeze(struct rule *rule)
{
        const Onnx__AttributeProto *list = onnx_graph_attribute(rule->node, "axes");
        size_t added = list != NULL                                 ? list->n_ints
                       : rule->in[1] != NULL && rule->in[1]->folded ? rule->in[1]->vector_size
                                                                    : 0;
        size_t at = 0;

        rule->operation->type = OPERATOR_JOIN;
        rule->rank = rule->in[0]->rank + added;
        if (added == 0 || rule->rank > ONNX_RANK_MAX)
                return wrong(rule, "axes that are not constant, or too many");
        for (size_t i = 0; i < rule->rank; i++) {
                bool own = has_axis(rule, i, rule->rank, false);

                if (!own && at == rule->in[0]->rank)
                        return wrong(rule, "an axis twice");
                rule->dims[i] = own ? 1 : rule->in[0]->dims[at++];
        }
        return 0;
}

static int64_t bound_of(int64_t bound, int64_t size)
{
        bound = from_end(bound, size);
        return bound > size ? size : bound;
}

static int slice_axis(struct rule *rule, int64_t axis, int64_t from, int64_t to)
{
        int64_t begin, end;

        axis = from_end(axis, (int64_t) rule->rank);
        if (axis < 0 || axis >= (int64_t) rule->rank)
                return wrong(rule, "an axis that is not there");
        begin = bound_of(from, rule->dims[axis]);
        begin = begin < 0 ? 0 : begin;
        end = bound_of(to, rule->dims[axis]);
        if (end <= begin)
                return wrong(rule, "nothing left");
        rule->dims[axis] = end - begin;
        return 0;
}

static int slice(struct rule *rule)
{
        const struct onnx_graph_value *ends =
                rule->node->n_input > 2 ? onnx_graph_find(rule->graph, rule->node->input[2]) : NULL;
        const struct onnx_graph_value *axes =
                rule->node->n_input > 3 ? onnx_graph_find(rule->graph, rule->node->input[3]) : NULL;
        const struct onnx_graph_value *starts = rule->in[1];

        rule->operation->type = OPERATOR_JOIN;
        copy_shape(rule, rule->in[0]);
        if (starts == NULL || ends == NULL || !starts->folded || !ends->folded || rule->node->n_input > 4 ||
            (axes != NULL && !axes->folded) || starts->vector_size != ends->vector_size)
                return wrong(rule, "bounds that are not constant, or steps");
        for (size_t i = 0; i < starts->vector_size; i++) {
                int64_t axis = axes != NULL && i < axes->vector_size ? axes->vector[i] : (int64_t) i;
                int r = slice_axis(rule, axis, starts->vector[i], ends->vector[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* clang-format off */
static const struct {
        const char *type;
        int (*apply)(struct rule *rule);
} rules[] = {
        { "Conv", conv },                    { "Gemm", gemm },                     { "MatMul", matmul },
        { "BatchNormalization", batch_norm },{ "LayerNormalization", layer_norm }, { "Gather", gather },
        { "MaxPool", pool },                 { "AveragePool", pool },              { "GlobalAveragePool", global_pool },
        { "GlobalMaxPool", global_pool },    { "Concat", concat },                 { "Flatten", flatten },
        { "Reshape", reshape },              { "Transpose", transpose },           { "ReduceMean", reduce },
        { "ReduceSum", reduce },             { "ReduceMax", reduce },              { "Squeeze", squeeze },
        { "Unsqueeze", unsqueeze },          { "Slice", slice },                   { "Add", binary },
        { "Sub", binary },                   { "Mul", binary },                    { "Div", binary },
        { "Pow", binary },                   { "Where", binary },                  { "PRelu", binary },
        { "Relu", same_shape },              { "Gelu", same_shape },               { "Sigmoid", same_shape },
        { "Tanh", same_shape },              { "Erf", same_shape },                { "Sqrt", same_shape },
        { "Exp", same_shape },               { "Log", same_shape },                { "Neg", same_shape },
        { "Abs", same_shape },               { "Clip", same_shape },               { "LeakyRelu", same_shape },
        { "Elu", same_shape },               { "HardSigmoid", same_shape },        { "HardSwish", same_shape },
        { "Softmax", same_shape },           { "LogSoftmax", same_shape },         { "Softplus", same_shape },
        { "Dropout", same_shape },           { "Identity", same_shape },           { "Cast", same_shape },
        { "Reciprocal", same_shape },        { "LRN", same_shape },                { "InstanceNormalization", batch_norm },
};
/* clang-format on */

static int store_shape(const struct rule *rule)
{
        struct onnx_graph_value *own = onnx_graph_add(rule->graph, rule->node->output[0]);
        int64_t total;

        if (rule->rank > ONNX_RANK_MAX || !count_elements(rule->dims, rule->rank, &total) || total < 1 ||
            total > (int64_t) NETWORK_ELEMENTS_MAX)
                return wrong(rule, "an output that cannot be");
        memcpy(own->dims, rule->dims, sizeof(own->dims));
        own->rank = rule->rank;
        own->known = true;
        return 0;
}

int onnx_shape(struct onnx_graph *graph, const Onnx__NodeProto *node, struct network_operation *ret)
{
        struct rule rule = { .graph = graph, .node = node, .operation = ret };

        for (size_t i = 0; i < ARRAY_SIZE(rule.in) && i < node->n_input; i++) {
                rule.in[i] = onnx_graph_find(graph, node->input[i]);
                if (rule.in[i] != NULL && !rule.in[i]->known)
                        rule.in[i] = NULL;
        }
        if (rule.in[0] == NULL)
                return wrong(&rule, "the shape of its input is not known");
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
                if (strcmp(rules[i].type, node->op_type) == 0) {
                        int r = rules[i].apply(&rule);

                        return r < 0 ? r : store_shape(&rule);
                }
        return err_set(graph->err, -ENOTSUP,
                       "operator %.80s '%.80s': is not one that is known; describe the network as JSON",
                       node->op_type, node->name);
}
