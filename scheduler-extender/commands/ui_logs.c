/* For each viewer a reader of one rank's log and a queue of lines, which a timer empties: nothing is sent,
 * and nothing freed, from within a reader's own call. */
#include "scheduler-extender/commands/ui_logs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_writer.h"
#include "base/object_name.h"
#include "base/text.h"
#include "io/http/http_pages.h"
#include "io/http/http_stream.h"
#include "io/loop.h"
#include "job/show/folder_logs.h"
#include "job/show/jobs.h"
#include "job/show/pod_logs.h"

#define SEND_USEC        UINT64_C(200000) /* between two events */
#define READ_USEC        UINT64_C(250000) /* between two looks at files */
#define READ_MAX_BYTES   (UINT64_C(1) << 20)
#define LOOK_USEC        UINT64_C(3000000)  /* between two questions for the job */
#define ALIVE_USEC       UINT64_C(10000000) /* a comment, which shows who has gone */
#define QUEUE_MAX_BYTES  ((size_t) 1 << 20)
#define UNSENT_MAX_BYTES ((size_t) 4 << 20)
#define TAIL_BYTES       (UINT64_C(1) << 18) /* of a file */
#define TAIL_LINES       (10 * UI_LOGS_KEPT) /* of a pod, in which other ranks have their part */
#define RANK_MAX         1000000
#define RETRY_SECONDS    10

struct viewer {
        struct ui_logs *all;
        struct viewer *previous, *next;
        struct http_stream *stream;
        struct pod_logs *pods; /* one of both */
        struct folder_logs *files;
        char job[254]; /* of files */
        sd_event_source *send, *read;
        char *lines[UI_LOGS_KEPT]; /* a ring */
        size_t first, count, bytes;
        uint64_t skipped; /* since the last event */
        size_t prefix_bytes;
        bool over;
        char end[400]; /* what is said at the end */
};

struct ui_logs {
        sd_event *loop;
        const char *kubeconfig, *directory;
        struct kube_client *client; /* NULL = not needed yet */
        struct viewer *viewers;
        size_t count;
        sd_event_source *alive;
};

static void drop_oldest(struct viewer *v)
{
        v->bytes -= strlen(v->lines[v->first]);
        free(TAKE(v->lines[v->first]));
        v->first = (v->first + 1) % UI_LOGS_KEPT;
        v->count--;
}

static void add_line(struct viewer *v, const char *line)
{
        size_t size = strnlen(line, UI_LOGS_LINE_BYTES);
        char *copy;

        while (v->count > 0 && (v->count == UI_LOGS_KEPT || v->bytes + size > QUEUE_MAX_BYTES)) {
                drop_oldest(v);
                v->skipped++;
        }
        copy = strndup(line, size);
        if (copy == NULL) {
                v->skipped++;
                return;
        }
        v->lines[(v->first + v->count++) % UI_LOGS_KEPT] = copy;
        v->bytes += size;
        if (!loop_is_armed(v->send))
                loop_rearm(v->send, SEND_USEC);
}

static bool send_text(struct viewer *v, struct text *event)
{
        size_t bytes;
        char *taken = text_take(event, &bytes);
        struct http_pages_page *piece = taken == NULL ? NULL : http_pages_new(taken, bytes, NULL);
        bool goes_on = piece != NULL && http_stream_send(v->stream, piece);

        http_pages_unref(piece);
        return goes_on;
}

static void write_lines(struct viewer *v, struct text *event)
{
        struct json_writer w = { .text = event, .compact = true };

        text_append(event, "event: lines\ndata: ");
        json_writer_open(&w, NULL, '{');
        if (v->skipped > 0)
                json_writer_uint64(&w, "skipped", v->skipped);
        json_writer_open(&w, "lines", '[');
        while (v->count > 0) {
                json_writer_string(&w, NULL, v->lines[v->first]);
                drop_oldest(v);
        }
        json_writer_close(&w, ']');
        json_writer_close(&w, '}');
        text_append(event, "\n\n");
        v->skipped = 0;
}

static void write_end(const struct viewer *v, struct text *event)
{
        struct json_writer w = { .text = event, .compact = true };

        text_append(event, "event: end\ndata: ");
        json_writer_open(&w, NULL, '{');
        json_writer_string(&w, "message", v->end);
        json_writer_close(&w, '}');
        text_append(event, "\n\n");
}

