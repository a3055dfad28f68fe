/* Lanes to the extender, and what goes over them. */
#include "scheduler-extender/commands/ui_forward.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "base/version.h"
#include "cli/command/exchange.h"
#include "cli/command/leading.h"
#include "cli/command/table.h"
#include "io/clock.h"
#include "io/http/http_client.h"
#include "store/kubernetes/kube.h"
#include "store/kubernetes/kube_reach.h"
#include "store/kubernetes/port_forward.h"

#define LANES            4 /* of requests at a time */
#define STREAM           LANES
#define OPEN_USEC        UINT64_C(10000000)
#define ANSWER_USEC      UINT64_C(30000000)
#define ANSWER_MAX_BYTES ((size_t) 256 << 20)
#define EVENT_MAX_BYTES  ((size_t) 16 << 20)
#define KEPT_SEC         86400 /* a connection: the other side ends it sooner */
#define QUEUE_MAX        512

struct lane {
        struct ui_forward *all;
        struct port_forward *forward;
        struct http_client *client; /* NULL = it is not open */
        unsigned calls;
        bool broken; /* to be closed once nobody uses it */
};

struct asked {
        struct ui_forward *all;
        struct asked *next;
        struct lane *lane;
        struct http_pending *pending;
        const char *content_type;
        bool again; /* a connection that had stood still was found broken: tried once more */
        char *body; /* NULL = GET; owned */
        size_t body_bytes;
        char *path; /* with its query; owned */
};

struct ui_forward {
        sd_event *loop;
        struct ui_forward_options options;
        struct kube_client *kube;
        struct lane lanes[LANES + 1]; /* the last for events */
        struct asked *queue, **queue_end;
        size_t queued;
        struct page_changes *changes;
        struct text events; /* that are not whole yet */
        bool live;          /* the extender has greeted us: what changes there comes */
        bool closing;
};

static void close_lane(struct lane *lane)
{
        http_client_free(TAKE(lane->client));
        port_forward_close(TAKE(lane->forward));
        lane->broken = false;
}

/* The pod that leads may be another by now. */
static int open_forward(struct ui_forward *f, struct lane *lane, char url[128], char *name, struct err *err)
{
        struct exchange e = { .loop = sd_event_ref(f->loop) };
        struct leading leading = { .port = 0 };
        int r = leading_find(&e, f->kube, f->options.namespace_, &leading, err);

        exchange_end(&e);
        if (r == 0)
                r = port_forward_open(
                        f->loop, f->kube,
                        &(struct port_forward_target){ f->options.namespace_, leading.pod, leading.port },
                        OPEN_USEC, &lane->forward, name, err);
        if (r == 0)
                (void) text_format(url, 128, "http://127.0.0.1:%u", leading.port);
        return r;
}

static int open_lane(struct ui_forward *f, struct lane *lane, struct err *err)
{
        char url[128], name[PORT_FORWARD_NAME_BYTES] = "";
        struct http_client_options options = { .base_url = url,
                                               .connections_max = 1,
                                               .idle_max_sec = KEPT_SEC,
                                               .user_agent = "remuda/" REMUDA_VERSION " (linux)" };
        int r = 0;

        lane->all = f;
        if (f->options.address != NULL)
                (void) text_format(url, sizeof(url), "http://%.100s", f->options.address);
        else
                r = open_forward(f, lane, url, name, err);
        if (name[0] != '\0')
                options.unix_socket = name;
        if (r == 0)
                r = http_client_new(f->loop, &options, &lane->client, err);
        if (r < 0)
                close_lane(lane);
        return r;
}

static void free_asked(struct asked *a)
{
        free(a->path);
        free(a->body);
        free(a);
}

static void enqueue(struct ui_forward *f, struct asked *a)
{
        a->next = NULL;
        *f->queue_end = a;
        f->queue_end = &a->next;
        f->queued++;
}

static struct asked *dequeue(struct ui_forward *f)
{
        struct asked *a = f->queue;

        if (a == NULL)
                return NULL;
        f->queue = a->next;
        if (f->queue == NULL)
                f->queue_end = &f->queue;
        f->queued--;
        return a;
}

