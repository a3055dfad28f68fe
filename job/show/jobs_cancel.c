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
#include "io/loop.h"
#include "job/show/jobs.h"
#include "store/store.h"

#define END_MSEC   30000
#define LOOK_MSEC  50
#define WRITE_USEC (20 * UINT64_C(1000000))

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

struct writing {
        sd_event *loop;
        int result;
        char sentence[256];
};

static void on_answer(void *userdata, int result, const char *sentence)
{
        struct writing *w = userdata;

        w->result = result;
        (void) text_copy(w->sentence, sizeof(w->sentence), sentence);
        (void) sd_event_exit(w->loop, 0);
}

static void too_late(void *userdata)
{
        on_answer(userdata, -ETIMEDOUT, "the store did not answer within 20 s");
}

static int annotate(const struct jobs_options *options, const struct job_view *view, struct err *err)
{
        struct store_options store_options = { .spec = options->store, .kubeconfig = options->kubeconfig };
        json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "remuda.dev/cancel", "true");
        struct writing w = { .result = -EINTR };
        sd_event_source *timer = NULL;
        struct store *store = NULL;
        int r = sd_event_new(&w.loop);

        if (r >= 0)
                r = store_open(w.loop, &store_options, &store, err);
        if (r == 0) {
                store_patch(store, STORE_TRAINING_JOB, view->namespace_, view->job, patch, on_answer, &w);
                (void) loop_after(w.loop, WRITE_USEC, too_late, &w, &timer);
                (void) sd_event_loop(w.loop);
                r = w.result < 0 ? err_set(err, w.result, "job '%s': %s", view->job, w.sentence) : 0;
        }
        sd_event_source_disable_unref(timer);
        store_close(store);
        sd_event_unref(w.loop);
        json_decref(patch);
        return r;
}

int jobs_cancel(const struct jobs_options *options, const char *name)
{
        struct err err = { 0 };
        const char *work = options->store == NULL ? options->work_dir : options->store + strlen("dir:");
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
