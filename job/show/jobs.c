/* `remuda jobs`: its options and verbs, and where the jobs that they name are. */
#include "job/show/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/commands.h"
#include "job/spec/job.h"
#include "store/store.h"

#define AT(member) offsetof(struct jobs_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { "work-dir", 0, OPTION_STRING, AT(work_dir), "DIR", "remuda-jobs", 0, 0, "jobs of `remuda run --work-dir DIR`" },
        { "store", 0, OPTION_STRING, AT(store), "dir:PATH|kubernetes", NULL, 0, 0, "TrainingJobs of a store instead" },
        { "kubeconfig", 0, OPTION_STRING, AT(kubeconfig), "FILE", NULL, 0, 0, "for --store kubernetes" },
        { "namespace", 'n', OPTION_STRING, AT(namespace_), "NS", "default", 0, 0, "of the jobs of a store" },
        { "all-namespaces", 'A', OPTION_BOOL, AT(all_namespaces), NULL, NULL, 0, 0, "list the jobs of every namespace" },
        LISTING_ARGUMENTS_ROWS(struct jobs_options, LISTING_FORMS),
        LISTING_WATCH_ROWS(struct jobs_options),
        { "follow", 'f', OPTION_BOOL, AT(follow), NULL, NULL, 0, 0, "logs: go on until the job ends" },
        { "rank", 0, OPTION_STRING, AT(rank), "N", NULL, 0, 0, "logs: of this rank alone" },
        { "file", 0, OPTION_STRING, AT(file), "FILE", NULL, 0, 0, "report: where to; - is standard output; default NAME.html, .svg or .trace.json" },
        { "picture", 0, OPTION_CHOICE, AT(picture), "timeline|progress|loss|shares|placement", NULL, 0, 0, "report: this picture alone, SVG" },
        { "trace", 0, OPTION_BOOL, AT(trace), NULL, NULL, 0, 0, "report: what the ranks did when, a trace that Perfetto opens" },
        { NULL, 0, 0, 0, NULL, NULL, 0, 0, NULL },
};

static const struct verb {
        const char *name;
        int (*run)(const struct jobs_options *options, const char *name);
} verbs[] = {
        { "show",   jobs_show },
        { "logs",   jobs_logs },
        { "cancel", jobs_cancel },
        { "report", jobs_report },
};
/* clang-format on */

const struct option_program command_jobs_options = {
        .name = "remuda jobs",
        .operands = "[show|logs|cancel|report JOB]",
        .operands_max = 2,
        .summary = "Lists training jobs, and shows, follows, cancels or draws one.",
        .after = "  remuda jobs                  all jobs and how far they are\n"
                 "  remuda jobs show NAME        one job: progress, ranks, what happened\n"
                 "  remuda jobs logs -f NAME     what its ranks print, each line after [RANK]\n"
                 "  remuda jobs cancel NAME      end it; its checkpoint stays\n"
                 "  remuda jobs report NAME      one HTML page: timeline of the ranks, overlap, loss\n"
                 "Exit code: 0 done, 1 failed, 2 usage, 3 no such job, 5 not allowed, 6 API unreachable.\n"
                 "See remuda-jobs(1).\n",
        .specs = specs,
};

enum jobs_place jobs_place(const struct jobs_options *options)
{
        if (options->store == NULL)
                return JOBS_FOLDER;
        return strcmp(options->store, "kubernetes") == 0 ? JOBS_KUBERNETES : JOBS_DIRECTORY;
}

long jobs_rank(const struct jobs_options *options, struct err *err)
{
        uint64_t rank = 0;

        if (options->rank == NULL)
                return JOBS_RANK_ALL;
        if (text_parse_uint64(options->rank, &rank) < 0 || rank > 1000000)
                return err_set(err, -EINVAL, "--rank: '%.40s' is not the number of a rank, such as 0",
                               options->rank);
        return (long) rank;
}

static bool has_job(const struct job_view *views, size_t count, const char *job)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(job_view_word(views[i].namespace_), JOBS_FOLDER_NAMESPACE) == 0 &&
                    strcmp(job_view_word(views[i].job), job) == 0)
                        return true;
        return false;
}

