/* The management core's side of a group of CPEs (slave cores), whatever the variant, and the transfers of
 * those that are stood in for: their local stores are memory like any other, with its traffic counted. Their
 * DMA is a copy that is made when it begins; where it is to take time (simulated), the engine of each CPE
 * carries so many bytes a second, one transfer after the other, and whoever waits sleeps until it would be
 * through. */
#include "trainer/sunway/cpe_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"

struct cpe_group {
        const struct cpe_group_variant *variant;
        void *state; /* the variant's */
        struct cpe *cores;
        size_t count, room_bytes;
        uint64_t simulated_nsec; /* of all orders so far */
};

static const struct cpe_group_variant *find_variant(const char *name, struct err *err)
{
        const struct cpe_group_variant *const variants[] = { &cpe_group_threads, &cpe_group_athread };
        struct text have = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
                if (variants[i] == NULL)
                        continue;
                if (name == NULL || strcmp(variants[i]->name, name) == 0) {
                        text_free(&have);
                        return variants[i];
                }
                text_printf(&have, "%s%s", i > 0 ? ", " : "", variants[i]->name);
        }
        (void) err_set(err, -EINVAL, "--variant %s: this build was made without its compiler, it has %s",
                       name, have.failed ? "threads" : have.data);
        text_free(&have);
        return NULL;
}

size_t cpe_group_rule_room_bytes(const struct cpe_group_rule *rule)
{
        return rule->store_bytes - CPE_KEPT_BYTES;
}

