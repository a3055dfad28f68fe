/* Follows the files of a world's ranks (job/launcher/rank_watch.h) and judges what they say
 * (job/world/progress.h). */
#include "job/run/run_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "job/launcher/rank_watch.h"

int watch_open(struct run *run, struct watch *watch, struct err *err)
{
        *watch = (struct watch){ .progress = { .began_usec = run_now_usec() } };
        watch->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        watch->seen = calloc(run->rank_count, sizeof(*watch->seen));
        if (watch->seen == NULL)
                return err_set(err, -ENOMEM, "no memory for the watch");
        if (watch->changes < 0 || inotify_add_watch(watch->changes, run->folder, IN_MOVED_TO) < 0)
                return err_set(err, -errno, "'%.200s' cannot be watched: %m", run->folder);
        for (size_t i = 0; i < run->rank_count; i++) {
                struct run_rank *rank = &run->ranks[i];

                rank->seen = (struct progress_rank){ .idle = rank->server };
                rank->ended = false;
                rank->progress_offset = 0;
                rank->ended_usec = 0;
                rank->kept_busy_ms = 0;
                rank->kept_samples = 0;
                rank->pid = rank->launcher = 0;
                rank->exit_code = 0;
        }
        return 0;
}

void watch_close(struct watch *watch)
{
        if (watch->changes >= 0)
                (void) close(watch->changes);
        watch->changes = -1;
        free(watch->seen);
        watch->seen = NULL;
}

/* --- progress lines
 * ---------------------------------------------------------------------------------------------------- */

static void read_progress(struct run *run, struct watch *watch, size_t index)
{
        struct run_rank *rank = &run->ranks[index];
        struct progress_rank before = rank->seen;
        uint64_t now = run_now_usec();
        char path[RUN_PATH_BYTES];

        (void) run_rank_path(run, path, index, "progress");
        if (rank_watch_progress(path, &rank->progress_offset, &rank->seen, now) > 0)
                progress_look(&watch->progress, &rank->seen, &before, now);
}

/* From the fault to the first step of the new world: what a repair really costs. */
static void note_resumed(struct run *run, const struct watch *watch)
{
        uint64_t step = 0;

        if (run->fault_usec == 0 ||
            watch->progress.began_usec < run->fault_usec) /* the faulty world itself */
                return;
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                if (!run->ranks[i].seen.heard)
                        return;
                step = run->ranks[i].seen.step > step ? run->ranks[i].seen.step : step;
        }
        run_event(run, "Resumed", "training goes on at step %llu, %.2f s after the fault was seen",
                  (unsigned long long) step, (double) (run_now_usec() - run->fault_usec) / 1e6);
        run->fault_usec = 0;
}

/* The ranks as the judgement takes them. */
static struct progress_rank *collect(const struct run *run, struct watch *watch)
{
        for (size_t i = 0; i < run->rank_count; i++) {
                watch->seen[i] = run->ranks[i].seen;
                watch->seen[i].idle = run->ranks[i].server || run->ranks[i].ended;
        }
        return watch->seen;
}

/* Equal shards over unlike chips make a slow one slow by design: it is named once and left alone. */
static void judge_slow(struct run *run, struct watch *watch)
{
        struct progress_rank *seen = collect(run, watch);
        double usual;
        size_t slow;

        while ((slow = progress_slow(seen, run->rank_count, &usual)) < run->rank_count)
                run_event(run, "Straggler",
                          "rank %zu (%s on %s) needs %.2f ms a step, the median of all is %.2f ms", slow,
                          run->ranks[slow].runtime, run->ranks[slow].device, seen[slow].step_busy_ms, usual);
        for (size_t i = 0; i < run->rank_count; i++) {
                run->ranks[i].seen.slow = seen[i].slow;
        }
}

/* --- reports
 * -------------------------------------------------------------------------------------------------------------
 */

static void read_report(struct run *run, size_t index)
{
        struct run_rank *rank = &run->ranks[index];
        struct rank_report report;
        char path[RUN_PATH_BYTES];

        (void) run_rank_path(run, path, index, "report");
        if (!rank_watch_report(path, &report))
                return;
        rank->pid = report.pid;
        rank->launcher = report.launcher;
        rank->ended = report.ended;
        rank->exit_code = report.exit_code;
        rank->ended_usec = report.ended_usec;
}

static void read_reports(struct run *run, struct watch *watch)
{
        char events[4096];
        bool changed = false;

        while (read(watch->changes, events, sizeof(events)) > 0)
                changed = true;
        for (size_t i = 0; changed && i < run->rank_count; i++)
                if (!run->ranks[i].ended)
                        read_report(run, i);
}

