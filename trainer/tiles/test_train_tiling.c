/* Tiling: what is planned fits and covers an image once, and gives what the whole image does. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/backends/convolution.h"
#include "trainer/backends/host_memory.h"
#include "trainer/random.h"
#include "trainer/runner.h"

#define ROUNDING 1e-5 /* of the largest gradient: sums of up to 60000 numbers in another order */

static void scale(void *state, size_t count, float factor, const float *x, float *y)
{
        (void) state;
        for (size_t i = 0; i < count; i++)
                y[i] = factor * x[i];
}

static void plus(void *state, size_t count, const float *x, const float *other, float *y)
{
        (void) state;
        for (size_t i = 0; i < count; i++)
                y[i] = x[i] + other[i];
}

static void forward(void *state, const struct convolution *c)
{
        (void) state;
        convolution_pool(c);
}

static void backward(void *state, const struct convolution *c)
{
        (void) state;
        convolution_pool_gradient(c);
}

static const struct backend_row row = { .allocate = host_memory_allocate, .release = host_memory_release };

static struct backend backend_with(uint64_t tile_bytes)
{
        return (struct backend){ .row = &row,
                                 .kernels = { .scale = scale,
                                              .plus = plus,
                                              .convolution_pool = forward,
                                              .convolution_pool_gradient = backward },
                                 .tile_bytes = tile_bytes };
}

static struct model model_of(const char *name, size_t height, size_t width, size_t channels)
{
        const struct model_size size = { .input = { height, width, channels }, .classes = 10 };
        const struct fusion_table rules = fusion_built_in(0);
        struct model m;
        struct err err = { 0 };

        assert_int_equal(model_build(name, &size, &m, &err), 0);
        model_fuse(&m, &rules, NULL, NULL);
        for (size_t i = 0; i < m.node_count; i++) /* into a table that is gone */
                m.nodes[i].own = NULL;
        return m;
}

static struct model model_for(size_t height, size_t width, size_t channels)
{
        return model_of("cnn", height, width, channels);
}

/* What a pass over nodes first..1 gives. */
struct result {
        size_t outputs, inputs, parameters;
        float *y, *dx, *gradients;
        struct tiling tiling;
};

static float *draw(uint64_t seed, size_t count)
{
        struct random_source r = random_for(seed, "tiles", 0);
        float *x = calloc(count + 1, sizeof(*x));

        assert_non_null(x);
        for (size_t i = 0; i < count; i++)
                x[i] = 2 * random_unit(&r) - 1;
        return x;
}

static float *kept(const float *from, size_t count)
{
        float *to = calloc(count + 1, sizeof(*to));

        assert_non_null(to);
        memcpy(to, from, count * sizeof(*to));
        return to;
}

static struct result pass(const struct model *m, size_t first, size_t samples, uint64_t tile_bytes)
{
        struct backend b = backend_with(tile_bytes);
        struct result r = { .outputs = samples * shape_size(&m->nodes[1].out),
                            .inputs = samples * shape_size(&m->nodes[first].in),
                            .parameters = m->nodes[1].bias + m->nodes[1].bias_count };
        float *x = draw(1, r.inputs), *parameters = draw(2, r.parameters), *dy = draw(3, r.outputs);
        struct runner *runner = NULL;
        struct err err = { 0 };

        r.gradients = calloc(r.parameters, sizeof(float));
        assert_int_equal(runner_new(&b, m, first, 1, samples, &runner, &err), 0);
        r.tiling = *runner_tiling(runner);
        runner_use(runner, x, NULL);
        (void) runner_forward(runner, parameters, samples);
        r.y = kept(runner_output(runner), r.outputs);
        for (int again = 0; again < 2; again++) { /* the second begins with what the first left */
                memset(r.gradients, 0, r.parameters * sizeof(float));
                memcpy(runner_output_gradient(runner), dy, r.outputs * sizeof(float));
                runner_backward(runner, parameters, r.gradients, samples, 1, NULL);
        }
        r.dx = first > 0 ? kept(runner_input_gradient(runner), r.inputs) : NULL;
        runner_free(runner);
        free(x), free(parameters), free(dy);
        return r;
}

static void free_result(struct result *r)
{
        free(r->y), free(r->dx), free(r->gradients);
}

static void assert_near(const float *got, const float *want, size_t count, const char *what)
{
        double most = 0;

        for (size_t i = 0; i < count; i++)
                most = fmax(most, fabs((double) want[i]));
        for (size_t i = 0; i < count; i++)
                if (!(fabs((double) got[i] - (double) want[i]) <= ROUNDING * most))
                        fail_msg("%s %zu is %.9f, %.9f is right", what, i, (double) got[i], (double) want[i]);
}

static const struct shape images[] = {
        { 28, 28, 1 }, { 64, 30, 1 }, { 37, 41, 3 }, { 101, 53, 2 },
        { 6, 90, 1 },  { 203, 7, 3 }, { 80, 80, 3 },
};

