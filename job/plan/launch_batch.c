/* Batch scripts: a heterogeneous Slurm job, a bsub line for Sunway. */
#include "job/plan/launch_batch.h"

#include <errno.h>
#include <string.h>

#include "job/spec/job_role.h"

/* Ranks that follow each other on one node with one runtime: a component of a heterogeneous job. */
static size_t component_end(const struct launch_world *world, size_t first)
{
        size_t end = first + 1;

        while (end < world->count && strcmp(world->ranks[end].node, world->ranks[first].node) == 0 &&
               strcmp(world->ranks[end].runtime, world->ranks[first].runtime) == 0 &&
               strcmp(world->ranks[end].model, world->ranks[first].model) == 0)
                end++;
        return end;
}

static void append_component(const struct launch_world *world, size_t first, size_t end, struct text *out)
{
        const struct launch_rank *rank = &world->ranks[first];

        text_printf(out, "#SBATCH --nodes=1 --ntasks=%zu --nodelist=%s", end - first, rank->node);
        if (strcmp(rank->runtime, "cpu") != 0 && strcmp(rank->vendor, "cpu") != 0)
                text_printf(out, " --gres=%s:%zu",
                            strcmp(rank->vendor, "nvidia") == 0 || strcmp(rank->vendor, "amd") == 0
                                    ? "gpu"
                                    : rank->vendor,
                            end - first);
        text_append_char(out, '\n');
}

/* A heterogeneous job: a component for each run of like ranks, and one step over all of them. */
int launch_batch_slurm(const struct launch_world *world, struct text *out, struct err *err)
{
        struct text choice = { 0 };
        size_t components = 0;
        int r = launch_need_commands(world, err);

        if (r < 0)
                return r;
        text_printf(out, "#!/bin/bash\n#SBATCH --job-name=%s\n", world->job);
        for (size_t first = 0; first < world->count; first = component_end(world, first)) {
                if (first > 0)
                        text_append(out, "#SBATCH hetjob\n");
                append_component(world, first, component_end(world, first), out);
                components++;
        }
        text_append(out, "srun --label ");
        if (components > 1)
                text_printf(out, "--het-group=0-%zu ", components - 1);
        text_append(out, "bash -c ");
        launch_choice(world,
                      &(struct launch_choice){
                              .end = world->count, .variable = "SLURM_PROCID", .torch = true, .gap = '\n' },
                      &choice);
        launch_quote(out, choice.data != NULL ? choice.data : "");
        text_append_char(out, '\n');
        text_free(&choice);
        return 0;
}

/* What one line for all ranks cannot say. */
static int check_bsub(const struct launch_world *world, struct err *err)
{
        const struct launch_rank *first = &world->ranks[0];

        for (size_t i = 0; i < world->count; i++) {
                const struct launch_rank *rank = &world->ranks[i];

                if (strcmp(rank->runtime, "sunway") != 0)
                        return err_set(
                                err, -EINVAL,
                                "rank %zu is of runtime '%s': bsub starts Sunway core groups alone (runtime "
                                "sunway), whose MPI no others can join; give each a job of its own",
                                i, rank->runtime);
                if (world->spec != NULL && (rank->batch != first->batch || rank->server != first->server))
                        return err_set(err, -EINVAL,
                                       "rank 0, a %s, has %llu samples, rank %zu, a %s, %llu: bsub tells all "
                                       "ranks the same; take `strategy: allreduce`, `shards: equal` and a "
                                       "globalBatch that is a multiple of %zu",
                                       job_role_names[first->server], (unsigned long long) first->batch, i,
                                       job_role_names[rank->server], (unsigned long long) rank->batch,
                                       world->count);
        }
        return launch_need_commands(world, err);
}

/* LSF on Sunway: one rank a core group, its 64 computing cores with it. One line, for the queue
 * gives the nodes and the numbers. The reference trainer finds its shares in its options; other programs in
 * the environment, which LSF hands on from where bsub runs: no shell runs beside a core group. */
int launch_batch_bsub(const struct launch_world *world, struct text *out, struct err *err)
{
        int r = check_bsub(world, err);

        if (r < 0)
                return r;
        if (world->spec != NULL) {
                text_append(out, "env ");
                launch_environment_of_all(world, out);
                text_append_char(out, ' ');
        }
        text_append(out, "bsub -b -J ");
        launch_quote(out, world->job);
        text_append(out, " -q ");
        launch_quote(out, world->queue);
        text_printf(out, " -n %zu -cgsp 64 -share_size 4096 -host_stack 512", world->count);
        for (const char *const *word = world->ranks[0].command; *word != NULL; word++) {
                text_append_char(out, ' ');
                launch_quote(out, *word);
        }
        text_append_char(out, '\n');
        return 0;
}
