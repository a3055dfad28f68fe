/* Progress in one line; the ends of logs. */
#include "job/run/run_watch.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "job/launcher/rank_watch.h"
#include "job/run/run_folder.h"
#include "job/spec/job_arguments.h"
#include "job/world/totals.h"

#define FULL_BYTES (64U << 10) /* less room than that is none */
#define LAST_BYTES 320         /* of what a rank said last: a sentence with its remedy */

/* The last words of a rank, for the message. */
static void last_words(const struct run *run, size_t index, char words[LAST_BYTES])
{
        char path[RUN_PATH_BYTES], line[1024];

        (void) run_folder_rank_path(run, path, index, "err");
        rank_watch_last_line(path, line, sizeof(line));
        (void) text_copy(words, LAST_BYTES, line);
}

/* Where nothing can be written, no log can say so. */
static void add_full_folder(const struct run *run, char *words, size_t bytes)
{
        size_t length = strlen(words);
        char path[RUN_PATH_BYTES];
        struct statvfs fs;

        if (!run_folder_path(run, path, ".") || statvfs(path, &fs) < 0)
                return;
        if ((uint64_t) (geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize >= FULL_BYTES &&
            (fs.f_files == 0 || fs.f_ffree > 0))
                return;
        (void) text_format(words + length, bytes - length,
                           "%sthe file system of --work-dir '%.150s' is full: make room",
                           length == 0 ? "" : "; ", run->work);
}

void run_watch_words(struct run *run, size_t failed)
{
        char words[WORLD_TEXT_BYTES] = "";

        if (failed < run->rank_count)
                last_words(run, failed, words);
        for (size_t i = 0; words[0] == '\0' && failed < run->rank_count && i < run->rank_count; i++)
                last_words(run, i, words);
        add_full_folder(run, words, sizeof(words));
        if (words[0] != '\0')
                world_observe(&run->world, &(struct world_fact){ .kind = WORLD_WORDS, .text = words },
                              clock_monotonic_usec());
}

static void show(const struct run *run, const struct engine *engine, struct run_watch *watch, bool terminal,
                 uint64_t now)
{
        const struct totals all = totals_of(&run->world);
        uint64_t epochs = job_arguments_epochs(&run->job);
        bool known = all.epoch <= epochs && epochs > 0;
        uint64_t total = known ? run->data_samples * epochs : 0,
                 epoch = known && all.epoch == epochs ? epochs : all.epoch + 1; /* from 1 for people */
        double seconds, speed = engine_rate(engine, now, &seconds);
        struct text line = { .max_bytes = 256 };

        if (all.samples == 0)
                return;
        text_printf(&line, "%s: epoch %llu", run->job.name, (unsigned long long) epoch);
        if (known)
                text_printf(&line, " of %llu", (unsigned long long) epochs);
        text_printf(&line, ", step %llu, %.0f samples/s (last %.0f s)", (unsigned long long) all.step, speed,
                    fmax(1, seconds));
        if (isnormal(all.loss))
                text_printf(&line, ", loss %.4f", all.loss);
        if (total > all.samples && speed > 0)
                text_printf(&line, ", %.0f s left", (double) (total - all.samples) / speed);
        (void) fprintf(stderr, terminal ? "\r%s\033[K" : "%s\n", line.data == NULL ? "" : line.data);
        watch->shown = terminal;
        text_free(&line);
}

void run_watch_show(const struct run *run, const struct engine *engine, struct run_watch *watch,
                    uint64_t now_usec)
{
        bool terminal = isatty(STDERR_FILENO) == 1;

        if (now_usec - watch->shown_usec < (terminal ? 500000 : 2000000))
                return;
        watch->shown_usec = now_usec;
        show(run, engine, watch, terminal, now_usec);
}

void run_watch_end(struct run_watch *watch)
{
        if (watch->shown)
                (void) fputc('\n', stderr);
        watch->shown = false;
}
