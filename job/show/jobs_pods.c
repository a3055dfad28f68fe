/* `remuda jobs logs` of a cluster's job: what its pods print, on standard output. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/exit_code.h"
#include "io/loop.h"
#include "job/show/jobs.h"
#include "job/show/pod_logs.h"
#include "store/kubernetes/kube.h"

#define LOOK_USEC UINT64_C(1000000)

struct printing {
        sd_event *loop;
        const char *job;
        int exit_code; /* of the worst that happened */
};

static void on_line(void *userdata, const char *line)
{
        const struct printing *p = userdata;

        (void) printf("%s\n", line);
        if (fflush(stdout) != 0)
                (void) sd_event_exit(p->loop, 0);
}

static void on_refused(void *userdata, const char *pod, int error, const char *sentence)
{
        struct printing *p = userdata;

        (void) fprintf(stderr, "remuda jobs logs: the log of pod '%s' %s: %s\n", pod, pod_logs_refusal(error),
                       sentence);
        p->exit_code = error < 0 ? exit_code_of(error) : p->exit_code;
}

static void on_done(void *userdata, int error, const char *sentence)
{
        struct printing *p = userdata;

        if (error < 0) {
                (void) fprintf(stderr, "remuda jobs logs: job '%s': %s\n", p->job, sentence);
                p->exit_code = exit_code_of(error);
        }
        (void) sd_event_exit(p->loop, 0);
}

int jobs_pod_logs(const struct jobs_options *options, const struct job_view *view, long rank)
{
        struct printing p = { .job = job_view_word(view->job) };
        const struct pod_logs_options asked = { .namespace_ = job_view_word(view->namespace_),
                                                .job = p.job,
                                                .view = view,
                                                .rank = rank,
                                                .follow = options->follow,
                                                .look_usec = LOOK_USEC,
                                                .line = on_line,
                                                .refused = on_refused,
                                                .done = on_done,
                                                .userdata = &p };
        struct kube_client *client = NULL;
        struct pod_logs *logs = NULL;
        struct err err = { 0 };
        int r = loop_new(&p.loop, &err);

        if (r == 0)
                r = kube_client_new(p.loop, options->kubeconfig, &client, &err);
        if (r == 0 && (r = pod_logs_start(p.loop, client, &asked, &logs)) < 0)
                (void) err_set(&err, r, "no memory");
        if (r < 0)
                p.exit_code = jobs_refuse("logs", r, &err);
        else
                (void) sd_event_loop(p.loop);
        pod_logs_free(logs);
        kube_client_free(client);
        sd_event_unref(p.loop);
        if (fflush(stdout) != 0)
                p.exit_code = EXIT_FAILED;
        return p.exit_code;
}
