/* Any bytes as the cache of what was tuned: as if nothing were there, or a setting of values that are tried.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "trainer/preset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tunable rows[] = { { "tile_rows", 32, { 16, 64, 128 }, true, TUNABLE_PRODUCTS },
                                       { "tile_lanes", 16, { 16, 32 }, false, TUNABLE_PRODUCTS } };

static bool not_too_many(const struct backend_options *o, const size_t *values)
{
        (void) o;
        return values[0] * values[1] <= 2048;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct tunable_rows all = { rows, 2, not_too_many };
        int fd = memfd_create("tuned", MFD_CLOEXEC);
        size_t s[TUNABLE_MAX] = { 0 };
        char path[64], by[PRESET_BY_BYTES] = "";

        if (fd < 0 || write(fd, data, size) != (ssize_t) size ||
            !text_format(path, sizeof(path), "/proc/self/fd/%d", fd))
                abort();
        if (!preset_remembered(path, "portable core group", &all, NULL, s, by) && (s[0] != 0 || s[1] != 0))
                abort();
        if ((s[0] != 0 && s[0] != 16 && s[0] != 64 && s[0] != 128) ||
            (s[1] != 0 && s[1] != 16 && s[1] != 32) || s[0] * s[1] > 2048)
                abort();
        (void) close(fd);
        return 0;
}
