/* DRA journal: what was done to the state of claims since it was written whole. */
#include "plugin/dra/account/dra_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/failpoint.h"
#include "io/write_all.h"

#define FIRST_BYTES 64
#define FOLLOWS     "{\"follows\":"

#define LESS_IS_THERE "'%s' has not what was written to it any more"

static int fail(const struct dra_journal *journal, int r, struct err *err)
{
        return err_set(err, r, "'%s': %s", journal->path, strerrordesc_np(-r));
}

static void first_line(uint64_t sequence, char ret[FIRST_BYTES])
{
        (void) text_format(ret, FIRST_BYTES, FOLLOWS "%llu}\n", (unsigned long long) sequence);
}

/* What the file has from `from` on; *ret_size 0 = nothing, and *ret may be NULL. */
static int read_from(const struct dra_journal *journal, size_t from, char **ret, size_t *ret_size)
{
        CLEANUP(close_p) int fd = open(journal->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;
        size_t have = 0;

        *ret_size = 0;
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((size_t) st.st_size <= from)
                return 0;
        if ((size_t) st.st_size > 2 * DRA_JOURNAL_MAX_BYTES)
                return -EFBIG;
        *ret = malloc((size_t) st.st_size - from);
        if (*ret == NULL)
                return -ENOMEM;
        while (have < (size_t) st.st_size - from) {
                ssize_t n = pread(fd, *ret + have, (size_t) st.st_size - from - have, (off_t) (from + have));

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0) /* it was cut meanwhile */
                        break;
                have += n > 0 ? (size_t) n : 0;
        }
        *ret_size = have;
        return 0;
}

int dra_journal_look(const struct dra_journal *journal, struct err *err)
{
        struct stat st = { .st_size = 0 };

        if (lstat(journal->path, &st) < 0) {
                if (errno != ENOENT)
                        return fail(journal, -errno, err);
                st.st_size = 0;
        }
        if ((size_t) st.st_size < journal->read_bytes)
                return err_set(err, -ENOENT, LESS_IS_THERE, journal->path);
        return (size_t) st.st_size > journal->read_bytes;
}

/* Of a journal whose first line is not the one of this state: is it another state's? */
static int check_first(const struct dra_journal *journal, const char *bytes, size_t size, struct err *err)
{
        if (memchr(bytes, '\n', size) == NULL || /* its writer died */
            (size > strlen(FOLLOWS) && memcmp(bytes, FOLLOWS, strlen(FOLLOWS)) == 0))
                return 0;
        return err_set(err, -EBADMSG, "'%s': does not begin as a journal", journal->path);
}

int dra_journal_read(struct dra_journal *journal, struct dra_state *state, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        char first[FIRST_BYTES];
        const char *at, *end;
        size_t size;
        int r = state->sequence == 0 ? 0 : read_from(journal, journal->read_bytes, &bytes, &size), done = 0;

        if (r < 0)
                return fail(journal, r, err);
        if (state->sequence == 0 || size == 0)
                return 0;
        at = bytes;
        if (journal->read_bytes == 0) {
                first_line(state->sequence, first);
                if (size < strlen(first) || memcmp(bytes, first, strlen(first)) != 0)
                        return check_first(journal, bytes, size, err);
                at += strlen(first);
        }
        while ((end = memchr(at, '\n', size - (size_t) (at - bytes))) != NULL) {
                r = dra_state_apply(state, at, (size_t) (end - at), err);
                if (r < 0)
                        return err_wrap(err, r, "'%s'", journal->path);
                at = end + 1;
                done = 1;
        }
        journal->read_bytes += (size_t) (at - bytes);
        return done;
}

void dra_journal_begin(struct dra_journal *journal, uint64_t sequence)
{
        CLEANUP(close_p)
        int fd = open(journal->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        char first[FIRST_BYTES];

        journal->read_bytes = 0;
        first_line(sequence, first);
        if (fd >= 0 && write_all(fd, first, strlen(first)) == 0)
                journal->read_bytes = strlen(first);
}

/* All but the last byte, and that one, where tests have a program die between the two. */
static int write_lines(int fd, const struct text *lines)
{
        size_t first = lines->size_bytes - FAILPOINT_TEARS;
        int r = write_all(fd, lines->data, first);

        FAILPOINT("dra.torn");
        r = r < 0 ? r : write_all(fd, lines->data + first, FAILPOINT_TEARS);
        FAILPOINT("dra.written");
        return r;
}

int dra_journal_append(struct dra_journal *journal, uint64_t sequence, const struct text *lines,
                       struct err *err)
{
        CLEANUP(close_p)
        int fd = open(journal->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        CLEANUP(text_free) struct text all = { 0 };
        char first[FIRST_BYTES];
        struct stat st;
        int r;

        if (journal->read_bytes == 0) {
                first_line(sequence, first);
                text_append(&all, first);
        }
        text_append_bytes(&all, lines->data, lines->size_bytes);
        if (all.failed)
                return fail(journal, -ENOMEM, err);
        if (fd < 0 || fstat(fd, &st) < 0)
                return fail(journal, -errno, err);
        if ((size_t) st.st_size < journal->read_bytes) /* to append would leave a hole of NULs */
                return err_set(err, -ENOENT, LESS_IS_THERE, journal->path);
        if ((size_t) st.st_size > journal->read_bytes && ftruncate(fd, (off_t) journal->read_bytes) < 0)
                return fail(journal, -errno, err);
        r = write_lines(fd, &all);
        if (r < 0) {
                if (ftruncate(fd, (off_t) journal->read_bytes) < 0)
                        return fail(journal, -errno, err);
                return fail(journal, r, err);
        }
        journal->read_bytes += all.size_bytes;
        return 0;
}
