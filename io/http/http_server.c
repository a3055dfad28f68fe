/* libmicrohttpd in its external-epoll mode: one descriptor and one timer on the program's loop. What is ours
 * here is what the library leaves to its user: which connection gives way when there are too many, how much
 * memory bodies may take together, and that a refused body is read to its end before the refusal is sent
 * (a client that is still writing would lose the answer to a reset). */
#include "io/http/http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/http/http_body.h"
#include "io/http/http_connections.h"
#include "io/http/http_listen.h"
#include "io/http/http_pages.h"
#include "io/http/http_response.h"
#include "io/http/http_routes.h"
#include "io/http/http_stream.h"
#include "io/http/http_tls.h"
#include "io/loop.h"

#define BODY_MAX_DEFAULT      ((size_t) 64 << 20)
#define DRAIN_MAX             ((size_t) 256 << 20) /* of a refused body; beyond it the connection is just closed */
#define BODY_FIRST_BYTES      ((size_t) 256 << 10) /* allocated on a Content-Length's word alone */
#define BODIES_MIN            ((size_t) 32 << 20) /* what all bodies being read may take together, at least */
#define CONNECTIONS_DEFAULT   4096
#define IDLE_TIMEOUT_DEFAULT  60
#define CONNECTIONS_SLACK     64 /* accepted beyond the maximum, for as long as one is closed */
#define TLS_PRIORITIES        "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" /* as io/tls/tls.c */
#define RUNS_MAX              64
#define IDLE_RUNS_MAX         4u /* in a row, before the next one is put off */
#define LOOK_AFTER            1u /* runs that were put off, and did nothing */
#define IDLE_WAIT_MAX_USEC    UINT64_C(100000)
#define CONNECTION_POOL_BYTES ((size_t) 64 << 10) /* half is read buffer: 130 KB come in five reads */

struct http_server {
        sd_event *loop;
        struct MHD_Daemon *daemon;
        sd_event_source *io, *timer, *more;
        uint64_t timer_due_usec, sweep_usec;
        uint64_t progress;  /* requests begun, pieces of bodies, requests ended, connections: what a run has
                               done */
        unsigned idle_runs; /* in a row that did nothing of that */
        size_t unread;      /* of heads, at the last look */
        struct http_listen listen;
        struct http_tls tls;
        const struct http_route *routes;
        const char *const *headers;
        void *userdata;
        size_t body_max_bytes; /* of one body */
        struct http_body_pool bodies;
        struct http_connections connections;
        struct http_pages pages;
        struct http_exchange *exchanges;
};

struct http_pending {
        struct http_exchange *exchange; /* NULL: the connection is gone */
};

struct http_exchange {
        struct http_server *server;
        struct http_connection *connection;
        const struct http_route *route;
        struct http_body body;
        size_t body_max_bytes, drained_bytes;
        struct http_reply refusal; /* status != 0: the body is read and dropped, then this is the answer */
        struct http_pending *pending;
        struct http_stream *stream;            /* the library's */
        struct MHD_Connection *mhd;            /* set while suspended */
        struct http_reply later;               /* the pending's reply, once it is there */
        bool later_ready, no_later;            /* no_later: there was no memory to suspend it */
        struct http_exchange *previous, *next; /* in server->exchanges */
};

static void wake(void *userdata)
{
        struct http_server *s = userdata;

        s->idle_runs = 0; /* the library does not say that it has this to do: it is run anyway */
        (void) sd_event_source_set_enabled(s->more, SD_EVENT_ONESHOT);
}

static void drop(void *userdata, struct MHD_Connection *mhd)
{
        http_connections_drop(&((struct http_server *) userdata)->connections, http_connections_of(mhd));
}

static enum MHD_Result send_reply(struct http_exchange *x, struct MHD_Connection *mhd,
                                  struct http_reply *reply, const char *allow)
{
        struct http_server *s = x->server;
        size_t size_bytes = reply->body_bytes;
        struct MHD_Response *response;
        enum MHD_Result r;

