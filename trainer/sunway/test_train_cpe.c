/* CPE: tasks against transfers that arrive as late as they may, and whose time is counted by a clock of the
 * test's own. What looks at data before it has waited for them finds NaN; what changes them before they are
 * out sends what it has not computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/sunway/cpe_product.h"
#include "trainer/sunway/cpe_vector.h"
#include "trainer/sunway/tile_plan.h"

#define STORE_BYTES 59392
#define UNDER_WAY   4096

/* Transfers that are begun and not waited for. */
static struct {
        const struct cpe_transfer *by;
        void *to;
        const void *from;
        size_t bytes;
        bool get;
} under_way[UNDER_WAY];
static size_t count_under_way;

/* The engine carries a byte in a tick; computing after a get takes so many. */
static uint64_t now, engine_until, computing;

static void begin(struct cpe_transfer *t, void *to, const void *from, size_t bytes, bool get)
{
        assert_true(count_under_way < UNDER_WAY);
        under_way[count_under_way].by = t;
        under_way[count_under_way].to = to;
        under_way[count_under_way].from = from;
        under_way[count_under_way].get = get;
        under_way[count_under_way++].bytes = bytes;
        engine_until = (engine_until > now ? engine_until : now) + bytes;
        t->until_nsec = engine_until;
}

void cpe_begin_get(struct cpe *core, struct cpe_transfer *t, void *local, const void *main_memory,
                   size_t bytes)
{
        memset(local, 0xff, bytes);
        core->read_bytes += bytes;
        begin(t, local, main_memory, bytes, true);
}

void cpe_begin_get_rows(struct cpe *core, struct cpe_transfer *t, float *local, const float *main_memory,
                        size_t rows, size_t cols, size_t stride)
{
        if (cols == stride) {
                cpe_begin_get(core, t, local, main_memory, rows * cols * sizeof(*local));
                return;
        }
        for (size_t r = 0; r < rows; r++)
                cpe_begin_get(core, t, local + r * cols, main_memory + r * stride, cols * sizeof(*local));
}

void cpe_begin_put(struct cpe *core, struct cpe_transfer *t, void *main_memory, const void *local,
                   size_t bytes)
{
        core->written_bytes += bytes;
        begin(t, main_memory, local, bytes, false);
}

void cpe_begin_put_rows(struct cpe *core, struct cpe_transfer *t, float *main_memory, const float *local,
                        size_t rows, size_t cols, size_t stride)
{
        if (cols == stride) {
                cpe_begin_put(core, t, main_memory, local, rows * cols * sizeof(*local));
                return;
        }
        for (size_t r = 0; r < rows; r++)
                cpe_begin_put(core, t, main_memory + r * stride, local + r * cols, cols * sizeof(*local));
}

void cpe_wait(struct cpe *core, struct cpe_transfer *t)
{
        size_t kept = 0;
        bool got = false;

        (void) core;
        for (size_t i = 0; i < count_under_way; i++) {
                if (under_way[i].by != t) {
                        under_way[kept++] = under_way[i];
                        continue;
                }
                memcpy(under_way[i].to, under_way[i].from, under_way[i].bytes);
                got = got || under_way[i].get;
        }
        count_under_way = kept;
        now = t->until_nsec > now ? t->until_nsec : now;
        now += got ? computing : 0;
        t->until_nsec = 0;
}

/* The order itself and what is waited for at once takes no time here. */
void cpe_get(struct cpe *core, void *local, const void *main_memory, size_t bytes)
{
        memcpy(local, main_memory, bytes);
        core->read_bytes += bytes;
}

void cpe_put(struct cpe *core, void *main_memory, const void *local, size_t bytes)
{
        memcpy(main_memory, local, bytes);
        core->written_bytes += bytes;
}

/* All cores, one after the other. Return: what they had together; peak and refusal of one. */
static struct cpe run(enum cpe_task task, const void *job, size_t bytes, size_t cores, size_t buffers)
{
        static _Alignas(64) unsigned char store[STORE_BYTES];
        struct cpe_order order = { task, job, bytes };
        struct cpe all = { 0 };

