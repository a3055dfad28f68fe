/* Any bytes as a tar archive: members lie within it, one after the other, and it ends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer/data/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct tar tar = { .fd = memfd_create("tar", MFD_CLOEXEC), .size_bytes = size };
        struct tar_member m;
        struct err err = { 0 };
        uint64_t end = 0;
        int more = 1;

        if (tar.fd < 0 || (size > 0 && write(tar.fd, data, size) != (ssize_t) size))
                abort();
        while (more > 0) {
                more = tar_next(&tar, &m, &err);
                if (more < 0 && err.msg[0] == '\0')
                        abort();
                if (more > 0 && (m.offset < end || m.offset > size || m.size_bytes > size - m.offset ||
                                 strnlen(m.name, sizeof(m.name)) == sizeof(m.name)))
                        abort();
                end = more > 0 ? m.offset + m.size_bytes : end;
        }
        (void) close(tar.fd);
        return 0;
}