        if (reply->page != NULL)
                (void) http_pages_bytes(reply->page, &size_bytes);
        x->stream = reply->stream; /* is never too slow, and nobody's victim */
        if (reply->stream != NULL)
                http_stream_attach(reply->stream,
                                   &(struct http_stream_of){ mhd, x->connection->fd, wake, drop, s });
        else
                http_connections_sending(&s->connections, x->connection, size_bytes, loop_now_usec(s->loop));
        response = http_response_new(reply, x->route != NULL ? x->route->headers : s->headers, allow);
        if (response == NULL)
                return (void) (x->stream = NULL), MHD_NO;
        r = MHD_queue_response(mhd, reply->status != 0 ? reply->status : 200, response);
        MHD_destroy_response(response);
        return r;
}

static void exchange_free(struct http_exchange *x)
{
        if (x->previous != NULL)
                x->previous->next = x->next;
        else
                x->server->exchanges = x->next;
        if (x->next != NULL)
                x->next->previous = x->previous;
        if (x->pending != NULL)
                x->pending->exchange = NULL; /* its owner still resumes, and thereby frees, it */
        x->connection->exchange = NULL;
        http_body_drop(&x->body, &x->server->bodies);
        http_reply_drop(&x->refusal);
        http_reply_drop(&x->later);
        free(x);
}

/* Refuses what can be refused before the body is there. */
static void judge_head(struct http_exchange *x, struct MHD_Connection *mhd, const char *method,
                       const char *path)
{
        struct http_server *s = x->server;
        const char *length = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");
        uint64_t content_bytes = 0;
        char methods[64];

        if (http_tls_pem(&s->tls, 2) != NULL &&
            !http_tls_is_known(&s->tls, mhd, x->connection->tls, loop_now_usec(s->loop))) {
                http_reply_error(
                        &x->refusal, 403,
                        "a client certificate signed by the configured CA is required, made for clients%s%s",
                        s->tls.files.client_names != NULL ? ", of one of the names " : "",
                        s->tls.files.client_names != NULL ? s->tls.files.client_names : "");
                x->refusal.close = true; /* what the client has by now is shown by its next one */
                return;
        }
        x->connection->certified = http_tls_pem(&s->tls, 2) != NULL;
        x->route = http_routes_find(s->routes, method, path);
        if (x->route == NULL) {
                http_routes_methods(s->routes, path, methods, sizeof(methods));
                if (methods[0] == '\0')
                        http_reply_error(&x->refusal, 404, "there is nothing at '%.200s'", path);
                else
                        http_reply_error(&x->refusal, 405, "'%.200s' takes %s, not %.20s", path, methods,
                                         method);
                return;
        }
        x->body_max_bytes = x->route->body_max_bytes != 0 ? x->route->body_max_bytes : s->body_max_bytes;
        if (length == NULL)
                return;
        if (text_parse_uint64(length, &content_bytes) < 0)
                http_reply_error(&x->refusal, 400, "the Content-Length is not a number");
        else if (content_bytes > x->body_max_bytes)
                http_reply_error(&x->refusal, 413, "the body has %llu bytes; at most %zu are taken",
                                 (unsigned long long) content_bytes, x->body_max_bytes);
        else if (content_bytes > 0) {
                size_t first = content_bytes < BODY_FIRST_BYTES ? (size_t) content_bytes : BODY_FIRST_BYTES;

                (void) http_body_reserve(&x->body, &s->bodies, first);
        }
}

/* A client that asked first (Expect: 100-continue), or whose body is absurdly long, is answered at once. */
static bool answer_without_body(struct MHD_Connection *mhd)
{
        const char *expect = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Expect");
        const char *length = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");
        uint64_t bytes = 0;

        if (expect != NULL && strcasecmp(expect, "100-continue") == 0)
                return true;
        return length != NULL && (text_parse_uint64(length, &bytes) < 0 || bytes > DRAIN_MAX);
}

