/* What the ranks of a job print: of `remuda run` from the files of its folder, in a cluster from its pods
 * (jobs_pods.c). Lines are whole and begin with [RANK]. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "job/show/jobs.h"
#include "store/store.h"

#define LOOK_MSEC  150
#define BLOCK      65536
#define FILES_EACH 2 /* rank-N.out, rank-N.err */

struct log_file {
        char path[PATH_MAX];
        size_t rank;
        off_t offset;
        struct text line; /* what came after the last line end */
};

static void print_line(size_t rank, const char *line, size_t size)
{
        (void) printf("[%zu] %.*s\n", rank, (int) size, line);
}

static void take(struct log_file *log, const char *bytes, size_t size)
{
        const char *end;

        while ((end = memchr(bytes, '\n', size)) != NULL) {
                text_append_bytes(&log->line, bytes, (size_t) (end - bytes));
                print_line(log->rank, log->line.data == NULL ? "" : log->line.data, log->line.size_bytes);
                text_reset(&log->line);
                size -= (size_t) (end - bytes) + 1;
                bytes = end + 1;
        }
        text_append_bytes(&log->line, bytes, size);
}

/* A world that is started anew begins its files anew. */
static void read_on(struct log_file *log)
{
        CLEANUP(close_p) int fd = open(log->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        char bytes[BLOCK];
        ssize_t size;

        if (fd < 0)
                return;
        if (lseek(fd, 0, SEEK_END) < log->offset)
                log->offset = 0;
        while ((size = pread(fd, bytes, sizeof(bytes), log->offset)) > 0) {
                take(log, bytes, (size_t) size);
                log->offset += size;
        }
}

static void finish(struct log_file *log)
{
        if (log->line.size_bytes > 0)
                print_line(log->rank, log->line.data, log->line.size_bytes);
        text_free(&log->line);
}

static size_t name_files(const struct job_view *view, long rank, struct log_file *files, size_t ranks)
{
        static const char *const kinds[FILES_EACH] = { "out", "err" };
        size_t count = 0;

        for (size_t i = 0; i < ranks; i++)
                for (size_t k = 0; k < FILES_EACH && (rank == JOBS_RANK_ALL || (size_t) rank == i); k++) {
                        files[count].rank = i;
                        (void) text_format(files[count].path, PATH_MAX, "%s/rank-%zu.%s",
                                           job_view_word(view->folder), i, kinds[k]);
                        count++;
                }
        return count;
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
        size_t ranks = view->rank_count;
        CLEANUP(free_p) struct log_file *files = calloc(ranks * FILES_EACH + 1, sizeof(*files));
        size_t count = files == NULL ? 0 : name_files(view, rank, files, ranks);
        bool running = options->follow;

        if (files == NULL)
                return EXIT_FAILED;
        do { /* asked before the look, so that the last look is after its end */
                if (running && jobs_folder_running(work, view->job, &running) < 0)
                        running = false;
                for (size_t i = 0; i < count; i++)
                        read_on(&files[i]);
                if (fflush(stdout) != 0)
                        break;
                if (running)
                        (void) poll(NULL, 0, LOOK_MSEC);
        } while (running);
        for (size_t i = 0; i < count; i++)
                finish(&files[i]);
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

int jobs_logs(const struct jobs_options *options, const char *name)
{
        struct err err = { 0 };
        long rank = jobs_rank(options, &err);
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        const struct job_view *view;
        int r = rank < JOBS_RANK_ALL ? (int) rank : read_with_ranks(options, name, &views, &err), exit_code;

        if (r < 0)
                return jobs_refuse("logs", r, &err);
        view = &views.items[0];
        r = check_rank(view, rank, &err);
        if (r == 0 && strcmp(job_view_word(view->source), "dir") == 0)
                r = err_set(&err, -ENOTSUP,
                            "job '%s' is an object of a directory store, which has no logs; --store "
                            "kubernetes asks the "
                            "cluster",
                            name);
        if (r < 0)
                exit_code = jobs_refuse("logs", r, &err);
        else if (strcmp(job_view_word(view->source), "kubernetes") == 0)
                exit_code = jobs_pod_logs(options, view, rank);
        else
                exit_code = folder_logs(options, view, rank);
        return exit_code;
}
