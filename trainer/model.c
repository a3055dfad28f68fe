#include "trainer/model.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/random.h"

struct row { /* one operator of a model's table */
        enum operator_kind kind;
        size_t width;  /* outputs of a matmul, channels of a convolution, floats a word of an embedding; 0 =
                          classes */
        size_t kernel; /* convolution */
};

/* clang-format off */
static const struct row mlp[] = {
        { OP_MATMUL, 256, 0 }, { OP_BIAS, 0, 0 }, { OP_RELU, 0, 0 },
        { OP_MATMUL, 128, 0 }, { OP_BIAS, 0, 0 }, { OP_RELU, 0, 0 },
        { OP_MATMUL,   0, 0 }, { OP_BIAS, 0, 0 }, { OP_SOFTMAX, 0, 0 }, { OP_CROSS_ENTROPY, 0, 0 },
};
static const struct row cnn[] = {
        { OP_CONVOLUTION, 8, 5 },  { OP_BIAS, 0, 0 }, { OP_RELU, 0, 0 }, { OP_POOL, 0, 0 },
        { OP_CONVOLUTION, 24, 5 }, { OP_BIAS, 0, 0 }, { OP_RELU, 0, 0 }, { OP_POOL, 0, 0 },
        { OP_MATMUL, 128, 0 }, { OP_BIAS, 0, 0 }, { OP_RELU, 0, 0 },
        { OP_MATMUL,   0, 0 }, { OP_BIAS, 0, 0 }, { OP_SOFTMAX, 0, 0 }, { OP_CROSS_ENTROPY, 0, 0 },
};
static const struct row text[] = {
        { OP_EMBEDDING, 8, 0 },
        { OP_MATMUL, 192, 0 }, { OP_BIAS, 0, 0 }, { OP_RELU, 0, 0 },
        { OP_MATMUL,   0, 0 }, { OP_BIAS, 0, 0 }, { OP_SOFTMAX, 0, 0 }, { OP_CROSS_ENTROPY, 0, 0 },
};
static const struct {
        const char *name;
        const struct row *rows;
        size_t count;
        float default_rate, rate_decay;
} models[] = {
        { "mlp",  mlp,  ARRAY_SIZE(mlp),  0.3F, 0.8F },
        { "cnn",  cnn,  ARRAY_SIZE(cnn),  0.2F, 0.8F },
        { "text", text, ARRAY_SIZE(text), 0.5F, 1 },
};
static const char *const operator_names[OP_COUNT] = {
        [OP_MATMUL] = "matmul", [OP_BIAS] = "bias", [OP_RELU] = "ramp", [OP_CONVOLUTION] = "convolution",
        [OP_POOL] = "pool", [OP_SOFTMAX] = "softmax", [OP_CROSS_ENTROPY] = "cross-entropy",
        [OP_EMBEDDING] = "embedding", [OP_MATMUL_BIAS] = "matmul+bias", [OP_MATMUL_BIAS_RELU] = "matmul+bias+ramp",
        [OP_CONVOLUTION_BIAS_RELU] = "convolution+bias+ramp",
        [OP_CONVOLUTION_BIAS_RELU_POOL] = "convolution+bias+ramp+pool",
        [OP_SOFTMAX_CROSS_ENTROPY] = "softmax+cross-entropy",
};
/* clang-format on */

const char *operator_name(enum operator_kind kind)
{
        return operator_names[kind];
}

static void add_tensor(struct model *m, size_t count, size_t layer, bool bias)
{
        m->tensors[m->tensor_count++] =
                (struct tensor){ .offset = m->parameter_count, .count = count, .layer = layer, .bias = bias };
        m->parameter_count += count;
}

