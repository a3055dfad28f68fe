/* Two files a rank, each read on from where it was left. */
#include "job/show/folder_logs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define BLOCK 65536

static const char *const kinds[] = { "out", "err" };

#define FILES_EACH (sizeof(kinds) / sizeof(kinds[0]))

struct log_file {
        char path[PATH_MAX];
        size_t rank;
        off_t offset;
        bool cut;         /* it was begun inside a line, which is left out */
        struct text line; /* what came after the last line end */
};

struct folder_logs {
        void (*line)(void *userdata, size_t rank, const char *line);
        void *userdata;
        bool begun;
        uint64_t tail_bytes;
        size_t count;
        struct log_file files[];
};

static void end_line(const struct folder_logs *logs, struct log_file *file)
{
        if (!file->cut)
                logs->line(logs->userdata, file->rank, file->line.data == NULL ? "" : file->line.data);
        file->cut = false;
        text_reset(&file->line);
}

static void add_to_line(struct log_file *file, const char *bytes, size_t size)
{
        size_t room = FOLDER_LOGS_LINE_BYTES - file->line.size_bytes;

        text_append_bytes(&file->line, bytes, size < room ? size : room);
}

static void take(const struct folder_logs *logs, struct log_file *file, const char *bytes, size_t size)
{
        const char *end;

        while ((end = memchr(bytes, '\n', size)) != NULL) {
                add_to_line(file, bytes, (size_t) (end - bytes));
                end_line(logs, file);
                size -= (size_t) (end - bytes) + 1;
                bytes = end + 1;
        }
        add_to_line(file, bytes, size);
}

/* One byte earlier than the tail: where that ends a line, the tail begins with a whole one. */
static void skip_to_tail(const struct folder_logs *logs, struct log_file *file, off_t size_bytes)
{
        if (logs->tail_bytes == 0 || size_bytes <= (off_t) logs->tail_bytes)
                return;
        file->offset = size_bytes - (off_t) logs->tail_bytes - 1;
        file->cut = true;
}

/* Return: did it take all that it may? */
static bool read_on(const struct folder_logs *logs, struct log_file *file, uint64_t max_bytes)
{
        CLEANUP(close_p) int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
        char bytes[BLOCK];
        uint64_t left = max_bytes == 0 ? UINT64_MAX : max_bytes;
        off_t size_bytes;
        ssize_t size;

        if (fd < 0)
                return false;
        size_bytes = lseek(fd, 0, SEEK_END);
        if (size_bytes <
            file->offset) { /* a new world's: what the old one had begun to say is a line of its own */
                file->offset = 0;
                if (file->line.size_bytes > 0)
                        end_line(logs, file);
                file->cut = false;
        }
        if (!logs->begun)
                skip_to_tail(logs, file, size_bytes);
        while (left > 0 &&
               (size = pread(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes), file->offset)) > 0) {
                take(logs, file, bytes, (size_t) size);
                file->offset += size;
                left -= (uint64_t) size;
        }
        return left == 0;
}

bool folder_logs_read(struct folder_logs *logs, uint64_t max_bytes)
{
        bool more = false;

        for (size_t i = 0; i < logs->count; i++)
                more = read_on(logs, &logs->files[i], max_bytes) || more;
        logs->begun = true;
        return more;
}

void folder_logs_finish(struct folder_logs *logs)
{
        for (size_t i = 0; i < logs->count; i++)
                if (logs->files[i].line.size_bytes > 0)
                        end_line(logs, &logs->files[i]);
}

struct folder_logs *folder_logs_new(const char *folder, size_t rank_count, long rank, uint64_t tail_bytes,
                                    void (*line)(void *userdata, size_t rank, const char *line),
                                    void *userdata)
{
        size_t first = rank == FOLDER_LOGS_ALL ? 0 : (size_t) rank,
               end = rank == FOLDER_LOGS_ALL ? rank_count : first + 1;
        struct folder_logs *logs =
                calloc(1, sizeof(*logs) + (end - first) * FILES_EACH * sizeof(logs->files[0]));

        if (logs == NULL)
                return NULL;
        logs->line = line;
        logs->userdata = userdata;
        logs->tail_bytes = tail_bytes;
        for (size_t i = first; i < end; i++)
                for (size_t k = 0; k < FILES_EACH; k++) {
                        struct log_file *file = &logs->files[logs->count];

                        file->rank = i;
                        if (text_format(file->path, PATH_MAX, "%s/rank-%zu.%s", folder, i, kinds[k]))
                                logs->count++;
                }
        return logs;
}

void folder_logs_free(struct folder_logs *logs)
{
        if (logs == NULL)
                return;
        for (size_t i = 0; i < logs->count; i++)
                text_free(&logs->files[i].line);
        free(logs);
}
