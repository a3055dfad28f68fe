/* Read file: a whole file that a person named. */
#pragma once

#include <stddef.h>

#include "base/err.h"

#define READ_FILE_MAX_BYTES ((size_t) 1 << 30)

/* read_file() - *ret is malloc'd and NUL-terminated, also where the file holds other NULs.
 * @max_bytes: a larger file is refused
 * @ret_bytes: may be NULL
 * Return: 0, -ENOENT ..., -E2BIG, -ENOMEM. */
int read_file(const char *path, size_t max_bytes, char **ret, size_t *ret_bytes, struct err *err);

/* read_file_plain() - likewise in a folder where others write: no link is followed at the path's end, and
 * what is no regular file is -EINVAL, so that nobody waits for a pipe. */
int read_file_plain(const char *path, size_t max_bytes, char **ret, size_t *ret_bytes, struct err *err);
