/* The shipped models' tables; what is done to any list of operators: sizes, places, first values, fusion. */
#include "trainer/model.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/random.h"

struct row { /* one operator of a model's table */
        enum op op;
        size_t width;  /* outputs of a matmul, channels of a convolution, floats a word of an embedding; 0 =
                          classes */
        size_t kernel; /* convolution */
        size_t around; /* add: nodes that its branch goes around */
};

/* clang-format off */
static const struct row mlp[] = {
        { OP_MATMUL, 256, 0, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 },
        { OP_MATMUL, 128, 0, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 },
        { OP_MATMUL,   0, 0, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_SOFTMAX, 0, 0, 0 }, { OP_CROSS_ENTROPY, 0, 0, 0 },
};
static const struct row cnn[] = {
        { OP_CONVOLUTION, 8, 5, 0 },  { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 }, { OP_POOL, 0, 0, 0 },
        { OP_CONVOLUTION, 24, 5, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 }, { OP_POOL, 0, 0, 0 },
        { OP_MATMUL, 128, 0, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 },
        { OP_MATMUL,   0, 0, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_SOFTMAX, 0, 0, 0 }, { OP_CROSS_ENTROPY, 0, 0, 0 },
};
static const struct row resnet[] = {
        { OP_CONVOLUTION, 8, 5, 0 },  { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 }, { OP_POOL, 0, 0, 0 },
        { OP_CONVOLUTION, 8, 3, 0 },  { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 },
        { OP_CONVOLUTION, 8, 3, 0 },  { OP_BIAS, 0, 0, 0 }, { OP_ADD, 0, 0, 5 }, { OP_RELU, 0, 0, 0 },
        { OP_CONVOLUTION, 24, 5, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 }, { OP_POOL, 0, 0, 0 },
        { OP_CONVOLUTION, 24, 3, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 },
        { OP_CONVOLUTION, 24, 3, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_ADD, 0, 0, 5 }, { OP_RELU, 0, 0, 0 },
        { OP_MATMUL, 128, 0, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 },
        { OP_MATMUL,   0, 0, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_SOFTMAX, 0, 0, 0 }, { OP_CROSS_ENTROPY, 0, 0, 0 },
};
static const struct row text[] = {
        { OP_EMBEDDING, 8, 0, 0 },
        { OP_MATMUL, 192, 0, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_RELU, 0, 0, 0 },
        { OP_MATMUL,   0, 0, 0 }, { OP_BIAS, 0, 0, 0 }, { OP_SOFTMAX, 0, 0, 0 }, { OP_CROSS_ENTROPY, 0, 0, 0 },
};
static const struct {
        const char *name;
        const struct row *rows;
        size_t count;
        float default_rate, rate_decay;
} models[] = {
        { "mlp",  mlp,  ARRAY_SIZE(mlp),  0.3F, 0.8F },
        { "cnn",  cnn,  ARRAY_SIZE(cnn),  0.2F, 0.8F },
        { "resnet", resnet, ARRAY_SIZE(resnet), 0.2F, 0.8F },
        { "text", text, ARRAY_SIZE(text), 0.5F, 1 },
};
/* clang-format on */

static void add_tensor(struct model *m, size_t count, size_t layer, bool bias)
{
        m->tensors[m->tensor_count++] = (struct model_tensor){
                .offset = m->parameter_count, .count = count, .layer = layer, .bias = bias
        };
        m->parameter_count += count;
}

void model_size_node(struct model_node *n, size_t width, size_t kernel, size_t vocabulary)
{
        struct shape *out = &n->out; /* of the parts so far */

        if (n->op != OP_OWN)
                n->part_count = op_parts(n->op, n->parts);
        *out = n->in;
        for (size_t i = 0; i < n->part_count; i++) {
                switch (n->parts[i]) {
                case OP_MATMUL:
                        n->weight_count = shape_size(out) * width;
                        *out = (struct shape){ 1, 1, width };
                        break;
                case OP_CONVOLUTION:
                        n->kernel = kernel;
                        n->weight_count = kernel * kernel * out->channels * width;
                        out->channels = width;
                        break;
                case OP_EMBEDDING:
                        n->vocabulary = vocabulary;
                        n->weight_count = vocabulary * width;
                        *out = (struct shape){ 1, 1, shape_size(out) * width };
                        break;
                case OP_BIAS:
                        n->bias_count = out->channels;
                        break;
                case OP_POOL:
                        out->height /= 2;
                        out->width /= 2;
                        break;
                default:
                        break;
                }
        }
}

/* @within: a branch goes around it and something before it, so that no layer may begin with it */
static void place_parameters(struct model *m, struct model_node *n, bool within)
{
        if (n->weight_count > 0) {
                m->layer_count += within ? 0 : 1;
                m->unit_count++;
        }
        n->layer = m->layer_count - 1;
        n->unit = m->unit_count - 1;
        if (n->weight_count > 0) {
                n->weight = m->parameter_count;
                add_tensor(m, n->weight_count, n->layer, false);
        }
        if (n->bias_count > 0) {
                n->bias = m->parameter_count;
                add_tensor(m, n->bias_count, n->layer, true);
        }
}

static bool is_within(const struct row *rows, size_t count, size_t at)
{
        for (size_t add = at + 1; add < count; add++)
                if (rows[add].around > add - at)
                        return true;
        return false;
}

