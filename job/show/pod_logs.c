/* A stream for each pod that holds the ranks asked for, and now and then a question for the job, which says
 * whether there are new ones and whether it has ended.
 *
 * A stream ends with its container, or with a connection, an API server or a kubelet, and the two cannot be
 * told apart. So a followed pod is asked for the time of each line, and asked again from that of the last one
 * (log_resume.h). Nothing new, and an end like any other, is the end. */
#include "job/show/pod_logs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "job/show/log_resume.h"

#define PODS_MAX      4096
#define BAD_USEC      (30 * UINT64_C(1000000)) /* so long nobody has answered: it is given up */
#define AT_ONCE_USEC  (5 * UINT64_C(1000000))
#define CALL_USEC     (10 * UINT64_C(1000000))
#define OBJECT_FORMAT "/apis/remuda.dev/v1alpha1/namespaces/%s/trainingjobs/%s"

struct pod_log {
        struct pod_logs *logs;
        struct pod_log *next;
        char name[254];
        struct text line;
        struct log_resume resume;
        struct kube_call *call; /* NULL = it does not run */
        bool began, done;
        bool named;          /* by the job's status, when it was last asked for */
        bool heard, news;    /* since it was asked last: anything; a line that was not read before */
        unsigned ends;       /* of a silent one */
        uint64_t asked_usec; /* last */
        uint64_t broke_usec; /* since when it cannot be read; 0 = it can */
};

struct pod_logs {
        struct pod_logs_options options;
        char job[254], namespace_[254];
        struct kube_client *client;
        struct kube_call *looking;
        struct pod_log *pods;
        size_t pod_count;
        bool ended;             /* the job has */
        bool over;              /* done() was called, or is about to be */
        uint64_t answered_usec; /* when the job was last told of, or was asked for first */
        int error;              /* what done() is told */
        char sentence[300];
        sd_event_source *timer, *end;
};

static bool wanted(const struct pod_logs *l, const char *line)
{
        char prefix[32];

        (void) text_format(prefix, sizeof(prefix), "[%ld] ", l->options.rank);
        return l->options.rank == POD_LOGS_ALL || text_starts_with(line, prefix);
}

static void end_line(struct pod_log *pod)
{
        const char *line = pod->line.data == NULL ? "" : pod->line.data;

        if (pod->logs->options.follow)
                line = log_resume_line(&pod->resume, line);
        pod->news = pod->news || line != NULL;
        if (line != NULL && wanted(pod->logs, line))
                pod->logs->options.line(pod->logs->options.userdata, line);
        text_reset(&pod->line);
}

static void add_to_line(struct pod_log *pod, const char *bytes, size_t size)
{
        size_t room = POD_LOGS_LINE_BYTES - pod->line.size_bytes;

        text_append_bytes(&pod->line, bytes, size < room ? size : room);
}

static bool on_chunk(void *userdata, const char *bytes, size_t size)
{
        struct pod_log *pod = userdata;
        const char *end;

        pod->began = pod->heard = true;
        while ((end = memchr(bytes, '\n', size)) != NULL) {
                add_to_line(pod, bytes, (size_t) (end - bytes));
                end_line(pod);
                size -= (size_t) (end - bytes) + 1;
                bytes = end + 1;
        }
        add_to_line(pod, bytes, size);
        return true;
}

static void on_end(void *userdata)
{
        struct pod_logs *l = userdata;

        l->options.done(l->options.userdata, l->error, l->sentence);
}

/* Said by a timer, so that it comes from no call of somebody else. */
static void finish(struct pod_logs *l, int error, const char *sentence)
{
        if (l->over)
                return;
        l->over = true;
        l->error = error;
        (void) text_copy(l->sentence, sizeof(l->sentence), sentence);
        loop_rest(l->timer);
        loop_rearm(l->end, 0);
}

