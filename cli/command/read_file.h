/* Read file: a whole file that a person named, at most 1 GiB. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* cli_read_file() - *ret is malloc'd and NUL-terminated. Return: 0, -ENOENT ..., -E2BIG, -ENOMEM. */
int cli_read_file(const char *path, char **ret, size_t *ret_bytes, struct err *err);
