/* write(2) until nothing is left. */
#include "io/write_all.h"

#include <errno.h>
#include <unistd.h>

int write_all(int fd, const char *bytes, size_t size_bytes)
{
        while (size_bytes > 0) {
                ssize_t n = write(fd, bytes, size_bytes);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                bytes += n;
                size_bytes -= (size_t) n;
        }
        return 0;
}
