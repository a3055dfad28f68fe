/* One job from its document to its summary. */
#include "job/run/run.h"
#include "job/run/run_folder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "io/clock.h"
#include "io/process_tree.h"
#include "job/run/run_chips.h"
#include "job/show/jobs.h"

void run_free(struct run *run)
{
        run_sweeper_end(&run->sweeper);
        run_folder_close(run);
        world_free(&run->world);
        job_free(&run->job);
        program_table_free(&run->table);
        arguments_free(&run->speed_args);
        run_chips_free(&run->inventories);
        for (size_t i = 0; run->ranks != NULL && i < run->rank_count; i++)
                free(run->ranks[i].layer_ms);
        job_split_profile_free(&run->measured);
        stage_ranks_free(&run->split);
        free(run->segments);
        free(run->ranks);
        json_decref(run->events);
}

/* They wait for whoever waits: the engine, or a job for its parents. */
static int block_signals(void)
{
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGHUP);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
        return process_tree_adopt();
}

/* What a job says that has no meaning here is said, not silently dropped. */
static void note_ignored(struct run *run)
{
        bool templates = run->job.servers.template.given, claims = run->job.servers.device_class[0] != '\0';

        if (run->job.program_count > 0)
                run_event(run, "ProgramsIgnored",
                          "spec.programs is for pods; here the program table '%s' decides",
                          run->programs_path);
        if (run->job.tls.secret[0] != '\0')
                run_event(run, "TlsIgnored",
                          "spec.tls is for pods; here nothing of the job crosses a network");
        if (run->job.suspend)
                run_event(run, "SuspendIgnored",
                          "spec.suspend is for jobs on a cluster; this one is run since you ask for it");
        if (run->job.has_ttl)
                run_event(run, "TtlIgnored",
                          "spec.ttlSecondsAfterFinished is for jobs on a cluster; this one's folder is kept");
        for (size_t i = 0; i < run->job.worker_count; i++) {
                templates = templates || run->job.workers[i].template.given;
                claims = claims || run->job.workers[i].device_class[0] != '\0';
        }
        if (claims)
                run_event(run, "DeviceClassIgnored",
                          "deviceClass of workers and servers is for pods; here ranks have the chips of this "
                          "machine");
        if (templates)
                run_event(run, "TemplateIgnored",
                          "template of workers and servers is for pods; here ranks have the environment and "
                          "the resources that this machine gives them");
}

/* Everything that may refuse the job before anything is started. Its folder comes last: what is refused
 * leaves no trace, and an earlier job of the name is what it was. */
static int prepare(struct run *run, const char *job_path, const json_t *document, int *exit_code,
                   struct err *err)
{
        char sentence[sizeof(err->msg)];
        bool lacking;
        int r = run_read(run, job_path, document, exit_code, err);

        if (r == 0)
                r = run_choose_chips(run, exit_code, err);
        lacking = r == -EBUSY;
        if (lacking)
                (void) text_copy(sentence, sizeof(sentence), err->msg);
        if (r == 0 || lacking)
                r = run_folder_open(run, exit_code, err);
        if (r == 0 && lacking) {
                run_finish(run, "Failed", "Unschedulable", "%s", sentence);
        } else if (r == 0) {
                note_ignored(run);
                run_folder_await_parents(run);
        }
        return r;
}

static void train(struct run *run)
{
        struct err err = { 0 };
        int r = run_measure(run, &err);

        if (r == 0 && !run->interrupted)
                r = run_plan(run, &err);
        if (r == 0 && !run->interrupted)
                r = run_train(run, &err);
        if (r < 0)
                run_finish(run, "Failed", "Internal", "%s", err.msg);
}

/* As `remuda jobs report` would do it: the job has ended, its name is free. */
static void write_report(struct run *run)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        struct err err = { 0 };
        int r;

        run_folder_close(run);
        r = jobs_folder_read(run->work, run->job.name, &views, &err);
        if (r == 0)
                r = jobs_write_report(&views.items[0], run->options->report, NULL, &err);
        if (r < 0)
                (void) fprintf(stderr, "%s: no report: %s\n", run->job.name, err.msg);
}

static int finish(struct run *run, json_t **ret_summary)
{
        char path[RUN_PATH_BYTES];
        json_t *summary;
        int r;

        if (run->phase == NULL && run->interrupted)
                run_finish(run, "Cancelled", "Interrupted", "cancelled by a signal");
        summary = run_summary(run);
        if (summary == NULL) {
                (void) fprintf(stderr, "remuda run: no memory for the summary\n");
                return EXIT_FAILED;
        }
        if (run_folder_path(run, path, "summary.json"))
                (void) run_folder_write_json(path, summary, NULL);
        if (run->options->report != NULL)
                write_report(run);
        r = ret_summary == NULL || strcmp(run->options->output, "json") != 0 ? run_print_summary(run, summary)
                                                                             : 0;
        if (ret_summary != NULL)
                *ret_summary = json_incref(summary);
        json_decref(summary);
        if (run->phase != NULL && strcmp(run->phase, "Cancelled") == 0)
                return EXIT_INTERRUPTED;
        return r == 0 && run->phase != NULL && strcmp(run->phase, "Succeeded") == 0 ? EXIT_DONE : EXIT_FAILED;
}

int run_one(const struct run_options *options, const char *job_path, const json_t *document,
            json_t **ret_summary)
{
        struct run run = { .lock = -1, .checkpoint_lock = -1, .started_usec = clock_monotonic_usec() };
        int exit_code = EXIT_FAILED;
        struct err err = { 0 };

        run.options = options;
        run.events = json_array();
        job_init(&run.job);
        if (run.events == NULL || block_signals() < 0) {
                (void) fprintf(stderr, "remuda run: no memory or no descriptors\n");
        } else if (prepare(&run, job_path, document, &exit_code, &err) < 0) {
                (void) fprintf(stderr, "remuda run: %s\n", err.msg);
        } else {
                if (run.phase == NULL && !run.interrupted)
                        train(&run);
                exit_code = finish(&run, ret_summary);
        }
        run_free(&run);
        return exit_code;
}