/* The stream may free its viewer as it is stopped. */
static void on_send(void *userdata)
{
        struct viewer *v = userdata;
        struct text event = { 0 };
        bool over = v->over;

        if (v->count > 0 || v->skipped > 0)
                write_lines(v, &event);
        if (over)
                write_end(v, &event);
        if ((event.size_bytes > 0 && !send_text(v, &event)) || over)
                http_stream_stop(v->stream);
        text_free(&event);
}

static void finish(struct viewer *v, const char *sentence)
{
        v->over = true;
        (void) text_copy(v->end, sizeof(v->end), sentence);
        loop_rearm(v->send, 0);
}

static void on_pod_line(void *userdata, const char *line)
{
        struct viewer *v = userdata;

        add_line(v, line + v->prefix_bytes);
}

static void on_pod_refused(void *userdata, const char *pod, int error, const char *sentence)
{
        char line[700];

        (void) text_format(line, sizeof(line), "remuda ui: the log of pod '%s' %s: %s", pod,
                           pod_logs_refusal(error), sentence);
        add_line(userdata, line);
}

static void on_pods_done(void *userdata, int error, const char *sentence)
{
        char says[400];

        (void) text_format(says, sizeof(says), "the job cannot be followed: %.300s", sentence);
        finish(userdata, error < 0 ? says : "the job has ended");
}

static void on_read(void *userdata)
{
        struct viewer *v = userdata;
        bool running = false; /* asked before the look, so that the last look is after its end */

        if (v->over || jobs_folder_running(v->all->directory, v->job, &running) < 0)
                running = false;
        if (folder_logs_read(v->files, READ_MAX_BYTES) || running) {
                loop_rearm(v->read, READ_USEC);
                return;
        }
        folder_logs_finish(v->files);
        finish(v, "the job has ended");
}

static void on_file_line(void *userdata, size_t rank, const char *line)
{
        (void) rank;
        add_line(userdata, line);
}

static void free_viewer(struct viewer *v)
{
        pod_logs_free(v->pods);
        folder_logs_free(v->files);
        sd_event_source_disable_unref(v->send);
        sd_event_source_disable_unref(v->read);
        while (v->count > 0)
                drop_oldest(v);
        free(v);
}

static void on_closed(void *userdata)
{
        struct viewer *v = userdata;

        if (v->previous != NULL)
                v->previous->next = v->next;
        else
                v->all->viewers = v->next;
        if (v->next != NULL)
                v->next->previous = v->previous;
        v->all->count--;
        free_viewer(v);
}

static struct viewer *add_viewer(struct ui_logs *logs)
{
        struct viewer *v = calloc(1, sizeof(*v));

        if (v == NULL)
                return NULL;
        v->all = logs;
        v->next = logs->viewers;
        if (loop_timer(logs->loop, on_send, v, &v->send) < 0 ||
            loop_timer(logs->loop, on_read, v, &v->read) < 0 ||
            (v->stream = http_stream_new(UNSENT_MAX_BYTES, on_closed, v)) == NULL) {
                free_viewer(v);
                return NULL;
        }
        if (v->next != NULL)
                v->next->previous = v;
        logs->viewers = v;
        logs->count++;
        return v;
}

/* A comment to all shows who has gone, and frees his place. Return: those who are there. */
static size_t count_alive(struct ui_logs *logs)
{
        size_t alive = 0;

        for (struct viewer *v = logs->viewers, *next; v != NULL; v = next) {
                struct text comment = { 0 };

                next = v->next;
                text_append(&comment, ":\n\n");
                alive += send_text(v, &comment);
        }
        return alive;
}

static void on_alive(void *userdata)
{
        (void) count_alive(userdata);
}

static int open_files(struct viewer *v, const char *namespace_, const char *job, long rank)
{
        char folder[PATH_MAX], says[400];

        if (!jobs_folder_of_object(v->all->directory, namespace_, job, folder)) {
                (void) text_format(says, sizeof(says),
                                   "no folder of `remuda run` is beside the job in this store: a saved "
                                   "cluster has no logs");
                finish(v, says);
                return 0;
        }
        v->files = folder_logs_new(folder, 0, rank, TAIL_BYTES, on_file_line, v);
        if (v->files == NULL)
                return -ENOMEM;
        (void) text_copy(v->job, sizeof(v->job), job);
        loop_rearm(v->read, 0);
        return 0;
}

