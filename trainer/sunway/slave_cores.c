/* The master core's side, whatever the variant. */
#include "trainer/sunway/slave_cores.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

struct slave_cores {
        const struct slave_variant *variant;
        void *state; /* the variant's */
        struct slave_core *cores;
        size_t count;
};

/* A variant is part of the program where its compiler was there; see trainer/build.mk. */
extern const struct slave_variant slave_threads;
extern const struct slave_variant slave_openacc __attribute__((weak));
extern const struct slave_variant slave_athread __attribute__((weak));

static const struct slave_variant *find_variant(const char *name, struct err *err)
{
        const struct slave_variant *const variants[] = { &slave_threads, &slave_openacc, &slave_athread };
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

int slave_cores_open(const char *variant, size_t count, size_t cpus, struct slave_cores **ret,
                     struct err *err)
{
        const struct slave_variant *v = find_variant(variant, err);
        struct slave_cores *g = v != NULL ? calloc(1, sizeof(*g)) : NULL;
        int r;

        if (v == NULL)
                return err->code;
        if (g == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu slave cores", count);
        g->variant = v;
        g->count = count;
        g->cores = calloc(count, sizeof(*g->cores));
        for (size_t i = 0; g->cores != NULL && i < count; i++)
                g->cores[i] = (struct slave_core){ .index = i, .count = count };
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

void slave_cores_close(struct slave_cores *g)
{
        if (g == NULL)
                return;
        g->variant->close(g->state);
        free(g->cores);
        free(g);
}

size_t slave_cores_count(const struct slave_cores *g)
{
        return g->count;
}

const char *slave_cores_variant(const struct slave_cores *g)
{
        return g->variant->name;
}

void slave_cores_run(struct slave_cores *g, enum slave_task task, const void *job, size_t bytes)
{
        g->variant->run(g->state, &(struct slave_order){ task, job, bytes });
}

void slave_cores_totals(const struct slave_cores *g, struct slave_totals *ret)
{
        *ret = (struct slave_totals){ 0 };
        for (size_t i = 0; i < g->count; i++) {
                ret->read_bytes += g->cores[i].read_bytes;
                ret->written_bytes += g->cores[i].written_bytes;
                if (g->cores[i].peak_bytes > ret->peak_bytes)
                        ret->peak_bytes = g->cores[i].peak_bytes;
                if (g->cores[i].refused_bytes > ret->refused_bytes)
                        ret->refused_bytes = g->cores[i].refused_bytes;
        }
}
