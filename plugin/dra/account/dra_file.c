/* DRA file: the state of prepared claims on disk, which two instances of the agent share. */
#include "plugin/dra/account/dra_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/make_folders.h"
#include "io/read_file.h"
#include "io/whole_file.h"

#define PATH_BYTES     192
#define LOCK_WAIT_NSEC 1000000L /* a turn under the lock is shorter */

static void path_of(const struct dra_file *file, const char *name, char ret[PATH_BYTES])
{
        (void) text_format(ret, PATH_BYTES, "%s/%s", file->directory, name);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
        return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
               a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The state as it was written whole. */
static int read_whole(const char *path, struct dra_state *ret, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size = 0;
        int r = read_file(path, DRA_FILE_MAX_BYTES, &bytes, &size, err);

        *ret = (struct dra_state){ .count = 0 };
        if (r == 0 && (r = dra_state_decode(bytes, size, ret, err)) < 0)
                (void) err_wrap(err, r, "'%s'", path);
        return r;
}

static void take_over(struct dra_file *file, struct dra_state *state, const struct dra_journal *journal)
{
        dra_state_free(&file->state);
        file->state = *state;
        file->unwritten = 0;
        *state = (struct dra_state){ .count = 0 };
        file->journal = *journal;
        file->revision++;
}

/* What the journal has beyond `journal`, done to the state. Return: as dra_journal_read(). */
static int read_journal(struct dra_journal *journal, struct dra_state *state, struct err *err)
{
        int r = dra_journal_read(journal, state, err);

        if (r > 0 && dra_state_check(state, err) < 0)
                r = err_wrap(err, -EBADMSG, "'%s'", journal->path);
        return r;
}

/* Both files, from their beginning. */
static int read_all(struct dra_file *file, const char *path, const struct stat *now, struct err *err)
{
        struct dra_state state;
        struct dra_journal journal = file->journal;
        int r = read_whole(path, &state, err);

        if (r == -ENOENT && now->st_ino == 0)
                r = 0;
        journal.read_bytes = 0;
        if (r == 0)
                r = read_journal(&journal, &state, err);
        if (r >= 0) {
                take_over(file, &state, &journal);
                file->read = *now;
                file->there = file->there || now->st_ino != 0;
        }
        dra_state_free(&state);
        return r < 0 ? r : 1;
}

/* What another instance appended. It is done to a copy: of what cannot be understood to its end memory has
 * nothing. */
static int read_more(struct dra_file *file, struct err *err)
{
        struct dra_journal journal = file->journal;
        struct dra_state state;
        int r = file->state.sequence == 0 ? 0 : dra_journal_look(&journal, err);

        if (r <= 0)
                return r;
        if (dra_state_copy(&file->state, &state) < 0)
                return err_set(err, -ENOMEM, "no memory for the state of claims");
        r = read_journal(&journal, &state, err);
        if (r > 0)
                take_over(file, &state, &journal);
        dra_state_free(&state);
        return r;
}

/* Return: 1 = something was read anew; 0 = all is as it was; -ENOENT: the files are gone, or a part of them;
 * or another negative errno. Memory is as it was then. */
static int reload(struct dra_file *file, struct err *err)
{
        struct stat now = { .st_ino = 0 };
        char path[PATH_BYTES];

        path_of(file, DRA_FILE_NAME, path);
        if (stat(path, &now) < 0) {
                if (errno != ENOENT)
                        return err_set(err, -errno, "'%s': %m", path);
                if (file->there)
                        return err_set(err, -ENOENT, "'%s' is not there any more", path);
                now = (struct stat){ .st_ino = 0 };
        }
        return is_same(&now, &file->read) ? read_more(file, err) : read_all(file, path, &now, err);
}

int dra_file_read(const char *directory, struct dra_state *ret, struct err *err)
{
        struct dra_file file = { .lock = -1 };
        int r = text_copy(file.directory, sizeof(file.directory), directory) ? 0 : -ENAMETOOLONG;

        path_of(&file, DRA_JOURNAL_NAME, file.journal.path);
        if (r == 0)
                r = reload(&file, err);
        *ret = file.state;
        return r < 0 ? r : 0;
}

static void put_aside(const struct dra_file *file)
{
        static const char *const names[] = { DRA_FILE_NAME, DRA_JOURNAL_NAME };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[PATH_BYTES], aside[PATH_BYTES + 8];

                path_of(file, names[i], path);
                (void) text_format(aside, sizeof(aside), "%s.broken", path);
                if (rename(path, aside) < 0 && errno != ENOENT && remove(aside) == 0)
                        (void) rename(path, aside); /* a folder beside a file */
        }
}

static int open_lock(const char *path)
{
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0 && errno == ENOENT) {
                make_folders(path);
                fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        }
        return fd < 0 ? -errno : fd;
}

