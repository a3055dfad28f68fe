/* Each operator on odd-sized data, against the reference: what comes out, and every gradient. */
#include "trainer/operators/conformance.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/operators/operator.h"
#include "trainer/operators/reference.h"
#include "trainer/random.h"

#define TOLERANCE 2e-4 /* of the largest value of what is compared */
#define SCALE     0.25

/* What an operator is tried on: samples, image in, channels or outputs, window, words. Odd sizes on purpose,
 * and each kind of edge is crossed: the first three are less than one vector, tile or row a thread; the
 * fourth has more rows, columns and inner numbers than any tile has (256), the fifth images wider than a
 * vector or a register block, with more channels out than 32, the sixth more rows and more numbers than all
 * threads, work groups or slave cores take at a time (64 x 4096). */
static const struct {
        size_t count;
        struct shape in;
        size_t width, kernel, vocabulary;
} trials[] = {
        { 1, { 4, 4, 1 }, 3, 3, 5 },      { 3, { 6, 5, 2 }, 5, 3, 11 },
        { 5, { 7, 8, 3 }, 4, 5, 7 },      { 261, { 1, 1, 259 }, 269, 3, 9 },
        { 3, { 34, 37, 5 }, 41, 5, 301 }, { 5, { 101, 119, 5 }, 3, 3, 1009 },
};

enum side { INPUT, OTHER, WEIGHT, BIAS, SIDES };

struct trial {
        const struct backend *backend;
        const char *name; /* of the operator */
        struct model_node node;
        size_t count;
        size_t sizes[SIDES], outputs;            /* floats */
        float *values[SIDES], *gradients[SIDES]; /* the backend's memory */
        float *y, *dy, *scratch;
        uint8_t *which;
        int32_t *labels;
        double *wide[SIDES], *wide_gradients[SIDES], *wide_y, *wide_dy; /* the reference's */
        double loss;
};

/* @rule: of OP_OWN */
static struct model_node node_for(enum op op, const struct fusion_rule *rule, size_t index)
{
        struct model_node n = { .op = op, .in = trials[index].in };

        if (rule != NULL) {
                n.own = &rule->own;
                n.part_count = rule->part_count;
                memcpy(n.parts, rule->parts, sizeof(n.parts));
        } else {
                n.part_count = op_parts(op, n.parts);
        }
        if (n.parts[0] == OP_EMBEDDING)
                n.in = (struct shape){ 1, 1, shape_size(&n.in) < 100 ? 4 : 37 };
        else if (model_has(&n, OP_SOFTMAX) || model_has(&n, OP_CROSS_ENTROPY))
                n.in = (struct shape){ 1, 1, shape_size(&n.in) };
        model_size_node(&n, trials[index].width, trials[index].kernel, trials[index].vocabulary);
        return n;
}

/* A picture of one place has no 2 x 2 square. */
static bool has_place(const struct model_node *n)
{
        return shape_size(&n->out) > 0;
}

static void *take(const struct trial *t, size_t bytes)
{
        return backend_allocate(t->backend, bytes > 0 ? bytes : 1);
}

static void give_back(struct trial *t)
{
        void *memory[] = { t->y, t->dy, t->scratch, t->which, t->labels };

        for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
                backend_release(t->backend, memory[i]);
        for (int side = 0; side < SIDES; side++) {
                backend_release(t->backend, t->values[side]);
                backend_release(t->backend, t->gradients[side]);
                free(t->wide[side]);
                free(t->wide_gradients[side]);
        }
        free(t->wide_y);
        free(t->wide_dy);
}

static int allocate(struct trial *t)
{
        bool whole = true;

        for (int side = 0; side < SIDES; side++) {
                t->values[side] = take(t, t->sizes[side] * sizeof(float));
                t->gradients[side] = take(t, t->sizes[side] * sizeof(float));
                t->wide[side] = calloc(t->sizes[side] + 1, sizeof(double));
                t->wide_gradients[side] = calloc(t->sizes[side] + 1, sizeof(double));
                whole = whole && t->values[side] != NULL && t->gradients[side] != NULL &&
                        t->wide[side] != NULL && t->wide_gradients[side] != NULL;
        }
        t->y = take(t, t->outputs * sizeof(float));
        t->dy = take(t, t->outputs * sizeof(float));
        t->which = take(t, t->outputs);
        t->scratch = take(t, operator_scratch(&t->backend->kernels, &t->node, t->count) * sizeof(float));
        t->labels = take(t, t->count * sizeof(*t->labels));
        t->wide_y = calloc(t->outputs, sizeof(double));
        t->wide_dy = calloc(t->outputs, sizeof(double));
        return whole && t->y != NULL && t->dy != NULL && t->which != NULL && t->scratch != NULL &&
                               t->labels != NULL && t->wide_y != NULL && t->wide_dy != NULL
                       ? 0
                       : -ENOMEM;
}

