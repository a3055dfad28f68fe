/* DRA file: the state of prepared claims on disk, which two instances of the agent share while one follows
 * the other. What was read last is in memory; each change is made under the folder's lock, on what the file
 * says then. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "plugin/dra/dra_state.h"

#define DRA_FILE_NAME "claims.json"
#define DRA_FILE_LOCK "serialize.lock"

struct dra_file {
        char directory[128];
        int lock; /* -1 = not held */
        struct stat read;
        struct dra_state state;
        uint64_t revision; /* grows when the state is another one, whoever made it so */
};

/* dra_file_open() - the folder is made, the file read. One that cannot be understood is put aside as
 * claims.json.broken, and *ret_broken says why; it may be NULL. 0 or a negative errno. */
int dra_file_open(struct dra_file *file, const char *directory, struct err *ret_broken, struct err *err);
void dra_file_close(struct dra_file *file);

/* dra_file_begin() - the lock is ours, and `state` is as the file. -EBUSY: another one had it for too long.
 */
int dra_file_begin(struct dra_file *file, struct err *err);
int dra_file_save(struct dra_file *file, struct err *err); /* as it is; between begin and end */
void dra_file_end(struct dra_file *file);

/* dra_file_refresh() - what another instance wrote is read. Looks at the file's time alone, mostly. */
void dra_file_refresh(struct dra_file *file);