static int open_pods(struct viewer *v, const char *namespace_, const char *job, long rank, struct err *err)
{
        struct ui_logs *logs = v->all;
        char prefix[32];
        const struct pod_logs_options options = { .namespace_ = namespace_,
                                                  .job = job,
                                                  .rank = rank,
                                                  .follow = true,
                                                  .tail_lines = TAIL_LINES,
                                                  .look_usec = LOOK_USEC,
                                                  .line = on_pod_line,
                                                  .refused = on_pod_refused,
                                                  .done = on_pods_done,
                                                  .userdata = v };
        int r = logs->client != NULL ? 0 : kube_client_new(logs->loop, logs->kubeconfig, &logs->client, err);

        if (r < 0)
                return r;
        (void) text_format(prefix, sizeof(prefix), "[%ld] ", rank);
        v->prefix_bytes = strlen(prefix);
        r = pod_logs_start(logs->loop, logs->client, &options, &v->pods);
        return r < 0 ? err_set(err, r, "no memory") : 0;
}

/* "NAMESPACE/NAME". Return: is it the name of a job, and are both parts copied? */
static bool split_name(const char *whole, char namespace_[254], char name[254])
{
        const char *slash = strchr(whole, '/');

        return slash != NULL && text_format(namespace_, 254, "%.*s", (int) (slash - whole), whole) &&
               text_copy(name, 254, slash + 1) && object_name_label_valid(namespace_) &&
               object_name_label_valid(name);
}

void ui_logs_get(struct ui_logs *logs, const struct http_request *request, struct http_reply *reply)
{
        const char *job = http_request_query(request, "job"), *rank = http_request_query(request, "rank");
        char namespace_[254], name[254];
        struct err err = { 0 };
        struct viewer *v;
        uint64_t number = 0;
        int r;

        if (job == NULL || !split_name(job, namespace_, name) || rank == NULL ||
            text_parse_uint64(rank, &number) < 0 || number > RANK_MAX) {
                http_reply_error(reply, 400, "logs: write ?job=NAMESPACE/NAME&rank=N");
                return;
        }
        if (logs->count >= UI_LOGS_VIEWERS_MAX && count_alive(logs) >= UI_LOGS_VIEWERS_MAX) {
                http_reply_error(reply, 503, "%d logs are followed already: close one of them",
                                 UI_LOGS_VIEWERS_MAX);
                reply->retry_after_sec = RETRY_SECONDS;
                return;
        }
        v = add_viewer(logs);
        if (v == NULL) {
                http_reply_error(reply, 503, "no memory");
                return;
        }
        r = logs->directory != NULL ? open_files(v, namespace_, name, (long) number)
                                    : open_pods(v, namespace_, name, (long) number, &err);
        if (r < 0) {
                http_reply_error(reply, 503, "%s", r == -ENOMEM ? "no memory" : err.msg);
                http_stream_free(v->stream);
                return;
        }
        *reply = (struct http_reply){ .content_type = "text/event-stream", .stream = v->stream };
}

struct ui_logs *ui_logs_new(sd_event *loop, const char *kubeconfig, const char *directory)
{
        struct ui_logs *logs = calloc(1, sizeof(*logs));

        if (logs == NULL || loop_every(loop, ALIVE_USEC, ALIVE_USEC, on_alive, logs, &logs->alive) < 0) {
                free(logs);
                return NULL;
        }
        logs->loop = loop;
        logs->kubeconfig = kubeconfig;
        logs->directory = directory;
        return logs;
}

void ui_logs_free(struct ui_logs *logs)
{
        struct viewer *next;

        if (logs == NULL)
                return;
        for (struct viewer *v = logs->viewers; v != NULL; v = next) {
                next = v->next;
                http_stream_forget(v->stream);
                free_viewer(v);
        }
        kube_client_free(logs->client);
        sd_event_source_disable_unref(logs->alive);
        free(logs);
}