size_t watch_failed(const struct run *run)
{
        size_t first = run->rank_count;

        for (size_t i = 0; i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];

                if (rank->ended && rank->exit_code != 0 &&
                    (first == run->rank_count || rank->ended_usec < run->ranks[first].ended_usec))
                        first = i;
        }
        return first;
}

/* --- hanging
 * ---------------------------------------------------------------------------------------------------------------
 */

static struct progress_limits limits_of(const struct run *run)
{
        uint64_t batch = run->job.global_batch;
        uint64_t steps = (run->data_samples + batch - 1) / batch * run->job.epochs;

        return (struct progress_limits){ .hang_usec = run->job.restart.hang_seconds * 1000000,
                                         .last_step = run->trainer && steps > 1 ? steps - 1 : 0,
                                         /* who sets a limit of his own says that his program reports */
                                         .speaks = run->trainer ||
                                                   run->job.restart.hang_seconds != JOB_HANG_SECONDS };
}

/* A stopped process is known to hang whether or not it reports; the others only wait for it. */
static size_t find_stopped(const struct run *run, struct watch *watch, uint64_t now)
{
        size_t stopped = run->rank_count;

        if (now - watch->stopped_usec < 1000000)
                return stopped;
        watch->stopped_usec = now;
        for (size_t i = 0; i < run->rank_count && stopped == run->rank_count; i++)
                if (!run->ranks[i].ended && rank_watch_stopped(run->ranks[i].pid, false))
                        stopped = i;
        if (stopped == run->rank_count || watch->stopped_since_usec == 0)
                watch->stopped_since_usec = stopped == run->rank_count ? 0 : now;
        return stopped;
}

size_t watch_hung(const struct run *run, struct watch *watch)
{
        const struct progress_limits limits = limits_of(run);
        uint64_t now = run_now_usec();
        size_t hung = progress_hung(&watch->progress, collect(run, watch), run->rank_count, &limits, now);
        size_t stopped = find_stopped(run, watch, now);

        if (stopped < run->rank_count && now - watch->stopped_since_usec > limits.hang_usec)
                return stopped;
        for (size_t i = 0; hung < run->rank_count && i < run->rank_count; i++)
                if (!run->ranks[i].ended && rank_watch_stopped(run->ranks[i].pid, true))
                        return i;
        return hung;
}

/* --- what people see
 * ------------------------------------------------------------------------------------------------------- */

static void show(struct run *run, struct watch *watch, uint64_t now)
{
        uint64_t samples = 0, total = run->data_samples * run->job.epochs, step = 0, epoch = 0;
        double seconds = (double) (now - watch->progress.began_usec) / 1e6, speed, loss = 0;
        bool terminal = isatty(STDERR_FILENO) == 1;
        struct text line = { .max_bytes = 256 };

        for (size_t i = run->server_count; i < run->rank_count; i++) {
                samples += run->ranks[i].seen.samples;
                step = run->ranks[i].seen.step > step ? run->ranks[i].seen.step : step;
                epoch = run->ranks[i].seen.epoch > epoch ? run->ranks[i].seen.epoch : epoch;
                loss += run->ranks[i].seen.loss * run->ranks[i].weight;
        }
        if (samples == 0)
                return;
        speed = seconds > 0 ? (double) samples / seconds : 0;
        text_printf(&line, "%s: epoch %llu of %llu, step %llu, %.0f samples/s, loss %.4f", run->job.name,
                    (unsigned long long) (epoch < run->job.epochs ? epoch + 1
                                                                  : epoch), /* counted from 1 for people */
                    (unsigned long long) run->job.epochs, (unsigned long long) step, speed, loss);
        if (total > samples && speed > 0)
                text_printf(&line, ", %.0f s left", (double) (total - samples) / speed);
        (void) fprintf(stderr, terminal ? "\r%s\033[K" : "%s\n", line.data == NULL ? "" : line.data);
        watch->shown = terminal;
        text_free(&line);
}

void watch_end(struct watch *watch)
{
        if (watch->shown)
                (void) fputc('\n', stderr);
        watch->shown = false;
}

void watch_read(struct run *run, struct watch *watch)
{
        uint64_t now = run_now_usec(), period = isatty(STDERR_FILENO) == 1 ? 500000 : 2000000;

        read_reports(run, watch);
        for (size_t i = 0; i < run->rank_count; i++)
                read_progress(run, watch, i);
        judge_slow(run, watch);
        note_resumed(run, watch);
        if (now - watch->shown_usec >= period) {
                watch->shown_usec = now;
                show(run, watch, now);
        }
}
