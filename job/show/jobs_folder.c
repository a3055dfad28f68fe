/* Jobs of `remuda run`: DIR/NAME holds the plan, the ranks' progress, what they print, and at the end the
 * summary. The lock tells whether it runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "io/clock.h"
#include "job/show/jobs.h"
#include "job/spec/job.h"

#define TAIL_BYTES 8192

/* Return: false if it does not fit, and so cannot be there. */
static bool path_of(char path[PATH_MAX], const char *work_dir, const char *name, const char *file)
{
        return text_format(path, PATH_MAX, "%s/%s%s%s", work_dir, name, file[0] == '\0' ? "" : "/", file);
}

int jobs_folder_running(const char *work_dir, const char *name, bool *ret_running)
{
        CLEANUP(close_p) int fd = -1;
        char path[PATH_MAX], text[32] = "";
        int64_t pid = 0;

        *ret_running = false;
        if (!job_name_valid(name) || !path_of(path, work_dir, name, "lock"))
                return -ENOENT;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        *ret_running = flock(fd, LOCK_SH | LOCK_NB) < 0;
        if (!*ret_running || pread(fd, text, sizeof(text) - 1, 0) <= 0)
                return 0;
        text[strcspn(text, "\n")] = '\0';
        return text_parse_int64(text, &pid) == 0 && pid > 1 && pid <= INT_MAX ? (int) pid : 0;
}

static json_t *load(const char *work_dir, const char *name, const char *file)
{
        char path[PATH_MAX];

        return path_of(path, work_dir, name, file) ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL)
                                                   : NULL;
}

/* --- progress: the last lines of every rank
 * ------------------------------------------------------------------------ */

struct heard {
        bool any;
        double samples, seconds, epoch, step, loss_sum, loss_weight, accuracy;
};

static void hear_line(const json_t *line, double batch, struct heard *all, struct heard *rank)
{
        const json_t *loss = json_object_get(line, "loss"), *accuracy = json_object_get(line, "accuracy");
        double samples = json_number_value(json_object_get(line, "samples")),
               seconds = json_number_value(json_object_get(line, "seconds")),
               step = json_number_value(json_object_get(line, "step")),
               epoch = json_number_value(json_object_get(line, "epoch"));

        if (!json_is_object(line))
                return;
        all->any = rank->any = true;
        rank->samples = fmax(rank->samples, samples);
        all->seconds = fmax(all->seconds, seconds);
        all->step = fmax(all->step, step);
        all->epoch = fmax(all->epoch, epoch);
        if (json_is_number(accuracy))
                all->accuracy = json_number_value(accuracy);
        else if (json_is_number(loss)) {
                rank->loss_sum = json_number_value(loss) * batch;
                rank->loss_weight = batch;
        }
}