/* Sizes one operator from what comes in. Return: -EINVAL when it cannot work on it. */
static int size_node(struct model *m, struct node *n, const struct row *row, struct err *err)
{
        size_t inputs = shape_size(&n->in), width = row->width != 0 ? row->width : m->classes;

        n->out = n->in;
        switch (row->kind) {
        case OP_MATMUL:
                n->out = (struct shape){ 1, 1, width };
                n->weight_count = inputs * width;
                break;
        case OP_CONVOLUTION:
                n->out.channels = width;
                n->kernel = row->kernel;
                n->weight_count = row->kernel * row->kernel * n->in.channels * width;
                break;
        case OP_EMBEDDING:
                n->vocabulary = m->classes;
                n->out = (struct shape){ 1, 1, inputs * width };
                n->weight_count = m->classes * width;
                break;
        case OP_BIAS:
                n->bias_count = n->in.channels;
                break;
        case OP_POOL:
                if (n->in.height < 2 || n->in.width < 2)
                        return err_set(err, -EINVAL, "model %s wants images of 4 x 4 at the least", m->name);
                n->out.height /= 2;
                n->out.width /= 2;
                break;
        default:
                break;
        }
        return 0;
}

static void place_parameters(struct model *m, struct node *n)
{
        if (n->weight_count > 0) {
                n->layer = m->layer_count++;
                n->weight = m->parameter_count;
                add_tensor(m, n->weight_count, n->layer, false);
        } else {
                n->layer = m->layer_count - 1;
        }
        if (n->bias_count > 0) {
                n->bias = m->parameter_count;
                add_tensor(m, n->bias_count, n->layer, true);
        }
}

int model_build(const char *name, const struct model_size *size, struct model *ret, struct err *err)
{
        struct model m = { .input = size->input, .classes = size->classes };
        struct shape at = size->input;
        size_t which = 0;

        while (which < ARRAY_SIZE(models) && strcmp(models[which].name, name) != 0)
                which++;
        if (which == ARRAY_SIZE(models))
                return err_set(err, -EINVAL, "no model '%s': mlp, cnn and text are there", name);
        m.name = models[which].name;
        m.default_rate = models[which].default_rate;
        m.rate_decay = models[which].rate_decay;
        for (size_t i = 0; i < models[which].count; i++) {
                struct node *n = &m.nodes[m.node_count++];

                *n = (struct node){ .kind = models[which].rows[i].kind, .in = at };
                if (size_node(&m, n, &models[which].rows[i], err) < 0)
                        return -EINVAL;
                place_parameters(&m, n);
                at = n->out;
        }
        *ret = m;
        return 0;
}

static bool feeds_relu(const struct model *m, const struct node *n)
{
        for (const struct node *next = n; next < m->nodes + m->node_count && next->layer == n->layer; next++)
                if (next->kind == OP_RELU || next->kind == OP_MATMUL_BIAS_RELU ||
                    next->kind == OP_CONVOLUTION_BIAS_RELU || next->kind == OP_CONVOLUTION_BIAS_RELU_POOL)
                        return true;
        return false;
}

void model_initialise(const struct model *m, uint64_t seed, size_t first_node, size_t last_node,
                      float *parameters)
{
        float *at = parameters;

        for (const struct node *n = m->nodes + first_node; n <= m->nodes + last_node; n++) {
                struct random_source r = random_for(seed, "parameters", n->layer);
                size_t inputs = n->kernel > 0 ? n->kernel * n->kernel * n->in.channels : shape_size(&n->in);
                float limit = (float) sqrt((feeds_relu(m, n) ? 6.0 : 3.0) / (double) inputs);

                if (n->vocabulary > 0)
                        limit = 0.5F;
                for (size_t i = 0; i < n->weight_count; i++)
                        *at++ = (2 * random_unit(&r) - 1) * limit;
                for (size_t i = 0; i < n->bias_count; i++)
                        *at++ = 0;
        }
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
        struct random_source r = { .state = hash ^ value };

        return random_next(&r);
}

uint64_t model_hash(const struct model *m)
{
        uint64_t hash = m->classes;

        for (const char *p = m->name; *p != '\0'; p++)
                hash = mix(hash, (uint64_t) (unsigned char) *p);
        for (size_t i = 0; i < m->tensor_count; i++)
                hash = mix(mix(hash, m->tensors[i].count), m->tensors[i].bias);
        return mix(hash, shape_size(&m->input));
}
