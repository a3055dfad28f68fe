/* process_vm_readv(2) of oneself fails with EFAULT where a load would be a fault. */
#include "trainer/wrapper/device_memory.h"

#include <errno.h>
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t) 1 << 30)

static bool is_out_of_reach(const char *at)
{
        char byte;
        struct iovec here = { &byte, 1 }, there = { .iov_len = 1 };

        memcpy(&there.iov_base, &at, sizeof(at)); /* a device's address is no object of ours */

        return process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT;
}

bool device_memory_is(const void *at, size_t size_bytes)
{
        const char *first = at;

        return size_bytes > 0 && (is_out_of_reach(first) || is_out_of_reach(first + size_bytes - 1));
}

int device_memory_check(struct err *err)
{
#ifdef MPIX_CUDA_AWARE_SUPPORT
        if (MPIX_Query_cuda_support() == 1)
                return 0;
#endif
        return err_set(
                err, -ENOTSUP,
                "the gradient is in memory of a device, which this MPI was not built to read: copy it to "
                "the host first, take an MPI that was, or remuda.torch");
}

void device_memory_copy(void *to, const void *from, size_t size_bytes)
{
        for (size_t done = 0; done < size_bytes; done += PIECE_BYTES) {
                size_t some = size_bytes - done < PIECE_BYTES ? size_bytes - done : PIECE_BYTES;

                MPI_Sendrecv((const char *) from + done, (int) some, MPI_BYTE, 0, 0, (char *) to + done,
                             (int) some, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        }
}