int model_build(const char *name, const struct model_size *size, struct model *ret, struct err *err)
{
        struct model m = { .input = size->input, .classes = size->classes };
        struct shape at = size->input;
        size_t which = 0;

        while (which < ARRAY_SIZE(models) && strcmp(models[which].name, name) != 0)
                which++;
        if (which == ARRAY_SIZE(models))
                return err_set(err, -EINVAL, "no model '%s': mlp, cnn, resnet and text are there", name);
        m.name = models[which].name;
        m.default_rate = models[which].default_rate;
        m.rate_decay = models[which].rate_decay;
        for (size_t i = 0; i < models[which].count; i++) {
                const struct row *row = &models[which].rows[i];
                struct model_node *n = &m.nodes[m.node_count++];

                *n = (struct model_node){ .op = row->op, .in = at, .around = row->around };
                model_size_node(n, row->width != 0 ? row->width : m.classes, row->kernel, m.classes);
                assert(n->around <= i && shape_size(&m.nodes[i - n->around].in) == shape_size(&n->in));
                if (shape_size(&n->out) == 0)
                        return err_set(err, -EINVAL, "model %s wants images of 4 x 4 at the least", m.name);
                place_parameters(&m, n, is_within(models[which].rows, models[which].count, i));
                at = n->out;
        }
        *ret = m;
        return 0;
}

bool model_has(const struct model_node *n, enum op part)
{
        for (size_t i = 0; i < n->part_count; i++)
                if (n->parts[i] == part)
                        return true;
        return false;
}

static bool feeds_relu(const struct model *m, const struct model_node *n)
{
        for (const struct model_node *next = n; next < m->nodes + m->node_count && next->unit == n->unit;
             next++)
                if (model_has(next, OP_RELU) || model_has(next, OP_ACTIVATION))
                        return true;
        return false;
}

void model_initialise(const struct model *m, uint64_t seed, size_t first_node, size_t last_node,
                      float *parameters)
{
        float *at = parameters;

        for (const struct model_node *n = m->nodes + first_node; n <= m->nodes + last_node; n++) {
                struct random_source r = random_for(seed, "parameters", n->unit);
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
        for (const char *p = m->activation; p != NULL && *p != '\0' && *p != '='; p++)
                hash = mix(hash, (uint64_t) (unsigned char) *p);
        for (size_t i = 0; i < m->tensor_count; i++)
                hash = mix(mix(hash, m->tensors[i].count), m->tensors[i].bias);
        return mix(hash, shape_size(&m->input));
}

void model_activate(struct model *m, const char *name)
{
        m->activation = name;
        for (size_t i = 0; i < m->node_count; i++)
                if (m->nodes[i].op == OP_RELU)
                        m->nodes[i].op = m->nodes[i].parts[0] = OP_ACTIVATION;
}

static void explain_one(const struct model_node *first, const struct fusion_rule *rule,
                        void (*explain)(void *context, const char *line), void *context)
{
        struct text line = { 0 };

        text_printf(&line, "layer %zu: ", first->layer);
        for (size_t i = 0; i < rule->part_count; i++)
                text_printf(&line, "%s%s", i > 0 ? ", " : "", op_name(rule->parts[i]));
        text_printf(&line, " -> %s%s", rule->name, rule->fused == OP_OWN ? ", of a library" : "");
        if (!line.failed)
                explain(context, line.data);
        text_free(&line);
}

/* Each operator of a model reads what comes out of the one before; an add what went into an earlier one, too:
 * the samples (no node's) or what the one before that gave. */
static struct fusion_graph graph_of(const struct model *m)
{
        struct fusion_graph g = { .count = m->node_count };

        for (size_t i = 0; i < m->node_count; i++) {
                g.nodes[i].op = m->nodes[i].op;
                g.nodes[i].input_count = i > 0;
                g.nodes[i].inputs[0] = i > 0 ? i - 1 : 0;
                if (m->nodes[i].around > 0 && m->nodes[i].around < i)
                        g.nodes[i].inputs[g.nodes[i].input_count++] = model_branch_begin(m->nodes, i) - 1;
        }
        return g;
}

/* The nodes first..last as what the rule says; of the parts one at most has weights, and one a bias. */
static struct model_node join(const struct model_node *nodes, const struct fusion_rule *rule)
{
        struct model_node fused = nodes[0];

        fused.op = rule->fused;
        fused.own = rule->fused == OP_OWN ? &rule->own : NULL;
        fused.part_count = rule->part_count;
        memcpy(fused.parts, rule->parts, sizeof(fused.parts));
        fused.out = nodes[rule->part_count - 1].out;
        for (size_t i = 1; i < rule->part_count; i++)
                if (nodes[i].bias_count > 0) {
                        fused.bias = nodes[i].bias;
                        fused.bias_count = nodes[i].bias_count;
                }
        return fused;
}

void model_fuse(struct model *m, const struct fusion_table *rules,
                void (*explain)(void *context, const char *line), void *context)
{
        struct fusion_graph g = graph_of(m);
        size_t became[MODEL_NODES_MAX] = { 0 }, to = 0, count;

        for (size_t at = 0; at < m->node_count; at += count, to++) {
                const struct fusion_rule *rule = fusion_match(&g, rules, at).rule;
                size_t from = model_branch_begin(m->nodes, at);

                count = rule != NULL ? rule->part_count : 1;
                if (rule != NULL && explain != NULL)
                        explain_one(&m->nodes[at], rule, explain, context);
                became[at] = to;
                m->nodes[to] = rule != NULL ? join(&m->nodes[at], rule) : m->nodes[at];
                /* What a branch reads has two readers: a node begins behind it, fused or not. */
                m->nodes[to].around = from < at ? to - became[from] : 0;
        }
        m->node_count = to;
}