static void tiles_give_what_the_whole_image_does(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++)
                for (size_t first = 0; first < 2; first++)
                        for (uint64_t part = 1; part <= 64; part *= 4) {
                                struct model m =
                                        model_for(images[i].height, images[i].width, images[i].channels);
                                struct result whole = pass(&m, first, 3, 0), tiled;
                                uint64_t limit = whole.tiling.whole_bytes / part;

                                tiled = pass(&m, first, 3, limit);
                                assert_int_equal(tiled.tiling.nodes > 0, part > 1);
                                assert_true(part < 16 || tiled.tiling.samples == 1);
                                assert_memory_equal(tiled.y, whole.y, whole.outputs * sizeof(float));
                                assert_near(tiled.gradients, whole.gradients, whole.parameters, "gradient");
                                if (first > 0)
                                        assert_near(tiled.dx, whole.dx, whole.inputs, "input's gradient");
                                free_result(&whole), free_result(&tiled);
                        }
}

static struct tiling_rule rule_for(const struct kernels *k, const struct model *m, size_t samples,
                                   uint64_t limit)
{
        return (struct tiling_rule){ .kernels = k,
                                     .nodes = m->nodes,
                                     .count = m->node_count,
                                     .samples = samples,
                                     .limit_bytes = limit };
}

static void what_is_planned_fits(void **state)
{
        struct backend b = backend_with(0);

        (void) state;
        for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++)
                for (uint64_t limit = 1000; limit < 100000000; limit *= 3) {
                        struct model m = model_for(images[i].height, images[i].width, images[i].channels);
                        struct tiling_rule rule = rule_for(&b.kernels, &m, 5, limit);
                        struct tiling t = tiling_plan(&rule);

                        assert_int_equal(t.nodes == 0, t.whole_bytes <= limit);
                        if (t.nodes == 0)
                                continue;
                        assert_int_equal(t.nodes, 2);
                        assert_int_equal(t.scale, 4);
                        assert_int_equal(t.halo, 8);
                        assert_true(t.tile_bytes <= limit || (t.rows == 1 && t.samples == 1));
                        assert_true(t.tile_bytes < t.whole_bytes || images[i].height < 28);
                }
}

/* Each row of the result is in one tile, which begins where a square of every pooling does. */
static void tiles_cover_an_image_once(void **state)
{
        struct backend b = backend_with(0);

        (void) state;
        for (size_t height = 4; height < 150; height++) {
                struct model m = model_for(height, 20, 1);
                struct tiling_rule rule = rule_for(&b.kernels, &m, 1, 1);
                struct tiling t = tiling_plan(&rule);
                size_t all = height / 4;

                for (t.rows = 1; t.rows <= all; t.rows++) {
                        size_t covered = 0;

                        for (size_t at = 0; at < all; at += t.rows) {
                                struct tiling_rows r = tiling_rows(&t, height, all, at);
                                struct model_node nodes[2];

                                tiling_shape(m.nodes, 2, r.count, nodes);
                                assert_int_equal(r.at, covered);
                                assert_int_equal(r.first % 4, 0);
                                assert_true(r.first + r.count <= height);
                                assert_true(r.first == 0 || r.skip == 2);
                                assert_int_equal(r.first + 4 * r.skip, 4 * at);
                                assert_true(r.skip + r.rows <= nodes[1].out.height);
                                covered += r.rows;
                        }
                        assert_int_equal(covered, all);
                }
        }
}

static void models_without_images_have_no_tiles(void **state)
{
        const struct model_size size = { .input = { 28, 28, 1 }, .classes = 10 };
        struct backend b = backend_with(1);
        struct model m;
        struct err err = { 0 };
        struct tiling_rule rule;

        (void) state;
        assert_int_equal(model_build("mlp", &size, &m, &err), 0);
        rule = rule_for(&b.kernels, &m, 100, 1);
        assert_int_equal(tiling_plan(&rule).nodes, 0);
}

/* Tiles leave what comes out of the last of their nodes, and nothing else that a branch could read. */
static void a_branch_is_not_cut(void **state)
{
        struct backend b = backend_with(1);
        struct model m = model_of("resnet", 64, 64, 1);
        struct tiling_rule rule = rule_for(&b.kernels, &m, 2, 1);
        struct tiling t = tiling_plan(&rule);

        (void) state;
        assert_int_equal(t.nodes, 8); /* all but the product and the loss */
        assert_int_equal(t.scale, 4);
        assert_int_equal(t.halo,
                         20); /* 5 x 5: 2, pooled 1; twice 3 x 3: 3; 5 x 5: 5, pooled 3; twice 3 x 3: 5 */
        m.nodes[6].parts[0] = OP_MATMUL; /* within the second block */
        t = tiling_plan(&rule);
        assert_int_equal(t.nodes, 5);    /* up to where its branch begins */
        m.nodes[5].parts[0] = OP_MATMUL; /* the first of it */
        t = tiling_plan(&rule);
        assert_int_equal(t.nodes, 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tiles_give_what_the_whole_image_does),
                cmocka_unit_test(what_is_planned_fits),
                cmocka_unit_test(tiles_cover_an_image_once),
                cmocka_unit_test(models_without_images_have_no_tiles),
                cmocka_unit_test(a_branch_is_not_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
