/* Any bytes as the cache of tuned tiles: as if nothing were there, or tiles within their limits. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "trainer/preset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int fd = memfd_create("tiles", MFD_CLOEXEC);
        struct preset_tiles t = { 0 };
        char path[64];

        if (fd < 0 || write(fd, data, size) != (ssize_t) size ||
            !text_format(path, sizeof(path), "/proc/self/fd/%d", fd))
                abort();
        if (preset_remembered(path, "portable core group", &t) &&
            (t.rows < 1 || t.rows > 4096 || t.cols < 1 || t.cols > 4096 || t.inner < 1 || t.inner > 4096))
                abort();
        (void) close(fd);
        return 0;
}
