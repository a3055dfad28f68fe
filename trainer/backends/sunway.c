/* The sunway backend: every hot function on all slave cores of a group, in tiles that fit their 64 KB local
 * stores.
 *
 * A job is cut into units (tiles, rows, samples); core c of n does units c, c+n, ... Units write disjoint
 * memory or fixed places that the master adds up in core order, so results do not depend on timing. */
#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "trainer/backend.h"
#include "trainer/ramp.h"
#include "trainer/slave_cores.h"
#include "trainer/slave_work.h"

#define TILE_EDGE 32   /* untuned */
#define PIECE     4096 /* floats of an array in the local store at a time, three arrays at the most */

struct sunway {
        struct slave_cores *group;
        size_t tile_rows, tile_cols, tile_inner;
        bool blas, staging;
        float *partial; /* one row of sums a slave core */
        size_t partial_cols;
        uint64_t unstaged_bytes;
        struct err first_error;
};

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* --- matrix product
 * ------------------------------------------------------------------------------------------- */

static void sunway_matmul(void *state, const struct matmul *m)
{
        struct sunway *s = state;
        struct product_job job = { .m = *m,
                                   .tile_rows = smaller(s->tile_rows, m->rows),
                                   .tile_cols = smaller(s->tile_cols, m->cols),
                                   .tile_inner = smaller(s->tile_inner, m->inner),
                                   .staging = s->staging };

        s->unstaged_bytes += (2 * m->inner + (m->accumulate ? 2 : 1)) * m->rows * m->cols * sizeof(float);
        if (!s->blas) {
                slave_cores_run(s->group, products_work, &job, sizeof(job));
                return;
        }
        cblas_sgemm(CblasRowMajor, m->transpose_a ? CblasTrans : CblasNoTrans,
                    m->transpose_b ? CblasTrans : CblasNoTrans, (int) m->rows, (int) m->cols, (int) m->inner,
                    1.0F, m->a, (int) (m->transpose_a ? m->rows : m->inner), m->b,
                    (int) (m->transpose_b ? m->inner : m->cols), m->accumulate ? 1.0F : 0.0F, m->c,
                    (int) m->cols);
}

/* --- one array in, one array out, piece by piece
 * ---------------------------------------------------------------- */

enum vector_operation { SCALE, RAMP, RAMP_GRADIENT, UPDATE, UPDATE_MOMENTUM };

struct vector_job {
        enum vector_operation what;
        size_t count;
        float factor, momentum;
        const float *x, *x2;
        float *y, *y2;
};

static void vector_piece(const struct vector_job *job, size_t count, const float *x, const float *x2,
                         float *y, float *y2)
{
        switch (job->what) {
        case SCALE:
                for (size_t i = 0; i < count; i++)
                        y[i] = job->factor * x[i];
                break;
        case RAMP:
                for (size_t i = 0; i < count; i++)
                        y[i] = ramp_of(x[i]);
                break;
        case RAMP_GRADIENT:
                for (size_t i = 0; i < count; i++)
                        y[i] = x[i] * ramp_slope(x2[i]);
                break;
        case UPDATE:
                for (size_t i = 0; i < count; i++)
                        y[i] -= job->factor * x[i];
                break;
        case UPDATE_MOMENTUM:
                for (size_t i = 0; i < count; i++) {
                        y2[i] = job->momentum * y2[i] + x[i];
                        y[i] -= job->factor * y2[i];
                }
                break;
        }
}

static void vector_work(struct slave_core *core, const void *argument)
{
        const struct vector_job *job = argument;
        float *x = local_take(core, PIECE * sizeof(float)), *y = local_take(core, PIECE * sizeof(float));
        float *other = job->x2 != NULL || job->y2 != NULL ? local_take(core, PIECE * sizeof(float)) : NULL;
        bool reads_y = job->what == UPDATE || job->what == UPDATE_MOMENTUM;

        if (x == NULL || y == NULL || (other == NULL && (job->x2 != NULL || job->y2 != NULL)))
                return;
        for (size_t at = core->index * PIECE; at < job->count; at += core->count * PIECE) {
                size_t count = smaller(PIECE, job->count - at), bytes = count * sizeof(float);

                local_get(core, x, job->x + at, bytes);
                if (reads_y)
                        local_get(core, y, job->y + at, bytes);
                if (other != NULL)
                        local_get(core, other, (job->x2 != NULL ? job->x2 : job->y2) + at, bytes);
                vector_piece(job, count, x, other, y, other);
                local_put(core, job->y + at, y, bytes);
                if (job->y2 != NULL)
                        local_put(core, job->y2 + at, other, bytes);
        }
}

