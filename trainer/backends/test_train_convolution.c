/* The fused convolution against the plainest loops in double precision, in shapes with edges of every kind.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trainer/backends/convolution.h"
#include "trainer/operators/relu.h"
#include "trainer/random.h"

static float *draw(struct random_source *r, size_t count)
{
        float *x = malloc(count * sizeof(*x));

        assert_non_null(x);
        for (size_t i = 0; i < count; i++)
                x[i] = 2 * random_unit(r) - 1;
        return x;
}

/* Where tap (k, l, channel) of output position (row, col) lies in the image, or SIZE_MAX outside. */
static size_t tap_at(const struct kernels_images *s, size_t n, size_t row, size_t col, size_t k, size_t l,
                     size_t c)
{
        size_t half = s->kernel / 2;

        if (row + k < half || row + k - half >= s->height || col + l < half || col + l - half >= s->width)
                return SIZE_MAX;
        return ((n * s->height + row + k - half) * s->width + col + l - half) * s->channels + c;
}

static double sum_at(const struct convolution *c, size_t n, size_t row, size_t col, size_t o)
{
        const struct kernels_images *s = &c->shape;
        double sum = 0;

        for (size_t k = 0; k < s->kernel; k++)
                for (size_t l = 0; l < s->kernel; l++)
                        for (size_t i = 0; i < s->channels; i++) {
                                size_t at = tap_at(s, n, row, col, k, l, i);
                                size_t w = (k * s->kernel + l) * s->channels + i;

                                sum += at == SIZE_MAX
                                               ? 0
                                               : (double) c->x[at] * (double) c->weight[w * c->outputs + o];
                        }
        return sum;
}

/* Adds what one output's gradient gives to all the others. */
static void spread(const struct convolution *c, size_t n, size_t row, size_t col, size_t o, double d,
                   double *dx, double *dw)
{
        const struct kernels_images *s = &c->shape;

        for (size_t k = 0; k < s->kernel; k++)
                for (size_t l = 0; l < s->kernel; l++)
                        for (size_t i = 0; i < s->channels; i++) {
                                size_t at = tap_at(s, n, row, col, k, l, i);
                                size_t w = ((k * s->kernel + l) * s->channels + i) * c->outputs + o;

                                if (at == SIZE_MAX)
                                        continue;
                                dw[w] += d * (double) c->x[at];
                                dx[at] += d * (double) c->weight[w];
                        }
}

static void assert_near(const float *got, const double *want, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (!(fabs((double) got[i] - want[i]) <= 1e-4 * (1 + fabs(want[i]))))
                        fail_msg("number %zu is %.7f, %.7f is right", i, (double) got[i], want[i]);
}

static void check(struct kernels_images s, size_t outputs)
{
        size_t pooled = (s.height / 2) * (s.width / 2), images = s.samples * s.height * s.width * s.channels;
        size_t weights = s.kernel * s.kernel * s.channels * outputs, results = s.samples * pooled * outputs;
        struct random_source r = random_for(7, "convolution", outputs);
        float *x = draw(&r, images), *weight = draw(&r, weights), *bias = draw(&r, outputs),
              *dy = draw(&r, results), *dx = draw(&r, images), *y = calloc(results, sizeof(*y)),
              *dweight = calloc(weights, sizeof(*dweight)), *dbias = calloc(outputs, sizeof(*dbias)),
              *scratch = malloc(convolution_scratch(&s, outputs) * sizeof(*scratch));
        uint8_t *which = calloc(results, 1);
        double *want_y = calloc(results, sizeof(double)), *want_dx = calloc(images, sizeof(double)),
               *want_dw = calloc(weights, sizeof(double)), *want_db = calloc(outputs, sizeof(double));
        struct convolution c = { .shape = s,
                                 .outputs = outputs,
                                 .x = x,
                                 .weight = weight,
                                 .bias = bias,
                                 .y = y,
                                 .which = which,
                                 .dy = dy,
                                 .dx = dx,
                                 .dweight = dweight,
                                 .dbias = dbias,
                                 .scratch = scratch };

        convolution_pool(&c);
        convolution_pool_gradient(&c);
        for (size_t i = 0; i < results; i++) {
                size_t o = i % outputs, col = i / outputs % (s.width / 2),
                       row = i / outputs / (s.width / 2) % (s.height / 2), n = i / outputs / pooled;
                size_t from_row = 2 * row + (which[i] >> 1), from_col = 2 * col + (which[i] & 1);
                double best = sum_at(&c, n, from_row, from_col, o), d;

                for (size_t k = 0; k < 4; k++) /* what it chose is the largest */
                        assert_true(sum_at(&c, n, 2 * row + k / 2, 2 * col + k % 2, o) <= best + 1e-4);
                want_y[i] = (double) relu_of((float) (best + (double) bias[o]));
                d = (double) dy[i] * (double) relu_slope(y[i]);
                want_db[o] += d;
                spread(&c, n, from_row, from_col, o, d, want_dx, want_dw);
        }
        assert_near(y, want_y, results);
        assert_near(dx, want_dx, images);
        assert_near(dweight, want_dw, weights);
        assert_near(dbias, want_db, outputs);
        free(x), free(weight), free(bias), free(dy), free(dx), free(y), free(dweight), free(dbias);
        free(scratch), free(which), free(want_y), free(want_dx), free(want_dw), free(want_db);
}

static void test_shapes(void **state)
{
        (void) state;
        check((struct kernels_images){ 3, 28, 28, 1, 5 }, 8); /* the shipped model's */
        check((struct kernels_images){ 2, 14, 14, 8, 5 }, 24);
        check((struct kernels_images){ 2, 7, 9, 3, 3 }, 19);   /* odd edges, half a block of outputs */
        check((struct kernels_images){ 1, 2, 2, 1, 1 }, 1);    /* the least */
        check((struct kernels_images){ 1, 2, 3, 2, 7 }, 9);    /* a window larger than the image */
        check((struct kernels_images){ 2, 10, 6, 11, 3 }, 16); /* a line that is no whole number of vectors */
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_shapes) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