/* Probabilities for a loss that stands alone, word numbers for an embedding, otherwise anything. */
static float draw(struct trial *t, enum side side, struct random_source *r)
{
        if (side == INPUT && t->node.parts[0] == OP_EMBEDDING)
                return (float) random_below(r, t->node.vocabulary);
        if (side == INPUT && t->node.parts[0] == OP_CROSS_ENTROPY)
                return 0.1F + 0.9F * random_unit(r);
        return 2 * random_unit(r) - 1;
}

static void fill(struct trial *t, size_t index)
{
        struct random_source r = random_for(index, t->name, 0);

        for (int side = 0; side < SIDES; side++)
                for (size_t i = 0; i < t->sizes[side]; i++)
                        t->wide[side][i] = t->values[side][i] = draw(t, (enum side) side, &r);
        for (size_t i = 0; i < t->outputs; i++)
                t->wide_dy[i] = t->dy[i] = 2 * random_unit(&r) - 1;
        for (size_t i = 0; i < t->count; i++)
                t->labels[i] = (int32_t) random_below(&r, shape_size(&t->node.out));
}

/* What the reference makes of the same numbers. */
static int run_reference(struct trial *t)
{
        struct reference_call c = { .node = &t->node,
                                    .count = t->count,
                                    .x = t->wide[INPUT],
                                    .other = t->wide[OTHER],
                                    .weight = t->wide[WEIGHT],
                                    .bias = t->wide[BIAS],
                                    .labels = t->labels,
                                    .activation = t->backend->activation_reference,
                                    .y = t->wide_y,
                                    .dy = t->wide_dy,
                                    .scale = SCALE,
                                    .dx = t->wide_gradients[INPUT],
                                    .dweight = t->wide_gradients[WEIGHT],
                                    .dbias = t->wide_gradients[BIAS] };
        int r = reference_forward(&c);

        if (r == 0)
                r = reference_backward(&c);
        t->loss = c.loss;
        return r;
}

static void run_operator(struct trial *t, double *loss)
{
        struct operator_call call = { .kernels = &t->backend->kernels,
                                      .state = t->backend->state,
                                      .node = &t->node,
                                      .count = t->count,
                                      .x = t->values[INPUT],
                                      .other = t->values[OTHER],
                                      .y = t->y,
                                      .dx = t->node.parts[0] == OP_EMBEDDING ? NULL : t->gradients[INPUT],
                                      .dy = t->dy,
                                      .weight = t->values[WEIGHT],
                                      .bias = t->values[BIAS],
                                      .dweight = t->gradients[WEIGHT],
                                      .dbias = t->gradients[BIAS],
                                      .which = t->which,
                                      .labels = t->labels,
                                      .scratch = t->scratch,
                                      .scale = SCALE };

        operator_forward(&call);
        operator_backward(&call);
        *loss = call.loss;
        backend_to_host(t->backend, t->y);
        for (int side = 0; side < SIDES; side++)
                backend_to_host(t->backend, t->gradients[side]);
}

struct verdict {
        double worst, largest; /* difference; value of the reference */
};

static void compare(struct verdict *v, double got, double wanted)
{
        double apart = fabs(got - wanted);

        if (!(apart <= v->worst)) /* a NaN is the worst */
                v->worst = apart;
        v->largest = fmax(v->largest, fabs(wanted));
}

static bool good(const struct verdict *v)
{
        return v->worst <= TOLERANCE * fmax(v->largest, 1e-3);
}

static struct verdict judge_outputs(const struct trial *t, double loss)
{
        struct verdict v = { 0 };

        for (size_t i = 0; i < t->outputs; i++)
                compare(&v, t->y[i], t->wide_y[i]);
        if (model_has(&t->node, OP_CROSS_ENTROPY))
                compare(&v, loss, t->loss);
        return v;
}

/* Each side is judged by its own largest value: the gradient of a bias adds up all rows, and is hundreds of
 * times as large as that of an input, whose errors would be small beside it. The first side that is wrong, or
 * else the last. */