static enum MHD_Result begin(struct http_server *s, struct MHD_Connection *mhd, const char *path,
                             const char *method, void **request_context)
{
        struct http_exchange *x = calloc(1, sizeof(*x));

        if (x == NULL)
                return MHD_NO;
        x->server = s;
        x->connection = http_connections_of(mhd);
        x->connection->exchange = x;
        x->next = s->exchanges;
        if (x->next != NULL)
                x->next->previous = x;
        s->exchanges = x;
        *request_context = x;
        http_connections_reading(x->connection, loop_now_usec(s->loop));
        judge_head(x, mhd, method, path);
        if (x->refusal.status != 0 && answer_without_body(mhd))
                return send_reply(x, mhd, &x->refusal, NULL);
        return MHD_YES;
}

/* Return: MHD_NO closes the connection. */
static enum MHD_Result take_body(struct http_exchange *x, const char *bytes, size_t size_bytes)
{
        if (x->refusal.status == 0 && size_bytes > x->body_max_bytes - x->body.size_bytes)
                http_reply_error(&x->refusal, 413, "the body is longer than the %zu bytes that are taken",
                                 x->body_max_bytes);
        if (x->refusal.status == 0 && !http_body_add(&x->body, &x->server->bodies, bytes, size_bytes))
                http_reply_error(&x->refusal, 503, "out of memory");
        if (x->refusal.status != 0) {
                http_body_drop(&x->body, &x->server->bodies);
                x->drained_bytes += size_bytes;
                return x->drained_bytes > DRAIN_MAX ? MHD_NO : MHD_YES;
        }
        x->connection->received_bytes += size_bytes;
        if (x->server->bodies.bytes > x->server->bodies.bytes_max)
                http_connections_shed(&x->server->connections,
                                      x->connection); /* the slowest reader, not this one */
        return MHD_YES;
}

static enum MHD_Result refuse(struct http_exchange *x, struct MHD_Connection *mhd, const char *path)
{
        char methods[64] = "";

        if (x->refusal.status == 405)
                http_routes_methods(x->server->routes, path, methods, sizeof(methods));
        return send_reply(x, mhd, &x->refusal, methods[0] != '\0' ? methods : NULL);
}

/* The body is complete: ask the handler. */
static enum MHD_Result handle(struct http_exchange *x, struct MHD_Connection *mhd, const char *path,
                              const char *method)
{
        struct http_server *s = x->server;
        struct http_reply reply = { 0 };
        struct http_request request = { .method = method,
                                        .path = path,
                                        .body = http_body_finish(&x->body),
                                        .body_bytes = x->body.size_bytes,
                                        .internal = mhd };
        bool refused = x->route->refuses != NULL && x->route->refuses(&request, &reply);

        http_connections_busy(&s->connections, x->connection);
        if (!refused && (!x->route->shared || !http_pages_share(&s->pages, x->route, s->connections.count,
                                                                loop_now_usec(s->loop), &reply)))
                x->route->handler(s->userdata, &request, &reply);
        http_body_drop(&x->body, &s->bodies);
        if (x->route->shared && !refused)
                http_pages_keep(&s->pages, x->route, loop_now_usec(s->loop), &reply);
        if (x->pending != NULL || x->later_ready)
                return MHD_YES; /* suspended: http_resume() brings, or brought, us back to on_request() */
        if (x->no_later && reply.status == 0)
                http_reply_error(&reply, 503, "no memory");
        return send_reply(x, mhd, &reply, NULL);
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *size_bytes, void **request_context)
{
        struct http_exchange *x = *request_context;
        size_t size = *size_bytes;

        (void) version;
        ((struct http_server *) userdata)->progress++;
        if (x == NULL)
                return begin(userdata, mhd, path, method, request_context);
        *size_bytes = 0;
        if (size > 0)
                return take_body(x, bytes, size);
        if (x->refusal.status != 0)
                return refuse(x, mhd, path);
        if (x->later_ready)
                return send_reply(x, mhd, &x->later, NULL);
        if (x->pending != NULL)
                return MHD_YES;
        return handle(x, mhd, path, method);
}

