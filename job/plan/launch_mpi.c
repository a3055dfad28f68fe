/* Lines and files for Open MPI and torchrun, and plain environments. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "job/plan/launch_lines.h"

/* One context a rank: each has its own device, share and program; `env` sets them on whatever node. The slots
 * of a -host are those of the whole job there: Open MPI 4 counts contexts against each other. */
static void append_context(const struct launch_world *world, size_t rank, struct text *out)
{
        const char *const *word = world->ranks[rank].command;
        struct text environment = { 0 };

        text_append(out, "-np 1 -host ");
        launch_quote(out, world->ranks[rank].address);
        text_printf(out, ":%zu env ", launch_place_of(world, rank).local_size);
        launch_environment(world, rank, false, &environment);
        text_append_bytes(out, environment.data != NULL ? environment.data : "", environment.size_bytes);
        text_free(&environment);
        for (; *word != NULL; word++) {
                text_append_char(out, ' ');
                launch_quote(out, *word);
        }
}

int launch_mpirun(const struct launch_world *world, struct text *out, struct err *err)
{
        int r = launch_need_commands(world, err);

        if (r < 0)
                return r;
        text_append(out, "mpirun --bind-to none ");
        for (size_t i = 0; i < world->count; i++) {
                if (i > 0)
                        text_append(out, " : ");
                append_context(world, i, out);
        }
        text_append_char(out, '\n');
        return 0;
}

int launch_write_mpi_hosts(const struct launch_world *world, struct text *out, struct err *err)
{
        (void) err;
        for (size_t i = 0; i < world->count; i++) {
                struct launch_place place = launch_place_of(world, i);

                if (place.local_rank == 0)
                        text_printf(out, "%s slots=%zu\n", world->ranks[i].address, place.local_size);
        }
        return 0;
}

/* Application files know no quotes: a word with a blank cannot be written. */
int launch_write_mpi_app(const struct launch_world *world, struct text *out, struct err *err)
{
        int r = launch_need_commands(world, err);

        for (size_t i = 0; r == 0 && i < world->count; i++) {
                struct text line = { 0 };

                append_context(world, i, &line);
                if (line.data != NULL && strchr(line.data, '\'') != NULL)
                        r = err_set(err, -EINVAL,
                                    "rank %zu: an application file of mpirun cannot hold words with blanks "
                                    "or quotes; use "
                                    "the line",
                                    i);
                else
                        text_printf(out, "%s\n", line.data != NULL ? line.data : "");
                text_free(&line);
        }
        return r;
}

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

int launch_env(const struct launch_world *world, struct text *out, struct err *err)
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
int launch_torchrun(const struct launch_world *world, struct text *out, struct err *err)
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
