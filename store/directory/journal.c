/* A descriptor, how far it was read, and the beginning of a line whose end is not there yet. */
#include "store/directory/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "io/failpoint.h"
#include "io/write_all.h"

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
        j->damage_said = j->cut_short = false;
        j->told_bytes = 0;
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

static const char tail_begin[] = ",\"checksum\":\"", tail_end[] = "\"}";
#define TAIL_BYTES (sizeof(tail_begin) - 1 + 8 + sizeof(tail_end) - 1)

/* Without one it is torn, or of an older program. */
static bool has_checksum(const char *line, size_t size)
{
        return size > TAIL_BYTES && memcmp(line + size - TAIL_BYTES, tail_begin, strlen(tail_begin)) == 0 &&
               memcmp(line + size - strlen(tail_end), tail_end, strlen(tail_end)) == 0;
}

static bool checksum_holds(const char *line, size_t size)
{
        char digits[9] = "";
        uint64_t sum = 0;

        memcpy(digits, line + size - strlen(tail_end) - 8, 8);
        return text_parse_hex64(digits, &sum) == 0 && sum == checksum(line, size - TAIL_BYTES);
}

/* Only the first damage is noted: others follow from it. A missing end may come yet, a line that is wrong
 * will not be mended by what follows: it stands from then on. */
__attribute__((format(printf, 2, 3))) static void note_damage(struct journal *j, const char *format, ...)
{
        va_list arguments;

        if (j->damage[0] != '\0' && !j->cut_short)
                return;
        va_start(arguments, format);
        (void) vsnprintf(j->damage, sizeof(j->damage), format, arguments);
        va_end(arguments);
        j->cut_short = false;
}

/* Is the line what was written, and the next that was? */
static bool check_line(struct journal *j, const char *line, size_t size)
{
        uint64_t sequence, expected = j->sequence + 1;

        if (!has_checksum(line, size))
                return true;
        sequence = sequence_of(line, size - TAIL_BYTES);
        if (!checksum_holds(line, size)) {
                note_damage(j, "'%s' is damaged: the checksum of line %llu is another's", j->name,
                            (unsigned long long) expected);
                return false;
        }
        if (sequence != expected)
                note_damage(j, "'%s' is damaged: line %llu follows line %llu, what was between them is lost",
                            j->name, (unsigned long long) sequence, (unsigned long long) j->sequence);
        j->sequence = sequence;
        return true;
}

static void take_rest(struct journal *j, journal_line line, void *userdata)
{
        if (!j->rest.failed && j->rest.size_bytes > j->told_bytes &&
            check_line(j, j->rest.data, j->rest.size_bytes))
                line(userdata, j->rest.data, j->rest.size_bytes);
}

static void take_lines(struct journal *j, const char *block, size_t size, journal_line line, void *userdata)
{
        while (size > 0) {
                const char *end = memchr(block, '\n', size);
                size_t part = end != NULL ? (size_t) (end - block) : size;

                text_append_bytes(&j->rest, block, part);
                if (end == NULL)
                        return;
                take_rest(j, line, userdata);
                text_reset(&j->rest);
                j->told_bytes = 0;
                block += part + 1;
                size -= part + 1;
        }
}

/* A line whose newline alone is missing is one: its writer died a byte too early, or the byte was lost. It
 * counts before anybody decides, not after. */
