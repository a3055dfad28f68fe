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

/* Do all ranks of the node that begins here run the same words? */
static bool node_has_one_program(const struct launch_world *world, size_t first)
{
        for (size_t i = first; i < world->count; i++) {
                if (strcmp(world->ranks[i].node, world->ranks[first].node) != 0)
                        continue;
                if (world->ranks[i].command == NULL ||
                    !launch_same_command(&world->ranks[i], &world->ranks[first]))
                        return false;
        }
        return true;
}

/* The environment that torchrun would give each process, and its own line for every node: torchrun starts one
 * program a node, so the lines are there only where a node has one. */
int launch_torch_run(const struct launch_world *world, struct text *out, struct err *err)
{
        (void) err;
        for (size_t i = 0; i < world->count; i++) {
                struct launch_place place = launch_place_of(world, i);

                if (place.local_rank > 0 || !node_has_one_program(world, i))
                        continue;
                text_printf(
                        out,
                        "# on %s: torchrun --nnodes=%zu --node_rank=%zu --nproc_per_node=%zu --rdzv_id=%s",
                        world->ranks[i].node, place.node_count, place.node_index, place.local_size,
                        world->job);
                text_printf(out, " --master_addr=%s --master_port=%u --no_python", world->ranks[0].address,
                            world->port);
                for (const char *const *word = world->ranks[i].command; *word != NULL; word++) {
                        text_append_char(out, ' ');
                        launch_quote(out, *word);
                }
                text_append_char(out, '\n');
        }
        return each_environment(world, out);
}
