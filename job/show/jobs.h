/* Jobs: `remuda jobs`: TrainingJobs where they are: in the folder of `remuda run`, in a directory store, in
 * Kubernetes.
 *
 * Whatever the source, a job is read once into a struct job_view, and shown. One source is opened a command;
 * errors name the job and what to do. */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <time.h>

#include "base/err.h"
#include "cli/command/listing.h"
#include "job/show/job_view.h"

struct jobs_options {
        const char *store, *kubeconfig, *work_dir, *namespace_, *rank, *file, *picture;
        bool follow, all_namespaces, trace;
        struct listing_arguments listing;
};

#define JOBS_RANK_ALL (-1)

/* Where the jobs of these options are. */
enum jobs_place { JOBS_FOLDER, JOBS_DIRECTORY, JOBS_KUBERNETES };
enum jobs_place jobs_place(const struct jobs_options *options);

/* jobs_read() - the views of all jobs (name NULL), or of one, which must be there.
 * Return: 0 and *ret, released with job_view_list_free(); -ENOENT with a sentence; another negative errno. */
int jobs_read(const struct jobs_options *options, const char *name, struct job_view_list *ret,
              struct err *err);

/* jobs_sort() - by namespace and name. jobs_print_changed() - of a watch, by the options' listing: 0 or
 * -ENOMEM. (jobs_show.c) */
void jobs_sort(struct job_view_list *views);
int jobs_print_changed(const struct jobs_options *options, const struct job_view_list *views);

/* jobs_folder_read() - of `remuda run`, from its work folder. @name: or NULL. Views are appended.
 * (jobs_folder.c) */
int jobs_folder_read(const char *work_dir, const char *name, struct job_view_list *views, struct err *err);
/* jobs_folder_running() - the process that runs the job, 0 = nobody does, -ENOENT: there is no such job. */
int jobs_folder_running(const char *work_dir, const char *name, bool *ret_running);
/* jobs_folder_written() - when the files were written that say how a job is; all that it is read of is as it
 * was while they are. Equal bytes are equal times. */
struct jobs_folder_written {
        struct timespec lock, plan, state, events; /* 0 = not there */
};
struct jobs_folder_written jobs_folder_written(const char *work_dir, const char *name);

#define JOBS_FOLDER_NAMESPACE "default" /* of its jobs where somebody wants one */
#define JOBS_FOLDER_KILLED    "Killed"  /* reason: nobody wrote its end down, nor when that was */

/* jobs_folder_of_object() - where a job of a directory store has its folder of `remuda run`, which knows no
 * namespaces: those of "default" have one. Return: is there one? */
bool jobs_folder_of_object(const char *directory, const char *namespace_, const char *name,
                           char ret_folder[PATH_MAX]);

/* jobs_store_read() - from the TrainingJobs of a store. Views are appended. (jobs_store.c) */
int jobs_store_read(const struct jobs_options *options, const char *name, struct job_view_list *views,
                    struct err *err);

/* jobs_store_add() - a TrainingJob's view, if it is one of those asked for. (jobs_store.c) */
void jobs_store_add(const struct jobs_options *options, const char *name, const json_t *object,
                    struct job_view_list *views);

/* The subcommands. Return: an exit code; what was wrong is said on standard error. */
int jobs_show(const struct jobs_options *options, const char *name);   /* jobs_show.c */
int jobs_list(const struct jobs_options *options);                     /* jobs_show.c */
int jobs_watch(struct jobs_options *options);                          /* jobs_watch.c */
int jobs_logs(const struct jobs_options *options, const char *name);   /* jobs_logs.c */
int jobs_cancel(const struct jobs_options *options, const char *name); /* jobs_cancel.c */
int jobs_report(const struct jobs_options *options, const char *name); /* jobs_report.c */

/* jobs_pod_logs() - the logs of a Kubernetes job's ranks, followed if asked. (jobs_pods.c) */
int jobs_pod_logs(const struct jobs_options *options, const struct job_view *view, long rank);

/* jobs_add_events() - of a job of a cluster: the API server's events about it. (jobs_events.c) */
void jobs_add_events(const struct jobs_options *options, struct job_view *view);

/* jobs_rank() - --rank as a number, JOBS_RANK_ALL without it; < -1 and a sentence if it is none. */
long jobs_rank(const struct jobs_options *options, struct err *err);

/* jobs_refuse() - "remuda jobs VERB: sentence". Return: the exit code that goes with it. */
int jobs_refuse(const char *verb, int error, const struct err *err);

/* jobs_write_report() - the report of a view as FILE ("-" = standard output), whole or one of its pictures
 * alone (NULL = whole). Also `remuda run --report`. Return: 0 or a negative errno. (jobs_report.c) */
int jobs_write_report(const struct job_view *view, const char *file, const char *picture, struct err *err);
