/* Several jobs in one file: one after the other, in the order that the controller would start them
 * (job/plan/job_order.h). All of them are judged before the first one starts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "io/clock.h"
#include "job/plan/job_order.h"
#include "job/run/run_queue.h"
#include "job/spec/job_yaml.h"

#define JOBS_MAX 1000 /* of one file */

struct queue {
        const struct run_options *options;
        const char *path;
        const json_t *documents; /* as many as jobs */
        struct job *jobs;
        size_t count;
        struct job_order_entry *entries; /* the jobs, then what they depend on and is not in the file */
        size_t entry_count;
        size_t *order;
        json_t *summaries;
        int exit_code;
        bool interrupted;
};

static void queue_free(struct queue *q)
{
        for (size_t i = 0; q->jobs != NULL && i < q->count; i++)
                job_free(&q->jobs[i]);
        free(q->jobs);
        free(q->entries);
        free(q->order);
        json_decref(q->summaries);
}

static int decode_jobs(struct queue *q, struct err *err)
{
        for (size_t i = 0; i < json_array_size(q->documents); i++) {
                int r = job_yaml_decode(json_array_get(q->documents, i), &q->jobs[i], err);

                q->count = i + 1;
                if (r < 0)
                        return err_wrap(err, r, "job file '%.200s', document %zu", q->path, i + 1);
        }
        return 0;
}

/* A parent outside the file must have been run, or be running, in the work folder: run_folder_open()
 * looks closer. */
static int add_outside_parent(struct queue *q, const struct job *job, size_t index, struct err *err)
{
        const char *name = job->depends_on[index];
        char path[RUN_PATH_BYTES];

        for (size_t i = 0; i < q->entry_count; i++)
                if (strcmp(q->entries[i].name, name) == 0)
                        return 0;
        if (!text_format(path, sizeof(path), "%.700s/%s/lock", q->options->work_dir, name) ||
            access(path, F_OK) < 0)
                return err_set(err, -ESRCH,
                               "job '%s': spec.dependsOn[%zu]: job '%s' is neither in '%.200s' nor was it "
                               "ever run in "
                               "'%.200s'; add it or run it first",
                               job->name, index, name, q->path, q->options->work_dir);
        q->entries[q->entry_count++] = (struct job_order_entry){ .namespace_ = job->namespace_,
                                                                 .name = name,
                                                                 .state = JOB_ORDER_SUCCEEDED };
        return 0;
}

