/* An MPI program that knows nothing of Remuda, nor of torchrun: MPI_Init, MPI_Allreduce, MPI_Finalize.
 * With a number as argument, rank 1 ends with it as its exit code. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
        int rank, size, sum;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        printf("rank %d of %d: sum %d\n", rank, size, sum);
        fflush(stdout);
        MPI_Finalize();
        return argc > 1 && rank == 1 ? atoi(argv[1]) : 0;
}
