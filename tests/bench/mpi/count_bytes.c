/* A profiling layer: what each rank sends to whom. Preloaded (LD_PRELOAD), it stands between a program and
 * MPI's point-to-point calls; the sums of reductions and broadcasts, which the library sends by itself, are
 * not among them.
 *
 * MPI_BYTES=FILE: a line `usec rank to tag bytes` for every MPI_Send and MPI_Isend into FILE.RANK, usec since
 * the rank's MPI_Init_thread. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *file;
static double begin;
static int own;

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
        const char *name = getenv("MPI_BYTES");
        int result = PMPI_Init_thread(argc, argv, required, provided);
        char path[4096];

        PMPI_Comm_rank(MPI_COMM_WORLD, &own);
        begin = PMPI_Wtime();
        if (name != NULL && snprintf(path, sizeof(path), "%s.%d", name, own) < (int) sizeof(path))
                file = fopen(path, "w");
        return result;
}

static void note(int count, MPI_Datatype type, int to, int tag)
{
        int bytes;

        PMPI_Type_size(type, &bytes);
        if (file != NULL)
                fprintf(file, "%.0f %d %d %d %lld\n", (PMPI_Wtime() - begin) * 1e6, own, to, tag,
                        (long long) count * bytes);
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
        note(count, type, to, tag);
        return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
        note(count, type, to, tag);
        return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Finalize(void)
{
        if (file != NULL)
                fclose(file);
        return PMPI_Finalize();
}
