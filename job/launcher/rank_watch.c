/* The tables of a progress line and of a report, and the files that grow with them. */
#include "job/launcher/rank_watch.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/text.h"
#include "job/world/hint.h"

#define LOOK_MAX_BYTES ((size_t) 1 << 20) /* of one rank, at one look */

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct progress_line, member)
static const struct json_table_row line_rows[] = {
        { "epoch",          JSON_TABLE_INT,    AT(epoch) },
        { "step",           JSON_TABLE_INT,    AT(step) },
        { "samples",        JSON_TABLE_INT,    AT(samples) },
        { "loss",           JSON_TABLE_DOUBLE, AT(loss) },
        { "accuracy",       JSON_TABLE_DOUBLE, AT(accuracy) },
        { "seconds",        JSON_TABLE_DOUBLE, AT(seconds) },
        { "samples_per_s",  JSON_TABLE_DOUBLE, AT(samples_per_s) },
        { "busy_seconds",   JSON_TABLE_DOUBLE, AT(busy_seconds) },
        { "epoch_samples",  JSON_TABLE_INT,    AT(epoch_samples) },
        { "begins_seconds", JSON_TABLE_DOUBLE, AT(begins_seconds) },
        { "shares_step",    JSON_TABLE_INT,    AT(shares_step) },
        { .name = NULL },
};
#undef AT
#define AT(member) JSON_TABLE_AT(struct rank_watch_report, member)
static const struct json_table_row report_rows[] = {
        { "pid",            JSON_TABLE_INT,    AT(pid) },
        { "launcher",       JSON_TABLE_INT,    AT(launcher) },
        { "exit_code",      JSON_TABLE_INT,    AT(exit_code) },
        { "ended_usec",     JSON_TABLE_UINT,   AT(ended_usec) },
        { "asked",          JSON_TABLE_BOOL,   AT(asked) },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table line_table = { .rows = line_rows,
                                              .size_bytes = sizeof(struct progress_line),
                                              .lenient = true },
                               report_table = { .rows = report_rows,
                                                .size_bytes = sizeof(struct rank_watch_report),
                                                .lenient = true };

/* A field that is there, and not such a number as it has to be; null says nothing. Return: is it doubted? */
static bool doubt_field(const json_t *said, const char *name, bool fits, enum progress_doubt doubt,
                        struct progress_line *line)
{
        const json_t *value = json_object_get(said, name);

        if (value == NULL || json_is_null(value) || (fits && json_is_number(value)))
                return false;
        line->doubt = doubt;
        line->doubted = json_is_number(value) ? json_number_value(value) : NAN;
        return true;
}

/* What a program says and cannot be. Whoever has no number for a field leaves it out. */
static void doubt_line(const json_t *said, struct progress_line *line)
{
        if (!doubt_field(said, "step", line->step >= 0, PROGRESS_STEP, line) &&
            !doubt_field(said, "samples", line->samples >= 0, PROGRESS_SAMPLES, line) &&
            !doubt_field(said, "busy_seconds", line->busy_seconds >= 0, PROGRESS_BUSY, line))
                (void) doubt_field(said, "samples_per_s", line->samples_per_s >= 0, PROGRESS_RATE, line);
        line->live =
                line->shares_step >= 0 || (json_object_get(said, "shares_step") == NULL && line->step >= 0 &&
                                           line->samples >= 0 && line->busy_seconds > 0);
}

bool rank_watch_line(const char *line, size_t size_bytes, struct progress_line *ret)
{
        json_t *value = json_loadb(line, size_bytes, 0, NULL);
        bool good = json_is_object(value);

        *ret = (struct progress_line){ .epoch = -1,
                                       .step = -1,
                                       .samples = -1,
                                       .epoch_samples = -1,
                                       .shares_step = -1,
                                       .loss = NAN,
                                       .seconds = NAN,
                                       .accuracy = NAN,
                                       .begins_seconds = NAN };
        (void) json_table_decode(&line_table, value, ret, NULL);
        doubt_line(value, ret);
        ret->has_loss = isfinite(ret->loss);
        if (!ret->has_loss)
                ret->loss = 0;
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
                } else if (end > line) {
                        progress_doubt(rank, PROGRESS_NO_LINE, 0);
                }
        }
        if (line == bytes && (size_t) size == LOOK_MAX_BYTES) /* no line end in so much: not ours to keep */
                line = bytes + size;
        *offset += line - bytes;
        return count;
}