int cpe_group_open(const struct cpe_group_rule *rule, struct cpe_group **ret, struct err *err)
{
        const struct cpe_group_variant *v = find_variant(rule->variant, err);
        struct cpe_group *g = v != NULL ? calloc(1, sizeof(*g)) : NULL;
        int r;

        if (v == NULL)
                return err->code;
        if (g == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu slave cores", rule->count);
        g->variant = v;
        g->count = rule->count;
        g->room_bytes = cpe_group_rule_room_bytes(rule);
        g->cores = calloc(rule->count, sizeof(*g->cores));
        for (size_t i = 0; g->cores != NULL && i < rule->count; i++)
                g->cores[i] = (struct cpe){ .index = i,
                                            .count = rule->count,
                                            .buffers = rule->buffers,
                                            .store_bytes = g->room_bytes,
                                            .dma_bytes_per_s = rule->dma_bytes_per_s };
        r = g->cores != NULL ? v->open(g->cores, rule, &g->state, err)
                             : err_set(err, -ENOMEM, "no memory for %zu slave cores", rule->count);
        if (r < 0) {
                free(g->cores);
                free(g);
                return r;
        }
        *ret = g;
        return 0;
}

void cpe_group_close(struct cpe_group *g)
{
        if (g == NULL)
                return;
        g->variant->close(g->state);
        free(g->cores);
        free(g);
}

size_t cpe_group_count(const struct cpe_group *g)
{
        return g->count;
}

const char *cpe_group_variant(const struct cpe_group *g)
{
        return g->variant->name;
}

size_t cpe_group_room_bytes(const struct cpe_group *g)
{
        return g->room_bytes;
}

void cpe_group_run(struct cpe_group *g, enum cpe_task task, const void *job, size_t bytes)
{
        uint64_t slowest = 0;

        g->variant->run(g->state, &(struct cpe_order){ task, job, bytes });
        for (size_t i = 0; i < g->count; i++)
                slowest = g->cores[i].order_nsec > slowest ? g->cores[i].order_nsec : slowest;
        g->simulated_nsec += slowest;
}

void cpe_group_totals(const struct cpe_group *g, struct cpe_group_totals *ret)
{
        *ret = (struct cpe_group_totals){ .simulated_nsec = g->simulated_nsec };
        for (size_t i = 0; i < g->count; i++) {
                ret->read_bytes += g->cores[i].read_bytes;
                ret->written_bytes += g->cores[i].written_bytes;
                ret->merged += g->cores[i].merged;
                if (g->cores[i].peak_bytes > ret->peak_bytes)
                        ret->peak_bytes = g->cores[i].peak_bytes;
                if (g->cores[i].refused_bytes > ret->refused_bytes)
                        ret->refused_bytes = g->cores[i].refused_bytes;
        }
}

/* Simulated: when it is for this CPE. */
static uint64_t own_nsec(const struct cpe *core)
{
        return clock_nsec(CLOCK_THREAD_CPUTIME_ID) + core->waited_nsec;
}

/* Simulated: the engine begins when it is through with what was begun before. Return: when this is through.
 */
static uint64_t occupy(struct cpe *core, size_t bytes)
{
        uint64_t now = own_nsec(core);

        core->dma_nsec = (core->dma_nsec > now ? core->dma_nsec : now) +
                         (uint64_t) bytes * 1000000000 / core->dma_bytes_per_s;
        return core->dma_nsec;
}

static void wait_until(struct cpe *core, uint64_t nsec)
{
        uint64_t now = own_nsec(core);

        core->waited_nsec += nsec > now ? nsec - now : 0;
}

void cpe_group_do(struct cpe *core, const struct cpe_order *order)
{
        uint64_t began = core->dma_bytes_per_s > 0 ? own_nsec(core) : 0;

        cpe_do(core, order);
        core->order_nsec = core->dma_bytes_per_s > 0 ? own_nsec(core) - began : 0;
}

void cpe_begin_get(struct cpe *core, struct cpe_transfer *t, void *local, const void *main_memory,
                   size_t bytes)
{
        memcpy(local, main_memory, bytes);
        core->read_bytes += bytes;
        if (core->dma_bytes_per_s > 0)
                t->until_nsec = occupy(core, bytes);
}

void cpe_begin_get_rows(struct cpe *core, struct cpe_transfer *t, float *local, const float *main_memory,
                        size_t rows, size_t cols, size_t stride)
{
        size_t line_bytes = cols * sizeof(*local);

        for (size_t r = 0; cols < stride && r < rows; r++)
                memcpy(local + r * cols, main_memory + r * stride, line_bytes);
        if (cols == stride)
                memcpy(local, main_memory, rows * line_bytes);
        core->read_bytes += rows * line_bytes;
        if (core->dma_bytes_per_s > 0)
                t->until_nsec = occupy(core, rows * line_bytes);
}

void cpe_begin_put(struct cpe *core, struct cpe_transfer *t, void *main_memory, const void *local,
                   size_t bytes)
{
        memcpy(main_memory, local, bytes);
        core->written_bytes += bytes;
        if (core->dma_bytes_per_s > 0)
                t->until_nsec = occupy(core, bytes);
}

void cpe_begin_put_rows(struct cpe *core, struct cpe_transfer *t, float *main_memory, const float *local,
                        size_t rows, size_t cols, size_t stride)
{
        size_t line_bytes = cols * sizeof(*local);

        for (size_t r = 0; cols < stride && r < rows; r++)
                memcpy(main_memory + r * stride, local + r * cols, line_bytes);
        if (cols == stride)
                memcpy(main_memory, local, rows * line_bytes);
        core->written_bytes += rows * line_bytes;
        if (core->dma_bytes_per_s > 0)
                t->until_nsec = occupy(core, rows * line_bytes);
}

void cpe_wait(struct cpe *core, struct cpe_transfer *t)
{
        if (core->dma_bytes_per_s > 0)
                wait_until(core, t->until_nsec);
        t->until_nsec = 0;
}

/* Of a few numbers at a time, often: nothing but the copy where it takes no time. */
void cpe_get(struct cpe *core, void *local, const void *main_memory, size_t bytes)
{
        memcpy(local, main_memory, bytes);
        core->read_bytes += bytes;
        if (core->dma_bytes_per_s > 0)
                wait_until(core, occupy(core, bytes));
}

void cpe_put(struct cpe *core, void *main_memory, const void *local, size_t bytes)
{
        memcpy(main_memory, local, bytes);
        core->written_bytes += bytes;
        if (core->dma_bytes_per_s > 0)
                wait_until(core, occupy(core, bytes));
}