/* Those that the store has no TrainingJob of: what it has goes before. */
static void take_others(struct job_view_list *folder, struct job_view_list *views)
{
        const size_t in_store = views->count;
        struct job_view *to;

        for (size_t i = 0; i < folder->count; i++) {
                if (has_job(views->items, in_store, job_view_word(folder->items[i].job)))
                        continue;
                to = job_view_list_add(views);
                if (to == NULL)
                        return;
                *to = folder->items[i];
                folder->items[i] = (struct job_view){ 0 };
        }
}

/* A directory store may also be the work folder of `remuda run`: what lies below it are jobs, too. */
static int read_directory(const struct jobs_options *options, const char *name, struct job_view_list *views,
                          struct err *err)
{
        struct job_view_list folder = { 0 };
        int r = jobs_store_read(options, name, views, err);

        if (r < 0 || (name != NULL && views->count > 0))
                return r;
        r = jobs_folder_read(store_directory(options->store), name, &folder, err);
        take_others(&folder, views);
        job_view_list_free(&folder);
        return r == -ENOENT ? 0 : r;
}

static int compare_jobs(const void *a, const void *b)
{
        const struct job_view *x = a, *y = b;
        int r = strcmp(job_view_word(x->namespace_), job_view_word(y->namespace_));

        return r != 0 ? r : strcmp(job_view_word(x->job), job_view_word(y->job));
}

void jobs_sort(struct job_view_list *views)
{
        if (views->count > 0)
                qsort(views->items, views->count, sizeof(*views->items), compare_jobs);
}

static int read_place(const struct jobs_options *options, const char *name, struct job_view_list *views,
                      struct err *err)
{
        int r;

        if (jobs_place(options) == JOBS_FOLDER)
                return jobs_folder_read(options->work_dir, name, views, err);
        if (jobs_place(options) == JOBS_DIRECTORY && store_directory(options->store) == NULL)
                return err_set(err, -EINVAL, "--store: '%.100s' is no store; write dir:PATH or kubernetes",
                               options->store);
        r = jobs_place(options) == JOBS_KUBERNETES ? jobs_store_read(options, name, views, err)
                                                   : read_directory(options, name, views, err);
        for (size_t i = 0;
             r == 0 && name != NULL && jobs_place(options) == JOBS_KUBERNETES && i < views->count; i++)
                jobs_add_events(options, &views->items[i]);
        if (r == 0 && name != NULL && views->count == 0)
                r = err_set(err, -ENOENT,
                            "there is no job '%.100s' in namespace '%.100s' of %.100s; -n NS chooses another "
                            "namespace, `remuda jobs -A` lists all",
                            name, options->namespace_, options->store);
        return r;
}

int jobs_read(const struct jobs_options *options, const char *name, struct job_view_list *ret,
              struct err *err)
{
        struct job_view_list views = { 0 };
        int r;

        if (name != NULL && !object_name_label_valid(name))
                return err_set(err, -EINVAL, "'%.80s' is not the name of a job; `remuda jobs` lists them",
                               name);
        r = read_place(options, name, &views, err);
        if (r < 0) {
                job_view_list_free(&views);
                return r;
        }
        jobs_sort(&views);
        *ret = views;
        return 0;
}

int jobs_refuse(const char *verb, int error, const struct err *err)
{
        (void) fprintf(stderr, "remuda jobs%s%s: %s\n", verb[0] == '\0' ? "" : " ", verb, err->msg);
        return exit_code_of(error);
}

int command_jobs(int argc, char **argv)
{
        struct jobs_options options = { 0 };
        size_t operands = 0;
        int exit_code = options_start(&command_jobs_options, REMUDA_VERSION, argc, argv, &options, &operands,
                                      stdout, stderr);

        if (exit_code >= 0)
                return exit_code;
        if (operands == 0 || (operands == 1 && strcmp(argv[1], "list") == 0))
                return options.listing.watch ? jobs_watch(&options) : jobs_list(&options);
        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
                if (strcmp(argv[1], verbs[i].name) != 0)
                        continue;
                if (operands == 2)
                        return verbs[i].run(&options, argv[2]);
                (void) fprintf(stderr,
                               "remuda jobs %s: the job's NAME is missing; `remuda jobs` lists them\n",
                               argv[1]);
                return EXIT_USAGE;
        }
        (void) fprintf(stderr, "remuda jobs: '%s' is none of show, logs, cancel, report; see --help\n",
                       argv[1]);
        return EXIT_USAGE;
}
