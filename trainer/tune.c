#include "trainer/tune.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/cleanup.h"
#include "trainer/preset.h"
#include "trainer/random.h"
#include "trainer/training.h"

#define LOCAL_BYTES   65536
#define RESERVE_BYTES 2048 /* the job's description, a line, rounding */

/* The products of the shipped models at 128 samples: forward, and both of backward. */
/* clang-format off */
static const struct matmul shapes[] = {
        { .rows = 128, .cols = 256, .inner = 784 },
        { .rows = 784, .cols = 256, .inner = 128, .transpose_a = true, .accumulate = true },
        { .rows = 128, .cols = 128, .inner = 256 },
        { .rows = 128, .cols = 256, .inner = 128, .transpose_b = true },
        { .rows = 3920, .cols = 8, .inner = 25 },
        { .rows = 588, .cols = 24, .inner = 200 },
        { .rows = 200, .cols = 24, .inner = 588, .transpose_a = true, .accumulate = true },
        { .rows = 128, .cols = 128, .inner = 1176 },
};
static const size_t edges[] = { 16, 32, 64, 128, 256 };
/* clang-format on */

struct bench {
        float *a, *b, *c;
};

static int prepare(const struct backend *b, struct bench *m)
{
        struct random_source r = random_for(1, "tune", 0);
        size_t most = 0;

        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
                size_t sizes[] = { shapes[i].rows * shapes[i].inner, shapes[i].inner * shapes[i].cols,
                                   shapes[i].rows * shapes[i].cols };

                for (size_t k = 0; k < 3; k++)
                        most = sizes[k] > most ? sizes[k] : most;
        }
        m->a = b->allocate(b->state, most * sizeof(float));
        m->b = b->allocate(b->state, most * sizeof(float));
        m->c = b->allocate(b->state, most * sizeof(float));
        if (m->a == NULL || m->b == NULL || m->c == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < most; i++) {
                m->a[i] = random_unit(&r) - 0.5F;
                m->b[i] = random_unit(&r) - 0.5F;
        }
        return 0;
}

/* Best of three, microseconds a product. */
static double time_shape(const struct backend *b, const struct bench *m, size_t shape)
{
        struct matmul call = shapes[shape];
        double best = INFINITY;

        call.a = m->a;
        call.b = m->b;
        call.c = m->c;
        for (int i = 0; i < 3; i++) {
                uint64_t begin = record_now();
                double took;

                b->kernels.matmul(b->state, &call);
                took = (double) (record_now() - begin) + 1;
                best = took < best ? took : best;
        }
        return best;
}

/* Opens the backend with these tiles and times every shape. */
static int time_tiles(const struct options *o, const struct tiles *tiles, double *ret_usec, char *device,
                      size_t device_bytes, struct err *err)
{
        struct backend_options options = training_backend_options(o, 1);
        struct backend b;
        struct bench m = { 0 };
        int r;

        options.tile_rows = tiles->rows;
        options.tile_cols = tiles->cols;
        options.tile_inner = tiles->inner;
        r = backend_open(&options, &b, err);
        if (r < 0)
                return r;
        if (!b.has_tiles)
                r = err_set(err, -ENOTSUP, "the %s build has no tiles of its own: its library chooses",
                            b.runtime);
        if (r == 0)
                r = prepare(&b, &m) < 0 ? err_set(err, -ENOMEM, "no memory to tune") : 0;
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shapes); i++)
                ret_usec[i] = time_shape(&b, &m, i);
        if (r == 0 && b.trouble != NULL)
                r = b.trouble(b.state, err);
        (void) snprintf(device, device_bytes, "%s", b.device_model); /* NOLINT: a fixed field */
        b.release(b.state, m.a);
        b.release(b.state, m.b);
        b.release(b.state, m.c);
        backend_close(&b);
        return r;
}

static double mean_gain(const double *untuned, const double *tuned)
{
        double sum = 0;

        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
                sum += untuned[i] / tuned[i];
        return sum / (double) ARRAY_SIZE(shapes);
}

static bool fits(const struct tiles *t)
{
        return (t->rows * t->inner + t->inner * t->cols + t->rows * t->cols + (t->rows + t->inner)) *
                               sizeof(float) +
                       RESERVE_BYTES <=
               LOCAL_BYTES;
}

static int search(const struct options *o, const double *untuned, struct tiles *best, double *best_gain,
                  char *device, size_t device_bytes, struct err *err)
{
        size_t n = ARRAY_SIZE(edges);
        double usec[ARRAY_SIZE(shapes)];

        for (size_t i = 0; i < n * n * n; i++) {
                struct tiles t = { edges[i / (n * n)], edges[i / n % n], edges[i % n] };
                double gain;
                int r;

                if (!fits(&t))
                        continue;
                r = time_tiles(o, &t, usec, device, device_bytes, err);
                if (r < 0)
                        return r;
                gain = mean_gain(untuned, usec);
                if (gain > *best_gain) {
                        *best_gain = gain;
                        *best = t;
                }
        }
        return 0;
}

int tune_run(const struct options *o, struct err *err)
{
        double untuned[ARRAY_SIZE(shapes)], tuned[ARRAY_SIZE(shapes)], gain = 0;
        struct tiles none = { 0 }, best = { 0 };
        char device[96] = "";
        int r = time_tiles(o, &none, untuned, device, sizeof(device), err);

        if (r == 0)
                r = search(o, untuned, &best, &gain, device, sizeof(device), err);
        if (r == 0) /* once more, against a lucky measurement */
                r = time_tiles(o, &best, tuned, device, sizeof(device), err);
        if (r == 0)
                r = preset_remember(o->cache, device, &best, err);
        if (r < 0)
                return r;
        printf("{\"device\":\"%s\",\"tiles\":[%zu,%zu,%zu],\"gain\":%.3f,\"shapes\":[", device, best.rows,
               best.cols, best.inner, mean_gain(untuned, tuned));
        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
                printf("%s{\"rows\":%zu,\"cols\":%zu,\"inner\":%zu,\"untuned_usec\":%.0f,\"tuned_usec\":%."
                       "0f}",
                       i > 0 ? "," : "", shapes[i].rows, shapes[i].cols, shapes[i].inner, untuned[i],
                       tuned[i]);
        printf("]}\n");
        return 0;
}
