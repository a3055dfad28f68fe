/* The folder of a job below --work-dir: its lock, its logs, its plan, and what the job before it left. */
#include "job/run/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "io/clock.h"
#include "io/private_folder.h"
#include "io/process_tree.h"
#include "io/whole_file.h"
#include "job/run/run_guard.h"
#include "job/show/jobs.h"

bool run_folder_path(const struct run *run, char path[RUN_PATH_BYTES], const char *name)
{
        return run->folder[0] != '\0' && text_format(path, RUN_PATH_BYTES, "%s/%s", run->folder, name);
}

bool run_folder_rank_path(const struct run *run, char path[RUN_PATH_BYTES], size_t rank, const char *suffix)
{
        return text_format(path, RUN_PATH_BYTES, "%s/rank-%zu.%s", run->folder, rank, suffix);
}

json_t *run_folder_last_line(const struct run *run, const char *name, const char *member)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        CLEANUP(free_p) char *line = NULL;
        char path[RUN_PATH_BYTES];
        json_t *found = NULL;
        size_t size = 0;

        f = run_folder_path(run, path, name) ? fopen(path, "re") : NULL;
        while (f != NULL && getline(&line, &size, f) > 0) {
                json_t *value = json_loads(line, 0, NULL);
                const json_t *said = json_object_get(value, member);

                if (said != NULL && !(json_is_array(said) && json_array_size(said) == 0)) {
                        json_decref(found);
                        found = json_incref(value);
                }
                json_decref(value);
        }
        return found;
}

int run_folder_write_json(const char *path, const json_t *value, struct err *err)
{
        CLEANUP(free_p) char *text = json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(17));

        return text == NULL ? err_set(err, -ENOMEM, "no memory for '%.200s'", path)
                            : whole_file_write(path, text, strlen(text), 0644, 0, err);
}

static int make_folder(const char *path, struct err *err)
{
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return err_set(err, -errno, "--work-dir: folder '%.200s' cannot be made: %m", path);
        return 0;
}

static int make_work(struct run *run, struct err *err)
{
        const char *wanted = run->options->work_dir;
        char absolute[PATH_MAX];
        int r = make_folder(wanted, err);

        if (r < 0)
                return r;
        if (realpath(wanted, absolute) == NULL)
                return err_set(err, -errno, "--work-dir: '%.200s': %m", wanted);
        /* the longest name of a file below it still has to fit */
        if (strlen(absolute) > RUN_PATH_BYTES - 200)
                return err_set(err, -ENAMETOOLONG, "--work-dir: '%.200s' is too long", absolute);
        (void) text_copy(run->work, sizeof(run->work), absolute);
        (void) text_format(run->folder, sizeof(run->folder), "%.800s/%s", run->work, run->job.name);
        return make_folder(run->folder, err);
}

static int refuse_name(const struct run *run, struct err *err)
{
        return err_set(err, -EEXIST,
                       "metadata.name: a job '%s' is running in '%.200s' and goes on; choose another name or "
                       "another --work-dir",
                       run->job.name, run->work);
}

#define LOCK_TRIES 10
#define LOCK_MSEC  20

static int lock(struct run *run, struct err *err)
{
        unsigned tries = 0;
        char path[RUN_PATH_BYTES];

        (void) run_folder_path(run, path, "lock");
        run->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (run->lock < 0)
                return err_set(err, -errno, "'%.200s': %m", path);
        while (flock(run->lock, LOCK_EX | LOCK_NB) < 0) {
                if (tries++ >= LOCK_TRIES)
                        return refuse_name(run, err);
                /* `remuda jobs` holds it for a moment to see whether anybody does */
                (void) poll(NULL, 0, LOCK_MSEC);
        }
        /* for `remuda jobs`: whom to tell, and since when */
        if (ftruncate(run->lock, 0) < 0 || dprintf(run->lock, "%d\n", (int) getpid()) < 0)
                return err_set(err, -errno, "'%.200s' cannot be written: %m", path);
        (void) futimens(run->lock, NULL);
        return 0;
}