bool rank_watch_report(const char *path, struct rank_watch_report *ret)
{
        json_t *report = json_load_file(path, 0, NULL);
        bool found = json_is_object(report);

        *ret = (struct rank_watch_report){ .exit_code = INT_MIN };
        (void) json_table_decode(&report_table, report, ret, NULL);
        ret->ended = ret->exit_code != INT_MIN;
        if (!ret->ended)
                ret->exit_code = 0;
        json_decref(report);
        return found;
}

void rank_watch_last_line(const char *path, char *line, size_t size)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
        off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END), room = (off_t) size - 1;
        ssize_t got = end <= 0 ? 0 : pread(fd, line, (size_t) room, end > room ? end - room : 0);
        const char *words;
        size_t length;

        line[got > 0 ? got : 0] = '\0';
        length = hint_words(line, &words);
        memmove(line, words, length);
        line[length] = '\0';
}

char rank_watch_process(pid_t pid)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[64], line[512];
        const char *close;

        (void) text_format(path, sizeof(path), "/proc/%d/stat", (int) pid);
        f = pid <= 0 ? NULL : fopen(path, "re");
        if (f == NULL || fgets(line, sizeof(line), f) == NULL)
                return 0;
        close = strrchr(line, ')');
        if (close == NULL || close[1] != ' ')
                return '\0';
        return close[2];
}

static double figure(double said)
{
        return isfinite(said) ? said : 0;
}

/* Steps, samples, busy_ms; such a message may come from anywhere. */
static size_t read_paces(const Rendezvous__RankSeen *said, struct window_pace *paces)
{
        size_t count = 0;

        for (size_t i = 0; i + 2 < said->n_paces && count < PROGRESS_PACES; i += 3)
                if (figure(said->paces[i]) > 0 && figure(said->paces[i + 1]) > 0 &&
                    figure(said->paces[i + 2]) > 0)
                        paces[count++] = (struct window_pace){ said->paces[i], said->paces[i + 1],
                                                               said->paces[i + 2] };
        return count;
}

void rank_watch_tell(struct world *world, const Rendezvous__RankSeen *said, uint32_t *lines,
                     uint64_t now_usec)
{
        struct window_pace paces[PROGRESS_PACES];
        const struct progress_line line = { .epoch = said->epoch,
                                            .step = said->step,
                                            .samples = said->samples,
                                            .loss = figure(said->loss),
                                            .has_loss = true,
                                            .samples_per_s = figure(said->samples_per_s),
                                            .busy_seconds = figure(said->busy_seconds),
                                            .epoch_samples = said->epoch_samples,
                                            .paces = paces,
                                            .pace_count = read_paces(said, paces),
                                            .live = said->live,
                                            .shares_step = said->shares_step,
                                            .doubt = (enum progress_doubt) said->doubt,
                                            .doubted = said->doubted };
        const struct world_fact facts[] = {
                { .kind = WORLD_LINE, .index = said->rank, .line = &line },
                { .kind = WORLD_STOPPED,
                  .index = said->rank,
                  .code = said->stopped ? 1
                          : said->stuck ? 2
                                        : 0 },
                { .kind = WORLD_EXIT,
                  .index = said->rank,
                  .code = said->exit_code,
                  .asked = said->asked,
                  .usec = now_usec - (said->ended_ago_usec < now_usec ? said->ended_ago_usec : now_usec) },
        };

        if (said->lines > *lines)
                world_observe(world, &facts[0], now_usec);
        if (said->rank < world->rank_count) /* of a rank that says nothing else, too */
                progress_doubt(&world->seen[said->rank], line.doubt, line.doubted);
        *lines = said->lines > *lines ? said->lines : *lines;
        world_observe(world, &facts[1], now_usec);
        if (said->ended)
                world_observe(world, &facts[2], now_usec);
}
