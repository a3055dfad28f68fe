/* Layers of each rank from the option, the environment or equal numbers; nodes and parameters from layers. */
#include "trainer/strategies/stages.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/strategy.h"

static int given_layers(const struct training *t, struct pipelines_layers *l, struct err *err)
{
        const struct train_options_list *pairs = &t->options->stages;

        if (pairs->count / 2 != (size_t) t->world.size)
                return err_set(err, -EINVAL,
                               "--stages has %zu stages, the world has %d ranks: one rank a stage is wanted",
                               pairs->count / 2, t->world.size);
        for (size_t i = 0; i < pairs->count / 2; i++)
                l[i] = (struct pipelines_layers){ pairs->values[2 * i], pairs->values[2 * i + 1] };
        return 0;
}

/* What a launcher assigned to each rank: all or none of them. */
static int assigned_layers(const struct training *t, struct pipelines_layers *l, struct err *err)
{
        const struct train_options_list *own = &t->options->own_layers;
        size_t assigned = 0, last = 0;

        if (own->count == 2)
                l[t->world.rank] = (struct pipelines_layers){ own->values[0], own->values[1] };
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, l, (int) sizeof(*l), MPI_BYTE, MPI_COMM_WORLD);
        for (size_t rank = 0; rank < (size_t) t->world.size; rank++) {
                assigned += l[rank].first != PIPELINES_NOT_ASSIGNED;
                last = l[rank].first != PIPELINES_NOT_ASSIGNED ? last : rank;
        }
        if (assigned == 0 || assigned == (size_t) t->world.size)
                return 0;
        return err_set(err, -EINVAL, "rank %zu has no REMUDA_LAYERS, others have: set it on each", last);
}

/* Is the model one whole, as it is of one process and where every rank measures by itself? */
static bool is_whole(const struct training *t)
{
        return t->options->measure || (!t->world.parallel && t->options->stages.count <= 2);
}

int stages_collect(struct training *t, struct err *err)
{
        CLEANUP(free_p) struct pipelines_layers *l = calloc((size_t) t->world.size, sizeof(*l));
        int r;

        if (!strategy_find(t->options->strategy)->whole)
                return 0;
        r = world_agree(&t->world, l != NULL ? 0 : err_set(err, -ENOMEM, "no memory for the stages"), err);
        if (r < 0 || l == NULL)
                return r;
        for (int rank = 0; rank < t->world.size; rank++)
                l[rank].first = PIPELINES_NOT_ASSIGNED;
        if (!is_whole(t) && t->options->stages.count > 0)
                r = given_layers(t, l, err);
        else if (!is_whole(t))
                r = assigned_layers(t, l, err);
        if (r == 0)
                r = pipelines_cut(l, (size_t) t->world.size, &t->pipelines, err);
        return world_agree(&t->world, r, err);
}

static void equal_layers(const struct training *t)
{
        size_t count = t->model.layer_count, stages = t->pipelines.ranks;

        for (size_t s = 0; s < stages; s++)
                t->pipelines.layers[s] =
                        (struct pipelines_layers){ count * s / stages, count * (s + 1) / stages - 1 };
}

struct training_part stages_part(const struct model *m, uint64_t first, uint64_t last)
{
        struct training_part p = { .first_node = m->node_count };

        for (size_t i = 0; i < m->node_count; i++) {
                if (m->nodes[i].layer < first || m->nodes[i].layer > last)
                        continue;
                p.first_node = i < p.first_node ? i : p.first_node;
                p.last_node = i;
        }
        p.from = m->parameter_count;
        for (size_t i = 0; i < m->tensor_count; i++) {
                if (m->tensors[i].layer < first || m->tensors[i].layer > last)
                        continue;
                p.from = m->tensors[i].offset < p.from ? m->tensors[i].offset : p.from;
                p.count += m->tensors[i].count;
        }
        return p;
}

static int resolve(struct training *t, struct err *err)
{
        const struct pipelines *p = &t->pipelines;

        if (p->layers[0].first == PIPELINES_NOT_ASSIGNED)
                equal_layers(t);
        if (pipelines_check(p, t->model.layer_count, t->model.name, err) < 0)
                return err->code;
        t->stages = calloc(p->ranks, sizeof(*t->stages));
        if (t->stages == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu stages", p->ranks);
        for (size_t s = 0; s < p->ranks; s++)
                t->stages[s] = stages_part(&t->model, p->layers[s].first, p->layers[s].last);
        t->part = t->stages[t->world.rank];
        return 0;
}

int stages_resolve(struct training *t, struct err *err)
{
        if (t->pipelines.count == 0 || is_whole(t))
                return 0;
        return world_agree(&t->world, resolve(t, err), err);
}
