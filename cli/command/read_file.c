#include "cli/command/read_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define FILE_MAX_BYTES ((size_t) 1 << 30)

int cli_read_file(const char *path, char **ret, size_t *ret_bytes, struct err *err)
{
        CLEANUP(fclose_p) FILE *file = fopen(path, "re");
        CLEANUP(free_p) char *bytes = NULL;
        size_t size = 0, capacity = 0;

        if (file == NULL)
                return err_set(err, -errno, "open '%s': %m", path);
        do {
                if (size + 1 >= capacity) {
                        char *grown = realloc(bytes, capacity = capacity * 2 + 65536);

                        if (grown == NULL)
                                return err_set(err, -ENOMEM, "no memory for '%s'", path);
                        bytes = grown;
                }
                size += fread(bytes + size, 1, capacity - size - 1, file);
        } while (!feof(file) && !ferror(file) && size < FILE_MAX_BYTES);
        if (ferror(file))
                return err_set(err, -EIO, "'%s' cannot be read", path);
        if (size >= FILE_MAX_BYTES)
                return err_set(err, -E2BIG, "'%s' is larger than 1 GiB", path);
        bytes[size] = '\0';
        *ret = TAKE(bytes);
        *ret_bytes = size;
        return 0;
}
