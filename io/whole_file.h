/* Whole file: written beside as FILE.part, then renamed, so that the name always stands for a whole one: the
 * old or the new. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"

#define WHOLE_FILE_PATH_BYTES 4096

struct whole_file {
        FILE *f;          /* to write to; whatever fails is returned at the end */
        const char *what; /* begins the messages: "--checkpoint" */
        char path[WHOLE_FILE_PATH_BYTES], part[WHOLE_FILE_PATH_BYTES + 8];
};

/* whole_file_open() - Return: 0, -EINVAL (the name is too long), or what open(2) says. */
int whole_file_open(struct whole_file *w, const char *what, const char *path, struct err *err);

/* whole_file_end() - the .part is whole and on disk. whole_file_rename() - and has its name. Return: 0 or a
 * negative errno; the .part stays then. */
int whole_file_end(struct whole_file *w, struct err *err);
int whole_file_rename(const struct whole_file *w, struct err *err);

/* whole_file_write() - all of it in one go, beside as .FILE.part, hidden from those who read the folder.
 * @flags: WHOLE_FILE_SYNCED: on disk before it has its name; WHOLE_FILE_FRESH: what lies beside is made anew,
 * with this mode, and is nobody else's; WHOLE_FILE_NEW: a name that is taken is -EEXIST Return: 0, or a
 * negative errno and "'path': why"; nothing is left beside then. */
#define WHOLE_FILE_SYNCED 1U
#define WHOLE_FILE_FRESH  2U
#define WHOLE_FILE_NEW    4U
int whole_file_write(const char *path, const char *bytes, size_t size_bytes, mode_t mode, unsigned flags,
                     struct err *err);
