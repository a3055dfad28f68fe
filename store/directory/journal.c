/* A descriptor, how far it was read, and the beginning of a line whose end is not there yet. */
#include "store/directory/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "io/failpoint.h"

#define BLOCK_BYTES 65536

void journal_init(struct journal *j, int directory_fd, const char *name)
{
        *j = (struct journal){ .directory_fd = directory_fd,
                               .fd = -1,
                               .rest = { .max_bytes = JOURNAL_LINE_MAX } };
        (void) text_copy(j->name, sizeof(j->name), name);
}

void journal_close(struct journal *j)
{
        if (j->fd >= 0)
                (void) close(j->fd);
        j->fd = -1;
        j->read_bytes = 0;
        j->sequence = 0;
        j->damage[0] = '\0';
        j->damage_said = false;
        text_reset(&j->rest);
}

void journal_free(struct journal *j)
{
        journal_close(j);
        text_free(&j->rest);
}

static int open_file(struct journal *j, bool create, struct err *err)
{
        struct stat st;

        j->fd = openat(j->directory_fd, j->name,
                       O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0644);
        if (j->fd < 0 && !create && (errno == EACCES || errno == EROFS))
                j->fd = openat(j->directory_fd, j->name,
                               O_RDONLY | O_CLOEXEC | O_NOFOLLOW); /* to read is enough */
        if (j->fd < 0)
                return errno == ENOENT ? 0 : err_set(err, -errno, "open '%s': %m", j->name);
        if (fstat(j->fd, &st) < 0)
                return err_set(err, -errno, "stat '%s': %m", j->name);
        j->device = st.st_dev;
        j->inode = st.st_ino;
        return 0;
}

