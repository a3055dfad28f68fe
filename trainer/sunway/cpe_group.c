/* The master core's side of a group of CPEs (slave cores), whatever the variant, and the transfers of those
 * that are stood in for: their local stores are memory like any other, with its traffic counted. */
#include "trainer/sunway/cpe_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

struct cpe_group {
        const struct cpe_group_variant *variant;
        void *state; /* the variant's */
        struct cpe *cores;
        size_t count;
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

int cpe_group_open(const char *variant, size_t count, size_t cpus, struct cpe_group **ret, struct err *err)
{
        const struct cpe_group_variant *v = find_variant(variant, err);
        struct cpe_group *g = v != NULL ? calloc(1, sizeof(*g)) : NULL;
        int r;

        if (v == NULL)
                return err->code;
        if (g == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu slave cores", count);
        g->variant = v;
        g->count = count;
        g->cores = calloc(count, sizeof(*g->cores));
        for (size_t i = 0; g->cores != NULL && i < count; i++)
                g->cores[i] = (struct cpe){ .index = i, .count = count };
        r = g->cores != NULL ? v->open(g->cores, count, cpus, &g->state, err)
                             : err_set(err, -ENOMEM, "no memory for %zu slave cores", count);
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

void cpe_group_run(struct cpe_group *g, enum cpe_task task, const void *job, size_t bytes)
{
        g->variant->run(g->state, &(struct cpe_order){ task, job, bytes });
}

void cpe_group_totals(const struct cpe_group *g, struct cpe_group_totals *ret)
{
        *ret = (struct cpe_group_totals){ 0 };
        for (size_t i = 0; i < g->count; i++) {
                ret->read_bytes += g->cores[i].read_bytes;
                ret->written_bytes += g->cores[i].written_bytes;
                if (g->cores[i].peak_bytes > ret->peak_bytes)
                        ret->peak_bytes = g->cores[i].peak_bytes;
                if (g->cores[i].refused_bytes > ret->refused_bytes)
                        ret->refused_bytes = g->cores[i].refused_bytes;
        }
}

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
