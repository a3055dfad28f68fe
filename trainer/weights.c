/* Rank 0 takes its own values and then those of the stages behind it, in pieces; of other pipelines none. */
#include "trainer/weights.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "io/whole_file.h"

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
        int stages;

        backend_to_host(&t->backend, own);
        if (t->world.rank == 0)
                take(context, own, t->part.count);
        if (t->stages == NULL)
                return;
        stages = t->pipelines.begin[1];
        for (int rank = 1; t->world.rank == 0 && rank < stages; rank++)
                stream_stage(t, room, rank, take, context);
        for (size_t done = 0, some; t->world.rank > 0 && t->world.rank < stages && done < t->part.count;
             done += some) {
                some = t->part.count - done < STREAM_FLOATS ? t->part.count - done : STREAM_FLOATS;
                MPI_Send(own + done, (int) some, MPI_FLOAT, 0, TAG_STREAM, MPI_COMM_WORLD);
        }
}

static void put_weights(void *context, const float *values, size_t count)
{
        (void) fwrite(values, sizeof(*values), count, context); /* the end tells what failed */
}

int weights_write(const struct training *t, const char *path, struct err *err)
{
        struct stat facts;
        struct whole_file w;

        if (t->world.rank > 0) {
                weights_stream(t, t->parameters, put_weights, NULL);
                return 0;
        }
        if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) { /* a pipe, /dev/null */
                CLEANUP(fclose_p) FILE *f = fopen(path, "we");

                if (f == NULL)
                        return err_set(err, -errno, "--weights-out: file '%s': %m", path);
                weights_stream(t, t->parameters, put_weights, f);
                return fflush(f) == 0 && ferror(f) == 0
                               ? 0
                               : err_set(err, -EIO, "--weights-out: file '%s' not written whole: %m", path);
        }
        if (whole_file_open(&w, "--weights-out", path, err) < 0)
                return err->code;
        weights_stream(t, t->parameters, put_weights, w.f);
        return whole_file_end(&w, err) < 0 ? err->code : whole_file_rename(&w, err);
}