        now = engine_until = 0;
        for (size_t i = 0; i < cores; i++) {
                struct cpe core = { .index = i,
                                    .count = cores,
                                    .buffers = buffers,
                                    .store = store,
                                    .store_bytes = sizeof(store) };

                cpe_do(&core, &order);
                assert_int_equal(count_under_way, 0); /* a task ends when all is out */
                all.read_bytes += core.read_bytes;
                all.written_bytes += core.written_bytes;
                all.merged += core.merged;
                all.peak_bytes = core.peak_bytes > all.peak_bytes ? core.peak_bytes : all.peak_bytes;
                all.refused_bytes += core.refused_bytes;
        }
        return all;
}

static float *numbers(size_t count, unsigned seed)
{
        float *v = malloc(count * sizeof(*v));

        for (size_t i = 0; i < count; i++) /* sums of these are exact */
                v[i] = (float) ((i * 7 + seed * 13) % 17) - 8;
        return v;
}

/* clang-format off */
static const struct {
        struct kernels_matmul m;
        struct tile_plan tiles;
} products[] = {
        { { .rows = 8, .cols = 16, .inner = 8 }, { 8, 16, 8 } },
        { { .rows = 37, .cols = 53, .inner = 41 }, { 16, 16, 16 } },
        { { .rows = 37, .cols = 53, .inner = 41, .transpose_a = true }, { 16, 32, 8 } },
        { { .rows = 37, .cols = 53, .inner = 41, .transpose_b = true }, { 32, 16, 16 } },
        { { .rows = 37, .cols = 53, .inner = 41, .accumulate = true }, { 16, 53, 16 } },
        { { .rows = 64, .cols = 64, .inner = 96, .transpose_a = true, .transpose_b = true, .accumulate = true }, { 32, 32, 32 } },
        { { .rows = 1, .cols = 1, .inner = 1, .transpose_b = true }, { 1, 1, 1 } },
};
/* clang-format on */

static float wanted(const struct kernels_matmul *m, const float *c, size_t row, size_t col)
{
        float sum = m->accumulate ? c[row * m->cols + col] : 0;

        for (size_t k = 0; k < m->inner; k++)
                sum += m->a[m->transpose_a ? k * m->rows + row : row * m->inner + k] *
                       m->b[m->transpose_b ? col * m->inner + k : k * m->cols + col];
        return sum;
}

static void products_wait_for_what_they_use(void **state)
{
        (void) state;
        computing = 0;
        for (size_t i = 0; i < ARRAY_SIZE(products) * CPE_BUFFERS * 2; i++) {
                struct kernels_matmul m = products[i / (CPE_BUFFERS * 2)].m;
                struct tile_plan t = products[i / (CPE_BUFFERS * 2)].tiles;
                size_t buffers = 1 + i % CPE_BUFFERS, cores = i / CPE_BUFFERS % 2 == 0 ? 1 : 5;
                float *a = numbers(m.rows * m.inner, 1), *b = numbers(m.inner * m.cols, 2);
                float *before = numbers(m.rows * m.cols, 3), *c = numbers(m.rows * m.cols, 3);
                struct cpe_product job = { .m = m,
                                           .tile_rows = t.rows,
                                           .tile_cols = t.cols,
                                           .tile_inner = t.inner,
                                           .lanes = 16,
                                           .staging = true };
                size_t description = (sizeof(job) + CPE_ALIGN_BYTES - 1) / CPE_ALIGN_BYTES * CPE_ALIGN_BYTES;
                struct cpe all;

                job.m.a = a;
                job.m.b = b;
                job.m.c = c;
                all = run(CPE_PRODUCT, &job, sizeof(job), cores, buffers);
                for (size_t at = 0; at < m.rows * m.cols; at++)
                        assert_float_equal(c[at], wanted(&job.m, before, at / m.cols, at % m.cols), 0);
                assert_int_equal(all.refused_bytes, 0);
                assert_int_equal(all.peak_bytes,
                                 description + tile_plan_room_bytes(&t, buffers, m.transpose_b));
                assert_int_equal(all.read_bytes + all.written_bytes - cores * sizeof(job),
                                 tile_plan_traffic_bytes(&t, &m));
                free(a);
                free(b);
                free(before);
                free(c);
        }
}