/* Is it the file that others lock, too? The folder may have been taken away, and made anew, meanwhile. */
static bool is_there(int fd, const char *path)
{
        struct stat ours, theirs;

        return fstat(fd, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
               ours.st_dev == theirs.st_dev;
}

static int take_lock(struct dra_file *file, const char *path, uint64_t wait_usec)
{
        const struct timespec wait = { .tv_nsec = LOCK_WAIT_NSEC };
        uint64_t until = clock_monotonic_usec() + wait_usec;

        do {
                if (file->lock >= 0 && !is_there(file->lock, path)) {
                        (void) close(file->lock);
                        file->lock = -1;
                }
                if (file->lock < 0)
                        file->lock = open_lock(path);
                if (file->lock < 0)
                        return file->lock;
                if (flock(file->lock, LOCK_EX | LOCK_NB) == 0) {
                        if (is_there(file->lock, path))
                                return 0;
                } else if (errno != EWOULDBLOCK)
                        return -errno;
                (void) nanosleep(&wait, NULL);
        } while (clock_monotonic_usec() < until);
        return -EBUSY;
}

/* A sequence that no journal has which may lie there. */
static int save_whole(struct dra_file *file, struct err *err)
{
        CLEANUP(free_p) char *text = NULL;
        uint64_t now = clock_realtime_usec(), before = file->state.sequence;
        char path[PATH_BYTES];
        int r;

        path_of(file, DRA_FILE_NAME, path);
        file->state.sequence = now > file->state.sequence ? now : file->state.sequence + 1;
        text = dra_state_encode(&file->state);
        r = text == NULL ? err_set(err, -ENOMEM, "no memory for the state of claims")
                         : whole_file_write(path, text, strlen(text), 0600, 0, err);
        if (r < 0) {
                file->state.sequence = before; /* which the files go on with */
                return r;
        }
        if (stat(path, &file->read) < 0)
                return err_set(err, -errno, "'%s': %m", path);
        dra_journal_begin(&file->journal, file->state.sequence);
        file->unwritten = 0;
        file->settled = file->there = true;
        return 0;
}

/* Somebody's hand, a disk or another version made it so: what is there is no account. */
static bool is_damage(int r)
{
        return r == -EBADMSG || r == -E2BIG || r == -EFBIG || r == -ELOOP || r == -EIO || r == -EISDIR;
}

/* Under the lock. @why: its code is 0 where a file was not there at the start. What the owner knows is in
 * memory from then on, and has to be written by whoever can. */
static int mend(struct dra_file *file, const struct err *why, struct err *err)
{
        CLEANUP(text_free) struct text left = { 0 };
        struct dra_file_mended mended = { .why = why->msg };
        size_t before = file->state.count;
        int r = 0;

        if (file->owner.known != NULL)
                r = file->owner.known(file->owner.userdata, &file->state, &left, err);
        file->unwritten += file->state.count - before;
        if (file->state.count > before)
                file->revision++;
        if (r < 0)
                return r;
        mended.more = file->unwritten;
        mended.kept = file->state.count - mended.more;
        mended.put_aside = is_damage(why->code);
        mended.left = left.data == NULL ? "" : left.data;
        if (mended.put_aside)
                put_aside(file);
        mended.anew = why->code < 0 || mended.more > 0;
        if (mended.anew) {
                file->revision++;
                r = save_whole(file, err);
        }
        if (r == 0 && (mended.anew || left.size_bytes > 0) && file->owner.mended != NULL)
                file->owner.mended(file->owner.userdata, &mended);
        return r;
}

/* A state whose journal somebody may have taken: claims that stood in that alone are not in the account. */
static bool is_bare(const struct dra_file *file)
{
        return file->state.sequence != 0 && file->journal.read_bytes == 0;
}

/* Under the lock: memory is as the files; where they say nothing that can be read, these as memory. */
static int agree(struct dra_file *file, struct err *err)
{
        struct err why = { 0 };
        int r = reload(file, &why);
        bool none = r >= 0 && !file->begun && (!file->there || is_bare(file));

        if (none)
                (void) err_set(&why, 0, "'%s/%s' is not there", file->directory,
                               file->there ? DRA_JOURNAL_NAME : DRA_FILE_NAME);
        if (none || r == -ENOENT || is_damage(r))
                r = mend(file, &why, err);
        else if (r < 0)
                (void) err_set(err, r, "%s", why.msg);
        if (r >= 0)
                file->begun = true;
        return r < 0 ? r : 0;
}

static int lock(struct dra_file *file, uint64_t wait_usec, struct err *err)
{
        char path[PATH_BYTES];
        int r;

        path_of(file, DRA_FILE_LOCK, path);
        r = take_lock(file, path, wait_usec);
        if (r < 0)
                (void) err_set(err, r, "'%s': %s", path,
                               r == -EBUSY ? "another instance of the agent has it" : strerrordesc_np(-r));
        return r;
}

int dra_file_begin(struct dra_file *file, uint64_t wait_usec, struct err *err)
{
        int r = lock(file, wait_usec, err);

        if (r == 0)
                r = agree(file, err);
        if (r < 0)
                dra_file_end(file);
        return r;
}

int dra_file_open(struct dra_file *file, const char *directory, const struct dra_file_owner *owner,
                  struct err *err)
{
        int r;

        *file = (struct dra_file){ .lock = -1 };
        if (owner != NULL)
                file->owner = *owner;
        if (!text_copy(file->directory, sizeof(file->directory), directory))
                return err_set(err, -ENAMETOOLONG, "'%s' is too long", directory);
        path_of(file, DRA_JOURNAL_NAME, file->journal.path);
        r = lock(file, DRA_FILE_WAIT_USEC, err);
        if (r == 0)
                (void) agree(file, NULL);
        else if (r == -EBUSY || r == -ENOSPC || r == -EDQUOT) {
                (void) reload(file, NULL);
                r = 0;
        }
        dra_file_end(file);
        grants_resume(&file->state.grants, clock_monotonic_usec());
        return r;
}

void dra_file_close(struct dra_file *file)
{
        dra_file_end(file);
        dra_state_free(&file->state);
        text_free(&file->changes);
}

/* Before a change: the state as the files have it. */
static int keep(struct dra_file *file)
{
        int r = file->changed ? 0 : dra_state_copy(&file->state, &file->saved);

        file->changed = file->changed || r == 0;
        return r;
}

/* They are saved, or as if they had never been. */
static void settle_changes(struct dra_file *file, bool saved)
{
        if (!saved && file->changed) {
                dra_state_free(&file->state);
                file->state = file->saved;
                file->saved = (struct dra_state){ .count = 0 };
        } else if (!saved)
                file->read = (struct stat){ .st_ino = (ino_t) -1 }; /* no memory was left: read it again */
        dra_state_free(&file->saved);
        file->changed = false;
        text_reset(&file->changes);
        file->revision++;
}

static bool is_changed(const struct dra_file *file)
{
        return file->changes.size_bytes > 0 || file->changes.failed;
}

/* A change without a line is saved by writing the state whole. */
static void note(struct dra_file *file, const char *line)
{
        if (line != NULL)
                text_printf(&file->changes, "%s\n", line);
        else
                file->changes.failed = true;
}

int dra_file_add(struct dra_file *file, struct dra_state_claim *claim)
{
        const struct dra_state_change change = { .added = claim, .added_count = 1 };
        CLEANUP(free_p) char *line = dra_state_encode_change(&change);
        int r = keep(file);

        if (r == 0)
                r = dra_state_add(&file->state, claim);
        if (r == 0)
                note(file, line);
        return r;
}

void dra_file_remove(struct dra_file *file, const char *uid)
{
        char dropped[1][DRA_STATE_UID_BYTES];
        const struct dra_state_change change = { .dropped = dropped, .dropped_count = 1 };
        CLEANUP(free_p) char *line = NULL;

        if (dra_state_find(&file->state, uid) == NULL || !text_copy(dropped[0], sizeof(dropped[0]), uid))
                return;
        (void) keep(file); /* else the files are read again where it is not saved */
        line = dra_state_encode_change(&change);
        note(file, line);
        dra_state_remove(&file->state, uid);
}

int dra_file_give(struct dra_file *file, const char *const *ids, size_t count, uint64_t now_usec,
                  uint64_t asked_usec)
{
        struct dra_state_change change = { .dropped_count = 0 };
        CLEANUP(free_p) char *line = NULL;
        int r = keep(file);

        if (r < 0)
                return r;
        for (size_t i = 0; r == 0 && i < count; i++)
                r = grants_add(&file->state.grants, ids[i], now_usec, asked_usec);
        change.grants = file->state.grants;
        line = dra_state_encode_change(&change);
        note(file, line);
        return r;
}

/* Whoever took the journal away since begin took what only memory has now. */
static int append(struct dra_file *file, struct err *err)
{
        int r = dra_journal_append(&file->journal, file->state.sequence, &file->changes, err);

        return r == -ENOENT ? save_whole(file, err) : r;
}

/* Not synced: whoever dies leaves what was written, and after a power cut no container of before runs any
 * more; the kubelet prepares anew what it starts. */
int dra_file_save(struct dra_file *file, struct err *err)
{
        int r;

        if (!is_changed(file))
                return 0;
        if (!file->settled || file->state.sequence == 0 || file->changes.failed ||
            file->journal.read_bytes + file->changes.size_bytes > DRA_JOURNAL_MAX_BYTES)
                r = save_whole(file, err);
        else
                r = append(file, err);
        settle_changes(file, r == 0);
        return r;
}

void dra_file_end(struct dra_file *file)
{
        if (file->changed || is_changed(file))
                settle_changes(file, false);
        if (file->lock >= 0)
                (void) close(file->lock);
        file->lock = -1;
}

/* What is wrong without the lock may be another's writing, half done. */
void dra_file_refresh(struct dra_file *file)
{
        if (reload(file, NULL) < 0 && dra_file_begin(file, 0, NULL) == 0)
                dra_file_end(file);
}
