/* Jobs of `remuda run`: DIR/NAME holds the plan, how the job is, what its ranks print, and at the end the
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
#include "base/json/json_read.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "io/clock.h"
#include "io/read_file.h"
#include "job/plan/job_report.h"
#include "job/show/jobs.h"
#include "job/spec/job.h"
#include "job/world/staleness.h"

#define STATE_MAX_BYTES ((size_t) 64 << 20)

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
        if (!object_name_label_valid(name) || !path_of(path, work_dir, name, "lock"))
                return -ENOENT;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        *ret_running = flock(fd, LOCK_SH | LOCK_NB) < 0;
        if (!*ret_running || pread(fd, text, sizeof(text) - 1, 0) <= 0)
                return 0;
        text[strcspn(text, "\n")] = '\0';
        return text_parse_int64(text, &pid) == 0 && pid > 1 && pid <= INT_MAX ? (int) pid : 0;
}

bool jobs_folder_of_object(const char *directory, const char *namespace_, const char *name,
                           char ret_folder[PATH_MAX])
{
        bool running;

        return strcmp(namespace_, JOBS_FOLDER_NAMESPACE) == 0 &&
               jobs_folder_running(directory, name, &running) >= 0 &&
               path_of(ret_folder, directory, name, "");
}

static struct timespec time_of(const char *work_dir, const char *name, const char *file)
{
        struct stat st = { .st_mtim = { 0 } };
        char path[PATH_MAX];

        if (path_of(path, work_dir, name, file))
                (void) lstat(path, &st);
        return st.st_mtim;
}

struct jobs_folder_written jobs_folder_written(const char *work_dir, const char *name)
{
        struct jobs_folder_written w;

        memset(&w, 0, sizeof(w)); /* what lies between its members, too */
        w.lock = time_of(work_dir, name, "lock");
        w.plan = time_of(work_dir, name, "plan.json");
        w.state = time_of(work_dir, name, "state.json");
        w.events = time_of(work_dir, name, "events.jsonl");
        return w;
}

/* Return: is the file there? */
static bool read_text(const char *work_dir, const char *name, const char *file, char **ret, size_t *ret_bytes)
{
        char path[PATH_MAX];

        return path_of(path, work_dir, name, file) &&
               read_file_plain(path, STATE_MAX_BYTES, ret, ret_bytes, NULL) == 0;
}

