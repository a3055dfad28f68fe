/* Preloaded (LD_PRELOAD), it takes the sums away that ranks begin among some of them: each keeps what it has.
 * Those of the whole world stay. Shows what sums of replicas are for. */
#include <mpi.h>

int MPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm ranks,
                   MPI_Request *ret)
{
        if (ranks == MPI_COMM_WORLD)
                return PMPI_Iallreduce(from, to, count, type, op, ranks, ret);
        *ret = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
}
