/* Rank 0 takes its own values and then those of the stages behind it, in pieces. */
#include "trainer/weights.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/text.h"

#define STREAM_FLOATS 65536

enum { TAG_STREAM = 200 };

static void stream_stage(const struct training *t, float *room, int rank,
                         void (*take)(void *context, const float *values, size_t count), void *context)
{
        size_t total = t->stages[rank].count;

        for (size_t done = 0, some; done < total; done += some) {
                some = total - done < STREAM_FLOATS ? total - done : STREAM_FLOATS;
                MPI_Recv(room, (int) some, MPI_FLOAT, rank, TAG_STREAM, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                take(context, room, some);
        }
}

void weights_stream(const struct training *t, const float *own,
                    void (*take)(void *context, const float *values, size_t count), void *context)
{
        static float room[STREAM_FLOATS]; /* one thread speaks MPI, one stream at a time */

        backend_to_host(&t->backend, own);
        if (t->world.rank == 0)
                take(context, own, t->part.count);
        if (t->stages == NULL)
                return;
        for (int rank = 1; t->world.rank == 0 && rank < t->world.size; rank++)
                stream_stage(t, room, rank, take, context);
        for (size_t done = 0, some; t->world.rank > 0 && done < t->part.count; done += some) {
                some = t->part.count - done < STREAM_FLOATS ? t->part.count - done : STREAM_FLOATS;
                MPI_Send(own + done, (int) some, MPI_FLOAT, 0, TAG_STREAM, MPI_COMM_WORLD);
        }
}

struct weights_file {
        FILE *f;
        bool whole;
};

static void put_weights(void *context, const float *values, size_t count)
{
        struct weights_file *w = context;

        w->whole = fwrite(values, sizeof(*values), count, w->f) == count && w->whole;
}

int weights_write(const struct training *t, const char *path, struct err *err)
{
        struct weights_file w = { .whole = true };
        char temporary[4096];
        struct stat facts;
        bool by_rename = stat(path, &facts) < 0 || S_ISREG(facts.st_mode); /* not over /dev/null */

        if (t->world.rank > 0) {
                weights_stream(t, t->parameters, put_weights, NULL);
                return 0;
        }
        if (!text_format(temporary, sizeof(temporary), "%s%s", path, by_rename ? ".part" : ""))
                return err_set(err, -EINVAL, "--weights-out: the file's name is too long");
        w.f = fopen(temporary, "we");
        if (w.f == NULL)
                return err_set(err, -errno, "--weights-out: file '%s': %m", temporary);
        weights_stream(t, t->parameters, put_weights, &w);
        if (fclose(w.f) != 0 || !w.whole)
                return err_set(err, -EIO, "--weights-out: file '%s' not written whole: %m", temporary);
        if (by_rename && rename(temporary, path) < 0)
                return err_set(err, -errno, "--weights-out: file '%s': %m", path);
        return 0;
}
