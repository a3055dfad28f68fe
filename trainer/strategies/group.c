/* Groups are cut by --groups or REMUDA_LEVELS; MPI's communicators do the rest. */
#include "trainer/strategies/group.h"

#include <errno.h>
#include <stdlib.h>

/* Group of each worker, by the counts of --groups. */
static size_t group_of(const struct train_options_list *counts, size_t worker)
{
        size_t group = 0;

        while (worker >= counts->values[group])
                worker -= counts->values[group++];
        return group;
}

static int check(const struct training *t, struct err *err)
{
        const struct train_options_list *counts = &t->options->groups;
        size_t sum = 0;

        for (size_t i = 0; i < counts->count; i++) {
                if (counts->values[i] == 0)
                        return err_set(err, -EINVAL, "--groups: group %zu has no members", i);
                sum += counts->values[i];
        }
        if (counts->count > 0 && sum != t->shares.workers)
                return err_set(err, -EINVAL, "%s add up to %zu, the world has %zu workers: make them equal",
                               t->options->groups_proposed ? "the groups of REMUDA_LEVELS" : "--groups", sum,
                               t->shares.workers);
        return 0;
}

int group_open(struct group *g, const struct training *t, struct err *err)
{
        const struct train_options_list *counts = &t->options->groups;
        int worker = t->world.rank - t->shares.first_worker, mine = MPI_UNDEFINED;
        int r = check(t, err);

        *g = (struct group){ .grouped = counts->count > 0,
                             .count = counts->count > 0 ? counts->count : t->shares.workers,
                             .members = MPI_COMM_NULL,
                             .all_leaders = MPI_COMM_NULL };
        if (r < 0) /* the same on every rank */
                return r;
        g->leaders = calloc(g->count, sizeof(*g->leaders));
        if (g->leaders == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu groups", g->count);
        for (size_t i = 0, first = 0; i < g->count; i++) {
                g->leaders[i] = t->shares.first_worker + (int) first;
                first += g->grouped ? counts->values[i] : 1;
                g->leader = g->leader || g->leaders[i] == t->world.rank;
        }
        if (!g->grouped)
                return 0;
        if (worker >= 0)
                mine = (int) group_of(counts, (size_t) worker);
        MPI_Comm_split(MPI_COMM_WORLD, mine, t->world.rank, &g->members);
        MPI_Comm_split(MPI_COMM_WORLD, g->leader ? 0 : MPI_UNDEFINED, t->world.rank, &g->all_leaders);
        return 0;
}

void group_close(struct group *g)
{
        if (g->members != MPI_COMM_NULL && g->grouped)
                MPI_Comm_free(&g->members);
        if (g->all_leaders != MPI_COMM_NULL && g->grouped)
                MPI_Comm_free(&g->all_leaders);
        free(g->leaders);
        g->leaders = NULL;
}

void group_add(const struct group *g, float *values, size_t count)
{
        if (g->grouped)
                MPI_Allreduce(MPI_IN_PLACE, values, (int) count, MPI_FLOAT, MPI_SUM, g->members);
}

void group_spread(const struct group *g, const struct training *t)
{
        backend_to_host(&t->backend, t->parameters);
        if (g->grouped)
                MPI_Bcast(t->parameters, (int) t->model.parameter_count, MPI_FLOAT, 0, g->members);
        backend_to_device(&t->backend, t->parameters);
}
