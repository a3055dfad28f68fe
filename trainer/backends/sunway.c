/* The sunway backend: every hot function on all CPEs (slave cores) of a group, in tiles that fit their local
 * stores, whose size is the chip's.
 *
 * A job is cut into units (tiles, rows, samples); core c of n does units c, c+n, ... Units write disjoint
 * memory or fixed places that are then merged, by the CPEs too, in core order, so results do not depend on
 * timing. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/core_group.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/backends/blas.h"
#include "trainer/backends/host_memory.h"
#include "trainer/operators/backend.h"
#include "trainer/operators/vector.h"
#include "trainer/sunway/cpe_class.h"
#include "trainer/sunway/cpe_group.h"
#include "trainer/sunway/cpe_image.h"
#include "trainer/sunway/cpe_product.h"
#include "trainer/sunway/cpe_vector.h"
#include "trainer/sunway/tile_plan.h"

#define DEFAULT_CHIP "SW26010"

struct sunway {
        struct cpe_group *group;
        const struct core_group *chip;
        struct tile_plan tiles; /* tuned; 0 = each product's own are planned */
        size_t tile_lanes, buffers;
        uint64_t dma_bytes_per_s; /* simulated, of each core; 0 = as the chip has it */
        bool blas, staging, master_merges;
        float *partial; /* one row of sums a CPE */
        size_t partial_cols;
        uint64_t unstaged_bytes, merged; /* merged: by the management core */
        struct err first_error;
};

static size_t room_for_tiles(size_t room_bytes)
{
        return room_bytes - sizeof(struct cpe_product) - CPE_ALIGN_BYTES;
}

/* Tuned ones, where they fit, or what is best by the chip's rates. */
static struct tile_plan tiles_for(const struct sunway *s, const struct kernels_matmul *m)
{
        struct tile_plan t = { cpe_smaller(s->tiles.rows, m->rows), cpe_smaller(s->tiles.cols, m->cols),
                               cpe_smaller(s->tiles.inner, m->inner) };
        struct tile_plan_rule rule = { .m = *m,
                                       .room_bytes = room_for_tiles(cpe_group_room_bytes(s->group)),
                                       .cores = cpe_group_count(s->group),
                                       .buffers = s->buffers,
                                       .flops_per_usec = s->chip->tflops_fp32 * 1e6 / s->chip->slave_cores,
                                       .bytes_per_usec = s->chip->memory_gbytes_per_s * 1e3,
                                       .core_bytes_per_usec = (double) s->dma_bytes_per_s / 1e6 };

        if (s->tiles.rows > 0 && tile_plan_room_bytes(&t, s->buffers, m->transpose_b) <=
                                         room_for_tiles(cpe_group_room_bytes(s->group)))
                return t;
        return tile_plan_best(&rule);
}

static void sunway_matmul(void *state, const struct kernels_matmul *m)
{
        struct sunway *s = state;
        struct tile_plan tiles;
        struct cpe_product job;

        s->unstaged_bytes += (2 * m->inner + (m->accumulate ? 2 : 1)) * m->rows * m->cols * sizeof(float);
        if (s->blas) {
                blas_matmul(m);
                return;
        }
        tiles = tiles_for(s, m);
        job = (struct cpe_product){ .m = *m,
                                    .tile_rows = tiles.rows,
                                    .tile_cols = tiles.cols,
                                    .tile_inner = tiles.inner,
                                    .lanes = s->tile_lanes,
                                    .staging = s->staging };
        cpe_group_run(s->group, CPE_PRODUCT, &job, sizeof(job));
}

static void run_vector(void *state, const struct cpe_vector *job)
{
        struct sunway *s = state;

        s->unstaged_bytes += job->count * sizeof(float) * (2U + (job->x2 != NULL) + 2U * (job->y2 != NULL));
        cpe_group_run(s->group, CPE_VECTOR, job, sizeof(*job));
}

static void sunway_scale(void *state, size_t count, float factor, const float *x, float *y)
{
        run_vector(state,
                   &(struct cpe_vector){
                           .what = CPE_VECTOR_SCALE, .count = count, .factor = factor, .x = x, .y = y });
}