static void on_completed(void *userdata, struct MHD_Connection *mhd, void **request_context,
                         enum MHD_RequestTerminationCode why)
{
        struct http_exchange *x = *request_context;

        (void) mhd;
        ((struct http_server *) userdata)->progress++;
        if (x == NULL)
                return;
        http_connections_idle(&x->server->connections, x->connection,
                              why == MHD_REQUEST_TERMINATED_COMPLETED_OK && x->refusal.status == 0);
        exchange_free(x);
        *request_context = NULL;
}

static void on_connection(void *userdata, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
        struct http_server *s = userdata;
        struct http_connection *c = *context;

        s->progress++;
        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                *context = c = http_connections_add(&s->connections, mhd, loop_now_usec(s->loop));
                if (c != NULL)
                        c->tls = http_tls_begin(&s->tls, mhd, loop_now_usec(s->loop));
        } else if (c != NULL) {
                http_tls_end(c->tls);
                http_connections_remove(&s->connections, TAKE(*context));
        }
}

struct http_pending *http_suspend(const struct http_request *request)
{
        struct http_connection *c = http_connections_of(request->internal);
        struct http_pending *pending = calloc(1, sizeof(*pending));

        if (pending == NULL)
                return (void) (c->exchange->no_later = true), NULL;
        pending->exchange = c->exchange;
        c->exchange->pending = pending;
        c->exchange->mhd = request->internal;
        MHD_suspend_connection(c->exchange->mhd);
        return pending;
}

void http_resume(struct http_pending *pending, struct http_reply *reply)
{
        struct http_exchange *x = pending == NULL ? NULL : pending->exchange;

        free(pending);
        if (x == NULL) {
                http_reply_drop(reply);
                return;
        }
        x->pending = NULL;
        x->later = *reply;
        x->later_ready = true;
        MHD_resume_connection(x->mhd);
        wake(x->server);
}

/* One run of the library reads and answers a piece of what is there; as long as it says that it has more to
 * do it is run again, but others on the loop get their turn. While a TLS handshake waits for its client the
 * library says so without end (0.9.75): runs that change nothing are put off, longer each time. News still
 * come at once, by epoll. */
static void run(struct http_server *s)
{
        MHD_UNSIGNED_LONG_LONG wait_msec = 0;

        for (int i = 0; i < RUNS_MAX && s->idle_runs < IDLE_RUNS_MAX; i++) {
                uint64_t before = s->progress;

                (void) MHD_run(s->daemon);
                s->idle_runs = s->progress != before ? 0 : s->idle_runs + 1;
                if (MHD_get_timeout(s->daemon, &wait_msec) != MHD_YES || wait_msec > 0)
                        return;
        }
}

static uint64_t put_off_usec(const struct http_server *s)
{
        unsigned excess = s->idle_runs - IDLE_RUNS_MAX;

        return excess > 6 ? IDLE_WAIT_MAX_USEC : UINT64_C(1000) << excess;
}

static int on_ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct http_server *s = userdata;

        (void) source;
        (void) fd;
        (void) events;
        s->idle_runs = 0;
        run(s);
        return 0;
}

static int on_more(sd_event_source *source, void *userdata)
{
        (void) source;
        run(userdata);
        return 0;
}

/* A long head is read in pieces that are no request yet: where fewer of its bytes are left than at the last
 * look, runs are not idle. All connections are looked at, so only once a wait has come to nothing. */
