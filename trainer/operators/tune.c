/* All tiles that fit are tried quickly, the best few again in turn with the untuned. */
#include "trainer/operators/tune.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/json_line.h"
#include "trainer/preset.h"
#include "trainer/random.h"
#include "trainer/training.h"

#define FINALISTS 6 /* of the search, that are measured again */
#define ROUNDS    8

/* The products of the shipped models at 128 samples: forward, and both of backward. */
/* clang-format off */
static const struct kernels_matmul shapes[] = {
        { .rows = 128, .cols = 256, .inner = 784 },
        { .rows = 784, .cols = 256, .inner = 128, .transpose_a = true, .accumulate = true },
        { .rows = 128, .cols = 128, .inner = 256 },
        { .rows = 128, .cols = 256, .inner = 128, .transpose_b = true },
        { .rows = 3920, .cols = 8, .inner = 25 },
        { .rows = 588, .cols = 24, .inner = 200 },
        { .rows = 200, .cols = 24, .inner = 588, .transpose_a = true, .accumulate = true },
        { .rows = 128, .cols = 128, .inner = 1176 },
};
static const size_t edges[] = { 16, 32, 48, 64, 96, 128, 256 };
static const size_t lanes[] = { 16, 32 };
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
        m->a = backend_allocate(b, most * sizeof(float));
        m->b = backend_allocate(b, most * sizeof(float));
        m->c = backend_allocate(b, most * sizeof(float));
        if (m->a == NULL || m->b == NULL || m->c == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < most; i++) {
                m->a[i] = random_unit(&r) - 0.5F;
                m->b[i] = random_unit(&r) - 0.5F;
        }
        return 0;
}

/* Microseconds a product, the best of `repeats` and of what was measured before. */
static void time_shape(const struct backend *b, const struct bench *m, size_t shape, int repeats,
                       double *best)
{
        struct kernels_matmul call = shapes[shape];

        call.a = m->a;
        call.b = m->b;
        call.c = m->c;
        for (int i = 0; i < repeats; i++) {
                uint64_t begin = record_now();
                double took;

                b->kernels.matmul(b->state, &call);
                took = (double) (record_now() - begin) + 1;
                *best = took < *best ? took : *best;
        }
}

struct candidate {
        struct preset_tiles tiles; /* 0: the backend's own, untuned */
        double usec[ARRAY_SIZE(shapes)], gain;
};

/* Opens the backend with these tiles and times every shape. Return: 1 = they do not fit, nothing is timed. */
static int time_tiles(const struct train_options *o, struct candidate *t, int repeats, char *device,
                      size_t device_bytes, struct err *err)
{
        struct backend_options options = train_options_backend(o, 1, 0);
        struct backend b;
        struct bench m = { 0 };
        int r;

        options.tile_rows = t->tiles.rows;
        options.tile_cols = t->tiles.cols;
        options.tile_inner = t->tiles.inner;
        options.tile_lanes = t->tiles.lanes;
        r = backend_open(&backend_linked, &options, &b, err);
        if (r < 0)
                return r;
        if (b.row->tiles_fit == NULL)
                r = err_set(err, -ENOTSUP, "the %s build has no tiles of its own: its library chooses",
                            b.row->runtime);
        else if (t->tiles.rows > 0 &&
                 !b.row->tiles_fit(b.state, t->tiles.rows, t->tiles.cols, t->tiles.inner))
                r = 1;
        if (r == 0)
                r = prepare(&b, &m) < 0 ? err_set(err, -ENOMEM, "no memory to tune") : 0;
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shapes); i++)
                time_shape(&b, &m, i, repeats, &t->usec[i]);
        if (r == 0)
                r = backend_trouble(&b, err);
        (void) snprintf(device, device_bytes, "%s", b.device_model); /* NOLINT: a fixed field */
        backend_release(&b, m.a);
        backend_release(&b, m.b);
        backend_release(&b, m.c);
        backend_close(&b);
        return r;
}

