/* The files of each rank, read as they grow. */
#include "job/launcher/group_ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/whole_file.h"
#include "job/launcher/rank_watch.h"
#include "planner/shards/live_shares.h"

#define PATH_BYTES     1200
#define LOG_LINE_BYTES 16384 /* a longer line is cut into parts */
#define LAST_BYTES     8192  /* of a rank's output that may hold its result */

struct group_rank {
        struct progress_rank seen;
        uint32_t lines;
        off_t progress_offset, log_offset[2]; /* of its output and its errors */
        pid_t launcher;
        ino_t report; /* the file that was read last */
        uint64_t ended_usec;
};

static const char *const log_suffixes[] = { "out", "err" };

static void path_of(const struct group_ranks *ranks, size_t index, const char *suffix, char path[PATH_BYTES])
{
        (void) text_format(path, PATH_BYTES, "%s/rank-%llu.%s", ranks->folder,
                           (unsigned long long) ranks->first_rank + index, suffix);
}

void group_ranks_free(struct group_ranks *ranks)
{
        free(ranks->items);
        free(ranks->said);
        free(ranks->list);
        ranks->items = NULL;
        ranks->said = NULL;
        ranks->list = NULL;
        ranks->count = 0;
}

int group_ranks_begin(struct group_ranks *ranks, uint64_t world, uint64_t first_rank, size_t count,
                      struct err *err)
{
        group_ranks_free(ranks);
        ranks->items = calloc(count, sizeof(*ranks->items));
        ranks->said = calloc(count, sizeof(*ranks->said));
        ranks->list = calloc(count, sizeof(*ranks->list));
        if (ranks->items == NULL || ranks->said == NULL || ranks->list == NULL)
                return err_set(err, -ENOMEM, "no memory for the ranks");
        ranks->world = world;
        ranks->first_rank = first_rank;
        ranks->count = count;
        for (size_t i = 0; i < count; i++) {
                rendezvous__rank_seen__init(&ranks->said[i]);
                ranks->list[i] = &ranks->said[i];
                ranks->said[i].rank = (uint32_t) (first_rank + i);
        }
        return 0;
}

void group_ranks_clean(const struct group_ranks *ranks)
{
        static const char *const suffixes[] = { "report", "progress", "shares", "out", "err" };
        char path[PATH_BYTES];

        for (size_t i = 0; i < ranks->count; i++)
                for (size_t k = 0; k < ARRAY_SIZE(suffixes); k++) {
                        path_of(ranks, i, suffixes[k], path);
                        (void) unlink(path);
                }
}

static void copy_log(struct group_ranks *ranks, size_t index, size_t which)
{
        struct group_rank *rank = &ranks->items[index];
        char path[PATH_BYTES], bytes[LOG_LINE_BYTES + 1], *line, *end;
        CLEANUP(close_p) int fd = -1;
        ssize_t size;

        path_of(ranks, index, log_suffixes[which], path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && (size = pread(fd, bytes, LOG_LINE_BYTES, rank->log_offset[which])) > 0) {
                bytes[size] = '\0';
                for (line = bytes; (end = memchr(line, '\n', (size_t) (bytes + size - line))) != NULL;
                     line = end + 1)
                        (void) printf("[%llu] %.*s\n", (unsigned long long) ranks->first_rank + index,
                                      (int) (end - line), line);
                if (line == bytes && (size == LOG_LINE_BYTES || ranks->said[index].ended)) {
                        (void) printf("[%llu] %.*s\n", (unsigned long long) ranks->first_rank + index,
                                      (int) size, bytes);
                        line = bytes + size;
                }
                if (line == bytes)
                        break;
                rank->log_offset[which] += line - bytes;
        }
}

/* The reference trainer's last line: {"accuracy", "loss", ...}. */
static void read_result(const struct group_ranks *ranks, size_t index)
{
        char path[PATH_BYTES], line[LAST_BYTES];
        struct progress_line said;

        path_of(ranks, index, "out", path);
        rank_watch_last_line(path, line, sizeof(line));
        (void) rank_watch_line(line, strlen(line), &said);
        if (isfinite(said.accuracy)) {
                ranks->said[index].accuracy = said.accuracy;
                ranks->said[index].has_accuracy = true;
        }
        if (said.has_loss)
                ranks->said[index].loss = said.loss;
}

/* A report is replaced by rename: another file is another report. */
static bool is_new(const char *path, ino_t *known)
{
        struct stat status;
        bool new = stat(path, &status) == 0 && status.st_ino != *known;

        if (new)
                *known = status.st_ino;
        return new;
}