static bool reads_a_head(struct http_server *s)
{
        size_t before = s->unread;

        if (s->idle_runs < IDLE_RUNS_MAX + LOOK_AFTER)
                return false;
        s->unread = http_connections_unread(&s->connections);
        if (s->unread >= before)
                return false;
        s->idle_runs = 0;
        return true;
}

static int on_timeout(sd_event_source *source, uint64_t due_usec, void *userdata)
{
        struct http_server *s = userdata;

        (void) source;
        (void) due_usec;
        s->timer_due_usec = UINT64_MAX;
        if (s->idle_runs < IDLE_RUNS_MAX || reads_a_head(s))
                run(s);
        else {
                s->idle_runs++;
                (void) MHD_run(s->daemon);
        }
        http_connections_sweep(&s->connections, loop_now_usec(s->loop));
        return 0;
}

/* Before every wait: when does the library, or the sweep of slow readers, want to be called at the latest? A
 * later wish than the one armed is met by waking once too often, which spares a system call a request. */
static int on_prepare(sd_event_source *source, void *userdata)
{
        struct http_server *s = userdata;
        MHD_UNSIGNED_LONG_LONG wait_msec = 0;
        uint64_t now = loop_now_usec(s->loop), due = UINT64_MAX;

        (void) source;
        if (MHD_get_timeout(s->daemon, &wait_msec) == MHD_YES)
                due = now + (uint64_t) wait_msec * 1000;
        if (due == now && s->idle_runs < IDLE_RUNS_MAX)
                return sd_event_source_set_enabled(s->more, SD_EVENT_ONESHOT);
        if (due == now)
                due = now + put_off_usec(s);
        if (s->connections.count > 0 && due > now + s->sweep_usec)
                due = now + s->sweep_usec;
        if (due >= s->timer_due_usec || due == UINT64_MAX)
                return 0;
        s->timer_due_usec = due;
        (void) sd_event_source_set_time(s->timer, due);
        return sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static int attach(struct http_server *s, struct err *err)
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        int r;

        if (info == NULL)
                return err_set(err, -ENOTSUP, "the HTTP library has no epoll descriptor");
        r = sd_event_add_io(s->loop, &s->io, info->epoll_fd, EPOLLIN, on_ready, s);
        if (r >= 0)
                r = sd_event_source_set_prepare(s->io, on_prepare);
        if (r >= 0)
                r = sd_event_add_time(s->loop, &s->timer, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_timeout, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(s->loop, &s->more, on_more, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->more, SD_EVENT_OFF);
        if (r >= 0) /* re-armed in every round: at equal priority it would win over all that wait */
                r = sd_event_source_set_priority(s->more, SD_EVENT_PRIORITY_NORMAL + 1);
        s->timer_due_usec = UINT64_MAX;
        return r < 0 ? err_set(err, r, "attach the HTTP server to the loop: %s", strerror(-r)) : 0;
}

static int start(struct http_server *s, struct err *err)
{
        unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
        static const enum MHD_OPTION pem[] = { MHD_OPTION_HTTPS_MEM_CERT, MHD_OPTION_HTTPS_MEM_KEY,
                                               MHD_OPTION_HTTPS_MEM_TRUST };
        struct MHD_OptionItem options[12];
        size_t n = 0;

        options[n++] = (struct MHD_OptionItem){ MHD_OPTION_LISTEN_SOCKET, s->listen.fd, NULL };
        options[n++] = (struct MHD_OptionItem){ MHD_OPTION_CONNECTION_LIMIT,
                                                (intptr_t) s->connections.max + CONNECTIONS_SLACK, NULL };
        options[n++] = (struct MHD_OptionItem){ MHD_OPTION_CONNECTION_TIMEOUT,
                                                (intptr_t) s->connections.idle_timeout_sec, NULL };
        options[n++] = (struct MHD_OptionItem){ MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                                (intptr_t) CONNECTION_POOL_BYTES, NULL };
        options[n++] = (struct MHD_OptionItem){ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t) on_connection, s };
        options[n++] = (struct MHD_OptionItem){ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t) on_completed, s };
        for (size_t i = 0; i < HTTP_TLS_FILES && http_tls_pem(&s->tls, i) != NULL; i++)
                options[n++] = (struct MHD_OptionItem){ pem[i], 0, (void *) http_tls_pem(&s->tls, i) };
        if (http_tls_pem(&s->tls, 0) != NULL) {
                flags |= MHD_USE_TLS;
                options[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_PRIORITIES };
        }
        options[n] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
        s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_ARRAY, options,
                                     MHD_OPTION_END);
        if (s->daemon == NULL)
                return err_set(err, -EIO, "start the HTTP server on '%s'%s", s->listen.address,
                               flags & MHD_USE_TLS ? ": do the certificate and its key belong together?"
                                                   : "");
        return 0;
}

