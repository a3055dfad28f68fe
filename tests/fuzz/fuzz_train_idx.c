/* Any bytes as an IDX file: either an error, or exactly the values that the header promises. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer/data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char path[64];
        static int fd = -1;
        bool gzip = size > 1 && data[0] == 0x1f && data[1] == 0x8b;

        if (fd < 0) {
                fd = memfd_create("idx", 0);
                (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        }
        if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t) size)
                abort();
        for (size_t rank = 1; rank <= 3; rank += 2) {
                struct err err = { 0 };
                struct idx x = { 0 };
                size_t total = 1;

                if (idx_read(path, rank, &x, &err) < 0) {
                        if (err.msg[0] == '\0' || x.values != NULL)
                                abort();
                        continue;
                }
                for (size_t i = 0; i < x.rank; i++)
                        total *= x.sizes[i];
                if ((!gzip && total + 4 + 4 * rank != size) || x.item_bytes * x.sizes[0] != total)
                        abort();
                idx_free(&x);
        }
        return 0;
}