static void look_at(struct group_ranks *ranks, size_t index, uint64_t now_usec)
{
        struct group_rank *rank = &ranks->items[index];
        Rendezvous__RankSeen *said = &ranks->said[index];
        struct rank_watch_report report;
        char path[PATH_BYTES], state = '\0';
        bool ended = said->ended;

        /* the report first: who is said to have ended has written its last line */
        path_of(ranks, index, "report", path);
        if (!ended && is_new(path, &rank->report) && rank_watch_report(path, &report)) {
                said->pid = report.pid;
                rank->launcher = report.launcher;
                said->ended = report.ended;
                said->exit_code = report.exit_code;
                said->asked = report.asked;
                rank->ended_usec = report.ended_usec;
        }
        path_of(ranks, index, "progress", path);
        rank->lines += (uint32_t) rank_watch_progress(path, &rank->progress_offset, &rank->seen, now_usec);
        if (said->ended && rank->ended_usec < now_usec)
                said->ended_ago_usec = now_usec - rank->ended_usec;
        if (!said->ended)
                state = rank_watch_process(said->pid);
        said->stopped = state == 'T';
        said->stuck = state == 'D';
        said->lines = rank->lines;
        said->epoch = (int64_t) rank->seen.epoch;
        said->step = (int64_t) rank->seen.step;
        said->samples = (int64_t) rank->seen.samples;
        said->epoch_samples = (int64_t) rank->seen.epoch_samples;
        if (!ended) {
                said->loss = rank->seen.loss;
                said->accuracy = rank->seen.accuracy;
                said->has_accuracy = rank->seen.accuracy > 0;
        }
        said->samples_per_s = rank->seen.samples_per_s;
        said->busy_seconds = rank->seen.busy_seconds;
        said->live = rank->seen.live;
        said->shares_step = rank->seen.says_shares ? (int64_t) rank->seen.shares_step : -1;
        said->paces = &rank->seen.paces[0].steps;
        said->n_paces = 3 * rank->seen.pace_count;
        said->doubt = rank->seen.doubt;
        said->doubted = rank->seen.doubted;
        if (said->ended && !ended && said->rank == 0)
                read_result(ranks, index);
        for (size_t k = 0; ranks->log_lines && k < ARRAY_SIZE(log_suffixes); k++)
                copy_log(ranks, index, k);
}

bool group_ranks_look(struct group_ranks *ranks, uint64_t now_usec)
{
        bool changed = false;

        for (size_t i = 0; i < ranks->count; i++) {
                const Rendezvous__RankSeen before = ranks->said[i];

                look_at(ranks, i, now_usec);
                changed = changed || before.lines != ranks->said[i].lines ||
                          before.pid != ranks->said[i].pid || before.ended != ranks->said[i].ended ||
                          before.stopped != ranks->said[i].stopped || before.stuck != ranks->said[i].stuck ||
                          before.doubt != ranks->said[i].doubt;
        }
        if (ranks->log_lines)
                (void) fflush(stdout);
        return changed;
}

void group_ranks_told(struct group_ranks *ranks)
{
        for (size_t i = 0; i < ranks->count; i++) {
                ranks->items[i].seen.pace_count = 0;
                ranks->said[i].n_paces = 0;
        }
}

int group_ranks_share(const struct group_ranks *ranks, uint64_t step, const uint32_t *shares, size_t count,
                      struct err *err)
{
        const struct live_shares all = { .step = step, .count = count, .of = (uint32_t *) shares };
        struct text text = { 0 };
        char path[PATH_BYTES];
        int r;

        path_of(ranks, 0, "shares", path);
        live_shares_encode(&all, &text);
        r = text.failed ? err_set(err, -ENOMEM, "no memory for the shares")
                        : whole_file_write(path, text.data, text.size_bytes, 0644, 0, err);
        text_free(&text);
        return r;
}

size_t group_ranks_terminate(const struct group_ranks *ranks)
{
        size_t count = 0;

        for (size_t i = 0; i < ranks->count; i++)
                if (ranks->items[i].launcher > 0 && !ranks->said[i].ended)
                        count += kill(ranks->items[i].launcher, SIGTERM) == 0;
        return count;
}

size_t group_ranks_running(const struct group_ranks *ranks)
{
        size_t count = 0;

        for (size_t i = 0; i < ranks->count; i++)
                count += ranks->said[i].pid > 0 && !ranks->said[i].ended;
        return count;
}
