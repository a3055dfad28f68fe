/* The sunway backend: every hot function on all CPEs (slave cores) of a group, in tiles that fit their 64 KB
 * local stores.
 *
 * A job is cut into units (tiles, rows, samples); core c of n does units c, c+n, ... Units write disjoint
 * memory or fixed places that the master adds up in core order, so results do not depend on timing. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "trainer/backends/blas.h"
#include "trainer/backends/host_memory.h"
#include "trainer/operators/backend.h"
#include "trainer/sunway/cpe_class.h"
#include "trainer/sunway/cpe_group.h"
#include "trainer/sunway/cpe_image.h"
#include "trainer/sunway/cpe_product.h"
#include "trainer/sunway/cpe_vector.h"

/* untuned */
#define TILE_EDGE  32
#define TILE_LANES 16 /* what sixteen registers hold */

struct sunway {
        struct cpe_group *group;
        size_t tile_rows, tile_cols, tile_inner, tile_lanes;
        bool blas, staging;
        float *partial; /* one row of sums a CPE */
        size_t partial_cols;
        uint64_t unstaged_bytes;
        struct err first_error;
};

static void sunway_matmul(void *state, const struct kernels_matmul *m)
{
        struct sunway *s = state;
        struct cpe_product job = { .m = *m,
                                   .tile_rows = cpe_smaller(s->tile_rows, m->rows),
                                   .tile_cols = cpe_smaller(s->tile_cols, m->cols),
                                   .tile_inner = cpe_smaller(s->tile_inner, m->inner),
                                   .lanes = s->tile_lanes,
                                   .staging = s->staging };

        s->unstaged_bytes += (2 * m->inner + (m->accumulate ? 2 : 1)) * m->rows * m->cols * sizeof(float);
        if (!s->blas) {
                cpe_group_run(s->group, CPE_PRODUCT, &job, sizeof(job));
                return;
        }
        blas_matmul(m);
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

static void add_partial(struct sunway *s, size_t cols, float *db)
{
        for (size_t core = 0; core < cpe_group_count(s->group); core++)
                for (size_t c = 0; c < cols; c++)
                        db[c] += s->partial[core * cols + c];
}

static void run_sums(struct sunway *s, struct cpe_vector_rows *job, float *db)
{
        if (!want_partial(s, job->cols))
                return;
        job->partial = s->partial;
        s->unstaged_bytes += (job->mask ? 4U : 2U) * job->rows * job->cols * sizeof(float);
        cpe_group_run(s->group, CPE_SUMS, job, sizeof(*job));
        add_partial(s, job->cols, db);
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
        add_partial(me, s->channels, db);
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
                return err_set(err, -ENOSPC,
                               "a slave core was refused %zu bytes of its %d-byte local store: smaller tiles "
                               "are wanted",
                               totals.refused_bytes, CPE_STORE_BYTES);
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
                                         .local_peak_bytes = totals.peak_bytes };
}

static void sunway_close(void *state)
{
        struct sunway *s = state;

        cpe_group_close(s->group);
        free(s->partial);
        free(s);
}

static int sunway_open(const struct backend_options *o, struct backend *b, struct err *err)
{
        struct sunway *s = calloc(1, sizeof(*s));
        int r;

        if (s == NULL)
                return err_set(err, -ENOMEM, "no memory for the sunway backend");
        s->tile_rows = o->tile_rows > 0 ? o->tile_rows : TILE_EDGE;
        s->tile_cols = o->tile_cols > 0 ? o->tile_cols : TILE_EDGE;
        s->tile_inner = o->tile_inner > 0 ? o->tile_inner : TILE_EDGE;
        s->tile_lanes = o->tile_lanes > 0 ? o->tile_lanes : TILE_LANES;
        s->blas = o->gemm_blas;
        s->staging = !o->no_staging;
        r = cpe_group_open(o->variant, o->cpes, o->cpus, &s->group, err);
        if (r < 0) {
                free(s);
                return r;
        }
        b->state = s;
        (void) text_format(b->device_model, sizeof(b->device_model), "%s core group of %zu (%s)",
                           strcmp(cpe_group_variant(s->group), "athread") == 0 ? "Sunway" : "portable",
                           o->cpes, cpe_group_variant(s->group));
        return 0;
}

/* clang-format off */
const struct backend_row backend_linked = {
        .runtime = "sunway",
        .has_tiles = true,
        .kernels = {
                .matmul = sunway_matmul,
                .bias = sunway_bias,
                .bias_gradient = sunway_bias_gradient,
                .scale = sunway_scale,
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
        },
        .open = sunway_open,
        .close = sunway_close,
        .allocate = host_memory_allocate,
        .release = host_memory_release,
        .trouble = sunway_trouble,
        .traffic = sunway_traffic,
};
/* clang-format on */