/* Of gradients that came from another rank. */
static void sunway_add(void *state, size_t count, const float *x, float *sum)
{
        struct sunway *s = state;

        if (!s->master_merges) {
                run_vector(state,
                           &(struct cpe_vector){ .what = CPE_VECTOR_ADD, .count = count, .x = x, .y = sum });
                return;
        }
        vector_add(count, x, sum);
        s->merged += count;
}

static void sunway_plus(void *state, size_t count, const float *x, const float *other, float *y)
{
        run_vector(state, &(struct cpe_vector){
                                  .what = CPE_VECTOR_PLUS, .count = count, .x = x, .x2 = other, .y = y });
}

static void sunway_plus_relu(void *state, size_t count, const float *x, const float *other, float *y)
{
        run_vector(state,
                   &(struct cpe_vector){
                           .what = CPE_VECTOR_PLUS_RELU, .count = count, .x = x, .x2 = other, .y = y });
}

static void sunway_relu(void *state, size_t count, const float *x, float *y)
{
        run_vector(state, &(struct cpe_vector){ .what = CPE_VECTOR_RELU, .count = count, .x = x, .y = y });
}

static void sunway_relu_gradient(void *state, size_t count, const float *y, const float *dy, float *dx)
{
        run_vector(state,
                   &(struct cpe_vector){
                           .what = CPE_VECTOR_RELU_GRADIENT, .count = count, .x = dy, .x2 = y, .y = dx });
}

static void sunway_update(void *state, size_t count, float rate, float momentum, const float *g,
                          float *velocity, float *w)
{
        run_vector(state, &(struct cpe_vector){ .what = velocity != NULL ? CPE_VECTOR_UPDATE_MOMENTUM
                                                                         : CPE_VECTOR_UPDATE,
                                                .count = count,
                                                .factor = rate,
                                                .momentum = momentum,
                                                .x = g,
                                                .y = w,
                                                .y2 = velocity });
}

static void run_bias(void *state, const struct cpe_vector_rows *job)
{
        struct sunway *s = state;

        s->unstaged_bytes += 3 * job->rows * job->cols * sizeof(float);
        cpe_group_run(s->group, CPE_BIAS, job, sizeof(*job));
}

static void sunway_bias(void *state, size_t rows, size_t cols, const float *x, const float *b, float *y)
{
        run_bias(state, &(struct cpe_vector_rows){ .rows = rows, .cols = cols, .x = x, .b = b, .y = y });
}

static void sunway_bias_relu(void *state, size_t rows, size_t cols, const float *b, float *y)
{
        run_bias(state, &(struct cpe_vector_rows){
                                .rows = rows, .cols = cols, .x = y, .b = b, .y = y, .relu = true });
}

/* Room for one row of sums a core. Return: false, and the error is kept, without memory. */
static bool want_partial(struct sunway *s, size_t cols)
{
        float *more;

        if (cols <= s->partial_cols)
                return true;
        more = realloc(s->partial, cpe_group_count(s->group) * cols * sizeof(*more));
        if (more == NULL) {
                (void) err_set(&s->first_error, -ENOMEM, "no memory for the sums of %zu columns", cols);
                return false;
        }
        s->partial = more;
        s->partial_cols = cols;
        return true;
}

/* What each CPE has summed up for itself, onto the gradient. */
static void merge_partial(struct sunway *s, size_t cols, float *db)
{
        struct cpe_vector_merging job = {
                .parts = cpe_group_count(s->group), .cols = cols, .partial = s->partial, .y = db
        };

        if (!s->master_merges) {
                cpe_group_run(s->group, CPE_MERGE, &job, sizeof(job));
                return;
        }
        for (size_t core = 0; core < job.parts; core++)
                vector_add(cols, s->partial + core * cols, db);
        s->merged += job.parts * cols;
}

static void run_sums(struct sunway *s, struct cpe_vector_rows *job, float *db)
{
        if (!want_partial(s, job->cols))
                return;
        job->partial = s->partial;
        s->unstaged_bytes += (job->mask ? 4U : 2U) * job->rows * job->cols * sizeof(float);
        cpe_group_run(s->group, CPE_SUMS, job, sizeof(*job));
        merge_partial(s, job->cols, db);
}