static json_t *load(const char *work_dir, const char *name, const char *file)
{
        CLEANUP(free_p) char *text = NULL;
        size_t bytes = 0;

        return read_text(work_dir, name, file, &text, &bytes)
                       ? json_read(text, bytes, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
}

static bool has_steps(const struct job_report_rank *said, const struct job_view_rank *rank)
{
        return strcmp(job_view_word(rank->role), "server") != 0 &&
               staleness_counts(said->step, said->samples);
}

/* What each rank says of itself, where they are those of the plan. */
static void read_ranks(const struct job_report *report, struct job_view *view)
{
        bool apart = staleness_is_told(job_view_word(view->strategy));
        struct staleness staleness = { .workers = 0 };

        for (size_t i = 0; report->rank_count == view->rank_count && i < view->rank_count; i++) {
                const struct job_report_rank *said = &report->ranks[i];

                if (said->samples_per_s > 0)
                        view->ranks[i].samples_per_s = said->samples_per_s;
                if (apart && has_steps(said, &view->ranks[i]))
                        staleness_add(&staleness, said->step);
        }
        if (staleness.workers == 0)
                return;
        for (size_t i = 0; i < view->rank_count; i++)
                if (has_steps(&report->ranks[i], &view->ranks[i]))
                        view->ranks[i].steps_behind =
                                (double) staleness_behind(&staleness, report->ranks[i].step);
        view->steps_behind_mean = staleness_mean(&staleness);
        view->steps_behind_max = (double) staleness_max(&staleness);
}

/* How it is, as the manager of a cluster's job says it. Return: does it run? */
static bool read_state(const char *work_dir, const char *name, struct job_view *view)
{
        CLEANUP(free_p) char *text = NULL;
        struct job_report report;
        double left;

        if (!read_text(work_dir, name, "state.json", &text, NULL) || job_report_parse(text, &report) < 0)
                return false;
        left = view->samples_total - (double) report.samples;
        view->epoch = (double) report.epoch;
        view->step = (double) report.step;
        view->samples = (double) report.samples;
        view->samples_per_s = report.samples_per_s > 0 ? report.samples_per_s : NAN;
        view->seconds_left = left > 0 && report.samples_per_s > 0 ? left / report.samples_per_s : NAN;
        view->loss = report.samples > 0 ? report.loss : NAN;
        view->accuracy = report.accuracy;
        read_ranks(&report, view);
        job_report_free(&report);
        return view->samples > 0 || view->step > 0;
}

static void read_events(const char *work_dir, const char *name, struct job_view *view)
{
        CLEANUP(free_p) char *text = NULL;
        char *rest, *line;

        if (!read_text(work_dir, name, "events.jsonl", &text, NULL))
                return;
        for (rest = text; (line = strsep(&rest, "\n")) != NULL && line[0] != '\0';) {
                json_t *event = json_loads(line, 0, NULL);

                job_view_read_event(event, view);
                json_decref(event);
        }
}

/* The last thing that it said of itself is where it is. */
static void set_phase(struct job_view *view, bool running, bool seen, bool planned)
{
        const struct job_view_event *last =
                view->event_count > 0 ? &view->events[view->event_count - 1] : NULL;
        const char *reason = last == NULL ? "" : job_view_word(last->reason);
        const char *phase = !running                                  ? "Failed"
                            : strcmp(reason, "WaitingForParent") == 0 ? "Pending"
                            : strcmp(reason, "Restarting") == 0       ? "Restarting"
                            : seen                                    ? "Running"
                            : planned                                 ? "Starting"
                                                                      : "Planning";

        job_view_set(&view->phase, phase);
        job_view_set(&view->reason, running ? reason : JOBS_FOLDER_KILLED);
        job_view_set(&view->message, running ? (last == NULL ? "" : job_view_word(last->message))
                                             : "`remuda run` ended without a summary, so it was killed; "
                                               "run the job again, with --resume from its last checkpoint");
}

static void set_time(struct job_view *view, const char *work_dir, const char *name)
{
        char path[PATH_MAX], started[TIMESTAMP_BYTES];
        uint64_t started_usec;
        struct stat lock;

        if (!path_of(path, work_dir, name, "lock") || stat(path, &lock) < 0)
                return;
        started_usec = (uint64_t) lock.st_mtim.tv_sec * 1000000 + (uint64_t) lock.st_mtim.tv_nsec / 1000;
        job_view_set(&view->started, timestamp_format((uint64_t) lock.st_mtim.tv_sec * 1000000, started));
        view->seconds = (double) (int64_t) (clock_realtime_usec() - started_usec) / 1e6;
}

/* Of a running rank: the process of its program, as its launcher reported it. */
static void set_pid(const char *work_dir, const char *name, size_t index, struct job_view_rank *rank)
{
        char file[64];
        json_t *report;

        (void) text_format(file, sizeof(file), "rank-%zu.report", index);
        report = load(work_dir, name, file);
        job_view_read_report(report, rank);
        json_decref(report);
}

static void read_job(const char *work_dir, const char *name, bool running, struct job_view *view)
{
        char folder[PATH_MAX], path[PATH_MAX];
        json_t *plan = load(work_dir, name, "plan.json"),
               *summary = running ? NULL : load(work_dir, name, "summary.json");
        bool seen;

        if (!path_of(path, work_dir, name, "") || realpath(path, folder) == NULL)
                (void) text_copy(folder, sizeof(folder), path);
        job_view_set(&view->job, name);
        job_view_set(&view->source, "work-dir");
        job_view_set(&view->folder, folder);
        job_view_read_plan(plan, view);
        for (size_t i = 0; running && i < view->rank_count; i++)
                set_pid(work_dir, name, i, &view->ranks[i]);
        seen = read_state(work_dir, name, view);
        read_events(work_dir, name, view);
        set_phase(view, running, seen, plan != NULL);
        set_time(view, work_dir, name);
        view->restarts = 0;
        if (summary != NULL)
                job_view_read_summary(summary, view);
        json_decref(summary);
        json_decref(plan);
}

int jobs_folder_read(const char *work_dir, const char *name, struct job_view_list *views, struct err *err)
{
        const struct dirent *entry;
        struct job_view *view;
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
                view = job_view_list_add(views);
                if (view != NULL)
                        read_job(work_dir, entry->d_name, running, view);
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