static void take_whole_rest(struct journal *j, journal_line line, void *userdata)
{
        if (j->rest.failed || j->told_bytes > 0 || !has_checksum(j->rest.data, j->rest.size_bytes) ||
            !checksum_holds(j->rest.data, j->rest.size_bytes))
                return;
        take_rest(j, line, userdata);
        j->told_bytes = j->rest.size_bytes;
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
                if (n == 0) {
                        take_whole_rest(j, line, userdata);
                        return 0;
                }
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

/* Each line with its number, from the one after `number`, and its checksum. Return: the last number. */
static uint64_t stamp(uint64_t number, const char *lines, size_t size_bytes, struct text *ret)
{
        for (const char *at = lines, *end; at < lines + size_bytes; at = end + 1) {
                size_t begin = ret->size_bytes;

                end = memchr(at, '\n', (size_t) (lines + size_bytes - at));
                assert(end != NULL && end > at && end[-1] == '}');
                text_append_bytes(ret, at, (size_t) (end - at) - 1);
                text_printf(ret, ",\"sequence\":%llu", (unsigned long long) ++number);
                if (!ret->failed)
                        text_printf(ret, ",\"checksum\":\"%08lx\"}\n",
                                    checksum(ret->data + begin, ret->size_bytes - begin));
        }
        return number;
}

/* What the file beside the journal says: the last number. */
struct last {
        char name[80];
        int result; /* 0; negative errno: what it says cannot be read */
        uint64_t sequence;
};

/* Before the journal is read: so that its lines are there by then. */
static struct last last_read(const struct journal *j)
{
        struct last last = { .result = 0 };
        char line[256];
        CLEANUP(close_p) int fd = -1;
        ssize_t n;

        (void) text_format(last.name, sizeof(last.name), ".%s.last", j->name);
        fd = openat(j->directory_fd, last.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        n = fd < 0 ? fd : pread(fd, line, sizeof(line), 0);
        if (n < 0 && errno != ENOENT)
                last.result = -errno;
        if (n <= 0)
                return last;
        if (line[n - 1] == '\n' && has_checksum(line, (size_t) n - 1) && checksum_holds(line, (size_t) n - 1))
                last.sequence = sequence_of(line, (size_t) n - 1 - TAIL_BYTES);
        last.result = last.sequence > 0 ? 0 : -EBADMSG;
        return last;
}

/* Always as long, and not synced but when it is new: an older number is no lie, and does harm only where the
 * journal is harmed, too. Where it cannot be written it is taken away rather than left half-written. */
static int last_write(const struct journal *j, const struct last *last, uint64_t sequence)
{
        CLEANUP(text_free) struct text own = { 0 }, line = { 0 };
        CLEANUP(close_p)
        int fd = openat(j->directory_fd, last->name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        int digits = snprintf(NULL, 0, "%llu", (unsigned long long) sequence), r;

        if (fd < 0)
                return -errno;
        text_printf(&own, "{\"last\":\"%s\"%*s}\n", j->name, 20 - digits, "");
        (void) stamp(sequence - 1, own.data, own.size_bytes, &line);
        r = line.failed ? -ENOMEM : write_all(fd, line.data, line.size_bytes);
        if (r < 0)
                (void) unlinkat(j->directory_fd, last->name, 0);
        else if (last->sequence == 0)
                (void) fdatasync(fd);
        return r;
}

/* Does it end where it should? */
static void compare_last(struct journal *j, const struct last *last)
{
        if (j->cut_short)
                j->damage[0] = '\0';
        if (j->damage[0] == '\0' && last->result < 0)
                (void) text_format(j->damage, sizeof(j->damage), "'%s', which tells where '%s' ends, %s%s",
                                   last->name, j->name,
                                   last->result == -EBADMSG ? "is damaged" : "cannot be read: ",
                                   last->result == -EBADMSG ? "" : strerror(-last->result));
        else if (j->damage[0] == '\0' && last->sequence > j->sequence)
                (void) text_format(j->damage, sizeof(j->damage),
                                   "'%s' is damaged: it ends after line %llu of %llu, the others are lost",
                                   j->name, (unsigned long long) j->sequence,
                                   (unsigned long long) last->sequence);
        else if (!j->cut_short)
                return;
        j->cut_short = j->damage[0] != '\0';
}

int journal_read(struct journal *j, void (*forget)(void *userdata), journal_line line, void *userdata,
                 struct err *err)
{
        struct last last = last_read(j);
        int replaced = reopen(j, false, forget, userdata, err), r = 0;

        if (replaced < 0)
                return replaced;
        if (j->fd >= 0)
                r = read_rest(j, line, userdata, err);
        if (r == 0)
                compare_last(j, &last);
        return r < 0 ? r : replaced;
}

/* A line without an end, while nobody else is writing: its writer died. It is closed, and read as what it is,
 * if it was not. */
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
                struct last last;
                int r = reopen(j, true, forget, userdata, err);

                if (r < 0)
                        return r;
                replaced |= r;
                while (flock(j->fd, LOCK_EX) < 0)
                        if (errno != EINTR)
                                return err_set(err, -errno, "lock '%s': %m", j->name);
                if (was_replaced(j))
                        continue; /* while we waited: the lock of a file that is gone protects nothing */
                last = last_read(j);
                r = read_rest(j, line, userdata, err);
                if (r == 0)
                        compare_last(j, &last);
                if (r == 0 && j->damage[0] == '\0')
                        r = close_torn_line(j, line, userdata, err);
                if (r == 0 && j->damage[0] != '\0')
                        r = err_set(err, -EBADMSG,
                                    "%s; nothing is appended until the file is restored, or removed by who "
                                    "knows what it said, and '%s' with it",
                                    j->damage, last.name);
                if (r < 0)
                        journal_unlock(j);
                return r < 0 ? r : replaced;
        }
}

/* All but the last byte, and that one, where tests have a program die between the two. */
static int write_lines(struct journal *j, const struct text *lines)
{
        size_t first = lines->size_bytes - FAILPOINT_TEARS;
        int r = write_all(j->fd, lines->data, first);

        FAILPOINT("journal.torn");
        return r < 0 ? r : write_all(j->fd, lines->data + first, FAILPOINT_TEARS);
}

int journal_commit(struct journal *j, const char *lines, size_t size_bytes, struct err *err)
{
        CLEANUP(text_free) struct text stamped = { 0 };
        uint64_t sequence = stamp(j->sequence, lines, size_bytes, &stamped);
        int r = stamped.failed ? err_set(err, -ENOMEM, "no memory to append to '%s'", j->name) : 0;

        if (r == 0 && sequence > j->sequence) {
                struct last last = last_read(j);

                r = write_lines(j, &stamped);
                FAILPOINT("journal.written");
                if (r == 0 && fdatasync(j->fd) < 0)
                        r = -errno;
                FAILPOINT("journal.synced");
                if (r == 0)
                        r = last_write(j, &last, sequence);
                if (r == 0) {
                        j->read_bytes += (off_t) stamped.size_bytes;
                        j->sequence = sequence;
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
