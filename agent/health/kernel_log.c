/* Kernel log: records of /dev/kmsg, lines of a file, or syslog(2), whichever may be read. */
#include "agent/health/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"

#define RECORD_BYTES   8192
#define OLD_USEC       UINT64_C(600000000) /* what was said longer ago is history */
#define READ_BYTES_MAX ((size_t) 1 << 20)  /* of an ordinary file in one poll */
#define PATH_BYTES     1024
#define BUFFER_BYTES   65536 /* of the kernel's buffer: its newest part, looked at each second */
#define BUFFER_USEC    UINT64_C(1000000)

enum { SYSLOG_ACTION_READ_ALL = 3 }; /* <linux/syslog.h> is not for programs */

struct kernel_log {
        kernel_log_fault fault;
        void *userdata;
        char path[PATH_BYTES];
        int fd; /* of the device; -1 = an ordinary file */
        sd_event_source *source;
        off_t offset; /* of an ordinary file: what was read so far */
        uint64_t sequence;
        sd_event_source *timer; /* asks the kernel's buffer; NULL = it is not asked */
        uint64_t last_usec;     /* stamp of its last line that was taken */
        unsigned last_count;    /* of the lines with that stamp */
};

/* A record is "6,1234,98765,-;text", continuation lines begin with a blank. A line of another form is all
 * text: somebody's copy of a log. Return: the text, and the numbers of its head (0 = none). */
static const char *split(const char *line, uint64_t *sequence, uint64_t *usec)
{
        const char *text = strchr(line, ';');
        char *end;

        *sequence = *usec = 0;
        (void) strtoull(line, &end, 10);
        if (text == NULL || end == line || *end != ',' || end > text)
                return line;
        *sequence = strtoull(end + 1, &end, 10);
        if (*end == ',')
                *usec = strtoull(end + 1, NULL, 10);
        return text + 1;
}

static void take_line(struct kernel_log *log, const char *line, uint64_t now_usec)
{
        struct kernel_fault fault;
        uint64_t sequence, usec;
        const char *text = split(line, &sequence, &usec);

        if (sequence != 0 && sequence <= log->sequence)
                return;
        if (sequence != 0)
                log->sequence = sequence;
        if (now_usec != 0 && usec != 0 && usec + OLD_USEC < now_usec)
                return;
        if (kernel_fault_parse(text, &fault))
                log->fault(log->userdata, &fault);
}

static int on_record(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct kernel_log *log = userdata;
        char record[RECORD_BYTES];

        (void) revents;
        for (;;) {
                ssize_t n = read(fd, record, sizeof(record) - 1);

                if (n < 0 && (errno == EPIPE || errno == EINTR))
                        continue; /* records were overwritten before they were read */
                if (n < 0 && errno == EAGAIN)
                        return 0;
                if (n <= 0) {
                        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
                        return 0;
                }
                record[n] = '\0';
                record[strcspn(record, "\n")] = '\0';
                take_line(log, record, clock_monotonic_usec());
        }
}

/* "<6>[   12.345678] words" -> the words and 12345678; @usec 0 when there is no stamp. */
static const char *split_stamp(const char *line, uint64_t *usec)
{
        const char *at = line[0] == '<' ? strchr(line, '>') : NULL;
        char *end;

        *usec = 0;
        at = at != NULL ? at + 1 : line;
        if (at[0] != '[')
                return at;
        *usec = strtoull(at + 1, &end, 10) * 1000000;
        if (*end == '.')
                *usec += strtoull(end + 1, &end, 10);
        return *end == ']' ? end + 1 : at;
}

void kernel_log_take_buffer(struct kernel_log *log, char *text, uint64_t now_usec)
{
        uint64_t after_usec = log->last_usec, usec;
        unsigned skip = log->last_count;
        struct kernel_fault fault;

        for (char *line = text, *next; line != NULL && *line != '\0'; line = next) {
                const char *words;

                next = strchr(line, '\n');
                if (next != NULL)
                        *next++ = '\0';
                words = split_stamp(line, &usec);
                if (usec == 0 || usec > now_usec || usec < after_usec || (usec == after_usec && skip > 0)) {
                        skip -= usec != 0 &&
                                usec == after_usec; /* without a stamp it cannot be told from old ones */
                        continue;
                }
                log->last_count = usec == log->last_usec ? log->last_count + 1 : 1;
                log->last_usec = usec;
                if (usec + OLD_USEC >= now_usec && kernel_fault_parse(words, &fault))
                        log->fault(log->userdata, &fault);
        }
}