static void sunway_bias_gradient(void *state, size_t rows, size_t cols, const float *dy, float *db)
{
        run_sums(state, &(struct cpe_vector_rows){ .rows = rows, .cols = cols, .x = dy }, db);
}

static void sunway_bias_relu_gradient(void *state, size_t rows, size_t cols, const float *y, float *dy,
                                      float *db)
{
        run_sums(state,
                 &(struct cpe_vector_rows){
                         .rows = rows, .cols = cols, .x = dy, .b = y, .mask = true, .masked = dy },
                 db);
}

static void run_images(void *state, enum cpe_task task, const struct cpe_image *job)
{
        struct sunway *s = state;
        const struct kernels_images *i = &job->shape;
        size_t pixels = i->samples * i->height * i->width * i->channels;

        s->unstaged_bytes += pixels * (i->kernel > 0 ? 2 * i->kernel * i->kernel : 2) * sizeof(float);
        cpe_group_run(s->group, task, job, sizeof(*job));
}

static void sunway_im2col(void *state, const struct kernels_images *s, const float *x, float *patches)
{
        run_images(state, CPE_IM2COL, &(struct cpe_image){ .shape = *s, .x = x, .y = patches });
}

static void sunway_col2im(void *state, const struct kernels_images *s, const float *patches, float *dx)
{
        run_images(state, CPE_COL2IM, &(struct cpe_image){ .shape = *s, .x = patches, .y = dx });
}

static void sunway_pool(void *state, const struct kernels_images *s, const float *x, float *y, uint8_t *which)
{
        run_images(state, CPE_POOL, &(struct cpe_image){ .shape = *s, .x = x, .y = y, .which_out = which });
}

static void sunway_bias_relu_pool(void *state, const struct kernels_images *s, const float *x, const float *b,
                                  float *y, uint8_t *which)
{
        run_images(state, CPE_POOL,
                   &(struct cpe_image){ .shape = *s, .x = x, .b = b, .y = y, .which_out = which });
}

static void sunway_pool_gradient(void *state, const struct kernels_images *s, const uint8_t *which,
                                 const float *dy, float *dx)
{
        run_images(state, CPE_POOL_GRADIENT,
                   &(struct cpe_image){ .shape = *s, .x = dy, .y = dx, .which = which });
}

static void sunway_bias_relu_pool_gradient(void *state, const struct kernels_images *s, const uint8_t *which,
                                           const float *y, const float *dy, float *dx, float *db)
{
        struct sunway *me = state;

        if (!want_partial(me, s->channels))
                return;
        run_images(state, CPE_POOL_GRADIENT,
                   &(struct cpe_image){
                           .shape = *s, .x = dy, .b = y, .y = dx, .which = which, .partial = me->partial });
        merge_partial(me, s->channels, db);
}

static void run_classes(void *state, enum cpe_task task, const struct cpe_class *job)
{
        struct sunway *s = state;

        s->unstaged_bytes += 3 * job->rows * job->cols * sizeof(float);
        cpe_group_run(s->group, task, job, sizeof(*job));
}

static void sunway_softmax(void *state, size_t rows, size_t cols, const float *x, float *p)
{
        run_classes(state, CPE_SOFTMAX, &(struct cpe_class){ .rows = rows, .cols = cols, .x = x, .y = p });
}

static void sunway_softmax_gradient(void *state, size_t rows, size_t cols, const float *p, const float *dp,
                                    float *dx)
{
        run_classes(state, CPE_SOFTMAX_GRADIENT,
                    &(struct cpe_class){ .rows = rows, .cols = cols, .x = p, .x2 = dp, .y = dx });
}

/* A handful of single numbers: the master's work. */
static double sunway_cross_entropy(void *state, size_t rows, size_t cols, const float *p,
                                   const int32_t *labels)
{
        double loss = 0;

        (void) state;
        for (size_t r = 0; r < rows; r++)
                loss -= log((double) fmaxf(p[r * cols + (size_t) labels[r]], 1e-30F));
        return loss;
}

static void sunway_cross_entropy_gradient(void *state, size_t rows, size_t cols, const float *p,
                                          const int32_t *labels, float scale, float *dp)
{
        sunway_scale(state, rows * cols, 0, p, dp);
        for (size_t r = 0; r < rows; r++)
                dp[r * cols + (size_t) labels[r]] = -scale / fmaxf(p[r * cols + (size_t) labels[r]], 1e-30F);
}

