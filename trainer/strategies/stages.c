/* Layers of each rank from the option, the environment or equal numbers; nodes and parameters from layers. */
#include "trainer/strategies/stages.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/strategy.h"

#define NOT_ASSIGNED UINT64_MAX

struct layers {
        size_t count;                                 /* stages, 0 = nobody said */
        uint64_t first[STAGES_MAX], last[STAGES_MAX]; /* both included */
};

static void given_layers(const struct train_options_list *pairs, struct layers *l)
{
        l->count = pairs->count / 2 < STAGES_MAX ? pairs->count / 2 : STAGES_MAX;
        for (size_t i = 0; i < l->count; i++) {
                l->first[i] = pairs->values[2 * i];
                l->last[i] = pairs->values[2 * i + 1];
        }
}

/* What a launcher assigned to each rank. */
static void assigned_layers(const struct training *t, struct layers *l)
{
        const struct train_options_list *own = &t->options->own_layers;
        uint64_t first = own->count == 2 ? own->values[0] : NOT_ASSIGNED;
        uint64_t last = own->count == 2 ? own->values[1] : NOT_ASSIGNED;

        MPI_Allgather(&first, 1, MPI_UINT64_T, l->first, 1, MPI_UINT64_T, MPI_COMM_WORLD);
        MPI_Allgather(&last, 1, MPI_UINT64_T, l->last, 1, MPI_UINT64_T, MPI_COMM_WORLD);
        l->count = 0;
        for (int rank = 0; rank < t->world.size; rank++)
                if (l->first[rank] != NOT_ASSIGNED)
                        l->count = (size_t) t->world.size;
}

static void equal_layers(const struct training *t, struct layers *l)
{
        size_t count = t->model.layer_count;

        l->count = (size_t) t->world.size;
        for (size_t s = 0; s < l->count; s++) {
                l->first[s] = count * s / l->count;
                l->last[s] = count * (s + 1) / l->count - 1;
        }
}

static int check(const struct training *t, const struct layers *l, struct err *err)
{
        size_t next = 0, layers = t->model.layer_count;

        if (l->count != (size_t) t->world.size)
                return err_set(err, -EINVAL,
                               "--stages has %zu stages, the world has %d ranks: one rank a stage is wanted",
                               l->count, t->world.size);
        if (l->count > layers)
                return err_set(err, -EINVAL,
                               "%zu stages, model %s has %zu layers: a stage needs a layer or more, start "
                               "fewer ranks",
                               l->count, t->model.name, layers);
        for (size_t s = 0; s < l->count; s++) {
                if (l->first[s] == NOT_ASSIGNED)
                        return err_set(err, -EINVAL,
                                       "rank %zu has no REMUDA_LAYERS, others have: set it on each", s);
                if (l->first[s] != next || l->last[s] < next || l->last[s] >= layers)
                        return err_set(err, -EINVAL,
                                       "stage %zu cannot run: layers %llu:%llu, but it must begin with layer "
                                       "%zu and end with one up to %zu",
                                       s, (unsigned long long) l->first[s], (unsigned long long) l->last[s],
                                       next, layers - 1);
                next = (size_t) l->last[s] + 1;
        }
        if (next != layers)
                return err_set(err, -EINVAL, "--stages end with layer %zu, model %s ends with layer %zu",
                               next - 1, t->model.name, layers - 1);
        return 0;
}

static struct training_part part_of(const struct model *m, uint64_t first, uint64_t last)
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

static int resolve(struct training *t, struct layers *l, struct err *err)
{
        if (l->count == 0)
                equal_layers(t, l);
        if (check(t, l, err) < 0)
                return err->code;
        t->stages = calloc(l->count, sizeof(*t->stages));
        if (t->stages == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu stages", l->count);
        for (size_t s = 0; s < l->count; s++)
                t->stages[s] = part_of(&t->model, l->first[s], l->last[s]);
        t->part = t->stages[t->world.rank];
        return 0;
}

int stages_resolve(struct training *t, struct err *err)
{
        CLEANUP(free_p) struct layers *l = calloc(1, sizeof(*l));
        bool split = strcmp(t->options->strategy, "split") == 0 && !t->options->measure;
        int r = l != NULL ? 0 : err_set(err, -ENOMEM, "no memory for the stages");

        if (!split || l == NULL)
                return split ? world_agree(&t->world, r, err) : 0;
        if (r == 0 && t->world.size > STAGES_MAX)
                r = err_set(err, -EINVAL, "%d stages: at most %d are possible", t->world.size, STAGES_MAX);
        if (r == 0)
                given_layers(&t->options->stages, l);
        if (r == 0 && !t->world.parallel && l->count <= 1)
                return 0; /* one process, one stage: the whole */
        r = world_agree(&t->world, r, err);
        if (r < 0)
                return r;
        if (l->count == 0 && t->world.parallel)
                assigned_layers(t, l);
        return world_agree(&t->world, resolve(t, l, err), err);
}