static void finish_if_done(struct pod_logs *l)
{
        bool running = false;

        for (const struct pod_log *pod = l->pods; pod != NULL; pod = pod->next)
                running = running || pod->call != NULL || (pod->broke_usec > 0 && !pod->done);
        if (!running && (!l->options.follow || l->ended))
                finish(l, 0, "");
}

/* What a stream that nothing follows had begun to say is a line, too. */
static void finish_log(struct pod_log *pod)
{
        if (pod->line.size_bytes > 0)
                end_line(pod);
        pod->done = true;
}

/* Is it the end of a followed one? Of a container that has ended there is nothing new, and at once. Without a
 * time nobody knows where to go on. */
static bool has_ended(struct pod_log *pod, int r)
{
        uint64_t now = clock_monotonic_usec();
        bool at_once = now - pod->asked_usec < AT_ONCE_USEC;

        if (pod->began && pod->resume.last[0] == '\0')
                return true;
        if (r == 0) {
                pod->broke_usec = 0;
                return pod->logs->ended ||
                       (!pod->news && at_once && (pod->resume.last[0] != '\0' || pod->ends++ > 0));
        }
        if (pod->began && (pod->broke_usec == 0 || pod->news || (pod->heard && !at_once)))
                pod->broke_usec = now;
        return r == -EPERM || r == -EACCES || (r == -ENOENT && pod->began) ||
               (pod->broke_usec > 0 && now - pod->broke_usec > BAD_USEC);
}

static void on_log(void *userdata, const struct http_call_result *result)
{
        struct pod_log *pod = userdata;
        const struct pod_logs_options *o = &pod->logs->options;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));

        pod->call = NULL;
        if (!o->follow || has_ended(pod, r))
                finish_log(pod);
        /* a pod that was read and is deleted has ended */
        if (r < 0 && r != -ECANCELED && pod->done && !(o->follow && pod->began && r == -ENOENT))
                o->refused(o->userdata, pod->name, o->follow && pod->began ? 0 : r, sentence);
        finish_if_done(pod->logs);
}

static void start_log(struct pod_logs *l, struct pod_log *pod)
{
        CLEANUP(text_free) struct text path = { 0 };
        struct kube_request request = { .method = "GET", .chunk = on_chunk, .done = on_log, .userdata = pod };

        text_printf(&path, "/api/v1/namespaces/%s/pods/%s/log?%s", l->namespace_, pod->name,
                    l->options.follow ? "follow=true&timestamps=true" : "follow=false");
        if (pod->resume.last[0] != '\0') {
                text_append(&path, "&sinceTime=");
                log_resume_since(&pod->resume, &path);
        } else if (l->options.tail_lines > 0)
                text_printf(&path, "&tailLines=%u", l->options.tail_lines);
        log_resume_begin(&pod->resume);
        pod->heard = pod->news = false;
        pod->asked_usec = clock_monotonic_usec();
        text_reset(&pod->line); /* it comes again, whole */
        request.path = path.data;
        pod->done = path.failed || kube_call_start(l->client, &request, &pod->call) < 0;
}

static void add_pod(struct pod_logs *l, const char *name)
{
        struct pod_log *pod;

        for (pod = l->pods; pod != NULL; pod = pod->next)
                if (strcmp(pod->name, name) == 0) {
                        pod->named = true;
                        return;
                }
        if (!kube_name_is_safe(name) || l->pod_count >= PODS_MAX || (pod = calloc(1, sizeof(*pod))) == NULL)
                return;
        pod->logs = l;
        pod->named = true;
        (void) text_copy(pod->name, sizeof(pod->name), name);
        pod->next = l->pods;
        l->pods = pod;
        l->pod_count++;
}

/* Another pod has its ranks. */
static void give_up_gone(struct pod_log *pod)
{
        const struct pod_logs_options *o = &pod->logs->options;

        finish_log(pod);
        if (pod->broke_usec > 0)
                o->refused(o->userdata, pod->name, 0, "it is not the job's any more");
}

