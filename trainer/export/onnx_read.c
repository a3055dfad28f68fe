/* Initialisers by name; a convolution's are put back row by row. */
#include "trainer/export/onnx_read.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/read_file.h"
#include "trainer/export/onnx_builder.h"

#define MESSAGE_MAX_BYTES ((size_t) 1 << 30)

/* The initialiser of this name with `count` values of one of the types. */
static const Onnx__TensorProto *find(const Onnx__GraphProto *g, const char *name, size_t count,
                                     bool may_be_int8, struct err *err)
{
        for (size_t i = 0; i < g->n_initializer; i++) {
                const Onnx__TensorProto *t = g->initializer[i];
                bool int8 = may_be_int8 && t->data_type == ONNX_INT8;

                if (strcmp(t->name, name) != 0)
                        continue;
                if ((!int8 && t->data_type != ONNX_FLOAT) ||
                    t->raw_data.len != count * (int8 ? 1 : sizeof(float))) {
                        (void) err_set(
                                err, -EINVAL,
                                "'%s' has type %d and %zu bytes, the model wants %zu values of float32%s",
                                name, t->data_type, t->raw_data.len, count, may_be_int8 ? " or int8" : "");
                        return NULL;
                }
                return t;
        }
        (void) err_set(err, -EINVAL, "no weights '%s': it is no export of this model", name);
        return NULL;
}

static float value_at(const Onnx__TensorProto *t, size_t i)
{
        float value;

        if (t->data_type == ONNX_INT8)
                return (float) (int8_t) t->raw_data.data[i];
        memcpy(&value, t->raw_data.data + i * sizeof(value), sizeof(value));
        return value;
}

static int read_weight(const Onnx__GraphProto *g, const struct model_node *n, float *to, struct err *err)
{
        size_t cols = n->vocabulary > 0 ? n->weight_count / n->vocabulary : n->out.channels;
        size_t places = n->kernel * n->kernel, channels = n->in.channels;
        const Onnx__TensorProto *t, *scale = NULL;
        char name[64];

        (void) text_format(name, sizeof(name), "layer%zu.weight", n->unit);
        t = find(g, name, n->weight_count, true, err);
        if (t != NULL && t->data_type == ONNX_INT8) {
                (void) text_format(name, sizeof(name), "layer%zu.weight.scale", n->unit);
                scale = find(g, name, cols, false, err);
        }
        if (t == NULL || (t->data_type == ONNX_INT8 && scale == NULL))
                return err->code;
        for (size_t i = 0; i < n->weight_count; i++) {
                size_t row = i / cols, col = i % cols;
                size_t at = n->kernel > 0 ? (col * channels + row % channels) * places + row / channels : i;

                to[i] = value_at(t, at) * (scale != NULL ? value_at(scale, col) : 1);
        }
        return 0;
}

static int read_bias(const Onnx__GraphProto *g, const struct model_node *n, float *to, struct err *err)
{
        const Onnx__TensorProto *t;
        char name[64];

        (void) text_format(name, sizeof(name), "layer%zu.bias", n->unit);
        t = find(g, name, n->bias_count, false, err);
        for (size_t i = 0; t != NULL && i < n->bias_count; i++)
                to[i] = value_at(t, i);
        return t != NULL ? 0 : err->code;
}

static int read_all(const struct model *m, const Onnx__GraphProto *g, float *parameters, struct err *err)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < m->node_count; i++) {
                const struct model_node *n = &m->nodes[i];

                if (n->weight_count > 0)
                        r = read_weight(g, n, parameters + n->weight, err);
                if (r == 0 && n->bias_count > 0)
                        r = read_bias(g, n, parameters + n->bias, err);
        }
        return r;
}

int onnx_read_bytes(const struct model *m, const uint8_t *bytes, size_t size_bytes, float *parameters,
                    struct err *err)
{
        CLEANUP(pb_arena_free) struct pb_arena arena;
        const Onnx__ModelProto *file;

        pb_arena_init(&arena, MESSAGE_MAX_BYTES);
        file = pb_unpack(&arena, &onnx__model_proto__descriptor, bytes, size_bytes);
        if (file == NULL || file->graph == NULL || strcmp(file->producer_name, "remuda-train") != 0)
                return err_set(err, -EINVAL, "no ONNX file that --export wrote");
        if (strcmp(file->graph->name, m->name) != 0)
                return err_set(err, -EINVAL, "it holds model '%.40s', not '%s'", file->graph->name, m->name);
        return read_all(m, file->graph, parameters, err);
}

int onnx_read(const struct model *m, const char *option, const char *path, float *parameters, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size = 0;
        int r = read_file(path, READ_FILE_MAX_BYTES, &bytes, &size, err);

        if (r < 0)
                return err_wrap(err, r, "%s", option);
        r = onnx_read_bytes(m, (const uint8_t *) bytes, size, parameters, err);
        return r < 0 ? err_wrap(err, r, "%s: file '%s'", option, path) : 0;
}