static void hear_rank(const char *work_dir, const char *name, size_t index, double batch, struct heard *all)
{
        CLEANUP(close_p) int fd = -1;
        char path[PATH_MAX], file[64], bytes[TAIL_BYTES + 1], *rest = NULL;
        struct heard rank = { 0 };
        off_t size, from;
        ssize_t got;

        (void) text_format(file, sizeof(file), "rank-%zu.progress", index);
        if (!path_of(path, work_dir, name, file))
                return;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
        from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
        got = size > 0 ? pread(fd, bytes, TAIL_BYTES, from) : 0;
        if (got <= 0)
                return;
        bytes[got] = '\0';
        for (char *line = strtok_r(bytes, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
                json_t *value = json_loads(line, 0, NULL); /* the first may be cut: it is no JSON then */

                hear_line(value, batch, all, &rank);
                json_decref(value);
        }
        all->samples += rank.samples;
        all->loss_sum += rank.loss_sum;
        all->loss_weight += rank.loss_weight;
}

static void set_number(json_t *view, const char *name, double value)
{
        (void) json_object_set_new(view, name, isfinite(value) ? json_real(value) : json_null());
}

static void set_count(json_t *view, const char *name, double value)
{
        (void) json_object_set_new(view, name,
                                   isfinite(value) ? json_integer((json_int_t) value) : json_null());
}

static void set_progress(json_t *view, const struct heard *heard, const json_t *plan)
{
        double total = json_number_value(json_object_get(plan, "samples")) *
                       json_number_value(json_object_get(plan, "epochs"));
        double speed = heard->any && heard->seconds > 0 ? heard->samples / heard->seconds : NAN;

        set_count(view, "epoch", heard->any ? heard->epoch : NAN);
        set_count(view, "step", heard->any ? heard->step : NAN);
        set_count(view, "samples", heard->any ? heard->samples : NAN);
        set_count(view, "samples_total", total > 0 ? total : NAN);
        set_number(view, "samples_per_s", speed);
        set_number(view, "seconds_left",
                   total > heard->samples && speed > 0 ? (total - heard->samples) / speed : NAN);
        set_number(view, "loss", heard->loss_weight > 0 ? heard->loss_sum / heard->loss_weight : NAN);
        set_number(view, "accuracy", heard->accuracy > 0 ? heard->accuracy : NAN);
}

/* --- one job
 * -------------------------------------------------------------------------------------------------------- */

static void copy_plan(json_t *view, const json_t *plan)
{
        static const char *const fields[] = { "model", "strategy", "shards", "global_batch", "epochs" };
        json_t *ranks = json_object_get(plan, "ranks"), *rank;
        double workers = 0;
        size_t i;

        for (i = 0; i < ARRAY_SIZE(fields); i++) {
                json_t *value = json_object_get(plan, fields[i]);

                (void) json_object_set_new(view, fields[i], value == NULL ? json_null() : json_incref(value));
        }
        json_array_foreach(ranks, i, rank)
        {
                json_t *source = json_object_get(json_object_get(rank, "speed"), "source");

                workers += strcmp(view_text(rank, "role"), "worker") == 0;
                if (source != NULL)
                        (void) json_object_set(rank, "speed_source", source);
        }
        set_count(view, "workers", ranks == NULL ? NAN : workers);
        (void) json_object_set_new(view, "ranks", ranks == NULL ? json_array() : json_incref(ranks));
}

/* A summary knows better than what was heard on the way. */
static void copy_summary(json_t *view, const json_t *summary)
{
        static const char *const fields[] = { "phase",    "reason",   "message", "seconds", "samples_per_s",
                                              "restarts", "accuracy", "loss",    "ranks",   "events" };
        json_t *used = json_object_get(summary, "samples_used"), *epochs = json_object_get(summary, "epochs");

        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                json_t *value = json_object_get(summary, fields[i]);

                if (value != NULL && !json_is_null(value) &&
                    !(json_is_array(value) && json_array_size(value) == 0))
                        (void) json_object_set(view, fields[i], value);
        }
        if (json_is_integer(used))
                (void) json_object_set(view, "samples", used);
        if (json_is_integer(epochs))
                (void) json_object_set(view, "epoch", epochs);
        (void) json_object_set_new(view, "seconds_left", json_null());
}

static json_t *read_events(const char *work_dir, const char *name)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        CLEANUP(free_p) char *line = NULL;
        json_t *events = json_array();
        char path[PATH_MAX];
        size_t size = 0;

        if (path_of(path, work_dir, name, "events.jsonl"))
                f = fopen(path, "re");
        while (f != NULL && getline(&line, &size, f) > 0) {
                json_t *event = json_loads(line, 0, NULL);

                if (json_is_object(event))
                        (void) json_array_append(events, event);
                json_decref(event);
        }
        return events;
}

/* The last thing that it said of itself is where it is. */
static void set_phase(json_t *view, bool running, const struct heard *heard, const json_t *plan)
{
        const json_t *events = json_object_get(view, "events"),
                     *last = json_array_get(events, json_array_size(events) - 1);
        const char *reason = view_text(last, "reason");
        const char *phase = !running                                  ? "Failed"
                            : strcmp(reason, "WaitingForParent") == 0 ? "Pending"
                            : strcmp(reason, "Restarting") == 0       ? "Restarting"
                            : heard->any                              ? "Running"
                            : plan != NULL                            ? "Starting"
                                                                      : "Planning";

        (void) json_object_set_new(view, "phase", json_string(phase));
        (void) json_object_set_new(view, "reason", json_string(running ? reason : "Killed"));
        (void) json_object_set_new(
                view, "message",
                json_string(running ? view_text(last, "message")
                                    : "`remuda run` ended without a summary, so it was killed; "
                                      "run the job again, with --resume from its last checkpoint"));
}

