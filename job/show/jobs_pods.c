/* The logs of a job's pods, through the API server. A pod holds the ranks of one device group, and each of
 * their lines begins with [RANK]. With --follow pods that are made later (a repair, a move) are followed,
 * too, until the job ends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "io/loop.h"
#include "job/show/jobs.h"
#include "store/kubernetes/kube.h"

#define PODS_MAX      4096
#define LOOK_USEC     UINT64_C(1000000)
#define CALL_USEC     (10 * UINT64_C(1000000))
#define OBJECT_FORMAT "/apis/remuda.dev/v1alpha1/namespaces/%s/trainingjobs/%s"

struct follower;

struct pod_log {
        struct follower *f;
        struct pod_log *next;
        char name[254];
        struct text line;
        bool running, began, done;
};

struct follower {
        const struct jobs_options *options;
        const char *job, *namespace_;
        long rank;
        sd_event *loop;
        struct kube_client *client;
        struct pod_log *pods;
        size_t pod_count;
        bool ended;    /* the job has */
        bool looked;   /* since: no pod can come any more */
        unsigned bad;  /* looks in a row that failed */
        int exit_code; /* of the worst that happened */
        sd_event_source *timer;
};

static bool wanted(const struct follower *f, const char *line)
{
        char prefix[32];

        (void) text_format(prefix, sizeof(prefix), "[%ld] ", f->rank);
        return f->rank == JOBS_RANK_ALL || text_starts_with(line, prefix);
}

static void end_line(struct pod_log *pod)
{
        if (wanted(pod->f, pod->line.data == NULL ? "" : pod->line.data))
                (void) printf("%s\n", pod->line.data == NULL ? "" : pod->line.data);
        text_reset(&pod->line);
}

static bool on_chunk(void *userdata, const char *bytes, size_t size)
{
        struct pod_log *pod = userdata;
        const char *end;

        pod->began = true;
        while ((end = memchr(bytes, '\n', size)) != NULL) {
                text_append_bytes(&pod->line, bytes, (size_t) (end - bytes));
                end_line(pod);
                size -= (size_t) (end - bytes) + 1;
                bytes = end + 1;
        }
        text_append_bytes(&pod->line, bytes, size);
        return fflush(stdout) == 0;
}

static void stop_if_done(struct follower *f)
{
        bool running = false;

        for (const struct pod_log *pod = f->pods; pod != NULL; pod = pod->next)
                running = running || pod->running;
        if (!running && (!f->options->follow || (f->ended && f->looked)))
                (void) sd_event_exit(f->loop, 0);
}

static void on_log(void *userdata, const struct http_call_result *result)
{
        struct pod_log *pod = userdata;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));

        pod->running = false;
        if (pod->line.size_bytes > 0)
                end_line(pod);
        /* a container that is being made has no log yet; a stream that broke is taken up from its beginning
         * only if nothing of it was shown */
        pod->done = r == 0 || pod->began || !pod->f->options->follow || r == -ENOENT;
        if (r < 0 && r != -ECANCELED && pod->done && (!pod->f->options->follow || r == -EPERM)) {
                (void) fprintf(stderr, "remuda jobs logs: pod '%s': %s\n", pod->name, sentence);
                pod->f->exit_code = exit_code_of(r);
        }
        stop_if_done(pod->f);
}

static void start_log(struct follower *f, struct pod_log *pod)
{
        char path[700];
        struct kube_request request = {
                .method = "GET", .path = path, .chunk = on_chunk, .done = on_log, .userdata = pod
        };

        (void) text_format(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/log%s", f->namespace_,
                           pod->name, f->options->follow ? "?follow=true" : "");
        pod->running = kube_call_start(f->client, &request, NULL) == 0;
        pod->done = !pod->running;
}

static void add_pod(struct follower *f, const char *name)
{
        struct pod_log *pod;

        for (pod = f->pods; pod != NULL; pod = pod->next)
                if (strcmp(pod->name, name) == 0)
                        return;
        if (!kube_name_is_safe(name) || f->pod_count >= PODS_MAX || (pod = calloc(1, sizeof(*pod))) == NULL)
                return;
        pod->f = f;
        (void) text_copy(pod->name, sizeof(pod->name), name);
        pod->next = f->pods;
        f->pods = pod;
        f->pod_count++;
}

/* The pods that hold the ranks. */
static void add_pods(struct follower *f, const struct job_view *view)
{
        for (size_t i = 0; i < view->rank_count; i++)
                if (f->rank == JOBS_RANK_ALL || (long) view->ranks[i].rank == f->rank)
                        add_pod(f, job_view_word(view->ranks[i].pod));
        for (struct pod_log *pod = f->pods; pod != NULL; pod = pod->next)
                if (!pod->running && !pod->done)
                        start_log(f, pod);
}

static void on_object(void *userdata, const struct http_call_result *result)
{
        struct follower *f = userdata;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object = r == 0 ? json_read(result->body, result->body_bytes, 0, NULL) : NULL;
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        struct job_view *view = job_view_list_add(&views);

        f->bad = r == 0 ? 0 : f->bad + 1;
        if (r == -ENOENT || f->bad > 30) { /* deleted, or nobody answers for half a minute */
                (void) fprintf(stderr, "remuda jobs logs: job '%s': %s\n", f->job, sentence);
                f->exit_code = exit_code_of(r);
                (void) sd_event_exit(f->loop, 0);
        } else {
                if (view != NULL && object != NULL) {
                        job_view_read_object(object, view, 0);
                        f->ended = job_view_ended(view);
                        add_pods(f, view);
                }
                f->looked = f->ended;
                for (struct pod_log *pod = f->pods; f->ended && pod != NULL; pod = pod->next)
                        pod->done = pod->done || !pod->running;
                stop_if_done(f);
                loop_rearm(f->timer, LOOK_USEC);
        }
        json_decref(object);
}

static void look(void *userdata)
{
        struct follower *f = userdata;
        char path[300];
        struct kube_request request = {
                .method = "GET", .path = path, .timeout_usec = CALL_USEC, .done = on_object, .userdata = f
        };

        (void) text_format(path, sizeof(path), OBJECT_FORMAT, f->namespace_, f->job);
        if (kube_call_start(f->client, &request, NULL) < 0)
                loop_rearm(f->timer, LOOK_USEC);
}

static void follower_free(struct follower *f)
{
        kube_client_free(f->client);
        sd_event_source_disable_unref(f->timer);
        sd_event_unref(f->loop);
        for (struct pod_log *pod = f->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                text_free(&pod->line);
                free(pod);
        }
}

int jobs_pod_logs(const struct jobs_options *options, const struct job_view *view, long rank)
{
        struct follower f = { .options = options,
                              .job = job_view_word(view->job),
                              .namespace_ = job_view_word(view->namespace_),
                              .rank = rank };
        struct err err = { 0 };
        int r = loop_new(&f.loop, &err);

        if (r == 0)
                r = kube_client_new(f.loop, options->kubeconfig, &f.client, &err);
        if (r == 0 && loop_timer(f.loop, look, &f, &f.timer) < 0)
                r = err_set(&err, -ENOMEM, "no memory");
        if (r < 0) {
                follower_free(&f);
                return jobs_refuse("logs", r, &err);
        }
        add_pods(&f, view);
        if (options->follow)
                look(&f);
        stop_if_done(&f);
        (void) sd_event_loop(f.loop);
        if (fflush(stdout) != 0)
                f.exit_code = EXIT_FAILED;
        follower_free(&f);
        return f.exit_code;
}
