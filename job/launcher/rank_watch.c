/* Progress lines, reports and /proc, turned into what is known of a rank. */
#include "job/launcher/rank_watch.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define LOOK_MAX_BYTES ((size_t) 1 << 20) /* of one rank, at one look */

static int64_t whole(const json_t *line, const char *name)
{
        const json_t *value = json_object_get(line, name);

        return json_is_integer(value) ? (int64_t) json_integer_value(value) : -1;
}

bool rank_watch_line(const char *line, size_t size_bytes, struct progress_line *ret)
{
        json_t *value = json_loadb(line, size_bytes, 0, NULL);
        bool good = json_is_object(value);

        *ret = (struct progress_line){ .epoch = whole(value, "epoch"),
                                       .step = whole(value, "step"),
                                       .samples = whole(value, "samples"),
                                       .loss = json_number_value(json_object_get(value, "loss")),
                                       .has_loss = json_is_number(json_object_get(value, "loss")),
                                       .samples_per_s =
                                               json_number_value(json_object_get(value, "samples_per_s")),
                                       .busy_seconds =
                                               json_number_value(json_object_get(value, "busy_seconds")),
                                       .epoch_samples = whole(value, "epoch_samples") };
        json_decref(value);
        return good;
}

size_t rank_watch_progress(const char *path, off_t *offset, struct progress_rank *rank, uint64_t now_usec)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
        CLEANUP(free_p) char *bytes = NULL;
        char *line, *end;
        ssize_t size;
        size_t count = 0;

        if (fd < 0 || lseek(fd, 0, SEEK_END) <= *offset)
                return 0;
        bytes = malloc(LOOK_MAX_BYTES + 1);
        size = bytes == NULL ? -1 : pread(fd, bytes, LOOK_MAX_BYTES, *offset);
        if (size <= 0)
                return 0;
        bytes[size] = '\0';
        for (line = bytes; (end = memchr(line, '\n', (size_t) (bytes + size - line))) != NULL;
             line = end + 1) {
                struct progress_line said;

                if (rank_watch_line(line, (size_t) (end - line), &said)) {
                        progress_say(rank, &said, now_usec);
                        count++;
                }
        }
        if (line == bytes && (size_t) size == LOOK_MAX_BYTES) /* no line end in so much: not ours to keep */
                line = bytes + size;
        *offset += line - bytes;
        return count;
}

bool rank_watch_report(const char *path, struct rank_report *ret)
{
        json_t *report = json_load_file(path, 0, NULL);
        const json_t *pid = json_object_get(report, "pid"), *code = json_object_get(report, "exit_code");
        const json_t *launcher = json_object_get(report, "launcher");
        bool found = json_is_object(report);

        *ret = (struct rank_report){ 0 };
        if (json_is_integer(pid))
                ret->pid = (pid_t) json_integer_value(pid);
        if (json_is_integer(launcher))
                ret->launcher = (pid_t) json_integer_value(launcher);
        if (json_is_integer(code)) {
                ret->ended = true;
                ret->exit_code = (int) json_integer_value(code);
                ret->ended_usec = (uint64_t) json_integer_value(json_object_get(report, "ended_usec"));
        }
        json_decref(report);
        return found;
}

bool rank_watch_stopped(pid_t pid, bool or_stuck)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[64], line[512];
        const char *close;

        (void) text_format(path, sizeof(path), "/proc/%d/stat", (int) pid);
        f = pid <= 0 ? NULL : fopen(path, "re");
        if (f == NULL || fgets(line, sizeof(line), f) == NULL)
                return false;
        close = strrchr(line, ')');
        return close != NULL && close[1] == ' ' && (close[2] == 'T' || (or_stuck && close[2] == 'D'));
}