static void set_time(json_t *view, const char *work_dir, const char *name)
{
        char path[PATH_MAX], started[TIMESTAMP_BYTES];
        uint64_t started_usec;
        struct stat lock;

        if (!path_of(path, work_dir, name, "lock") || stat(path, &lock) < 0)
                return;
        started_usec = (uint64_t) lock.st_mtim.tv_sec * 1000000 + (uint64_t) lock.st_mtim.tv_nsec / 1000;
        (void) json_object_set_new(
                view, "started",
                json_string(timestamp_format((uint64_t) lock.st_mtim.tv_sec * 1000000, started)));
        set_number(view, "seconds", (double) (int64_t) (clock_realtime_usec() - started_usec) / 1e6);
}

/* Of a running rank: the process of its program, as its launcher reported it. */
static void set_pid(const char *work_dir, const char *name, size_t index, json_t *rank)
{
        char file[64];
        json_t *report, *pid;

        (void) text_format(file, sizeof(file), "rank-%zu.report", index);
        report = load(work_dir, name, file);
        pid = json_object_get(report, "pid");
        if (json_is_integer(pid) && json_object_get(report, "exit_code") == NULL)
                (void) json_object_set(rank, "pid", pid);
        json_decref(report);
}

static json_t *view_of(const char *work_dir, const char *name, bool running)
{
        char folder[PATH_MAX], path[PATH_MAX];
        json_t *plan = load(work_dir, name, "plan.json"),
               *summary = running ? NULL : load(work_dir, name, "summary.json"), *view = json_object();
        struct heard heard = { 0 };
        json_t *rank;
        size_t i;

        if (!path_of(path, work_dir, name, "") || realpath(path, folder) == NULL)
                (void) text_copy(folder, sizeof(folder), path);
        (void) json_object_set_new(view, "job", json_string(name));
        (void) json_object_set_new(view, "namespace", json_null());
        (void) json_object_set_new(view, "source", json_string("work-dir"));
        (void) json_object_set_new(view, "folder", json_string(folder));
        json_array_foreach(json_object_get(plan, "ranks"), i, rank)
        {
                if (running)
                        set_pid(work_dir, name, i, rank);
                hear_rank(work_dir, name, i, view_number(rank, "batch"), &heard);
        }
        (void) json_object_set_new(view, "events", read_events(work_dir, name));
        set_phase(view, running, &heard, plan);
        set_time(view, work_dir, name);
        copy_plan(view, plan);
        set_progress(view, &heard, plan);
        (void) json_object_set_new(view, "restarts", json_integer(0));
        if (summary != NULL)
                copy_summary(view, summary);
        json_decref(summary);
        json_decref(plan);
        return view;
}

int jobs_folder_read(const char *work_dir, const char *name, json_t *views, struct err *err)
{
        const struct dirent *entry;
        bool running, found = false;
        DIR *folder = opendir(work_dir);

        if (folder == NULL && errno == ENOENT)
                return err_set(
                        err, -ENOENT,
                        "there is no folder '%.200s' of `remuda run` here; name it with --work-dir DIR, or "
                        "look into a cluster with --store kubernetes",
                        work_dir);
        if (folder == NULL)
                return err_set(err, -errno, "--work-dir: '%.200s': %m", work_dir);
        while ((entry = readdir(folder)) != NULL) {
                if ((name != NULL && strcmp(name, entry->d_name) != 0) ||
                    jobs_folder_running(work_dir, entry->d_name, &running) < 0)
                        continue;
                found = true;
                (void) json_array_append_new(views, view_of(work_dir, entry->d_name, running));
        }
        (void) closedir(folder);
        if (name != NULL && !found)
                return err_set(err, -ENOENT,
                               "there is no job '%.100s' in '%.200s'; `remuda jobs --work-dir %.200s` lists "
                               "those that "
                               "are there",
                               name, work_dir, work_dir);
        return 0;
}
