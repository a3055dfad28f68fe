/* LD_PRELOAD: FAKE_READS=FILE gets "told FILE OFFSET" of each posix_fadvise(WILLNEED) and "read FILE OFFSET"
 * of each pread, in their order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void note(const char *what, int fd, long long offset)
{
        static FILE *f;
        const char *path = getenv("FAKE_READS");

        if (f == NULL && path != NULL)
                f = fopen(path, "a");
        if (f != NULL) {
                fprintf(f, "%s %d %lld\n", what, fd, offset);
                fflush(f);
        }
}

static int tell(const char *name, int fd, off_t offset, off_t bytes, int advice)
{
        int (*real)(int, off_t, off_t, int) = dlsym(RTLD_NEXT, name);

        if (advice == POSIX_FADV_WILLNEED)
                note("told", fd, offset);
        return real(fd, offset, bytes, advice);
}

static ssize_t read_at(const char *name, int fd, void *to, size_t bytes, off_t offset)
{
        ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, name);

        note("read", fd, offset);
        return real(fd, to, bytes, offset);
}

/* Both names: which one a program calls depends on how it was built. */
int posix_fadvise(int fd, off_t offset, off_t bytes, int advice)
{
        return tell("posix_fadvise", fd, offset, bytes, advice);
}

int posix_fadvise64(int fd, off64_t offset, off64_t bytes, int advice)
{
        return tell("posix_fadvise64", fd, offset, bytes, advice);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
        return read_at("pread", fd, to, bytes, offset);
}

ssize_t pread64(int fd, void *to, size_t bytes, off64_t offset)
{
        return read_at("pread64", fd, to, bytes, offset);
}