/* Is the file that is open still the file of that name, and not shorter than what was read? */
static bool was_replaced(const struct journal *j)
{
        struct stat st;

        if (fstatat(j->directory_fd, j->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return true;
        return st.st_dev != j->device || st.st_ino != j->inode || st.st_size < j->read_bytes;
}

static unsigned long checksum(const char *bytes, size_t size)
{
        return crc32_z(crc32_z(0, NULL, 0), (const unsigned char *) bytes, size);
}

/* The number in front of the checksum, 0 if there is none. */
static uint64_t sequence_of(const char *line, size_t size)
{
        const char *at = memrchr(line, ':', size);
        char digits[24] = "";
        uint64_t sequence = 0;

        if (at == NULL || (size_t) (line + size - at) > sizeof(digits))
                return 0;
        memcpy(digits, at + 1, (size_t) (line + size - at) - 1);
        return text_parse_uint64(digits, &sequence) == 0 ? sequence : 0;
}

/* Is the line what was written, and the next that was? Only the first damage is noted: others follow from it.
 */
static bool check_line(struct journal *j, const char *line, size_t size)
{
        static const char begin[] = ",\"checksum\":\"", end[] = "\"}";
        const size_t tail = strlen(begin) + 8 + strlen(end);
        uint64_t sequence, sum = 0, expected = j->sequence + 1;
        char digits[9] = "";

        if (size <= tail || memcmp(line + size - tail, begin, strlen(begin)) != 0 ||
            memcmp(line + size - strlen(end), end, strlen(end)) != 0)
                return true; /* torn, or of an older program */
        memcpy(digits, line + size - strlen(end) - 8, 8);
        sequence = sequence_of(line, size - tail);
        if (text_parse_hex64(digits, &sum) < 0 || sum != checksum(line, size - tail)) {
                if (j->damage[0] == '\0')
                        (void) text_format(j->damage, sizeof(j->damage),
                                           "'%s' is damaged: the checksum of line %llu is another's", j->name,
                                           (unsigned long long) expected);
                return false;
        }
        if (sequence != expected && j->damage[0] == '\0')
                (void) text_format(
                        j->damage, sizeof(j->damage),
                        "'%s' is damaged: line %llu follows line %llu, what was between them is lost",
                        j->name, (unsigned long long) sequence, (unsigned long long) j->sequence);
        j->sequence = sequence;
        return true;
}

static void take_lines(struct journal *j, const char *block, size_t size, journal_line line, void *userdata)
{
        while (size > 0) {
                const char *end = memchr(block, '\n', size);
                size_t part = end != NULL ? (size_t) (end - block) : size;

                text_append_bytes(&j->rest, block, part);
                if (end == NULL)
                        return;
                if (!j->rest.failed && j->rest.size_bytes > 0 &&
                    check_line(j, j->rest.data, j->rest.size_bytes))
                        line(userdata, j->rest.data, j->rest.size_bytes);
                text_reset(&j->rest);
                block += part + 1;
                size -= part + 1;
        }
}

static int read_rest(struct journal *j, journal_line line, void *userdata, struct err *err)
{
        CLEANUP(free_p) char *block = malloc(BLOCK_BYTES);

        if (block == NULL)
                return err_set(err, -ENOMEM, "no memory to read '%s'", j->name);
        for (;;) {
                ssize_t n = pread(j->fd, block, BLOCK_BYTES, j->read_bytes);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_set(err, -errno, "read '%s': %m", j->name);
                if (n == 0)
                        return 0;
                j->read_bytes += n;
                take_lines(j, block, (size_t) n, line, userdata);
        }
}

static int reopen(struct journal *j, bool create, void (*forget)(void *userdata), void *userdata,
                  struct err *err)
{
        bool replaced = j->fd >= 0 && was_replaced(j);
        int r = 0;

        if (replaced) {
                journal_close(j);
                forget(userdata);
        }
        if (j->fd < 0)
                r = open_file(j, create, err);
        return r < 0 ? r : replaced;
}

int journal_read(struct journal *j, void (*forget)(void *userdata), journal_line line, void *userdata,
                 struct err *err)
{
        int replaced = reopen(j, false, forget, userdata, err), r = 0;

        if (replaced < 0)
                return replaced;
        if (j->fd >= 0)
                r = read_rest(j, line, userdata, err);
        return r < 0 ? r : replaced;
}

static int write_all(int fd, const char *bytes, size_t size)
{
        while (size > 0) {
                ssize_t n = write(fd, bytes, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                bytes += n;
                size -= (size_t) n;
        }
        return 0;
}

/* A line without an end, while nobody else is writing: its writer died. It is closed, and read as what it is.
 */
static int close_torn_line(struct journal *j, journal_line line, void *userdata, struct err *err)
{
        int r;

        if (j->rest.size_bytes == 0 && !j->rest.failed)
                return 0;
        r = write_all(j->fd, "\n", 1);
        return r < 0 ? err_set(err, r, "append to '%s': %s", j->name, strerror(-r))
                     : read_rest(j, line, userdata, err);
}

int journal_lock(struct journal *j, void (*forget)(void *userdata), journal_line line, void *userdata,
                 struct err *err)
{
        for (int replaced = 0;;) {
                int r = reopen(j, true, forget, userdata, err);

                if (r < 0)
                        return r;
                replaced |= r;
                while (flock(j->fd, LOCK_EX) < 0)
                        if (errno != EINTR)
                                return err_set(err, -errno, "lock '%s': %m", j->name);
                if (was_replaced(j))
                        continue; /* while we waited: the lock of a file that is gone protects nothing */
                r = read_rest(j, line, userdata, err);
                if (r == 0)
                        r = close_torn_line(j, line, userdata, err);
                if (r == 0 && j->damage[0] != '\0')
                        r = err_set(err, -EBADMSG,
                                    "%s; nothing is appended until the file is restored, or removed by who "
                                    "knows what it said",
                                    j->damage);
                if (r < 0)
                        journal_unlock(j);
                return r < 0 ? r : replaced;
        }
}

/* Each line with its number and its checksum. Return: how many they are. */
static uint64_t stamp(const struct journal *j, const char *lines, size_t size_bytes, struct text *ret)
{
        uint64_t count = 0;

        for (const char *at = lines, *end; at < lines + size_bytes; at = end + 1) {
                size_t begin = ret->size_bytes;

                end = memchr(at, '\n', (size_t) (lines + size_bytes - at));
                assert(end != NULL && end > at && end[-1] == '}');
                text_append_bytes(ret, at, (size_t) (end - at) - 1);
                text_printf(ret, ",\"sequence\":%llu", (unsigned long long) j->sequence + ++count);
                if (!ret->failed)
                        text_printf(ret, ",\"checksum\":\"%08lx\"}\n",
                                    checksum(ret->data + begin, ret->size_bytes - begin));
        }
        return count;
}

int journal_commit(struct journal *j, const char *lines, size_t size_bytes, struct err *err)
{
        CLEANUP(text_free) struct text stamped = { 0 };
        uint64_t count = stamp(j, lines, size_bytes, &stamped);
        int r = stamped.failed ? err_set(err, -ENOMEM, "no memory to append to '%s'", j->name) : 0;

        if (r == 0 && count > 0) {
                r = write_all(j->fd, stamped.data, stamped.size_bytes);
                FAILPOINT("journal.written");
                if (r == 0 && fdatasync(j->fd) < 0)
                        r = -errno;
                FAILPOINT("journal.synced");
                if (r == 0) {
                        j->read_bytes += (off_t) stamped.size_bytes;
                        j->sequence += count;
                } else if (ftruncate(j->fd, j->read_bytes) < 0)
                        (void) err_set(err, r, "append to '%s': %s, and cutting it back: %m", j->name,
                                       strerror(-r));
                else
                        (void) err_set(err, r, "append to '%s': %s", j->name, strerror(-r));
        }
        journal_unlock(j);
        return r;
}

void journal_unlock(struct journal *j)
{
        (void) flock(j->fd, LOCK_UN);
}
