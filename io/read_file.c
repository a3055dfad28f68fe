/* A file of unknown size (a pipe, too) is read in growing pieces. */
#include "io/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static int read_all(FILE *file, const char *path, size_t max_bytes, char **ret, size_t *ret_bytes,
                    struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size = 0, capacity = 0;

        do {
                if (size + 1 >= capacity) {
                        char *grown = realloc(bytes, capacity = capacity * 2 + 65536);

                        if (grown == NULL)
                                return err_set(err, -ENOMEM, "no memory for '%s'", path);
                        bytes = grown;
                }
                size += fread(bytes + size, 1, capacity - size - 1, file);
        } while (!feof(file) && !ferror(file) && size <= max_bytes);
        if (ferror(file))
                return err_set(err, -EIO, "'%s' cannot be read", path);
        if (size > max_bytes)
                return err_set(err, -E2BIG, "'%s' is larger than %zu bytes", path, max_bytes);
        bytes[size] = '\0';
        *ret = TAKE(bytes);
        if (ret_bytes != NULL)
                *ret_bytes = size;
        return 0;
}

int read_file(const char *path, size_t max_bytes, char **ret, size_t *ret_bytes, struct err *err)
{
        CLEANUP(fclose_p) FILE *file = fopen(path, "re");

        if (file == NULL)
                return err_set(err, -errno, "open '%s': %m", path);
        return read_all(file, path, max_bytes, ret, ret_bytes, err);
}

int read_file_plain(const char *path, size_t max_bytes, char **ret, size_t *ret_bytes, struct err *err)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        CLEANUP(fclose_p) FILE *file = fd < 0 ? NULL : fdopen(fd, "r"); /* whose fd it is then */
        struct stat st;

        if (fd < 0)
                return err_set(err, -errno, "open '%s': %m", path);
        if (file == NULL) {
                (void) close(fd);
                return err_set(err, -ENOMEM, "no memory for '%s'", path);
        }
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return err_set(err, -EINVAL, "'%s' is no regular file", path);
        return read_all(file, path, max_bytes, ret, ret_bytes, err);
}
