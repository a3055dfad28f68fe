/* Joined: which files joined a run that polls, and when, beside its checkpoints (DIR/joined): a line
 * `epoch samples name` a file, where `samples` are all from that epoch on. A run that goes on joins them anew
 * at the same epochs, so that every step is what it would have been. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

#define JOINED_NAME_BYTES 1024

struct joined_line {
        uint64_t epoch, samples;
        char name[JOINED_NAME_BYTES];
};

/* joined_next() - Return: false at the end, or at a line that is none; `at` then stays at its beginning. */
bool joined_next(const char **at, struct joined_line *ret);

/* joined_read() - nothing, if there is no such file. @ret: appended to */
int joined_read(const char *directory, struct text *ret, struct err *err);

/* joined_write() - all lines; with none the file is taken away. */
int joined_write(const char *directory, const struct text *lines, struct err *err);
