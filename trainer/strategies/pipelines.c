/* A list of layers is cut where they begin anew; every question about who holds what is answered from it. */
#include "trainer/strategies/pipelines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "planner/splits/pipeline_ranks.h"

int pipelines_cut(const struct pipelines_layers *layers, size_t ranks, struct pipelines *ret, struct err *err)
{
        struct pipelines p = { .ranks = ranks };

        p.layers = calloc(ranks, sizeof(*p.layers));
        p.of = calloc(ranks, sizeof(*p.of));
        p.begin = calloc(ranks + 1, sizeof(*p.begin));
        if (p.layers == NULL || p.of == NULL || p.begin == NULL) {
                pipelines_free(&p);
                return err_set(err, -ENOMEM, "no memory for the layers of %zu ranks", ranks);
        }
        memcpy(p.layers, layers, ranks * sizeof(*p.layers));
        for (size_t rank = 0; rank < ranks; rank++) {
                if (pipeline_ranks_begin(rank, layers[rank].first))
                        p.begin[p.count++] = (int) rank;
                p.of[rank] = p.count - 1;
        }
        p.begin[p.count] = (int) ranks;
        *ret = p;
        return 0;
}

void pipelines_free(struct pipelines *p)
{
        free(p->layers);
        free(p->of);
        free(p->begin);
        *p = (struct pipelines){ 0 };
}

size_t pipelines_stage(const struct pipelines *p, int rank)
{
        return (size_t) (rank - p->begin[p->of[rank]]);
}

size_t pipelines_stages(const struct pipelines *p, size_t pipeline)
{
        return (size_t) (p->begin[pipeline + 1] - p->begin[pipeline]);
}

bool pipelines_takes_samples(const struct pipelines *p, int rank)
{
        return pipelines_stage(p, rank) == 0 || rank + 1 == p->begin[p->of[rank] + 1];
}

/* The words that name a stage: with one pipeline its number alone, which is its rank. */
static void name_stage(const struct pipelines *p, size_t rank, char *name, size_t name_bytes)
{
        if (p->count == 1)
                (void) text_format(name, name_bytes, "stage %zu", rank);
        else
                (void) text_format(name, name_bytes, "rank %zu, stage %zu of pipeline %zu,", rank,
                                   pipelines_stage(p, (int) rank), p->of[rank]);
}

static int check_end(const struct pipelines *p, size_t pipeline, size_t end, size_t layer_count,
                     const char *model, struct err *err)
{
        if (end == layer_count)
                return 0;
        if (p->count == 1)
                return err_set(err, -EINVAL, "--stages end with layer %zu, model %s ends with layer %zu",
                               end - 1, model, layer_count - 1);
        return err_set(
                err, -EINVAL,
                "pipeline %zu (ranks %d to %d) ends with layer %zu, model %s ends with layer %zu: each "
                "rank whose layers begin with layer 0 begins another pipeline, which must hold all "
                "of them",
                pipeline, p->begin[pipeline], p->begin[pipeline + 1] - 1, end - 1, model, layer_count - 1);
}

int pipelines_check(const struct pipelines *p, size_t layer_count, const char *model, struct err *err)
{
        for (size_t i = 0; i < p->count; i++)
                if (pipelines_stages(p, i) > layer_count)
                        return err_set(err, -EINVAL,
                                       "%zu stages, model %s has %zu layers: a stage needs a layer or more; "
                                       "start fewer ranks, or give --stages of several pipelines",
                                       pipelines_stages(p, i), model, layer_count);
        for (size_t rank = 0, next = 0; rank < p->ranks; rank++) {
                const struct pipelines_layers *l = &p->layers[rank];
                char name[80];

                next = pipelines_stage(p, (int) rank) == 0 ? 0 : next;
                name_stage(p, rank, name, sizeof(name));
                if (l->first != next || l->last < next || l->last >= layer_count)
                        return err_set(err, -EINVAL,
                                       "%s cannot run: layers %llu:%llu, but it must begin with layer %zu "
                                       "and end with one up to %zu",
                                       name, (unsigned long long) l->first, (unsigned long long) l->last,
                                       next, layer_count - 1);
                next = (size_t) l->last + 1;
                if ((int) rank + 1 == p->begin[p->of[rank] + 1] &&
                    check_end(p, p->of[rank], next, layer_count, model, err) < 0)
                        return err->code;
        }
        return 0;
}

bool pipelines_holds(const struct pipelines *p, int rank, size_t layer)
{
        return p->layers[rank].first <= layer && layer <= p->layers[rank].last;
}

size_t pipelines_run_end(const struct pipelines *p, size_t layer)
{
        uint64_t last = UINT64_MAX;

        for (size_t rank = 0; rank < p->ranks; rank++)
                if (pipelines_holds(p, (int) rank, layer) && p->layers[rank].last < last)
                        last = p->layers[rank].last;
        return (size_t) last + 1;
}
