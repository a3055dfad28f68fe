#include "cli/run_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "core/cleanup.h"

#define LINES_MAX_BYTES   ((size_t) 1 << 20) /* of one rank, at one look */
#define HANG_MEDIAN_STEPS 5
#define START_SECONDS_MIN 600 /* until a rank's first line: data is read, a device is initialised */

int watch_open(struct run *run, struct watch *watch, struct err *err)
{
        *watch = (struct watch){ .began_usec = run_now_usec() };
        watch->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (watch->changes < 0 || inotify_add_watch(watch->changes, run->folder, IN_MOVED_TO) < 0)
                return err_set(err, -errno, "'%.200s' cannot be watched: %m", run->folder);
        for (size_t i = 0; i < run->rank_count; i++) {
                struct run_rank *rank = &run->ranks[i];

                rank->reports_progress = rank->ended = rank->named_slow = false;
                rank->progress_offset = 0;
                rank->epoch = rank->step = rank->samples = 0;
                rank->progress_usec = rank->ended_usec = 0;
                rank->busy_ms = rank->step_busy_ms = rank->usual_busy_ms = 0;
                rank->slow_steps = 0;
                rank->pid = 0;
                rank->exit_code = 0;
        }
        return 0;
}

void watch_close(struct watch *watch)
{
        if (watch->changes >= 0)
                (void) close(watch->changes);
        watch->changes = -1;
}

/* --- progress lines
 * ---------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
        if (count == 0)
                return 0;
        qsort(values, count, sizeof(*values), compare);
        return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double usual_step_ms(const struct watch *watch)
{
        double steps[WATCH_STEPS];
        size_t count = watch->step_count < WATCH_STEPS ? watch->step_count : WATCH_STEPS;

        memcpy(steps, watch->step_ms, count * sizeof(*steps));
        return median(steps, count);
}

static void on_line(struct run_rank *rank, const json_t *line, uint64_t now)
{
        const json_t *step = json_object_get(line, "step"), *speed = json_object_get(line, "samples_per_s");
        const json_t *samples = json_object_get(line, "samples");

        if (!json_is_object(line))
                return;
        rank->reports_progress = true;
        rank->progress_usec = now;
        if (json_is_integer(step) && json_integer_value(step) >= 0)
                rank->step = (uint64_t) json_integer_value(step);
        if (json_is_integer(samples) && json_integer_value(samples) >= 0)
                rank->samples = (uint64_t) json_integer_value(samples);
        if (json_is_integer(json_object_get(line, "epoch")))
                rank->epoch = (uint64_t) json_integer_value(json_object_get(line, "epoch"));
        if (json_is_number(json_object_get(line, "loss")))
                rank->loss = json_number_value(json_object_get(line, "loss"));
        if (json_is_number(speed) && json_number_value(speed) > 0) {
                rank->samples_per_s = json_number_value(speed);
                rank->busy_ms = (double) rank->samples * 1000 / rank->samples_per_s;
        }
}

/* Whole lines from where the last look ended. */
static void read_lines(struct run *run, size_t index, uint64_t now)
{
        struct run_rank *rank = &run->ranks[index];
        CLEANUP(free_p) char *bytes = NULL;
        CLEANUP(close_p) int fd = -1;
        char path[RUN_PATH_BYTES], *line, *end;
        ssize_t size;

        (void) run_rank_path(run, path, index, "progress");
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || lseek(fd, 0, SEEK_END) <= rank->progress_offset)
                return;
        bytes = malloc(LINES_MAX_BYTES + 1);
        if (bytes == NULL)
                return;
        size = pread(fd, bytes, LINES_MAX_BYTES, rank->progress_offset);
        if (size <= 0)
                return;
        bytes[size] = '\0';
        for (line = bytes; (end = strchr(line, '\n')) != NULL; line = end + 1) {
                json_t *value = json_loadb(line, (size_t) (end - line), 0, NULL);

                on_line(rank, value, now);
                json_decref(value);
        }
        rank->progress_offset += line - bytes;
}

/* A look may have brought several steps: they are taken as alike. */
static void read_progress(struct run *run, struct watch *watch, size_t index)
{
        struct run_rank *rank = &run->ranks[index];
        uint64_t step = rank->step, before = rank->progress_usec, now = run_now_usec();
        double busy_ms = rank->busy_ms;

        read_lines(run, index, now);
        if (rank->step <= step || before == 0)
                return;
        rank->step_busy_ms = (rank->busy_ms - busy_ms) / (double) (rank->step - step);
        rank->usual_busy_ms = rank->usual_busy_ms > 0 ? 0.8 * rank->usual_busy_ms + 0.2 * rank->step_busy_ms
                                                      : rank->step_busy_ms;
        rank->slow_steps += (unsigned) (rank->step - step);
        watch->step_ms[watch->step_count++ % WATCH_STEPS] =
                (double) (now - before) / 1000 / (double) (rank->step - step);
}

/* From the fault to the first step of the new world: what a repair really costs. */
static void note_resumed(struct run *run, const struct watch *watch)
{
        uint64_t step = 0;

        if (run->fault_usec == 0 || watch->began_usec < run->fault_usec) /* the faulty world itself */
                return;
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                if (!run->ranks[i].reports_progress)
                        return;
                step = run->ranks[i].step > step ? run->ranks[i].step : step;
        }
        run_event(run, "Resumed", "training goes on at step %llu, %.2f s after the fault was seen",
                  (unsigned long long) step, (double) (run_now_usec() - run->fault_usec) / 1e6);
        run->fault_usec = 0;
}

