/* The environment of every rank, and torchrun's own line where a node has one program. */
#include "job/plan/launch_torch.h"

#include <string.h>

static int each_environment(const struct launch_world *world, struct text *out)
{
        for (size_t i = 0; i < world->count; i++) {
                struct text line = { 0 };

                launch_environment(world, i, true, &line);
                text_printf(out, "# rank %zu on %s\n%s\n", i, world->ranks[i].node,
                            line.data != NULL ? line.data : "");
                text_free(&line);
        }
        return 0;
}

int launch_torch_env(const struct launch_world *world, struct text *out, struct err *err)
{
        (void) err;
        return each_environment(world, out);
}

/* The end of the ranks of a node of which this is the first one; 0 = one of them has no program. */
static size_t node_end(const struct launch_world *world, size_t first)
{
        size_t end = first;

        for (size_t i = first; i < world->count; i++) {
                if (strcmp(world->ranks[i].node, world->ranks[first].node) != 0)
                        continue;
                if (world->ranks[i].command == NULL)
                        return 0;
                end = i + 1;
        }
        return end;
}

/* torchrun gives the ranks of all nodes their numbers, node by node, and each process the same words: so they
 * are a shell's, which takes the rank's own program and share. Where a server's node has workers behind those
 * of others, the numbers are torchrun's no more: the shell counts on its node, and says which rank that is.
 * What a rank prints is teed, for without it the torchrun of Debian 12 (torch 1.13, Python 3.11) dies. */
static void append_torchrun(const struct launch_world *world, size_t first, size_t end, bool by_node,
                            struct text *out)
{
        struct launch_place place = launch_place_of(world, first);
        const struct launch_choice of = { .first = first,
                                          .end = end,
                                          .node = by_node ? world->ranks[first].node : NULL,
                                          .variable = by_node ? "LOCAL_RANK" : "RANK",
                                          .gap = ' ' };
        struct text choice = { 0 };

        text_printf(out,
                    "# on %s: torchrun --nnodes=%zu --node_rank=%zu --nproc_per_node=%zu --rdzv_id=%s "
                    "--master_addr=%s --master_port=%u --redirects=1 --tee=1 --no_python sh -c ",
                    world->ranks[first].node, place.node_count, place.node_index, place.local_size,
                    world->job, world->ranks[0].address, world->port);
        launch_choice(world, &of, &choice);
        launch_quote(out, choice.data != NULL ? choice.data : "");
        text_append_char(out, '\n');
        text_free(&choice);
}

/* torchrun's own line for every node whose programs are known, and the environment that it would give each
 * process with what Remuda adds. */
int launch_torch_run(const struct launch_world *world, struct text *out, struct err *err)
{
        bool by_node = false;

        (void) err;
        for (size_t i = 1; i < world->count; i++)
                by_node = by_node || (strcmp(world->ranks[i - 1].node, world->ranks[i].node) != 0 &&
                                      launch_servers_before(world, i) > 0);
        for (size_t first = 0, end; first < world->count; first++) {
                end = launch_place_of(world, first).local_rank == 0 ? node_end(world, first) : 0;
                if (end > 0)
                        append_torchrun(world, first, end, by_node, out);
        }
        return each_environment(world, out);
}