static void configure(struct http_server *s, const struct http_server_options *o)
{
        s->routes = o->routes;
        s->headers = o->headers;
        s->userdata = o->userdata;
        s->body_max_bytes = o->body_max_bytes != 0 ? o->body_max_bytes : BODY_MAX_DEFAULT;
        s->bodies.bytes_max = 4 * s->body_max_bytes > BODIES_MIN ? 4 * s->body_max_bytes : BODIES_MIN;
        s->connections.idle_timeout_sec =
                o->idle_timeout_sec != 0 ? o->idle_timeout_sec : IDLE_TIMEOUT_DEFAULT;
        s->sweep_usec = 1000000;
        s->connections.max =
                http_listen_descriptors((o->connections_max != 0 ? o->connections_max : CONNECTIONS_DEFAULT) +
                                        CONNECTIONS_SLACK) -
                CONNECTIONS_SLACK;
        s->connections.max_per_address = o->connections_max_per_address;
}

int http_server_new(sd_event *loop, const struct http_server_options *options, struct http_server **ret,
                    struct err *err)
{
        struct http_server *s = calloc(1, sizeof(*s));
        int r;

        if (s == NULL)
                return err_set(err, -ENOMEM, "no memory for an HTTP server");
        s->listen.fd = -1;
        s->loop = sd_event_ref(loop);
        configure(s, options);
        r = http_tls_open(&s->tls, &options->tls, err);
        if (r == 0)
                r = http_listen_open(options->address, options->unix_mode,
                                     options->loopback_only && options->tls.names[2] == NULL,
                                     options->unix_take_over, &s->listen, err);
        if (r == 0)
                r = start(s, err);
        if (r == 0)
                r = attach(s, err);
        if (r < 0) {
                http_server_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

void http_server_free(struct http_server *s)
{
        if (s == NULL)
                return;
        for (struct http_exchange *x = s->exchanges; x != NULL; x = x->next) {
                struct http_pending *pending = TAKE(x->pending);

                http_stream_stop(x->stream); /* the library refuses to stop with suspended ones */
                if (pending == NULL)
                        continue;
                pending->exchange = NULL;
                MHD_resume_connection(x->mhd);
        }
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->timer);
        sd_event_source_disable_unref(s->more);
        if (s->daemon != NULL)
                MHD_stop_daemon(s->daemon); /* closes the listening socket too */
        else if (s->listen.fd >= 0)
                (void) close(s->listen.fd);
        http_listen_remove(&s->listen);
        http_pages_free(&s->pages);
        http_body_pool_free(&s->bodies);
        http_tls_close(&s->tls);
        sd_event_unref(s->loop);
        free(s);
}

const char *http_server_address(const struct http_server *s)
{
        return s->listen.address;
}

bool http_server_is_reachable(const struct http_server *s)
{
        return http_listen_is_there(&s->listen);
}

void http_server_metrics(const struct http_server *s, const char *expiry, const char *reloads,
                         struct text *page)
{
        http_tls_metrics(&s->tls, expiry, reloads, page);
}