/* Equal shards over unlike chips make a slow one slow by design: it is named once and left alone. */
static void judge_slow(struct run *run)
{
        CLEANUP(free_p) double *steps = calloc(run->rank_count, sizeof(*steps));
        size_t count = 0;
        double usual;

        for (size_t i = run->server_count; steps != NULL && i < run->rank_count; i++)
                if (run->ranks[i].step_busy_ms > 0)
                        steps[count++] = run->ranks[i].step_busy_ms;
        if (count < 2 || count < run->rank_count - run->server_count)
                return;
        usual = median(steps, count);
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                struct run_rank *rank = &run->ranks[i];

                if (rank->step_busy_ms <= WATCH_SLOW_RATIO * usual)
                        rank->slow_steps = 0;
                if (rank->slow_steps < WATCH_SLOW_STEPS || rank->named_slow)
                        continue;
                rank->named_slow = true;
                run_event(run, "Straggler",
                          "rank %zu (%s on %s) needs %.2f ms a step, the median of all is %.2f ms", i,
                          rank->runtime, rank->device, rank->step_busy_ms, usual);
        }
}

/* --- reports
 * -------------------------------------------------------------------------------------------------------------
 */

static void read_report(struct run *run, size_t index)
{
        struct run_rank *rank = &run->ranks[index];
        const json_t *exit_code;
        char path[RUN_PATH_BYTES];
        json_t *report;

        (void) run_rank_path(run, path, index, "report");
        report = json_load_file(path, 0, NULL);
        exit_code = json_object_get(report, "exit_code");
        if (json_is_integer(json_object_get(report, "pid")))
                rank->pid = (pid_t) json_integer_value(json_object_get(report, "pid"));
        if (json_is_integer(exit_code)) {
                rank->ended = true;
                rank->exit_code = (int) json_integer_value(exit_code);
                rank->ended_usec = (uint64_t) json_integer_value(json_object_get(report, "ended_usec"));
        }
        json_decref(report);
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

/* Stopped by a signal, or stuck in the kernel? */
static bool process_is_stopped(pid_t pid)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[64], line[512];
        const char *close;

        (void) text_format(path, sizeof(path), "/proc/%d/stat", (int) pid);
        f = fopen(path, "re");
        if (pid <= 0 || f == NULL || fgets(line, sizeof(line), f) == NULL)
                return false;
        close = strrchr(line, ')');
        return close != NULL && close[1] == ' ' && (close[2] == 'T' || close[2] == 't' || close[2] == 'D');
}

/* The last step is done, so that what follows is evaluation: it reports nothing and is no hang. */
static bool steps_are_done(const struct run *run, const struct run_rank *rank)
{
        uint64_t batch = run->job.global_batch,
                 steps = (run->data_samples + batch - 1) / batch * run->job.epochs;

        return run->trainer && steps > 0 && rank->step + 1 >= steps;
}

static double limit_usec(const struct run *run, const struct watch *watch)
{
        double limit_ms = (double) run->job.restart.hang_seconds * 1000;

        for (size_t i = run->server_count; i < run->rank_count; i++)
                if (!run->ranks[i].reports_progress && limit_ms < START_SECONDS_MIN * 1000.0)
                        limit_ms = START_SECONDS_MIN * 1000.0;
        if (HANG_MEDIAN_STEPS * usual_step_ms(watch) > limit_ms)
                limit_ms = HANG_MEDIAN_STEPS * usual_step_ms(watch);
        return limit_ms * 1000;
}

/* Where ranks wait for each other all stall with the one that hangs: it is the stopped one, else the one that
 * is furthest behind. A program that reports nothing cannot be told from one that hangs. */
size_t watch_hung(const struct run *run, const struct watch *watch)
{
        size_t hung = run->rank_count;
        double limit = limit_usec(run, watch);
        uint64_t now = run_now_usec();

        for (size_t i = run->server_count; i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];

                if (rank->ended || rank->progress_usec == 0 ||
                    (double) (now - rank->progress_usec) <= limit || steps_are_done(run, rank))
                        continue;
                if (hung == run->rank_count || rank->step < run->ranks[hung].step)
                        hung = i;
        }
        for (size_t i = 0; hung < run->rank_count && i < run->rank_count; i++)
                if (!run->ranks[i].ended && process_is_stopped(run->ranks[i].pid))
                        return i;
        return hung;
}

/* --- what people see
 * ------------------------------------------------------------------------------------------------------- */

static void show(struct run *run, struct watch *watch, uint64_t now)
{
        uint64_t samples = 0, total = run->data_samples * run->job.epochs, step = 0, epoch = 0;
        double seconds = (double) (now - watch->began_usec) / 1e6, speed, loss = 0;
        bool terminal = isatty(STDERR_FILENO) == 1;
        struct text line = { .max_bytes = 256 };

        for (size_t i = run->server_count; i < run->rank_count; i++) {
                samples += run->ranks[i].samples;
                step = run->ranks[i].step > step ? run->ranks[i].step : step;
                epoch = run->ranks[i].epoch > epoch ? run->ranks[i].epoch : epoch;
                loss += run->ranks[i].loss * run->ranks[i].weight;
        }
        if (samples == 0)
                return;
        speed = seconds > 0 ? (double) samples / seconds : 0;
        text_printf(&line, "%s: epoch %llu of %llu, step %llu, %.0f samples/s, loss %.4f", run->job.name,
                    (unsigned long long) epoch, (unsigned long long) run->job.epochs,
                    (unsigned long long) step, speed, loss);
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
        judge_slow(run);
        note_resumed(run, watch);
        if (now - watch->shown_usec >= period) {
                watch->shown_usec = now;
                show(run, watch, now);
        }
}
