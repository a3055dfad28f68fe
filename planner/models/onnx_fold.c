/* Computes what an ONNX graph computes about its own shapes: small vectors of whole numbers. */
#include "planner/models/onnx_fold.h"

#include <string.h>

enum { ONNX_INT32 = 6, ONNX_INT64 = 7 };

static bool element_of(const Onnx__TensorProto *tensor, size_t index, int64_t *ret)
{
        if (tensor->data_type == ONNX_INT64) {
                if (index < tensor->n_int64_data)
                        *ret = tensor->int64_data[index];
                else if ((index + 1) * sizeof(int64_t) <= tensor->raw_data.len)
                        memcpy(ret, tensor->raw_data.data + index * sizeof(int64_t), sizeof(int64_t));
                else
                        return false;
                return true;
        }
        if (tensor->data_type == ONNX_INT32) {
                int32_t value = 0;

                if (index < tensor->n_int32_data)
                        value = tensor->int32_data[index];
                else if ((index + 1) * sizeof(value) <= tensor->raw_data.len)
                        memcpy(&value, tensor->raw_data.data + index * sizeof(value), sizeof(value));
                else
                        return false;
                *ret = value;
                return true;
        }
        return false;
}

bool onnx_fold_constant(const Onnx__TensorProto *tensor, struct onnx_graph_value *value)
{
        size_t size = 1;

        if (tensor->n_dims > 1)
                return false;
        for (size_t i = 0; i < tensor->n_dims; i++)
                size = tensor->dims[i] >= 0 && tensor->dims[i] <= ONNX_VECTOR_MAX ? (size_t) tensor->dims[i]
                                                                                  : ONNX_VECTOR_MAX + 1;
        if (size > ONNX_VECTOR_MAX)
                return false;
        for (size_t i = 0; i < size; i++)
                if (!element_of(tensor, i, &value->vector[i]))
                        return false;
        value->vector_size = size;
        value->folded = true;
        return true;
}

/* The folded input, or NULL. */
static const struct onnx_graph_value *folded(const struct onnx_graph *graph, const Onnx__NodeProto *node,
                                             size_t input)
{
        const struct onnx_graph_value *value =
                input < node->n_input ? onnx_graph_find(graph, node->input[input]) : NULL;

        return value != NULL && value->folded ? value : NULL;
}

static bool fold_shape(const struct onnx_graph *graph, const Onnx__NodeProto *node,
                       struct onnx_graph_value *ret)
{
        const struct onnx_graph_value *value =
                node->n_input > 0 ? onnx_graph_find(graph, node->input[0]) : NULL;

        if (value == NULL || !value->known)
                return false;
        memcpy(ret->vector, value->dims, value->rank * sizeof(value->dims[0]));
        ret->vector_size = value->rank;
        return true;
}

static bool fold_gather(const struct onnx_graph_value *data, const struct onnx_graph_value *indices,
                        struct onnx_graph_value *ret)
{
        for (size_t i = 0; i < indices->vector_size; i++) {
                int64_t index = indices->vector[i] < 0 ? indices->vector[i] + (int64_t) data->vector_size
                                                       : indices->vector[i];

                if (index < 0 || index >= (int64_t) data->vector_size)
                        return false;
                ret->vector[i] = data->vector[index];
        }
        ret->vector_size = indices->vector_size;
        return true;
}

static bool fold_concat(const struct onnx_graph *graph, const Onnx__NodeProto *node,
                        struct onnx_graph_value *ret)
{
        size_t size = 0;

        for (size_t i = 0; i < node->n_input; i++) {
                const struct onnx_graph_value *part = folded(graph, node, i);

                if (part == NULL || size + part->vector_size > ONNX_VECTOR_MAX)
                        return false;
                memcpy(ret->vector + size, part->vector, part->vector_size * sizeof(part->vector[0]));
                size += part->vector_size;
        }
        ret->vector_size = size;
        return true;
}