/* A world whose run, guard and sweeper were all killed. */
static void remove_stale_worlds(const struct run *run)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[RUN_PATH_BYTES], line[GUARD_PATH_BYTES + 2];

        (void) run_folder_path(run, path, "world");
        f = fopen(path, "re");
        while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
                char mark[sizeof(line) + sizeof(GUARD_MARK)];

                line[strcspn(line, "\n")] = '\0';
                if (line[0] == '/' && text_format(mark, sizeof(mark), GUARD_MARK "=%s", line))
                        (void) process_tree_kill_marked(mark);
                private_folder_remove(line, RUN_GUARD_PREFIX);
        }
        (void) unlink(path);
}

/* Two jobs that write the same checkpoints would ruin both. */
static int lock_checkpoint(struct run *run, struct err *err)
{
        run->checkpoint_lock = open(run->checkpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (run->checkpoint_lock < 0)
                return err_set(err, -errno, "spec.checkpoint.path: '%.200s': %m", run->checkpoint);
        if (flock(run->checkpoint_lock, LOCK_EX | LOCK_NB) < 0)
                return err_set(
                        err, -EEXIST,
                        "spec.checkpoint.path: '%.200s' is being written by another job; choose another",
                        run->checkpoint);
        return 0;
}

/* The one that the job names; its own is in its folder. */
static int find_checkpoint(struct run *run, struct err *err)
{
        char absolute[PATH_MAX];

        if (!run->job.checkpoint.given || run->job.checkpoint.path[0] == '\0')
                return 0;
        if ((mkdir(run->job.checkpoint.path, 0755) < 0 && errno != EEXIST) ||
            realpath(run->job.checkpoint.path, absolute) == NULL || access(absolute, W_OK) < 0)
                return err_set(
                        err, -errno,
                        "spec.checkpoint.path: '%.200s' cannot be written to: %m; give a folder that can",
                        run->job.checkpoint.path);
        if (!text_copy(run->checkpoint, sizeof(run->checkpoint), absolute))
                return err_set(err, -ENAMETOOLONG, "spec.checkpoint.path: too long");
        return lock_checkpoint(run, err);
}

static int make_checkpoint(struct run *run, struct err *err)
{
        int r;

        if (!run->job.checkpoint.given || run->checkpoint[0] != '\0')
                return 0;
        (void) run_folder_path(run, run->checkpoint, "checkpoint");
        r = make_folder(run->checkpoint, err);
        return r < 0 ? r : lock_checkpoint(run, err);
}

/* A run that begins anew must not, after a fault, go on from what an earlier run left. */
void run_folder_set_aside(struct run *run)
{
        char aside[RUN_PATH_BYTES + 64], from[RUN_PATH_BYTES + 300], to[RUN_PATH_BYTES + 400];
        const struct dirent *file;
        unsigned moved = 0;
        DIR *folder;

        if (run->checkpoint[0] == '\0' || run->options->resume)
                return;
        folder = opendir(run->checkpoint);
        (void) text_format(aside, sizeof(aside), "%s/before-%llu", run->checkpoint,
                           (unsigned long long) clock_realtime_usec() / 1000000);
        while (folder != NULL && (file = readdir(folder)) != NULL) {
                bool checkpoint = text_ends_with(file->d_name, ".checkpoint");

                if (!checkpoint && strcmp(file->d_name, "joined") != 0) /* trainer/data/joined.h */
                        continue;
                (void) mkdir(aside, 0755);
                (void) text_format(from, sizeof(from), "%s/%s", run->checkpoint, file->d_name);
                (void) text_format(to, sizeof(to), "%s/%s", aside, file->d_name);
                moved += rename(from, to) == 0 && checkpoint;
        }
        if (folder != NULL)
                (void) closedir(folder);
        if (moved > 0)
                run_event(run, "CheckpointsSetAside",
                          "%u of an earlier run are now in '%s'; --resume would go on from them", moved,
                          aside);
}

static json_t *summary_of(const struct run *run, const char *name)
{
        char path[RUN_PATH_BYTES + 100];

        (void) text_format(path, sizeof(path), "%s/%s/summary.json", run->work, name);
        return json_load_file(path, 0, NULL);
}

static int check_parents(const struct run *run, struct err *err)
{
        for (size_t i = 0; i < run->job.dependency_count; i++) {
                const char *parent = run->job.depends_on[i];
                json_t *summary;
                bool runs;
                int r = jobs_folder_running(run->work, parent, &runs);

                if (runs)
                        continue;
                summary = r < 0 ? NULL : summary_of(run, parent);
                if (summary == NULL)
                        return err_set(err, -ESRCH,
                                       "spec.dependsOn[%zu]: job '%s' was never run to its end in '%.200s'; "
                                       "run it first",
                                       i, parent, run->work);
                json_decref(summary);
        }
        return 0;
}

/* Whatever refuses the job, before it leaves a trace that another one of its name would miss. */
static int check(struct run *run, struct err *err)
{
        bool runs;
        int r;

        (void) jobs_folder_running(run->work, run->job.name, &runs);
        if (runs)
                return refuse_name(run, err);
        r = check_parents(run, err);
        return r < 0 ? r : find_checkpoint(run, err);
}

int run_folder_open(struct run *run, int *ret_exit_code, struct err *err)
{
        static const char *const earlier[] = { "summary.json", "plan.json", "state.json", "events.jsonl" };
        char path[RUN_PATH_BYTES];
        int r = make_work(run, err);
        bool refused = false;

        if (r == 0)
                refused = (r = check(run, err)) < 0;
        if (r == 0)
                r = lock(run, err);
        if (r == 0)
                r = make_checkpoint(run, err);
        if (r < 0) {
                *ret_exit_code = r == -EACCES || r == -EPERM || r == -EROFS ? EXIT_NO_PERMISSION
                                 : refused || r == -EEXIST                  ? EXIT_USAGE
                                                                            : EXIT_FAILED;
                return r;
        }
        remove_stale_worlds(run);
        for (size_t i = 0; i < ARRAY_SIZE(earlier); i++)
                if (run_folder_path(run, path, earlier[i]))
                        (void) unlink(path);
        run_events_keep(run);
        return 0;
}

void run_folder_close(struct run *run)
{
        if (run->lock >= 0)
                (void) close(run->lock);
        run->lock = -1;
        if (run->checkpoint_lock >= 0)
                (void) close(run->checkpoint_lock);
        run->checkpoint_lock = -1;
}

static void await_parent(struct run *run, const char *parent)
{
        const struct timespec pause = { .tv_nsec = 200000000 };
        sigset_t signals;
        json_t *summary;
        bool runs;

        (void) jobs_folder_running(run->work, parent, &runs);
        (void) sigprocmask(SIG_BLOCK, NULL, &signals); /* those that are blocked, but for children's */
        (void) sigdelset(&signals, SIGCHLD);
        if (runs)
                run_event(run, "WaitingForParent", "job %s is still running", parent);
        while (runs && !run->interrupted) {
                run->interrupted = sigtimedwait(&signals, NULL, &pause) > 0;
                (void) jobs_folder_running(run->work, parent, &runs);
        }
        if (run->interrupted)
                return;
        summary = summary_of(run, parent);
        if (strcmp(run_summary_phase(summary), "Succeeded") != 0)
                run_finish(run, "Failed", "DependencyFailed", "job %s, which this one depends on, ended %s%s",
                           parent, summary == NULL ? "" : "as ",
                           summary == NULL ? "without a summary" : run_summary_phase(summary));
        json_decref(summary);
}

void run_folder_await_parents(struct run *run)
{
        for (size_t i = 0; i < run->job.dependency_count && run->phase == NULL && !run->interrupted; i++)
                await_parent(run, run->job.depends_on[i]);
}