static int make_entries(struct queue *q, struct err *err)
{
        size_t most = q->count;

        for (size_t i = 0; i < q->count; i++)
                most += q->jobs[i].dependency_count;
        q->entries = calloc(most + 1, sizeof(*q->entries));
        q->order = calloc(most + 1, sizeof(*q->order));
        if (q->entries == NULL || q->order == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu jobs", q->count);
        for (size_t i = 0; i < q->count; i++) {
                q->entries[q->entry_count++] = job_order_entry_of(&q->jobs[i], i);
                q->entries[i].namespace_ = ""; /* one work folder is one namespace */
        }
        for (size_t i = 0; i < q->count; i++)
                for (size_t k = 0; k < q->jobs[i].dependency_count; k++) {
                        int r = add_outside_parent(q, &q->jobs[i], k, err);

                        if (r < 0)
                                return r;
                        q->entries[q->entry_count - 1].namespace_ = "";
                }
        return 0;
}

static int refuse_circles(struct queue *q, struct err *err)
{
        long ready = job_order(q->entries, q->entry_count, q->order);

        if (ready == -EEXIST)
                return err_set(err, -EINVAL,
                               "metadata.name: '%s' is the name of two jobs in '%.200s'; rename one of them",
                               q->entries[q->order[0]].name, q->path);
        if (ready < 0)
                return err_set(err, (int) ready, "no memory for %zu jobs", q->count);
        for (size_t i = 0; i < q->count; i++) {
                struct text circle = { .max_bytes = 2000 };

                if (q->entries[i].verdict != JOB_ORDER_CYCLE)
                        continue;
                job_order_cycle(q->entries, q->entry_count, i, &circle);
                err_set(err, -EINVAL,
                        "job '%s': spec.dependsOn[%zu]: the jobs wait for each other: %.150s; remove one of "
                        "these",
                        q->entries[i].name, q->entries[i].parent, circle.data == NULL ? "" : circle.data);
                text_free(&circle);
                return -EINVAL;
        }
        return 0;
}

/* Whatever would refuse a job later, and needs nothing to be started to be found out. */
static int check_jobs(struct queue *q, struct err *err)
{
        for (size_t i = 0; i < q->count; i++) {
                struct run run = { .options = q->options, .lock = -1, .checkpoint_lock = -1 };
                int r;

                job_init(&run.job);
                r = run_read(&run, q->path, json_array_get(q->documents, i), &q->exit_code, err);
                run_free(&run);
                if (r < 0)
                        return err_wrap(err, r, "job '%.63s'", q->jobs[i].name);
        }
        return 0;
}

static int prepare(struct queue *q, struct err *err)
{
        int r;

        q->jobs = calloc(json_array_size(q->documents) + 1, sizeof(*q->jobs));
        q->summaries = json_array();
        if (q->jobs == NULL || q->summaries == NULL)
                return err_set(err, -ENOMEM, "no memory for the jobs");
        q->exit_code = EXIT_USAGE;
        if (json_array_size(q->documents) > JOBS_MAX)
                return err_set(err, -E2BIG, "job file '%.200s': more than %d jobs", q->path, JOBS_MAX);
        if (q->options->report != NULL)
                return err_set(
                        err, -EINVAL,
                        "--report: '%.200s' holds several jobs; `remuda jobs report NAME` draws each of them",
                        q->path);
        r = decode_jobs(q, err);
        if (r == 0)
                r = make_entries(q, err);
        if (r == 0)
                r = refuse_circles(q, err);
        return r < 0 ? r : check_jobs(q, err);
}

/* A child of a job that never starts is answered after it. */
static bool parents_are_answered(const struct queue *q, const struct job *job)
{
        for (size_t k = 0; k < job->dependency_count; k++)
                for (size_t i = 0; i < q->count; i++)
                        if (q->entries[i].state == JOB_ORDER_WAITING &&
                            strcmp(q->entries[i].name, job->depends_on[k]) == 0)
                                return false;
        return true;
}

/* The next one: the first that is ready; else one whose parent failed, which says so; SIZE_MAX: none is left.
 */
static size_t next(struct queue *q)
{
        (void) job_order(q->entries, q->entry_count, q->order);
        for (size_t i = 0; i < q->entry_count; i++)
                if (q->order[i] < q->count && q->entries[q->order[i]].verdict == JOB_ORDER_READY)
                        return q->order[i];
        for (size_t i = 0; i < q->entry_count; i++)
                if (q->order[i] < q->count && q->entries[q->order[i]].verdict == JOB_ORDER_PARENT_FAILED &&
                    parents_are_answered(q, &q->jobs[q->order[i]]))
                        return q->order[i];
        return SIZE_MAX;
}

static void keep_worst(struct queue *q, int exit_code)
{
        if (exit_code == EXIT_INTERRUPTED || q->exit_code == EXIT_DONE)
                q->exit_code = exit_code;
        q->interrupted = q->interrupted || exit_code == EXIT_INTERRUPTED;
}

/* After an interruption nobody else begins, and everybody is answered. */
static void cancel(struct queue *q, size_t index)
{
        struct run run = { .options = q->options,
                           .lock = -1,
                           .checkpoint_lock = -1,
                           .started_usec = clock_monotonic_usec(),
                           .events = json_array() };

        job_init(&run.job);
        if (job_yaml_decode(json_array_get(q->documents, index), &run.job, NULL) == 0) {
                run_finish(&run, "Cancelled", "Interrupted", "cancelled by a signal before it was started");
                (void) json_array_append_new(q->summaries, run_summary(&run));
        }
        run_free(&run);
}

static bool has_summary(const struct queue *q, const char *name)
{
        const json_t *summary;
        size_t i;

        json_array_foreach(q->summaries, i,
                           summary) if (strcmp(json_string_value(json_object_get(summary, "job")), name) ==
                                        0) return true;
        return false;
}

/* A parent in the file that was refused has no summary; what an earlier run of its name left in the work
 * folder says nothing of it. */
static bool refuse_child(struct queue *q, size_t index)
{
        const struct job *job = &q->jobs[index];

        for (size_t k = 0; k < job->dependency_count; k++)
                for (size_t i = 0; i < q->count; i++)
                        if (q->entries[i].state == JOB_ORDER_FAILED &&
                            strcmp(q->entries[i].name, job->depends_on[k]) == 0 &&
                            !has_summary(q, q->entries[i].name)) {
                                (void) fprintf(stderr,
                                               "remuda run: job '%s': spec.dependsOn[%zu]: job '%s' was "
                                               "refused; mend it first\n",
                                               job->name, k, job->depends_on[k]);
                                keep_worst(q, EXIT_USAGE);
                                return true;
                        }
        return false;
}

static void run_all(struct queue *q)
{
        size_t index;

        q->exit_code = EXIT_DONE;
        while ((index = next(q)) != SIZE_MAX) {
                json_t *summary = NULL;

                if (q->interrupted)
                        cancel(q, index);
                if (q->interrupted || refuse_child(q, index)) {
                        q->entries[index].state = JOB_ORDER_FAILED;
                        continue;
                }
                keep_worst(q, run_one(q->options, q->path, json_array_get(q->documents, index), &summary));
                q->entries[index].state = strcmp(run_summary_phase(summary), "Succeeded") == 0
                                                  ? JOB_ORDER_SUCCEEDED
                                                  : JOB_ORDER_FAILED;
                if (summary != NULL)
                        (void) json_array_append_new(q->summaries, summary);
        }
}

int run_queue(const struct run_options *options, const char *path, const json_t *documents)
{
        struct queue q = { .options = options, .path = path, .documents = documents };
        struct err err = { 0 };
        int exit_code;

        if (prepare(&q, &err) < 0) {
                (void) fprintf(stderr, "remuda run: %s\n", err.msg);
        } else {
                run_all(&q);
                if (strcmp(options->output, "json") == 0) {
                        json_t *all = json_pack("{s:O}", "jobs", q.summaries);

                        if (json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12)) < 0 ||
                            fputc('\n', stdout) == EOF || fflush(stdout) != 0)
                                q.exit_code = EXIT_FAILED;
                        json_decref(all);
                }
        }
        exit_code = q.exit_code;
        queue_free(&q);
        return exit_code;
}