/* The pods that hold the ranks. */
static void add_pods(struct pod_logs *l, const struct job_view *view)
{
        for (struct pod_log *pod = l->pods; pod != NULL; pod = pod->next)
                pod->named = false;
        for (size_t i = 0; i < view->rank_count; i++)
                if (l->options.rank == POD_LOGS_ALL || (long) view->ranks[i].rank == l->options.rank)
                        add_pod(l, job_view_word(view->ranks[i].pod));
        for (struct pod_log *pod = l->pods; pod != NULL; pod = pod->next) {
                if (pod->call != NULL || pod->done)
                        continue;
                if (pod->named)
                        start_log(l, pod);
                else if (pod->began)
                        give_up_gone(pod);
        }
}

static void read_object(struct pod_logs *l, const json_t *object)
{
        CLEANUP(job_view_list_free) struct job_view_list views = { 0 };
        struct job_view *view = job_view_list_add(&views);

        if (view == NULL || object == NULL)
                return;
        job_view_read_object(object, view, 0);
        l->ended = job_view_ended(view);
        add_pods(l, view);
        for (struct pod_log *pod = l->pods; l->ended && pod != NULL; pod = pod->next)
                if (!pod->done && pod->call == NULL)
                        finish_log(pod); /* no pod can come any more */
}

static void on_object(void *userdata, const struct http_call_result *result)
{
        struct pod_logs *l = userdata;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object = r == 0 ? json_read(result->body, result->body_bytes, 0, NULL) : NULL;

        l->looking = NULL;
        if (r == 0)
                l->answered_usec = clock_monotonic_usec();
        /* deleted; who asks may not read it; or nobody answers */
        if (r == -ENOENT || r == -EPERM || r == -EACCES ||
            clock_monotonic_usec() - l->answered_usec > BAD_USEC) {
                finish(l, r, sentence);
        } else {
                read_object(l, object);
                loop_rearm(l->timer, l->options.look_usec);
                finish_if_done(l);
        }
        json_decref(object);
}

static void look(void *userdata)
{
        struct pod_logs *l = userdata;
        char path[700];
        struct kube_request request = {
                .method = "GET", .path = path, .timeout_usec = CALL_USEC, .done = on_object, .userdata = l
        };

        (void) text_format(path, sizeof(path), OBJECT_FORMAT, l->namespace_, l->job);
        if (kube_call_start(l->client, &request, &l->looking) < 0)
                loop_rearm(l->timer, l->options.look_usec);
}

int pod_logs_start(sd_event *loop, struct kube_client *client, const struct pod_logs_options *options,
                   struct pod_logs **ret)
{
        struct pod_logs *l = calloc(1, sizeof(*l));

        if (l == NULL || loop_timer(loop, look, l, &l->timer) < 0 ||
            loop_timer(loop, on_end, l, &l->end) < 0 || !text_copy(l->job, sizeof(l->job), options->job) ||
            !text_copy(l->namespace_, sizeof(l->namespace_), options->namespace_)) {
                pod_logs_free(l);
                return -ENOMEM;
        }
        l->client = client;
        l->answered_usec = clock_monotonic_usec();
        l->options = *options;
        if (options->view != NULL)
                add_pods(l, options->view);
        l->options.view = NULL;
        if (options->follow)
                look(l);
        finish_if_done(l);
        *ret = l;
        return 0;
}

const char *pod_logs_refusal(int error)
{
        return error < 0 ? "is not read" : "has broken off";
}

void pod_logs_free(struct pod_logs *l)
{
        if (l == NULL)
                return;
        kube_call_cancel(l->looking);
        sd_event_source_disable_unref(l->timer);
        sd_event_source_disable_unref(l->end);
        for (struct pod_log *pod = l->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                kube_call_cancel(pod->call);
                text_free(&pod->line);
                free(pod);
        }
        free(l);
}