static int ask_buffer(struct kernel_log *log)
{
        CLEANUP(free_p) char *text = malloc(BUFFER_BYTES + 1);
        int n = text != NULL ? klogctl(SYSLOG_ACTION_READ_ALL, text, BUFFER_BYTES) : -1;

        if (n < 0)
                return text != NULL ? -errno : -ENOMEM;
        text[n] = '\0';
        kernel_log_take_buffer(log, text, clock_monotonic_usec());
        return 0;
}

static void on_buffer_timer(void *userdata)
{
        (void) ask_buffer(userdata);
}

static void take_lines(struct kernel_log *log, char *lines)
{
        for (char *line = lines, *next; line != NULL && *line != '\0'; line = next) {
                next = strchr(line, '\n');
                if (next == NULL)
                        return; /* not whole yet */
                *next++ = '\0';
                log->offset += next - line;
                take_line(log, line, 0);
        }
}

void kernel_log_poll(struct kernel_log *log)
{
        CLEANUP(close_p) int fd = -1;
        CLEANUP(free_p) char *bytes = NULL;
        struct stat st;
        size_t size;
        ssize_t n;

        if (log == NULL || log->fd >= 0 || log->timer != NULL)
                return;
        if (stat(log->path, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        if (st.st_size < log->offset)
                log->offset = 0; /* begun anew */
        if (st.st_size == log->offset)
                return;
        size = (size_t) (st.st_size - log->offset);
        size = size > READ_BYTES_MAX ? READ_BYTES_MAX : size;
        fd = open(log->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        bytes = fd >= 0 ? malloc(size + 1) : NULL;
        n = bytes != NULL ? pread(fd, bytes, size, log->offset) : -1;
        if (n <= 0)
                return;
        bytes[n] = '\0';
        if (strlen(bytes) == (size_t) n && ((size_t) n < READ_BYTES_MAX || strchr(bytes, '\n') != NULL))
                take_lines(log, bytes);
        else
                log->offset = st.st_size; /* binary, or one endless line: not a log */
}

static int open_device(struct kernel_log *log, sd_event *loop, struct err *err)
{
        int r;

        log->fd = open(log->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        r = log->fd < 0 ? -errno : sd_event_add_io(loop, &log->source, log->fd, EPOLLIN, on_record, log);
        if ((r == -EPERM || r == -EACCES) && ask_buffer(log) == 0)
                r = loop_every(loop, BUFFER_USEC, BUFFER_USEC, on_buffer_timer, log, &log->timer);
        return r < 0 ? err_set(err, r, "%s: %s", log->path, strerrordesc_np(-r)) : 0;
}

int kernel_log_new(sd_event *loop, const char *root, uint64_t after_sequence, kernel_log_fault fault,
                   void *userdata, struct kernel_log **ret, struct err *err)
{
        struct kernel_log *log = calloc(1, sizeof(*log));
        struct stat st;
        int r = 0;

        if (log == NULL)
                return err_set(err, -ENOMEM, "no memory for the kernel log");
        *log = (struct kernel_log){
                .fault = fault, .userdata = userdata, .fd = -1, .sequence = after_sequence
        };
        (void) text_format(log->path, sizeof(log->path), "%s/dev/kmsg", strcmp(root, "/") == 0 ? "" : root);
        if (lstat(log->path, &st) == 0 && S_ISCHR(st.st_mode))
                r = open_device(log, loop, err);
        if (r < 0)
                kernel_log_free(log);
        else
                *ret = log;
        return r;
}

void kernel_log_free(struct kernel_log *log)
{
        if (log == NULL)
                return;
        (void) sd_event_source_unref(log->source);
        (void) sd_event_source_unref(log->timer);
        if (log->fd >= 0)
                (void) close(log->fd);
        free(log);
}

uint64_t kernel_log_sequence(const struct kernel_log *log)
{
        return log != NULL && log->timer == NULL ? log->sequence : 0;
}

const char *kernel_log_way(const struct kernel_log *log)
{
        return log == NULL ? "none" : log->timer != NULL ? "syslog" : log->fd >= 0 ? "kmsg" : "file";
}