static double mean_gain(const double *untuned, const double *tuned)
{
        const size_t count = ARRAY_SIZE(shapes);
        double sum = 0;

        for (size_t i = 0; i < count; i++)
                sum += untuned[i] / tuned[i];
        return sum / (double) count;
}

static struct candidate candidate_of(struct preset_tiles tiles)
{
        struct candidate c = { .tiles = tiles };

        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
                c.usec[i] = INFINITY;
        return c;
}

/* Keeps the best ones, the best first. */
static void keep_best(struct candidate *best, const struct candidate *one)
{
        size_t at = FINALISTS;

        while (at > 0 && one->gain > best[at - 1].gain)
                at--;
        if (at == FINALISTS)
                return;
        memmove(best + at + 1, best + at, (FINALISTS - 1 - at) * sizeof(*best));
        best[at] = *one;
}

/* All that fit, quickly. */
static int search(const struct train_options *o, const struct candidate *untuned, struct candidate *best,
                  char *device, size_t device_bytes, struct err *err)
{
        size_t n = ARRAY_SIZE(edges);

        for (size_t i = 0; i < n * n * n * ARRAY_SIZE(lanes); i++) {
                struct candidate one = candidate_of((struct preset_tiles){
                        edges[i / (n * n) % n], edges[i / n % n], edges[i % n], lanes[i / (n * n * n)] });
                int r;

                r = time_tiles(o, &one, 1, device, device_bytes, err);
                if (r < 0)
                        return r;
                if (r > 0)
                        continue;
                one.gain = mean_gain(untuned->usec, one.usec);
                keep_best(best, &one);
        }
        return 0;
}

/* The best ones and the untuned in turn, so that all of them meet the same neighbours; the winner is best[0].
 */
static int decide(const struct train_options *o, struct candidate *untuned, struct candidate *best,
                  char *device, size_t device_bytes, struct err *err)
{
        for (int round = 0; round < ROUNDS; round++) {
                int r = time_tiles(o, untuned, 1, device, device_bytes, err);

                for (size_t i = 0; r == 0 && i < FINALISTS && best[i].tiles.rows > 0; i++)
                        r = time_tiles(o, &best[i], 1, device, device_bytes, err);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < FINALISTS && best[i].tiles.rows > 0; i++) {
                best[i].gain = mean_gain(untuned->usec, best[i].usec);
                if (best[i].gain > best[0].gain)
                        best[0] = best[i];
        }
        return 0;
}

static void print_result(const char *device, const struct candidate *untuned, const struct candidate *best)
{
        struct json_line line = { 0 };

        json_line_open(&line, NULL, '{');
        json_line_text(&line, "device", device);
        preset_write_tiles(&best->tiles, &line);
        json_line_real(&line, "gain", best->gain, 3);
        json_line_open(&line, "shapes", '[');
        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
                json_line_open(&line, NULL, '{');
                json_line_uint(&line, "rows", shapes[i].rows);
                json_line_uint(&line, "cols", shapes[i].cols);
                json_line_uint(&line, "inner", shapes[i].inner);
                json_line_real(&line, "untuned_usec", untuned->usec[i], 0);
                json_line_real(&line, "tuned_usec", best->usec[i], 0);
                json_line_close(&line, '}');
        }
        json_line_close(&line, ']');
        json_line_close(&line, '}');
        json_line_print(&line, stdout);
}

int tune_run(const struct train_options *o, struct err *err)
{
        struct candidate untuned = candidate_of((struct preset_tiles){ 0 }), best[FINALISTS] = { 0 };
        char device[96] = "";
        int r = time_tiles(o, &untuned, 3, device, sizeof(device), err);

        if (r == 0)
                r = search(o, &untuned, best, device, sizeof(device), err);
        if (r == 0)
                r = decide(o, &untuned, best, device, sizeof(device), err);
        if (r == 0)
                r = preset_remember(o->cache, device, &best[0].tiles, err);
        if (r < 0)
                return r;
        print_result(device, &untuned, &best[0]);
        return 0;
}