static void fail(struct asked *a, const char *why)
{
        struct http_reply reply = { .status = 0 };

        http_reply_error(&reply, 503, "the extender: %s", why);
        reply.retry_after_sec = 2;
        http_resume(a->pending, &reply);
        free_asked(a);
}

static void on_answer(void *userdata, const struct http_call_result *result)
{
        struct asked *a = userdata;
        struct ui_forward *f = a->all;
        struct http_reply reply = { .status = result->status, .content_type = a->content_type };

        a->lane->calls--;
        a->lane->broken = a->lane->broken || result->error < 0;
        if (result->error < 0 && result->status == 0 && !a->again && !f->closing) {
                a->again = true;
                enqueue(f, a);
                return;
        }
        reply.body = result->error == 0 ? malloc(result->body_bytes + 1) : NULL;
        if (reply.body == NULL) {
                fail(a, result->error < 0 ? result->sentence : "no memory for its answer");
                return;
        }
        memcpy(reply.body, result->body, result->body_bytes);
        reply.body_bytes = result->body_bytes;
        if (reply.status != 200)
                reply.content_type = NULL;
        http_resume(a->pending, &reply);
        free_asked(a);
}

static void start(struct lane *lane, struct asked *a)
{
        const struct http_call_options call = { .method = a->body != NULL ? "POST" : "GET",
                                                .path = a->path,
                                                .content_type = "application/yaml",
                                                .body = a->body,
                                                .body_bytes = a->body_bytes,
                                                .timeout_usec = ANSWER_USEC,
                                                .reply_max_bytes = ANSWER_MAX_BYTES,
                                                .done = on_answer,
                                                .userdata = a };

        a->lane = lane;
        lane->calls++;
        if (http_call_start(lane->client, &call, NULL) == 0)
                return;
        lane->calls--;
        fail(a, "no memory for the question");
}

/* One that is idle, else one that is not open yet, else the one with the fewest to wait for. */
static struct lane *choose_lane(struct ui_forward *f)
{
        struct lane *best = NULL;

        for (size_t i = 0; i < LANES; i++) {
                struct lane *lane = &f->lanes[i];

                if (lane->broken)
                        continue;
                if (lane->client != NULL && lane->calls == 0)
                        return lane;
                if (best == NULL ||
                    (best->client != NULL && (lane->client == NULL || lane->calls < best->calls)))
                        best = lane;
        }
        return best;
}

static void serve(struct ui_forward *f, struct asked *a)
{
        struct lane *lane = choose_lane(f);
        struct err err = { 0 };

        if (lane == NULL) {
                fail(a, "its connections have broken");
                return;
        }
        if (lane->client == NULL && open_lane(f, lane, &err) < 0) {
                table_clean(err.msg);
                fail(a, err.msg);
                return;
        }
        start(lane, a);
}

/* Whole events alone are passed on: who comes in between begins with one. */
static bool on_events(void *userdata, const char *bytes, size_t size_bytes)
{
        struct ui_forward *f = ((struct lane *) userdata)->all;
        size_t whole;

        text_append_bytes(&f->events, bytes, size_bytes);
        if (f->events.failed || f->events.size_bytes > EVENT_MAX_BYTES)
                return false;
        whole = f->events.size_bytes;
        while (whole > 1 && !(f->events.data[whole - 1] == '\n' && f->events.data[whole - 2] == '\n'))
                whole--;
        if (whole <= 1)
                return true;
        f->live = true;
        page_changes_pass(f->changes, f->events.data, whole);
        memmove(f->events.data, f->events.data + whole, f->events.size_bytes - whole);
        f->events.size_bytes -= whole;
        return page_changes_viewers(f->changes) > 0;
}

/* Viewers are told by the end of theirs, and ask again. */
static void on_events_end(void *userdata, const struct http_call_result *result)
{
        struct lane *lane = userdata;

        (void) result;
        lane->calls--;
        lane->broken = true;
        lane->all->live = false;
        text_free(&lane->all->events);
        page_changes_end(lane->all->changes);
}

