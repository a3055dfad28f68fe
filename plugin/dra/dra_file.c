/* DRA file: the state of prepared claims on disk, which two instances of the agent share. */
#include "plugin/dra/dra_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/make_folders.h"
#include "io/read_file.h"
#include "io/whole_file.h"

#define FILE_MAX_BYTES ((size_t) 32 << 20)
#define PATH_BYTES     192
#define LOCK_TRIES     20
#define LOCK_WAIT_NSEC 1000000 /* a turn under the lock is shorter */

static void path_of(const struct dra_file *file, const char *name, char ret[PATH_BYTES])
{
        (void) text_format(ret, PATH_BYTES, "%s/%s", file->directory, name);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
        return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
               a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Return: 1 = it was read anew; 0 = it is as it was. */
static int reload(struct dra_file *file, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        struct dra_state state;
        struct stat now = { .st_ino = 0 };
        char path[PATH_BYTES];
        size_t size = 0;
        int r;

        path_of(file, DRA_FILE_NAME, path);
        if (stat(path, &now) < 0 && errno != ENOENT)
                return err_set(err, -errno, "'%s': %m", path);
        if (is_same(&now, &file->read))
                return 0;
        if (now.st_ino == 0) { /* somebody took it away: nothing is prepared */
                dra_state_free(&file->state);
                file->read = now;
                file->revision++;
                return 1;
        }
        r = read_file(path, FILE_MAX_BYTES, &bytes, &size, err);
        if (r == 0)
                r = dra_state_decode(bytes, size, &state, err);
        if (r < 0)
                return r;
        dra_state_free(&file->state);
        file->state = state;
        file->read = now;
        file->revision++;
        return 1;
}

static void put_aside(const struct dra_file *file)
{
        char path[PATH_BYTES], aside[PATH_BYTES];

        path_of(file, DRA_FILE_NAME, path);
        path_of(file, DRA_FILE_NAME ".broken", aside);
        (void) rename(path, aside);
}

int dra_file_open(struct dra_file *file, const char *directory, struct err *ret_broken, struct err *err)
{
        struct err why = { 0 };
        char path[PATH_BYTES];
        int r;

        *file = (struct dra_file){ .lock = -1 };
        if (!text_copy(file->directory, sizeof(file->directory), directory))
                return err_set(err, -ENAMETOOLONG, "'%s' is too long", directory);
        path_of(file, DRA_FILE_LOCK, path);
        make_folders(path);
        r = reload(file, &why);
        if (r == -EBADMSG) {
                put_aside(file);
                if (ret_broken != NULL)
                        *ret_broken = why;
                return 0;
        }
        if (r < 0)
                return err_set(err, r, "%s", why.msg);
        r = dra_file_begin(file, err); /* can it be? said at the start */
        dra_file_end(file);
        return r == -EBUSY ? 0 : r;
}

void dra_file_close(struct dra_file *file)
{
        dra_file_end(file);
        dra_state_free(&file->state);
}

static int take_lock(struct dra_file *file, const char *path)
{
        const struct timespec wait = { .tv_nsec = LOCK_WAIT_NSEC };

        file->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file->lock < 0)
                return -errno;
        for (unsigned i = 0; i < LOCK_TRIES; i++) {
                if (flock(file->lock, LOCK_EX | LOCK_NB) == 0)
                        return 0;
                if (errno != EWOULDBLOCK)
                        return -errno;
                (void) nanosleep(&wait, NULL);
        }
        return -EBUSY;
}

int dra_file_begin(struct dra_file *file, struct err *err)
{
        char path[PATH_BYTES];
        int r;

        path_of(file, DRA_FILE_LOCK, path);
        r = take_lock(file, path);
        if (r < 0)
                (void) err_set(err, r, "'%s': %s", path,
                               r == -EBUSY ? "another instance of the agent has it" : strerrordesc_np(-r));
        else
                r = reload(file, err);
        if (r < 0)
                dra_file_end(file);
        return r < 0 ? r : 0;
}

/* Not synced: whoever dies leaves it whole, and after a power cut no container of before runs any more; the
 * kubelet prepares anew what it starts. */
int dra_file_save(struct dra_file *file, struct err *err)
{
        CLEANUP(free_p) char *text = dra_state_encode(&file->state);
        char path[PATH_BYTES];
        int r;

        path_of(file, DRA_FILE_NAME, path);
        if (text == NULL)
                return err_set(err, -ENOMEM, "no memory for the state of claims");
        r = whole_file_write(path, text, strlen(text), 0600, 0, err);
        file->revision++;
        if (r < 0 || stat(path, &file->read) < 0)
                file->read = (struct stat){ .st_ino = (ino_t) -1 }; /* of no file: it is read again */
        return r;
}

void dra_file_end(struct dra_file *file)
{
        if (file->lock >= 0)
                (void) close(file->lock);
        file->lock = -1;
}

void dra_file_refresh(struct dra_file *file)
{
        (void) reload(file, NULL);
}