static void sunway_softmax_cross_entropy_gradient(void *state, size_t rows, size_t cols, const float *p,
                                                  const int32_t *labels, float scale, float *dx)
{
        sunway_scale(state, rows * cols, scale, p, dx);
        for (size_t r = 0; r < rows; r++)
                dx[r * cols + (size_t) labels[r]] -= scale;
}

static void sunway_embed(void *state, size_t rows, size_t tokens, size_t width, const float *table,
                         const float *ids, float *y)
{
        run_classes(
                state, CPE_EMBED,
                &(struct cpe_class){ .rows = rows * tokens, .cols = width, .x = table, .x2 = ids, .y = y });
}

static void sunway_embed_gradient(void *state, size_t rows, size_t tokens, size_t width, const float *ids,
                                  const float *dy, float *dtable)
{
        run_classes(
                state, CPE_EMBED_GRADIENT,
                &(struct cpe_class){ .rows = rows * tokens, .cols = width, .x = dy, .x2 = ids, .y = dtable });
}

static int sunway_trouble(void *state, struct err *err)
{
        struct sunway *s = state;
        struct cpe_group_totals totals;

        cpe_group_totals(s->group, &totals);
        if (totals.refused_bytes > 0)
                return err_set(
                        err, -ENOSPC,
                        "a slave core was refused %zu bytes: of its local store tasks have %zu; a larger "
                        "--local-store is wanted, if the chip has it",
                        totals.refused_bytes, cpe_group_room_bytes(s->group));
        return s->first_error.code != 0 ? err_set(err, s->first_error.code, "%s", s->first_error.msg) : 0;
}

static void sunway_traffic(void *state, struct backend_traffic *ret)
{
        struct sunway *s = state;
        struct cpe_group_totals totals;

        cpe_group_totals(s->group, &totals);
        *ret = (struct backend_traffic){ .read_bytes = totals.read_bytes,
                                         .written_bytes = totals.written_bytes,
                                         .unstaged_bytes = s->unstaged_bytes,
                                         .local_peak_bytes = totals.peak_bytes,
                                         .chip = s->chip->chip,
                                         .local_room_bytes = cpe_group_room_bytes(s->group),
                                         .merged_by_slave_cores = totals.merged,
                                         .merged_by_management_core = s->merged,
                                         .simulated_nsec = totals.simulated_nsec };
}

static void sunway_close(void *state)
{
        struct sunway *s = state;

        cpe_group_close(s->group);
        free(s->partial);
        free(s);
}

/* The chip that this machine has, if it is one. */
static const struct core_group *own_chip(void)
{
        CLEANUP(fclose_p) FILE *f = fopen("/proc/cpuinfo", "re");
        const struct core_group *chip = NULL;
        char line[256];

        while (f != NULL && chip == NULL && fgets(line, sizeof(line), f) != NULL)
                chip = core_group_find(line);
        return chip;
}

static const struct core_group *chip_of(const struct backend_options *o)
{
        return o->sunway_chip != NULL ? core_group_find(o->sunway_chip) : own_chip();
}

/* @chip: as chip_of(); where it is none, DEFAULT_CHIP stands in. */
static struct cpe_group_rule rule_of(const struct backend_options *o, const struct core_group **chip)
{
        if (*chip == NULL)
                *chip = core_group_find(DEFAULT_CHIP);
        return (struct cpe_group_rule){ .variant = o->variant,
                                        .count = o->cpes,
                                        .cpus = o->cpus,
                                        .store_bytes =
                                                o->store_bytes > 0 ? o->store_bytes : (*chip)->store_bytes,
                                        .buffers = o->one_buffer ? 1 : CPE_BUFFERS,
                                        .dma_bytes_per_s = o->dma_bytes_per_s };
}

enum { ROWS, COLS, INNER, LANES, TUNABLES };

#define EDGES                                                                                                \
        {                                                                                                    \
                16, 32, 48, 64, 96, 128, 256                                                                 \
        }