static struct verdict judge_gradients(const struct trial *t)
{
        struct verdict v = { 0 };

        for (int side = t->node.parts[0] == OP_EMBEDDING ? WEIGHT : INPUT; side < SIDES && good(&v); side++) {
                if (t->sizes[side] == 0 || side == OTHER) /* has the input's */
                        continue;
                v = (struct verdict){ 0 };
                for (size_t i = 0; i < t->sizes[side]; i++)
                        compare(&v, t->gradients[side][i], t->wide_gradients[side][i]);
        }
        return v;
}

struct judgement { /* of all trials so far */
        bool told; /* as TAP */
        size_t number, failed;
        char first[200]; /* failure */
};

/* @what: was tried */
static void report(struct judgement *j, const struct backend *b, const struct text *what,
                   const struct verdict *v)
{
        const char *words = what->failed ? "no memory for its name" : what->data;

        j->number++;
        if (j->told)
                printf("%s %zu - %s %s: differs by %.1e of %.1e\n", good(v) ? "ok" : "not ok", j->number,
                       b->row->runtime, words, v->worst, v->largest);
        if (!good(v) && j->failed++ == 0)
                (void) text_format(j->first, sizeof(j->first), "%.150s: differs by %.1e of %.1e", words,
                                   v->worst, v->largest);
}

static void report_trial(struct judgement *j, const struct trial *t, size_t index, const char *way,
                         const struct verdict *v)
{
        CLEANUP(text_free) struct text what = { 0 };

        text_printf(&what, "%s %s, %zu samples of %zu x %zu x %zu", t->name, way, trials[index].count,
                    trials[index].in.height, trials[index].in.width, trials[index].in.channels);
        report(j, t->backend, &what, v);
}

/* Return: false: there is nothing to try, or to judge it by. */
static bool open_trial(struct trial *t, size_t index)
{
        t->count = trials[index].count;
        t->sizes[INPUT] = t->count * shape_size(&t->node.in);
        t->sizes[OTHER] = model_has(&t->node, OP_ADD) ? t->sizes[INPUT] : 0;
        t->sizes[WEIGHT] = t->node.weight_count;
        t->sizes[BIAS] = t->node.bias_count;
        t->outputs = t->count * shape_size(&t->node.out);
        return has_place(&t->node) &&
               (!model_has(&t->node, OP_ACTIVATION) || t->backend->activation_reference != NULL);
}

static int try_operator(const struct backend *b, enum op op, const struct fusion_rule *rule,
                        struct judgement *j, struct err *err)
{
        for (size_t index = 0; index < sizeof(trials) / sizeof(trials[0]); index++) {
                struct trial t = { .backend = b,
                                   .name = rule != NULL ? rule->name : op_name(op),
                                   .node = node_for(op, rule, index) };
                struct verdict outputs, gradients;
                double loss;
                int r;

                if (!open_trial(&t, index))
                        continue;
                r = allocate(&t);
                if (r == 0) {
                        fill(&t, index);
                        r = run_reference(&t);
                }
                if (r < 0) {
                        give_back(&t);
                        return err_set(err, -ENOMEM, "no memory for the conformance test");
                }
                run_operator(&t, &loss);
                outputs = judge_outputs(&t, loss);
                gradients = judge_gradients(&t);
                report_trial(j, &t, index, "forward", &outputs);
                report_trial(j, &t, index, "backward", &gradients);
                give_back(&t);
        }
        return 0;
}

/* What no operator calls, or only as a copy, or otherwise: the steps of the parameters, factors, sums of
 * other workers' gradients. */
static const struct {
        const char *what;
        bool scale, add, plus, velocity;
        float factor, momentum;
} arrays[] = {
        { "update without momentum", .factor = 0.05F },
        { "update with momentum", .velocity = true, .factor = 0.05F, .momentum = 0.9F },
        { "scale", .scale = true, .factor = 0.375F },
        { "add", .add = true },
        { "plus in place", .plus = true },
};
/* fewer numbers than a vector, an odd rest, and more than all slave cores or work groups take at a time */
static const size_t array_counts[] = { 1, 37, 4099, 64 * 4096 + 13 };

enum array { GIVEN, VELOCITY, RESULT, ARRAYS };

