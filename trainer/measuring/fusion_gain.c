/* The variants of a model, each with a runner of its own over the same parameters. */
#include "trainer/measuring/fusion_gain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/median.h"
#include "trainer/json_line.h"
#include "trainer/runner.h"

#define ROUNDS_MAX   1024
#define VARIANTS_MAX (FUSION_RULES_MAX + 3)

struct variant {
        const char *rule; /* that is left out, NULL in the first ones */
        struct fusion_table rules;
        struct model model;
        struct runner *runner;
        double ms[ROUNDS_MAX];
};

enum { FUSED, SINGLE, DIRECT, WITHOUT }; /* the first without a rule */

struct bench {
        struct backend plain; /* whose convolutions are products of patches */
        struct variant *variants[VARIANTS_MAX];
        size_t count, rounds;
        float *x;
        int32_t *labels;
};

static void close_bench(struct training *t, struct bench *b)
{
        for (size_t i = 0; i < b->count; i++) {
                runner_free(b->variants[i]->runner);
                free(b->variants[i]);
        }
        backend_release(&t->backend, b->x);
        backend_release(&t->backend, b->labels);
}

static int add_variant(struct training *t, struct bench *b, const struct fusion_table *rules,
                       const char *without, struct err *err)
{
        struct variant *v = calloc(1, sizeof(*v));
        const struct backend *backend = b->count == DIRECT ? &t->backend : &b->plain;
        struct model_size size = { .input = t->model.input, .classes = t->model.classes };

        if (v == NULL)
                return err_set(err, -ENOMEM, "no memory to measure");
        b->variants[b->count++] = v;
        v->rule = without;
        v->rules = *rules;
        if (model_build(t->options->model, &size, &v->model, err) < 0)
                return err->code;
        if (t->options->activation != NULL)
                model_activate(&v->model, t->options->activation);
        model_fuse(&v->model, &v->rules, NULL, NULL);
        return runner_new(backend, &v->model, 0, v->model.node_count - 1, t->shares.own, &v->runner, err);
}

/* Does the model have an operator by this rule? */
static bool applies(const struct model *m, const struct fusion_rule *rule)
{
        for (size_t i = 0; i < m->node_count; i++)
                if (m->nodes[i].op == rule->fused && m->nodes[i].part_count == rule->part_count &&
                    memcmp(m->nodes[i].parts, rule->parts, rule->part_count * sizeof(*rule->parts)) == 0)
                        return true;
        return false;
}

static int open_variants(struct training *t, struct bench *b, struct err *err)
{
        struct fusion_table none = { 0 };
        int r = add_variant(t, b, &t->rules, NULL, err);

        if (r == 0)
                r = add_variant(t, b, &none, NULL, err);
        if (r == 0)
                r = add_variant(t, b, &t->rules, NULL, err);
        for (size_t i = 0; r == 0 && i < t->rules.count; i++) {
                const struct fusion_rule *rule = &t->rules.rules[i];
                struct fusion_table rest = t->rules;

                if (!applies(&b->variants[FUSED]->model, rule))
                        continue;
                (void) fusion_drop(&rest, rule->parts, rule->part_count); /* it is there */
                r = add_variant(t, b, &rest, rule->name, err);
        }
        return r;
}

static int open_bench(struct training *t, struct bench *b, struct err *err)
{
        size_t floats = t->shares.own * shape_size(&t->model.input);

        b->plain = t->backend;
        b->plain.kernels.convolution_pool = NULL;
        b->plain.kernels.convolution_pool_gradient = NULL;
        b->x = backend_floats(&t->backend, floats);
        b->labels = backend_allocate(&t->backend, (t->shares.own + 1) * sizeof(*b->labels));
        if (b->x == NULL || b->labels == NULL)
                return err_set(err, -ENOMEM, "no memory for a batch of %zu", t->shares.own);
        for (size_t i = 0; i < floats; i++) /* words are whole numbers */
                b->x[i] = t->data->text ? (float) (i % 7 % t->model.classes) : (float) (i % 13) / 13;
        memset(b->labels, 0, t->shares.own * sizeof(*b->labels));
        return open_variants(t, b, err);
}