/* 12 turns of a and b: of a turn's transfer and its computing the longer counts, the other once. */
static void second_buffers_hide_the_shorter(void **state)
{
        enum { EDGE = 32, TURNS = 12 };
        uint64_t moving = 2 * EDGE * EDGE * sizeof(float), out = EDGE * EDGE * sizeof(float);
        uint64_t computings[] = { moving / 4, moving, moving * 4 };
        float *a = numbers(EDGE * EDGE * TURNS, 1), *b = numbers(EDGE * EDGE * TURNS, 2),
              *c = numbers(EDGE * EDGE, 3);
        struct cpe_product job = {
                .m = { .rows = EDGE, .cols = EDGE, .inner = EDGE * TURNS, .a = a, .b = b, .c = c },
                .tile_rows = EDGE,
                .tile_cols = EDGE,
                .tile_inner = EDGE,
                .lanes = 16,
                .staging = true
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(computings); i++) {
                uint64_t longer = computings[i] > moving ? computings[i] : moving,
                         shorter = computings[i] > moving ? moving : computings[i];

                computing = computings[i];
                (void) run(CPE_PRODUCT, &job, sizeof(job), 1, 1);
                assert_int_equal(now, TURNS * (moving + computing) + out);
                (void) run(CPE_PRODUCT, &job, sizeof(job), 1, 2);
                assert_int_equal(now, TURNS * longer + shorter + out);
        }
        computing = 0;
        free(a);
        free(b);
        free(c);
}

static void arrays_wait_for_what_they_use(void **state)
{
        static const size_t counts[] = { 1, 4096, 50000 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(counts) * 4; i++) {
                size_t count = counts[i / 4], buffers = 1 + i % 2;
                bool momentum = i % 4 / 2 == 1;
                float *g = numbers(count, 1), *w = numbers(count, 2), *velocity = numbers(count, 3);
                struct cpe_vector add = { .what = CPE_VECTOR_ADD, .count = count, .x = g, .y = w };
                struct cpe_vector update = { .what = CPE_VECTOR_UPDATE_MOMENTUM,
                                             .count = count,
                                             .factor = 0.5F,
                                             .momentum = 0.25F,
                                             .x = g,
                                             .y = w,
                                             .y2 = velocity };
                struct cpe all = momentum ? run(CPE_VECTOR, &update, sizeof(update), 3, buffers)
                                          : run(CPE_VECTOR, &add, sizeof(add), 3, buffers);

                assert_int_equal(all.refused_bytes, 0);
                assert_int_equal(all.merged, momentum ? 0 : count);
                for (size_t at = 0; at < count; at++) {
                        float x = (float) ((at * 7 + 13) % 17) - 8, y = (float) ((at * 7 + 26) % 17) - 8,
                              v = (float) ((at * 7 + 39) % 17) - 8;
                        float due = momentum ? y - 0.5F * (0.25F * v + x) : y + x;

                        assert_float_equal(w[at], due, 0);
                }
                free(g);
                free(w);
                free(velocity);
        }
}

static void merging_adds_each_part_once(void **state)
{
        static const struct {
                size_t parts, cols, cores;
        } rows[] = { { 64, 10, 64 },   { 64, 256, 64 }, { 3, 5000, 4 },
                     { 64, 40000, 2 }, { 1, 1, 1 },     { 4096, 33, 2 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows) * 2; i++) {
                size_t parts = rows[i / 2].parts, cols = rows[i / 2].cols;
                float *partial = numbers(parts * cols, 1), *y = numbers(cols, 2), *before = numbers(cols, 2);
                struct cpe_vector_merging job = { parts, cols, partial, y };
                struct cpe all = run(CPE_MERGE, &job, sizeof(job), rows[i / 2].cores, 1 + i % 2);

                assert_int_equal(all.refused_bytes, 0);
                assert_int_equal(all.merged, parts * cols);
                for (size_t c = 0; c < cols; c++) {
                        float sum = before[c];

                        for (size_t p = 0; p < parts; p++)
                                sum += partial[p * cols + c];
                        assert_float_equal(y[c], sum, 0);
                }
                free(partial);
                free(y);
                free(before);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(products_wait_for_what_they_use),
                cmocka_unit_test(second_buffers_hide_the_shorter),
                cmocka_unit_test(arrays_wait_for_what_they_use),
                cmocka_unit_test(merging_adds_each_part_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
