/* What the ranks of a job print: of `remuda run` from the files of its folder (folder_logs.h), in a
 * cluster from its pods (jobs_pods.c). Lines are whole and begin with [RANK]. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "job/show/folder_logs.h"
#include "job/show/jobs.h"
#include "store/store.h"

#define LOOK_MSEC 150

static void print_line(void *userdata, size_t rank, const char *line)
{
        (void) userdata;
        (void) printf("[%zu] %s\n", rank, line);
}

static int check_rank(const struct job_view *view, long rank, struct err *err)
{
        size_t ranks = view->rank_count;

        if (ranks == 0)
                return err_set(err, -ENOENT,
                               "job '%s' has no ranks yet; `remuda jobs show %s` says what it waits for",
                               view->job, view->job);
        if (rank != JOBS_RANK_ALL && (size_t) rank >= ranks)
                return err_set(err, -ENOENT, "job '%s' has no rank %ld; its ranks are 0 to %zu", view->job,
                               rank, ranks - 1);
        return 0;
}

static int folder_logs(const struct jobs_options *options, const struct job_view *view, long rank)
{
        const char *work = options->store == NULL ? options->work_dir : store_directory(options->store);
        struct folder_logs *logs =
                folder_logs_new(job_view_word(view->folder), view->rank_count, rank, 0, print_line, NULL);
        bool running = options->follow;

        if (logs == NULL)
                return EXIT_FAILED;
        do { /* asked before the look, so that the last look is after its end */
                if (running && jobs_folder_running(work, view->job, &running) < 0)
                        running = false;
                folder_logs_read(logs, 0);
                if (fflush(stdout) != 0)
                        break;
                if (running)
                        (void) poll(NULL, 0, LOOK_MSEC);
        } while (running);
        folder_logs_finish(logs);
        folder_logs_free(logs);
        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

/* With -f a job that has no ranks yet is waited for. */
static int read_with_ranks(const struct jobs_options *options, const char *name, struct job_view_list *ret,
                           struct err *err)
{
        for (;;) {
                int r = jobs_read(options, name, ret, err);

                if (r < 0 || !options->follow || job_view_ended(&ret->items[0]) ||
                    ret->items[0].rank_count > 0)
                        return r;
                job_view_list_free(ret);
                (void) poll(NULL, 0, LOOK_MSEC * 4);
        }
}

/* Return: 0; -ENOTSUP and a sentence where a saved job has no folder. */
static int find_folder(const struct jobs_options *options, struct job_view *view, struct err *err)
{
        char folder[PATH_MAX];

        if (strcmp(job_view_word(view->source), "dir") != 0)
                return 0;
        if (!jobs_folder_of_object(store_directory(options->store), job_view_word(view->namespace_),
                                   view->job, folder))
                return err_set(
                        err, -ENOTSUP,
                        "job '%s' of this directory store has no folder of `remuda run` beside it, and "
                        "so has no logs; --store kubernetes asks the cluster",
                        view->job);
        job_view_set(&view->folder, folder);
        return 0;
}

int jobs_logs(const struct jobs_options *options, const char *name)
{
        struct err err = { 0 };
        long rank = jobs_rank(options, &err);
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        struct job_view *view;
        int r = rank < JOBS_RANK_ALL ? (int) rank : read_with_ranks(options, name, &views, &err);

        if (r < 0)
                return jobs_refuse("logs", r, &err);
        view = &views.items[0];
        r = check_rank(view, rank, &err);
        if (r == 0)
                r = find_folder(options, view, &err);
        if (r < 0)
                return jobs_refuse("logs", r, &err);
        return strcmp(job_view_word(view->source), "kubernetes") == 0 ? jobs_pod_logs(options, view, rank)
                                                                      : folder_logs(options, view, rank);
}