static double step_ms(struct training *t, struct bench *b, struct variant *v)
{
        uint64_t begin = record_now();
        size_t count = t->shares.own;

        runner_use(v->runner, b->x, b->labels);
        (void) runner_forward(v->runner, t->parameters, count);
        runner_backward(v->runner, t->parameters, t->gradients, count, 1.0F / (float) count, NULL);
        backend_to_host(&t->backend, t->gradients);
        backend_to_device(&t->backend, t->gradients);
        return (double) (record_now() - begin) / 1e3;
}

/* Every round begins with another variant: who comes first finds other things in the caches. */
static void run_rounds(struct training *t, struct bench *b)
{
        uint64_t usec = (uint64_t) (t->options->measure_seconds * 1e6), begin = 0;

        for (size_t i = 0; i < b->count; i++)
                (void) step_ms(t, b, b->variants[i]);
        begin = record_now();
        for (b->rounds = 0; b->rounds < ROUNDS_MAX && (b->rounds < 5 || record_now() - begin < usec);
             b->rounds++)
                for (size_t i = 0; i < b->count; i++) {
                        struct variant *v = b->variants[(b->rounds + i) % b->count];

                        v->ms[b->rounds] = step_ms(t, b, v);
                }
}

static double gain_over(const struct bench *b, const struct variant *fast, const struct variant *slow)
{
        double ratios[ROUNDS_MAX];

        for (size_t i = 0; i < b->rounds; i++)
                ratios[i] = slow->ms[i] / fast->ms[i];
        return median(ratios, b->rounds);
}

/* Is there a convolution that is fused with its pooling, and another way to compute it? */
static bool has_direct(const struct training *t, const struct model *m)
{
        for (size_t i = 0; t->backend.kernels.convolution_pool != NULL && i < m->node_count; i++)
                if (m->nodes[i].op == OP_CONVOLUTION_BIAS_RELU_POOL)
                        return true;
        return false;
}

static void print_gains(const struct training *t, struct bench *b)
{
        struct variant *fused = b->variants[FUSED];
        double ms[ROUNDS_MAX];
        struct json_line line = { 0 };

        memcpy(ms, fused->ms, sizeof(ms));
        json_line_open(&line, NULL, '{');
        json_line_text(&line, "runtime", t->backend.row->runtime);
        json_line_text(&line, "model", t->model.name);
        json_line_uint(&line, "batch", t->shares.own);
        json_line_uint(&line, "rounds", b->rounds);
        json_line_real(&line, "fused_ms", median(ms, b->rounds), 4);
        json_line_real(&line, "gain", gain_over(b, fused, b->variants[SINGLE]), 3);
        json_line_open(&line, "rules", '[');
        for (size_t i = WITHOUT; i < b->count; i++) {
                json_line_open(&line, NULL, '{');
                json_line_text(&line, "rule", b->variants[i]->rule);
                json_line_real(&line, "gain", gain_over(b, fused, b->variants[i]), 3);
                json_line_close(&line, '}');
        }
        json_line_close(&line, ']');
        if (has_direct(t, &fused->model))
                json_line_real(&line, "direct_gain", gain_over(b, b->variants[DIRECT], fused), 3);
        json_line_close(&line, '}');
        json_line_print(&line, stdout);
}

int fusion_gain_run(struct training *t, struct err *err)
{
        struct bench b = { 0 };
        int r;

        if (t->shares.own == 0)
                return 0; /* this rank computes nothing */
        r = open_bench(t, &b, err);
        if (r == 0) {
                run_rounds(t, &b);
                print_gains(t, &b);
        }
        close_bench(t, &b);
        return r < 0 ? r : backend_trouble(&t->backend, err);
}
