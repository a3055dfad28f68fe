/* JSON file: a file of a directory, read as a whole and written so that it appears complete or not at all. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

/* json_file_read() - any bytes, NUL-terminated; a regular file alone.
 * @ret_stat: may be NULL
 * Return: malloc'd, or NULL and *err. */
char *json_file_read(int directory_fd, const char *name, uint64_t max_bytes, size_t *ret_size_bytes,
                     struct stat *ret_stat, struct err *err);

/* json_file_write() - synced, then renamed. @exclusive: -EEXIST if there is such a file; else it is replaced.
 */
int json_file_write(int directory_fd, const char *name, const json_t *json, bool exclusive, struct err *err);