static void run_vector(void *state, const struct vector_job *job)
{
        struct sunway *s = state;

        s->unstaged_bytes += job->count * sizeof(float) * (2U + (job->x2 != NULL) + 2U * (job->y2 != NULL));
        slave_cores_run(s->group, vector_work, job, sizeof(*job));
}

static void sunway_scale(void *state, size_t count, float factor, const float *x, float *y)
{
        run_vector(state,
                   &(struct vector_job){ .what = SCALE, .count = count, .factor = factor, .x = x, .y = y });
}

static void sunway_ramp(void *state, size_t count, const float *x, float *y)
{
        run_vector(state, &(struct vector_job){ .what = RAMP, .count = count, .x = x, .y = y });
}

static void sunway_ramp_gradient(void *state, size_t count, const float *y, const float *dy, float *dx)
{
        run_vector(state,
                   &(struct vector_job){ .what = RAMP_GRADIENT, .count = count, .x = dy, .x2 = y, .y = dx });
}

static void sunway_update(void *state, size_t count, float rate, float momentum, const float *g,
                          float *velocity, float *w)
{
        run_vector(state, &(struct vector_job){ .what = velocity != NULL ? UPDATE_MOMENTUM : UPDATE,
                                                .count = count,
                                                .factor = rate,
                                                .momentum = momentum,
                                                .x = g,
                                                .y = w,
                                                .y2 = velocity });
}

/* --- matrices by rows: bias, column sums
 * ------------------------------------------------------------------------ */

struct rows_job {
        size_t rows, cols;
        const float *x, *b;
        float *y;
        float *partial; /* cols sums a core */
        bool ramp;
        bool mask; /* y is the activation that decides whether dy (in x) passes */
        float *masked;
};

/* Columns in slices that fit, rows in turns of `lines`; each core has a range of rows of its own. */
static void bias_work(struct slave_core *core, const void *argument)
{
        const struct rows_job *job = argument;
        size_t width = smaller(job->cols, PIECE), first = job->rows * core->index / core->count;
        size_t end = job->rows * (core->index + 1) / core->count;
        float *b = local_take(core, width * sizeof(float)), *line = local_take(core, width * sizeof(float));

        if (b == NULL || line == NULL)
                return;
        for (size_t col = 0; col < job->cols; col += width) {
                size_t count = smaller(width, job->cols - col);

                local_get(core, b, job->b + col, count * sizeof(float));
                for (size_t r = first; r < end; r++) {
                        local_get(core, line, job->x + r * job->cols + col, count * sizeof(float));
                        for (size_t c = 0; c < count; c++) {
                                float v = line[c] + b[c];

                                line[c] = job->ramp ? ramp_of(v) : v;
                        }
                        local_put(core, job->y + r * job->cols + col, line, count * sizeof(float));
                }
        }
}

static void sums_work(struct slave_core *core, const void *argument)
{
        const struct rows_job *job = argument;
        size_t width = smaller(job->cols, PIECE), first = job->rows * core->index / core->count;
        size_t end = job->rows * (core->index + 1) / core->count;
        float *sum = local_take(core, width * sizeof(float)), *line = local_take(core, width * sizeof(float));
        float *y = local_take(core, width * sizeof(float));

        if (sum == NULL || line == NULL || y == NULL)
                return;
        for (size_t col = 0; col < job->cols; col += width) {
                size_t count = smaller(width, job->cols - col);

                memset(sum, 0, count * sizeof(float));
                for (size_t r = first; r < end; r++) {
                        local_get(core, line, job->x + r * job->cols + col, count * sizeof(float));
                        if (job->mask) {
                                local_get(core, y, job->b + r * job->cols + col, count * sizeof(float));
                                for (size_t c = 0; c < count; c++)
                                        line[c] *= ramp_slope(y[c]);
                                local_put(core, job->masked + r * job->cols + col, line,
                                          count * sizeof(float));
                        }
                        for (size_t c = 0; c < count; c++)
                                sum[c] += line[c];
                }
                local_put(core, job->partial + core->index * job->cols + col, sum, count * sizeof(float));
        }
}

static void run_bias(void *state, const struct rows_job *job)
{
        struct sunway *s = state;

        s->unstaged_bytes += 3 * job->rows * job->cols * sizeof(float);
        slave_cores_run(s->group, bias_work, job, sizeof(*job));
}

static void sunway_bias(void *state, size_t rows, size_t cols, const float *x, const float *b, float *y)
{
        run_bias(state, &(struct rows_job){ .rows = rows, .cols = cols, .x = x, .b = b, .y = y });
}

static void sunway_bias_ramp(void *state, size_t rows, size_t cols, const float *b, float *y)
{
        run_bias(state,
                 &(struct rows_job){ .rows = rows, .cols = cols, .x = y, .b = b, .y = y, .ramp = true });
}