static void serve_viewers(struct ui_forward *f)
{
        struct lane *lane = &f->lanes[STREAM];
        const struct http_call_options call = { .method = "GET",
                                                .path = "/v1/changes",
                                                .accept = "text/event-stream",
                                                .chunk = on_events,
                                                .done = on_events_end,
                                                .userdata = lane };
        struct err err = { 0 };

        if (lane->calls > 0 || page_changes_viewers(f->changes) == 0)
                return;
        close_lane(lane); /* it may have broken while another one was opened */
        if (open_lane(f, lane, &err) < 0) {
                page_changes_end(f->changes);
                return;
        }
        lane->calls++;
        if (http_call_start(lane->client, &call, NULL) < 0) {
                lane->calls--;
                lane->broken = true;
                page_changes_end(f->changes);
        }
}

void ui_forward_work(struct ui_forward *f)
{
        for (size_t i = 0; i <= STREAM; i++)
                if (f->lanes[i].broken && f->lanes[i].calls == 0)
                        close_lane(&f->lanes[i]);
        for (struct asked *a; (a = dequeue(f)) != NULL;)
                serve(f, a);
        serve_viewers(f);
}

/* Of queries /v1/node alone has one. NULL without memory. */
static char *path_of(const struct http_request *request)
{
        const char *name = http_request_query(request, "name");
        struct text path = { 0 };

        text_append(&path, request->path);
        if (name != NULL) {
                text_append(&path, "?name=");
                text_append_escaped(&path, name, "");
        }
        return text_take(&path, NULL);
}

void ui_forward_request(struct ui_forward *f, const struct http_request *request, const char *content_type,
                        struct http_reply *reply)
{
        bool posts = strcmp(request->method, "POST") == 0;
        struct asked *a = f->queued < QUEUE_MAX ? calloc(1, sizeof(*a)) : NULL;

        if (a != NULL && posts && (a->body = malloc(request->body_bytes + 1)) != NULL) {
                memcpy(a->body, request->body, request->body_bytes);
                a->body_bytes = request->body_bytes;
        }
        if (a == NULL || (posts && a->body == NULL) || (a->path = path_of(request)) == NULL ||
            (a->pending = http_suspend(request)) == NULL) {
                http_reply_error(reply, 503, "no memory for the question");
                if (a != NULL)
                        free_asked(a);
                return;
        }
        a->all = f;
        a->content_type = content_type;
        enqueue(f, a);
}

/* Who comes before the extender's own greeting is greeted by that: till then he would miss changes. */
void ui_forward_changes(struct ui_forward *f, struct http_reply *reply)
{
        char at[TIMESTAMP_BYTES], hello[64];

        (void) timestamp_format(clock_realtime_usec() / 1000000 * 1000000, at);
        (void) text_format(hello, sizeof(hello), "{\"at\":\"%s\"}", at);
        page_changes_open(f->changes, f->live ? hello : NULL, reply);
}

int ui_forward_new(sd_event *loop, const struct ui_forward_options *options, struct ui_forward **ret,
                   struct err *err)
{
        struct ui_forward *f = calloc(1, sizeof(*f));
        int r = 0;

        if (f == NULL || (f->changes = page_changes_new(loop)) == NULL) {
                free(f);
                return err_set(err, -ENOMEM, "no memory");
        }
        f->loop = sd_event_ref(loop);
        f->options = *options;
        f->queue_end = &f->queue;
        if (options->address == NULL) {
                if (!kube_name_is_safe(options->namespace_))
                        r = err_set(err, -EINVAL, "--extender-namespace: '%.100s' is no name",
                                    options->namespace_);
                if (r == 0)
                        r = kube_reach(options->kubeconfig, err);
                if (r == 0)
                        r = kube_client_new(loop, options->kubeconfig, &f->kube, err);
        }
        if (r == 0)
                r = open_lane(f, &f->lanes[0], err);
        if (r < 0) {
                ui_forward_free(f);
                return r;
        }
        *ret = f;
        return 0;
}

void ui_forward_free(struct ui_forward *f)
{
        if (f == NULL)
                return;
        f->closing = true;
        page_changes_end(f->changes);
        for (size_t i = 0; i <= STREAM; i++)
                close_lane(&f->lanes[i]); /* what is asked is answered */
        for (struct asked *a; (a = dequeue(f)) != NULL;)
                fail(a, "this server ends");
        page_changes_free(f->changes);
        kube_client_free(f->kube);
        text_free(&f->events);
        sd_event_unref(f->loop);
        free(f);
}