static bool fold_slice(const struct onnx_graph_value *data, const struct onnx_graph_value *starts,
                       const struct onnx_graph_value *ends, struct onnx_graph_value *ret)
{
        int64_t size = (int64_t) data->vector_size, begin, end;

        if (starts->vector_size != 1 || ends->vector_size != 1)
                return false;
        begin = starts->vector[0] < 0 ? starts->vector[0] + size : starts->vector[0];
        end = ends->vector[0] < 0 ? ends->vector[0] + size : ends->vector[0];
        begin = begin < 0 ? 0 : begin > size ? size : begin;
        end = end < begin ? begin : end > size ? size : end;
        memcpy(ret->vector, data->vector + begin, (size_t) (end - begin) * sizeof(data->vector[0]));
        ret->vector_size = (size_t) (end - begin);
        return true;
}

static bool fold_arithmetic(const char *type, const struct onnx_graph_value *a,
                            const struct onnx_graph_value *b, struct onnx_graph_value *ret)
{
        size_t size = a->vector_size > b->vector_size ? a->vector_size : b->vector_size;

        if ((a->vector_size != size && a->vector_size != 1) ||
            (b->vector_size != size && b->vector_size != 1))
                return false;
        for (size_t i = 0; i < size; i++) {
                int64_t x = a->vector[a->vector_size == 1 ? 0 : i],
                        y = b->vector[b->vector_size == 1 ? 0 : i];
                bool overflow = false;

                if (strcmp(type, "Add") == 0)
                        overflow = __builtin_add_overflow(x, y, &ret->vector[i]);
                else if (strcmp(type, "Sub") == 0)
                        overflow = __builtin_sub_overflow(x, y, &ret->vector[i]);
                else if (strcmp(type, "Mul") == 0)
                        overflow = __builtin_mul_overflow(x, y, &ret->vector[i]);
                else if (y > 0)
                        ret->vector[i] = x / y;
                else
                        return false;
                if (overflow)
                        return false;
        }
        ret->vector_size = size;
        return true;
}

static bool fold_into(const struct onnx_graph *graph, const Onnx__NodeProto *node,
                      struct onnx_graph_value *ret)
{
        const struct onnx_graph_value *a = folded(graph, node, 0), *b = folded(graph, node, 1);
        const char *type = node->op_type;

        if (strcmp(type, "Constant") == 0) {
                const Onnx__AttributeProto *value = onnx_graph_attribute(node, "value");

                return value != NULL && value->t != NULL && onnx_fold_constant(value->t, ret);
        }
        if (strcmp(type, "Shape") == 0)
                return fold_shape(graph, node, ret);
        if (strcmp(type, "Concat") == 0)
                return fold_concat(graph, node, ret);
        if (a == NULL)
                return false;
        if (strcmp(type, "Unsqueeze") == 0 || strcmp(type, "Squeeze") == 0 || strcmp(type, "Cast") == 0 ||
            strcmp(type, "Identity") == 0) {
                memcpy(ret->vector, a->vector, a->vector_size * sizeof(a->vector[0]));
                ret->vector_size = a->vector_size;
                return true;
        }
        if (b == NULL)
                return false;
        if (strcmp(type, "Gather") == 0)
                return fold_gather(a, b, ret);
        if (strcmp(type, "Slice") == 0)
                return folded(graph, node, 2) != NULL && node->n_input <= 4 &&
                       fold_slice(a, b, folded(graph, node, 2), ret);
        if (strcmp(type, "Add") == 0 || strcmp(type, "Sub") == 0 || strcmp(type, "Mul") == 0 ||
            strcmp(type, "Div") == 0)
                return fold_arithmetic(type, a, b, ret);
        return false;
}

bool onnx_fold(struct onnx_graph *graph, const Onnx__NodeProto *node)
{
        struct onnx_graph_value result = { 0 };
        struct onnx_graph_value *own;

        if (node->n_output != 1 || !fold_into(graph, node, &result))
                return false;
        own = onnx_graph_add(graph, node->output[0]);
        if (own == NULL)
                return false;
        memcpy(own->vector, result.vector, sizeof(own->vector));
        own->vector_size = result.vector_size;
        own->folded = own->known = own->weight = true;
        own->counted = true; /* not a parameter */
        own->rank = 1;
        own->dims[0] = (int64_t) result.vector_size;
        return true;
}