/* Room for one row of sums a core. Return: false, and the error is kept, without memory. */
static bool want_partial(struct sunway *s, size_t cols)
{
        float *more;

        if (cols <= s->partial_cols)
                return true;
        more = realloc(s->partial, slave_cores_count(s->group) * cols * sizeof(*more));
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
        for (size_t core = 0; core < slave_cores_count(s->group); core++)
                for (size_t c = 0; c < cols; c++)
                        db[c] += s->partial[core * cols + c];
}

static void run_sums(struct sunway *s, struct rows_job *job, float *db)
{
        if (!want_partial(s, job->cols))
                return;
        job->partial = s->partial;
        s->unstaged_bytes += (job->mask ? 4U : 2U) * job->rows * job->cols * sizeof(float);
        slave_cores_run(s->group, sums_work, job, sizeof(*job));
        add_partial(s, job->cols, db);
}

static void sunway_bias_gradient(void *state, size_t rows, size_t cols, const float *dy, float *db)
{
        run_sums(state, &(struct rows_job){ .rows = rows, .cols = cols, .x = dy }, db);
}

static void sunway_bias_ramp_gradient(void *state, size_t rows, size_t cols, const float *y, float *dy,
                                      float *db)
{
        run_sums(
                state,
                &(struct rows_job){ .rows = rows, .cols = cols, .x = dy, .b = y, .mask = true, .masked = dy },
                db);
}

/* --- images
 * ------------------------------------------------------------------------------------------------------ */

static void run_images(void *state, void (*work)(struct slave_core *core, const void *job),
                       const struct image_job *job)
{
        struct sunway *s = state;
        const struct image_shape *i = &job->shape;
        size_t pixels = i->samples * i->height * i->width * i->channels;

        s->unstaged_bytes += pixels * (i->kernel > 0 ? 2 * i->kernel * i->kernel : 2) * sizeof(float);
        slave_cores_run(s->group, work, job, sizeof(*job));
}

static void sunway_gather(void *state, const struct image_shape *s, const float *x, float *patches)
{
        run_images(state, images_gather, &(struct image_job){ .shape = *s, .x = x, .y = patches });
}

static void sunway_scatter(void *state, const struct image_shape *s, const float *patches, float *dx)
{
        run_images(state, images_scatter, &(struct image_job){ .shape = *s, .x = patches, .y = dx });
}

static void sunway_pool(void *state, const struct image_shape *s, const float *x, float *y, uint8_t *which)
{
        run_images(state, images_pool,
                   &(struct image_job){ .shape = *s, .x = x, .y = y, .which_out = which });
}

static void sunway_bias_ramp_pool(void *state, const struct image_shape *s, const float *x, const float *b,
                                  float *y, uint8_t *which)
{
        run_images(state, images_pool,
                   &(struct image_job){ .shape = *s, .x = x, .b = b, .y = y, .which_out = which });
}

static void sunway_pool_gradient(void *state, const struct image_shape *s, const uint8_t *which,
                                 const float *dy, float *dx)
{
        run_images(state, images_pool_gradient,
                   &(struct image_job){ .shape = *s, .x = dy, .y = dx, .which = which });
}

static void sunway_bias_ramp_pool_gradient(void *state, const struct image_shape *s, const uint8_t *which,
                                           const float *y, const float *dy, float *dx, float *db)
{
        struct sunway *me = state;

        if (!want_partial(me, s->channels))
                return;
        run_images(state, images_pool_gradient,
                   &(struct image_job){
                           .shape = *s, .x = dy, .b = y, .y = dx, .which = which, .partial = me->partial });
        add_partial(me, s->channels, db);
}

/* --- softmax, loss, embedding
 * -------------------------------------------------------------------------------------- */

static void run_classes(void *state, void (*work)(struct slave_core *core, const void *job),
                        const struct class_job *job)
{
        struct sunway *s = state;

        s->unstaged_bytes += 3 * job->rows * job->cols * sizeof(float);
        slave_cores_run(s->group, work, job, sizeof(*job));
}

static void sunway_softmax(void *state, size_t rows, size_t cols, const float *x, float *p)
{
        run_classes(state, classes_softmax,
                    &(struct class_job){ .rows = rows, .cols = cols, .x = x, .y = p });
}

static void sunway_softmax_gradient(void *state, size_t rows, size_t cols, const float *p, const float *dp,
                                    float *dx)
{
        run_classes(state, classes_softmax_gradient,
                    &(struct class_job){ .rows = rows, .cols = cols, .x = p, .x2 = dp, .y = dx });
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
                state, classes_embed,
                &(struct class_job){ .rows = rows * tokens, .cols = width, .x = table, .x2 = ids, .y = y });
}