static void run_array(const struct backend *b, size_t which, size_t count, float *const *memory)
{
        if (arrays[which].scale)
                b->kernels.scale(b->state, count, arrays[which].factor, memory[GIVEN], memory[RESULT]);
        else if (arrays[which].plus)
                b->kernels.plus(b->state, count, memory[RESULT], memory[GIVEN], memory[RESULT]);
        else if (arrays[which].add)
                backend_add(b, count, memory[GIVEN], memory[RESULT]);
        else
                b->kernels.update(b->state, count, arrays[which].factor, arrays[which].momentum,
                                  memory[GIVEN], arrays[which].velocity ? memory[VELOCITY] : NULL,
                                  memory[RESULT]);
}

/* @from: what the arrays held */
static struct verdict judge_array(size_t which, size_t count, float *const *from, float *const *memory)
{
        struct verdict result = { 0 }, velocity = { 0 };

        for (size_t i = 0; i < count; i++) {
                double given = from[GIVEN][i], before = from[RESULT][i];
                double step = given + (double) arrays[which].momentum * from[VELOCITY][i];

                if (arrays[which].scale)
                        compare(&result, memory[RESULT][i], arrays[which].factor * given);
                else if (arrays[which].add || arrays[which].plus)
                        compare(&result, memory[RESULT][i], before + given);
                else
                        compare(&result, memory[RESULT][i], before - arrays[which].factor * step);
                compare(&velocity, memory[VELOCITY][i], step);
        }
        return arrays[which].velocity && good(&result) ? velocity : result;
}

static void try_array(const struct backend *b, size_t which, size_t count, float *const *from,
                      float *const *memory, struct judgement *j)
{
        CLEANUP(text_free) struct text what = { 0 };
        struct random_source r = random_for(count, arrays[which].what, 0);
        struct verdict v;

        for (int a = 0; a < ARRAYS; a++)
                for (size_t i = 0; i < count; i++)
                        memory[a][i] = from[a][i] = 2 * random_unit(&r) - 1;
        run_array(b, which, count, memory);
        for (int a = 0; a < ARRAYS; a++)
                backend_to_host(b, memory[a]);
        v = judge_array(which, count, from, memory);
        text_printf(&what, "%s, %zu numbers", arrays[which].what, count);
        report(j, b, &what, &v);
}

static int try_arrays(const struct backend *b, struct judgement *j, struct err *err)
{
        int r = 0;

        for (size_t k = 0; r == 0 && k < ARRAY_SIZE(arrays) * ARRAY_SIZE(array_counts); k++) {
                size_t count = array_counts[k % ARRAY_SIZE(array_counts)];
                float *from[ARRAYS], *memory[ARRAYS];
                bool whole = true;

                for (int a = 0; a < ARRAYS; a++) {
                        from[a] = calloc(count, sizeof(float));
                        memory[a] = backend_floats(b, count);
                        whole = whole && from[a] != NULL && memory[a] != NULL;
                }
                if (whole)
                        try_array(b, k / ARRAY_SIZE(array_counts), count, from, memory, j);
                else
                        r = err_set(err, -ENOMEM, "no memory for the conformance test");
                for (int a = 0; a < ARRAYS; a++) {
                        free(from[a]);
                        backend_release(b, memory[a]);
                }
        }
        return r;
}

static int try_all(const struct backend *b, const struct fusion_table *rules, struct judgement *j,
                   struct err *err)
{
        int r = 0;

        for (enum op op = 0; r == 0 && op < OP_COUNT; op++)
                r = try_operator(b, op, NULL, j, err);
        for (size_t i = 0; r == 0 && i < rules->count; i++)
                if (rules->rules[i].fused == OP_OWN)
                        r = try_operator(b, OP_OWN, &rules->rules[i], j, err);
        if (r == 0)
                r = try_arrays(b, j, err);
        return r == 0 ? backend_trouble(b, err) : r;
}

int conformance_run(const struct backend *b, const struct fusion_table *rules, struct err *err)
{
        struct judgement j = { .told = true };
        int r = try_all(b, rules, &j, err);

        printf("1..%zu\n", j.number);
        return r < 0 ? r : (int) j.failed;
}

int conformance_judge(const struct backend *b, const struct fusion_table *rules, struct err *err)
{
        struct judgement j = { 0 };
        int r = try_all(b, rules, &j, err);

        if (r == 0 && j.failed > 0)
                r = err_set(err, -EINVAL,
                            "%s; --conformance shows all %zu that are wrong: mend the library, or leave its "
                            "option out",
                            j.first, j.failed);
        return r;
}