/* clang-format off */
static const struct tunable sunway_tunables[TUNABLES] = {
        [ROWS] = { "tile_rows", 0, EDGES, true, TUNABLE_PRODUCTS }, /* 0: each product's own are planned */
        [COLS] = { "tile_cols", 0, EDGES, true, TUNABLE_PRODUCTS },
        [INNER] = { "tile_inner", 0, EDGES, true, TUNABLE_PRODUCTS },
        [LANES] = { "tile_lanes", 16, { 16, 32 }, false, TUNABLE_PRODUCTS }, /* 16: what sixteen registers hold */
};
/* clang-format on */

/* Any product, in the local store that is asked for. */
static bool sunway_fits(const struct backend_options *o, const size_t *v)
{
        struct tile_plan t = { v[ROWS], v[COLS], v[INNER] };
        const struct core_group *chip = chip_of(o);
        struct cpe_group_rule rule = rule_of(o, &chip);

        if (t.rows == 0 || t.cols == 0 || t.inner == 0)
                return t.rows + t.cols + t.inner == 0;
        return tile_plan_room_bytes(&t, rule.buffers, true) <=
               room_for_tiles(cpe_group_rule_room_bytes(&rule));
}

static const struct tunable_rows sunway_rows = { sunway_tunables, TUNABLES, sunway_fits };

static void name_device(const struct sunway *s, bool named, char *ret, size_t ret_bytes)
{
        bool real = strcmp(cpe_group_variant(s->group), "athread") == 0;

        (void) text_format(ret, ret_bytes, "%s%s%s core group of %zu (%s)", real ? "Sunway" : "portable",
                           named ? " " : "", named ? s->chip->chip : "", cpe_group_count(s->group),
                           cpe_group_variant(s->group));
}

static int sunway_open(const struct backend_options *o, struct backend *b, struct err *err)
{
        const struct core_group *named = chip_of(o), *chip = named;
        struct cpe_group_rule rule = rule_of(o, &chip);
        struct sunway *s = calloc(1, sizeof(*s));
        int r;

        if (s == NULL)
                return err_set(err, -ENOMEM, "no memory for the sunway backend");
        s->chip = chip;
        s->tiles = (struct tile_plan){ o->tuned[ROWS], o->tuned[COLS], o->tuned[INNER] };
        s->tile_lanes = tunable_value(&sunway_rows, LANES, o->tuned);
        s->buffers = rule.buffers;
        s->dma_bytes_per_s = rule.dma_bytes_per_s;
        s->blas = o->gemm_blas;
        s->staging = !o->no_staging;
        s->master_merges = o->master_merges;
        r = cpe_group_open(&rule, &s->group, err);
        if (r < 0) {
                free(s);
                return r;
        }
        b->state = s;
        name_device(s, named != NULL, b->device_model, sizeof(b->device_model));
        return 0;
}

/* clang-format off */
const struct backend_row backend_linked = {
        .runtime = "sunway",
        .tunables = &sunway_rows,
        .kernels = {
                .matmul = sunway_matmul,
                .bias = sunway_bias,
                .bias_gradient = sunway_bias_gradient,
                .scale = sunway_scale,
                .plus = sunway_plus,
                .plus_relu = sunway_plus_relu,
                .relu = sunway_relu,
                .relu_gradient = sunway_relu_gradient,
                .bias_relu = sunway_bias_relu,
                .bias_relu_gradient = sunway_bias_relu_gradient,
                .im2col = sunway_im2col,
                .col2im = sunway_col2im,
                .pool = sunway_pool,
                .pool_gradient = sunway_pool_gradient,
                .bias_relu_pool = sunway_bias_relu_pool,
                .bias_relu_pool_gradient = sunway_bias_relu_pool_gradient,
                .softmax = sunway_softmax,
                .softmax_gradient = sunway_softmax_gradient,
                .cross_entropy = sunway_cross_entropy,
                .cross_entropy_gradient = sunway_cross_entropy_gradient,
                .softmax_cross_entropy_gradient = sunway_softmax_cross_entropy_gradient,
                .embed = sunway_embed,
                .embed_gradient = sunway_embed_gradient,
                .update = sunway_update,
                .add = sunway_add,
        },
        .open = sunway_open,
        .close = sunway_close,
        .allocate = host_memory_allocate,
        .release = host_memory_release,
        .trouble = sunway_trouble,
        .traffic = sunway_traffic,
};
/* clang-format on */