static void sunway_embed_gradient(void *state, size_t rows, size_t tokens, size_t width, const float *ids,
                                  const float *dy, float *dtable)
{
        run_classes(
                state, classes_embed_gradient,
                &(struct class_job){ .rows = rows * tokens, .cols = width, .x = dy, .x2 = ids, .y = dtable });
}

/* --- the backend
 * ----------------------------------------------------------------------------------------------------- */

static void *sunway_allocate(void *state, size_t size_bytes)
{
        size_t rounded = (size_bytes + 63) / 64 * 64;
        void *memory = aligned_alloc(64, rounded);

        (void) state;
        if (memory != NULL)
                memset(memory, 0, rounded);
        return memory;
}

static void sunway_release(void *state, void *memory)
{
        (void) state;
        free(memory);
}

static int sunway_trouble(void *state, struct err *err)
{
        struct sunway *s = state;
        struct slave_totals totals;

        slave_cores_totals(s->group, &totals);
        if (totals.refused_bytes > 0)
                return err_set(err, -ENOSPC,
                               "a slave core was refused %zu bytes of its %d-byte local store: smaller tiles "
                               "are wanted",
                               totals.refused_bytes, LOCAL_STORE_BYTES);
        return s->first_error.code != 0 ? err_set(err, s->first_error.code, "%s", s->first_error.msg) : 0;
}

static void sunway_traffic(void *state, struct backend_traffic *ret)
{
        struct sunway *s = state;
        struct slave_totals totals;

        slave_cores_totals(s->group, &totals);
        *ret = (struct backend_traffic){ .read_bytes = totals.read_bytes,
                                         .written_bytes = totals.written_bytes,
                                         .unstaged_bytes = s->unstaged_bytes,
                                         .local_peak_bytes = totals.peak_bytes };
}

static void sunway_close(void *state)
{
        struct sunway *s = state;

        slave_cores_close(s->group);
        free(s->partial);
        free(s);
}

/* clang-format off */
static const struct kernels sunway_kernels = {
        .matmul = sunway_matmul,
        .bias = sunway_bias,
        .bias_gradient = sunway_bias_gradient,
        .scale = sunway_scale,
        .ramp = sunway_ramp,
        .ramp_gradient = sunway_ramp_gradient,
        .bias_ramp = sunway_bias_ramp,
        .bias_ramp_gradient = sunway_bias_ramp_gradient,
        .gather = sunway_gather,
        .scatter = sunway_scatter,
        .pool = sunway_pool,
        .pool_gradient = sunway_pool_gradient,
        .bias_ramp_pool = sunway_bias_ramp_pool,
        .bias_ramp_pool_gradient = sunway_bias_ramp_pool_gradient,
        .softmax = sunway_softmax,
        .softmax_gradient = sunway_softmax_gradient,
        .cross_entropy = sunway_cross_entropy,
        .cross_entropy_gradient = sunway_cross_entropy_gradient,
        .softmax_cross_entropy_gradient = sunway_softmax_cross_entropy_gradient,
        .embed = sunway_embed,
        .embed_gradient = sunway_embed_gradient,
        .update = sunway_update,
};
/* clang-format on */

void backend_prepare(char **argv)
{
        (void) argv;
}

int backend_open(const struct backend_options *o, struct backend *ret, struct err *err)
{
        struct sunway *s = calloc(1, sizeof(*s));
        int r;

        if (s == NULL)
                return err_set(err, -ENOMEM, "no memory for the sunway backend");
        s->tile_rows = o->tile_rows > 0 ? o->tile_rows : TILE_EDGE;
        s->tile_cols = o->tile_cols > 0 ? o->tile_cols : TILE_EDGE;
        s->tile_inner = o->tile_inner > 0 ? o->tile_inner : TILE_EDGE;
        s->blas = o->gemm_blas;
        s->staging = !o->no_staging;
        r = slave_cores_open(o->slave_cores, o->cpus, &s->group, err);
        if (r < 0) {
                free(s);
                return r;
        }
        *ret = (struct backend){ .runtime = "sunway",
                                 .has_tiles = true,
                                 .kernels = sunway_kernels,
                                 .state = s,
                                 .allocate = sunway_allocate,
                                 .release = sunway_release,
                                 .trouble = sunway_trouble,
                                 .traffic = sunway_traffic,
                                 .close = sunway_close };
        (void) text_format(ret->device_model, sizeof(ret->device_model), "portable core group of %zu (%s)",
                           o->slave_cores, slave_cores_variant());
        return 0;
}
