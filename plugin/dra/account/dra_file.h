/* DRA file: the state of prepared claims on disk, which two instances of the agent share while one follows
 * the other. What was read last is in memory; each change is made under the folder's lock, on what the files
 * say then: the state as it was once, whole, and a journal of what was done since (dra_journal.h).
 *
 * Whoever is killed leaves both readable, and a change that was saved in them. Containers that run must not
 * lose their devices to a file that is lost: where the files vanish, or cannot be read, memory is written
 * back whole, with what the owner knows besides; before the first reading that is all there is. What cannot
 * be read is put aside, as claims.json.broken and claims.journal.broken. All of that is done under the lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/text.h"
#include "plugin/dra/account/dra_journal.h"
#include "plugin/dra/account/dra_state.h"

#define DRA_FILE_NAME      "claims.json"
#define DRA_FILE_LOCK      "serialize.lock"
#define DRA_FILE_MAX_BYTES ((size_t) 32 << 20)

#define DRA_FILE_WAIT_USEC UINT64_C(100000) /* for the lock, where the kubelet tries again by itself */
#define DRA_FILE_WAIT_LAST_USEC                                                                              \
        UINT64_C(1000000) /* where it does not: a pod whose Allocate is refused has failed for good */

/* What was found wrong with the files, and done about it. */
struct dra_file_mended {
        const char *why;   /* with the file's path */
        bool anew;         /* they were written anew; else nobody knew of a claim, and no file is there */
        bool put_aside;    /* what could not be read */
        size_t kept, more; /* claims of memory, and of the owner */
        const char *left;  /* what the owner had to leave, a line each */
};

struct dra_file_owner {
        /* Claims that are not in @state are added to it, as far as no device is held twice then. 0, or a
         * negative errno where it could not be found out which: nothing is mended then. */
        int (*known)(void *userdata, struct dra_state *state, struct text *left, struct err *err);
        void (*mended)(void *userdata, const struct dra_file_mended *mended);
        void *userdata;
};

struct dra_file {
        char directory[128];
        struct dra_file_owner owner;
        int lock; /* -1 = not held */
        struct stat read;
        struct dra_state state; /* never half of what a file says */
        struct dra_state saved; /* before the changes that are to be saved, where there are some */
        bool changed;
        struct dra_journal journal;
        struct text changes; /* lines that are to be saved */
        bool there;          /* the files were, once: where they vanish, memory stands */
        bool begun;          /* it was ours once, and the owner asked where no file was there */
        bool settled;        /* this process has written the state whole once */
        size_t unwritten;    /* claims of the owner that memory has, and no file yet */
        uint64_t revision;   /* grows when the state is another one, whoever made it so */
};

/* dra_file_open() - the folder is made, the files read; @owner: copied, or NULL. What cannot be mended then,
 * as on a full disk, each begin tries again, and says so. 0 or a negative errno. */
int dra_file_open(struct dra_file *file, const char *directory, const struct dra_file_owner *owner,
                  struct err *err);
void dra_file_close(struct dra_file *file);

/* dra_file_read() - what the files of a folder say; of none, nothing, of version 0. Makes nothing, takes no
 * lock. 0 or a negative errno, and *ret is empty. */
int dra_file_read(const char *directory, struct dra_state *ret, struct err *err);

/* dra_file_begin() - the lock is ours, and `state` is as the files, or these as it. -EBUSY: another one had
 * it for so long; the caller stands still meanwhile. */
int dra_file_begin(struct dra_file *file, uint64_t wait_usec, struct err *err);

/* Between begin and end. dra_file_add() - as dra_state_add(). dra_file_give() - as grants_add(), for each. */
int dra_file_add(struct dra_file *file, struct dra_state_claim *claim);
void dra_file_remove(struct dra_file *file, const char *uid); /* may be unknown */
int dra_file_give(struct dra_file *file, const char *const *ids, size_t count, uint64_t now_usec,
                  uint64_t asked_usec);

/* dra_file_save() - what was changed; nothing where nothing was. 0 or a negative errno: the files are as
 * before, and so is the state. dra_file_end() - likewise, where nobody saved. */
int dra_file_save(struct dra_file *file, struct err *err);
void dra_file_end(struct dra_file *file);

/* dra_file_refresh() - what another instance wrote is read, and what is lost written back. Looks at the
 * files' times and sizes alone, mostly. */
void dra_file_refresh(struct dra_file *file);
