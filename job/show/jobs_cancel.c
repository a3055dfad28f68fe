/* Ends a job: of `remuda run` by SIGINT to the process that holds its lock, in a cluster by the annotation
 * that the controller obeys. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "job/show/jobs.h"
#include "store/store.h"
#include "store/store_once.h"

#define END_MSEC  30000
#define LOOK_MSEC 50

/* Is this process a `remuda`? The lock says that it holds the job; this guards against a file that was
 * written to. */
static bool is_remuda(int pid)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[64], name[64] = "";

        (void) text_format(path, sizeof(path), "/proc/%d/comm", pid);
        f = fopen(path, "re");
        return f != NULL && fgets(name, sizeof(name), f) != NULL && text_starts_with(name, "remuda");
}

static int end_process(const char *work_dir, const char *name, struct err *err)
{
        CLEANUP(close_p) int process = -1;
        bool running = false;
        int pid = jobs_folder_running(work_dir, name, &running);

        if (!running)
                return 0; /* it has just ended */
        process = pid > 0 ? (int) syscall(SYS_pidfd_open, pid, 0) : -1;
        if (process < 0 || !is_remuda(pid))
                return err_set(
                        err, -ESRCH,
                        "job '%s' runs, but nobody knows in which process; end its `remuda run` with Ctrl-C",
                        name);
        if (syscall(SYS_pidfd_send_signal, process, SIGINT, NULL, 0) < 0)
                return err_set(err, -errno, "job '%s' is run by process %d, which may not be told: %m", name,
                               pid);
        for (int waited = 0; waited < END_MSEC && running; waited += LOOK_MSEC) {
                (void) poll(NULL, 0, LOOK_MSEC);
                (void) jobs_folder_running(work_dir, name, &running);
        }
        return running ? err_set(err, -ETIMEDOUT,
                                 "job '%s' was told to end but has not within %d s; process %d runs it", name,
                                 END_MSEC / 1000, pid)
                       : 0;
}

static int annotate(const struct jobs_options *options, const struct job_view *view, struct err *err)
{
        struct store_options store_options = { .spec = options->store, .kubeconfig = options->kubeconfig };
        json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "remuda.dev/cancel", "true");
        struct store_once once;
        int r = store_once_open(&once, &store_options, err);

        if (r == 0) {
                store_patch(once.store, STORE_TRAINING_JOB, view->namespace_, view->job, patch,
                            store_once_answered, &once);
                r = store_once_wait(&once, err);
                r = r < 0 ? err_wrap(err, r, "job '%s'", view->job) : 0;
        }
        json_decref(patch);
        return r;
}

int jobs_cancel(const struct jobs_options *options, const char *name)
{
        struct err err = { 0 };
        const char *work = options->store == NULL ? options->work_dir : store_directory(options->store);
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        const struct job_view *view;
        bool folder;
        int r = jobs_read(options, name, &views, &err);

        if (r < 0)
                return jobs_refuse("cancel", r, &err);
        view = &views.items[0];
        folder = strcmp(job_view_word(view->source), "work-dir") == 0;
        if (job_view_ended(view))
                r = err_set(&err, -EALREADY, "job '%s' has ended as %s; nothing is left to cancel", name,
                            view->phase);
        else
                r = folder ? end_process(work, name, &err) : annotate(options, view, &err);
        if (r < 0)
                return jobs_refuse("cancel", r, &err);
        (void) printf(
                folder ? "job '%s' is cancelled\n"
                       : "job '%s' will be cancelled; `remuda jobs show %s` says when its pods are gone\n",
                name, name);
        return EXIT_DONE;
}
