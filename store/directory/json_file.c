/* Whole files in one read, and by a temporary file that is renamed. */
#include "store/directory/json_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/failpoint.h"
#include "io/write_all.h"

char *json_file_read(int directory_fd, const char *name, uint64_t max_bytes, size_t *ret_size_bytes,
                     struct stat *ret_stat, struct err *err)
{
        CLEANUP(close_p) int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        CLEANUP(free_p) char *bytes = NULL;
        size_t size = 0, want;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return (void) err_set(err, -errno, "%m"), NULL;
        if (!S_ISREG(st.st_mode))
                return (void) err_set(err, -EINVAL, "is not a regular file"), NULL;
        if ((uint64_t) st.st_size > max_bytes)
                return (void) err_set(err, -E2BIG, "has %lld bytes; at most %llu are read",
                                      (long long) st.st_size, (unsigned long long) max_bytes),
                       NULL;
        want = (size_t) st.st_size;
        bytes = malloc(want + 1);
        if (bytes == NULL)
                return (void) err_set(err, -ENOMEM, "out of memory"), NULL;
        while (size < want) {
                ssize_t n = read(fd, bytes + size, want - size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return (void) err_set(err, -errno, "%m"), NULL;
                if (n == 0)
                        break;
                size += (size_t) n;
        }
        bytes[size] = '\0';
        *ret_size_bytes = size;
        if (ret_stat != NULL)
                *ret_stat = st;
        return TAKE(bytes);
}

static int write_synced(int directory_fd, const char *temporary, const char *bytes, size_t size,
                        struct err *err)
{
        CLEANUP(close_p)
        int fd = openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
        int r;

        if (fd < 0)
                return err_set(err, -errno, "create '%s': %m", temporary);
        r = write_all(fd, bytes, size);
        if (r < 0)
                return err_set(err, r, "write '%s': %s", temporary, strerrordesc_np(-r));
        return fdatasync(fd) < 0 ? err_set(err, -errno, "sync '%s': %m", temporary) : 0;
}

int json_file_write(int directory_fd, const char *name, const json_t *json, bool exclusive, struct err *err)
{
        CLEANUP(free_p) char *bytes = json_dumps(json, JSON_INDENT(1));
        char temporary[256];
        int r;

        if (bytes == NULL)
                return err_set(err, -ENOMEM, "out of memory for '%s'", name);
        (void) text_format(temporary, sizeof(temporary), ".%.200s.%d", name, (int) getpid());
        r = write_synced(directory_fd, temporary, bytes, strlen(bytes), err);
        FAILPOINT("store.written");
        if (r == 0 &&
            renameat2(directory_fd, temporary, directory_fd, name, exclusive ? RENAME_NOREPLACE : 0) < 0)
                r = err_set(err, -errno, "%s '%s': %m", exclusive ? "create" : "replace", name);
        FAILPOINT("store.renamed");
        if (r < 0)
                (void) unlinkat(directory_fd, temporary, 0);
        return r;
}
