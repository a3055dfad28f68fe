/* One line, or the two files, of Open MPI. */
#include "job/plan/launch_mpi.h"

#include <errno.h>
#include <string.h>

/* One context a rank: each has its own device, share and program; `env` sets them on whatever node, and what
 * torch reads of a launcher: contexts are numbered as ranks are. The slots
 * of a -host are those of the whole job there: Open MPI 4 counts contexts against each other. */
static void append_context(const struct launch_world *world, size_t rank, struct text *out)
{
        const char *const *word = world->ranks[rank].command;
        struct text environment = { 0 };

        text_append(out, "-np 1 -host ");
        launch_quote(out, world->ranks[rank].address);
        text_printf(out, ":%zu env ", launch_place_of(world, rank).local_size);
        launch_environment(world, rank, true, &environment);
        text_append_bytes(out, environment.data != NULL ? environment.data : "", environment.size_bytes);
        text_free(&environment);
        for (; *word != NULL; word++) {
                text_append_char(out, ' ');
                launch_quote(out, *word);
        }
}

int launch_mpi_run(const struct launch_world *world, struct text *out, struct err *err)
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

int launch_mpi_hosts(const struct launch_world *world, struct text *out, struct err *err)
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
int launch_mpi_app(const struct launch_world *world, struct text *out, struct err *err)
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
