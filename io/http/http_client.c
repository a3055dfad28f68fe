/* libcurl asks for descriptors and timers, the loop has them; answers are given from the loop alone. */
#include "io/http/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/http/http_client_internal.h"
#include "io/http/http_handle.h"
#include "io/loop.h"

#define CONNECTIONS_DEFAULT  80
#define IDLE_MAX_DEFAULT_SEC 10
#define IDLE_ALONE_SEC       118L /* libcurl's own */
#define REPLY_MAX_DEFAULT    ((size_t) 256 << 20)

struct http_call {
        struct http_client *client;
        struct http_call *previous, *next; /* in client->calls */
        CURL *easy;
        struct curl_slist *headers;
        char *body;
        bool (*may_send)(void *userdata);
        void (*began)(void *userdata, unsigned status);
        bool (*chunk)(void *userdata, const char *bytes, size_t size_bytes);
        void (*done)(void *userdata, const struct http_call_result *result);
        void *userdata;
        struct text reply;
        bool withheld, stopped, too_large;
        bool late;      /* not given to curl yet: it was started from within one of curl's own callbacks */
        bool unwatched; /* nobody would hear of its socket */
        char problem[CURL_ERROR_SIZE];
};

static void finish_calls(struct http_client *client);

static int on_socket(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct http_client *client = userdata;
        int bits = 0, running;

        (void) source;
        bits |= (events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0;
        bits |= (events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0;
        bits |= (events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0;
        (void) curl_multi_socket_action(client->multi, fd, bits, &running);
        finish_calls(client);
        return 0;
}

static int on_timer(sd_event_source *source, uint64_t due_usec, void *userdata)
{
        struct http_client *client = userdata;
        int running;

        (void) source;
        (void) due_usec;
        (void) curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        finish_calls(client);
        return 0;
}

/* A call whose socket cannot be watched ends. Not by an error from here: curl would give up every call of the
 * client then, say so of none, and stumble over what is left of them (7.88). */
static int give_up(struct http_client *client, CURL *easy, int r)
{
        struct http_call *call = NULL;

        (void) curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **) &call);
        if (call == NULL)
                return 0;
        call->unwatched = true;
        (void) text_format(call->problem, sizeof(call->problem), "its socket cannot be watched: %s",
                           strerrordesc_np(-r));
        return sd_event_source_set_enabled(client->adding, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *of_socket)
{
        struct http_client *client = userdata;
        sd_event_source *source = of_socket;
        uint32_t events = 0;
        int r;

        if (what == CURL_POLL_REMOVE) {
                sd_event_source_disable_unref(source);
                (void) curl_multi_assign(client->multi, fd, NULL);
                return 0;
        }
        events |= (what & CURL_POLL_IN) != 0 ? EPOLLIN : 0;
        events |= (what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0;
        if (source != NULL)
                r = sd_event_source_set_io_events(source, events);
        else
                r = sd_event_add_io(client->loop, &source, fd, events, on_socket, client);
        if (r < 0)
                return give_up(client, easy, r);
        (void) curl_multi_assign(client->multi, fd, source);
        return 0;
}

static int set_timer(CURLM *multi, long delay_msec, void *userdata)
{
        struct http_client *client = userdata;

        (void) multi;
        if (delay_msec < 0)
                return sd_event_source_set_enabled(client->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
        if (sd_event_source_set_time_relative(client->timer, (uint64_t) delay_msec * 1000) < 0)
                return -1;
        return sd_event_source_set_enabled(client->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

static void call_free(struct http_call *call)
{
        struct http_client *client = call->client;

        if (call->previous != NULL)
                call->previous->next = call->next;
        else if (client->calls == call)
                client->calls = call->next;
        if (call->next != NULL)
                call->next->previous = call->previous;
        if (call->easy != NULL) {
                (void) curl_multi_remove_handle(client->multi, call->easy);
                curl_easy_cleanup(call->easy);
        }
        curl_slist_free_all(call->headers);
        free(call->body);
        text_free(&call->reply);
        free(call);
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *userdata)
{
        struct http_call *call = userdata;
        long status = 0;

        (void) curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        if (call->chunk != NULL && status == 200) {
                if (call->chunk(call->userdata, bytes, size * count))
                        return size * count;
                call->stopped = true;
                return 0;
        }
        text_append_bytes(&call->reply, bytes, size * count);
        if (!call->reply.failed)
                return size * count;
        call->too_large = true;
        return 0;
}

/* The empty line ends a head; that of an interim reply (1xx) is not the one. */
static size_t on_header(const char *bytes, size_t size, size_t count, void *userdata)
{
        struct http_call *call = userdata;
        long status = 0;

        (void) curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        if (size * count == 2 && bytes[0] == '\r' && status >= 200)
                call->began(call->userdata, (unsigned) status);
        return size * count;
}

/* libcurl says which parameters it has. NOLINTNEXTLINE(readability-non-const-parameter) */
static int on_sending(void *userdata, char *to, char *from, int to_port, int from_port)
{
        struct http_call *call = userdata;

        (void) to;
        (void) from;
        (void) to_port;
        (void) from_port;
        call->withheld = !call->may_send(call->userdata);
        return call->withheld ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static int error_of(const struct http_call *call, CURLcode code)
{
        if (call->withheld)
                return -EPERM;
        if (call->stopped)
                return -ECANCELED;
        if (call->too_large)
                return -E2BIG;
        return http_handle_error(code);
}

static void finish(struct http_call *call, CURLcode code)
{
        struct http_call_result result = { .error = error_of(call, code) };
        curl_off_t retry_after = 0;
        long status = 0;

        (void) curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        (void) curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &retry_after);
        result.status = (unsigned) status;
        result.retry_after_sec = retry_after > 0 && retry_after < 86400 ? (unsigned) retry_after : 0;
        if (result.error != 0)
                (void) text_format(result.sentence, sizeof(result.sentence), "%s",
                                   call->too_large            ? "the reply is too long"
                                   : call->problem[0] != '\0' ? call->problem
                                                              : curl_easy_strerror(code));
        result.body = call->reply.data != NULL ? call->reply.data : "";
        result.body_bytes = call->reply.size_bytes;
        call->done(call->userdata, &result);
        call_free(call);
}

static void finish_calls(struct http_client *client)
{
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(client->multi, &left)) != NULL) {
                struct http_call *call = NULL;

                if (message->msg != CURLMSG_DONE)
                        continue;
                (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &call);
                finish(call, message->data.result);
        }
}

/* Those that were started while curl was handing over bytes of another: it takes new ones only afterwards;
 * and those that are given up. */
static int on_adding(sd_event_source *source, void *userdata)
{
        struct http_client *client = userdata;

        (void) source;
        for (struct http_call *call = client->calls, *next; call != NULL; call = next) {
                CURLcode code = call->unwatched ? CURLE_ABORTED_BY_CALLBACK : CURLE_OK;

                next = call->next;
                if (call->late && curl_multi_add_handle(client->multi, call->easy) != CURLM_OK)
                        code = CURLE_OUT_OF_MEMORY;
                call->late = false;
                if (code != CURLE_OK) {
                        finish(call, code);
                        next = client->calls; /* who is told may end others */
                }
        }
        return 0;
}

static bool add_header(struct http_call *call, const char *name, const char *value)
{
        struct text line = { 0 };
        struct curl_slist *longer;

        if (value == NULL)
                return true;
        text_printf(&line, "%s: %s", name, value);
        if (line.failed)
                return false;
        longer = curl_slist_append(call->headers, line.data);
        text_free(&line);
        if (longer == NULL)
                return false;
        call->headers = longer;
        return true;
}

/* A burst leaves as many connections as it had calls at once, each with its TLS in memory. libcurl takes the
 * one that was made first, so that those beyond what the calls of now need are idle, and looks at their age
 * when the next call begins. A client that asks often has used one a moment ago and may lose all others. One
 * that asks seldom, as an agent's sign of life, would lose its last and pay a handshake for every call, and
 * the server one for every agent: there the long limit holds, and takes a burst's connections, too, if
 * later. */
static long idle_max_sec(struct http_client *client)
{
        uint64_t now = loop_now_usec(client->loop), before = client->asked_usec;

        client->asked_usec = now;
        return now - before < client->idle_max_sec * UINT64_C(1000000) ? (long) client->idle_max_sec
                                                                       : IDLE_ALONE_SEC;
}

static bool set_request(struct http_call *call, const struct http_call_options *o)
{
        struct text url = { 0 };

        text_printf(&url, "%s%s", call->client->base_url, o->path);
        if (url.failed)
                return false;
        (void) curl_easy_setopt(call->easy, CURLOPT_URL, url.data);
        text_free(&url);
        if (o->body != NULL) {
                call->body = malloc(o->body_bytes + 1);
                if (call->body == NULL)
                        return false;
                memcpy(call->body, o->body, o->body_bytes);
                (void) curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) o->body_bytes);
                (void) curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->body);
        }
        (void) curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, o->method);
        (void) curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, (long) (o->timeout_usec / 1000));
        (void) curl_easy_setopt(call->easy, CURLOPT_MAXAGE_CONN, idle_max_sec(call->client));
        (void) curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, on_bytes);
        (void) curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
        (void) curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
        if (o->began != NULL) {
                (void) curl_easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, on_header);
                (void) curl_easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
        }
        if (o->may_send != NULL) {
                (void) curl_easy_setopt(call->easy, CURLOPT_PREREQFUNCTION, on_sending);
                (void) curl_easy_setopt(call->easy, CURLOPT_PREREQDATA, call);
        }
        (void) curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->problem);
        if (!add_header(call, "Accept", o->accept != NULL ? o->accept : "application/json") ||
            !add_header(call, "Authorization", o->authorization) ||
            !add_header(call, "Content-Type", o->body != NULL ? o->content_type : NULL) ||
            !add_header(call, "Expect", o->body != NULL ? "" : NULL)) /* no 100-continue round trip */
                return false;
        (void) curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
        return true;
}

int http_call_start(struct http_client *client, const struct http_call_options *options,
                    struct http_call **ret_call)
{
        CURLMcode added;
        struct http_call *call = calloc(1, sizeof(*call));

        if (call == NULL)
                return -ENOMEM;
        call->client = client;
        call->may_send = options->may_send;
        call->began = options->began;
        call->chunk = options->chunk;
        call->done = options->done;
        call->userdata = options->userdata;
        call->reply.max_bytes = options->reply_max_bytes != 0 ? options->reply_max_bytes : REPLY_MAX_DEFAULT;
        call->next = client->calls;
        if (call->next != NULL)
                call->next->previous = call;
        client->calls = call;
        call->easy = curl_easy_init();
        if (call->easy == NULL || !set_request(call, options)) {
                call_free(call);
                return -ENOMEM;
        }
        http_handle_set(client, call->easy);
        added = curl_multi_add_handle(client->multi, call->easy);
        call->late = added == CURLM_RECURSIVE_API_CALL;
        if (call->late)
                added = sd_event_source_set_enabled(client->adding, SD_EVENT_ONESHOT) < 0
                                ? CURLM_OUT_OF_MEMORY
                                : CURLM_OK;
        if (added != CURLM_OK) {
                call_free(call);
                return -EINVAL;
        }
        if (ret_call != NULL)
                *ret_call = call;
        return 0;
}

void http_call_cancel(struct http_call *call)
{
        if (call != NULL)
                call_free(call);
}

static bool keep(char **field, const char *value)
{
        if (value == NULL)
                return true;
        *field = strdup(value);
        return *field != NULL;
}

/* Text becomes a file without a name: libcurl takes text with OpenSSL alone, a path with every library of
 * TLS, and the image's libcurl has GnuTLS (packaging/build-curl). */
static bool keep_pem(char **path, int *fd, const char *pem)
{
        if (pem == NULL)
                return true;
        free(*path);
        *path = NULL;
        *fd = memfd_create("pem", MFD_CLOEXEC);
        if (*fd < 0 || write(*fd, pem, strlen(pem)) != (ssize_t) strlen(pem))
                return false;
        if (asprintf(path, "/proc/self/fd/%d", *fd) < 0)
                *path = NULL;
        return *path != NULL;
}

static bool keep_options(struct http_client *c, const struct http_client_options *o)
{
        c->insecure = o->insecure;
        c->idle_max_sec = o->idle_max_sec != 0 ? o->idle_max_sec : IDLE_MAX_DEFAULT_SEC;
        return keep(&c->base_url, o->base_url) && keep(&c->unix_socket, o->unix_socket) &&
               keep(&c->ca_file, o->ca_file) && keep(&c->certificate_file, o->certificate_file) &&
               keep(&c->key_file, o->key_file) && keep_pem(&c->ca_file, &c->pem[0], o->ca_pem) &&
               keep_pem(&c->certificate_file, &c->pem[1], o->certificate_pem) &&
               keep_pem(&c->key_file, &c->pem[2], o->key_pem) &&
               keep(&c->tls_server_name, o->tls_server_name) && keep(&c->proxy, o->proxy) &&
               keep(&c->user_agent, o->user_agent);
}

/* Verification goes by the URL's host: to expect another name, that name goes into the URL, and the
 * connection to where the original one points. */
static int use_server_name(struct http_client *c, struct err *err)
{
        CURLU *url = curl_url();
        char *host = NULL, *port = NULL, *renamed = NULL;
        struct text to = { 0 };
        int r = -ENOMEM;

        if (url != NULL && curl_url_set(url, CURLUPART_URL, c->base_url, 0) == CURLUE_OK &&
            curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
            curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
            curl_url_set(url, CURLUPART_HOST, c->tls_server_name, 0) == CURLUE_OK &&
            curl_url_get(url, CURLUPART_URL, &renamed, 0) == CURLUE_OK) {
                size_t length = strlen(renamed);

                if (length > 0 && renamed[length - 1] == '/')
                        renamed[length - 1] = '\0';
                text_printf(&to, "%s:%s:%s:%s", c->tls_server_name, port, host, port);
                c->resolve_to = to.failed ? NULL : curl_slist_append(NULL, to.data);
                free(c->base_url);
                c->base_url = strdup(renamed);
                r = c->resolve_to != NULL && c->base_url != NULL ? 0 : -ENOMEM;
        }
        text_free(&to);
        curl_free(host);
        curl_free(port);
        curl_free(renamed);
        curl_url_cleanup(url);
        return r < 0 ? err_set(err, r, "'%s' is no server name for '%s'", c->tls_server_name,
                               c->base_url != NULL ? c->base_url : "")
                     : 0;
}

static int set_up(struct http_client *c, unsigned connections_max, struct err *err)
{
        int r;

        c->multi = curl_multi_init();
        c->share = curl_share_init();
        if (c->multi == NULL || c->share == NULL)
                return err_set(err, -ENOMEM, "no memory for an HTTP client");
        (void) curl_share_setopt(c->share, CURLSHOPT_SHARE,
                                 CURL_LOCK_DATA_SSL_SESSION); /* resumed: cheaper */
        (void) curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
        (void) curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
        (void) curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, set_timer);
        (void) curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
        (void) curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                                 (long) (connections_max != 0 ? connections_max : CONNECTIONS_DEFAULT));
        (void) curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS,
                                 (long) (connections_max != 0 ? connections_max : CONNECTIONS_DEFAULT));
        r = sd_event_add_time(c->loop, &c->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(c->loop, &c->adding, on_adding, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->adding, SD_EVENT_OFF);
        return r < 0 ? err_set(err, r, "attach the HTTP client to the loop: %s", strerror(-r)) : 0;
}

int http_client_new(sd_event *loop, const struct http_client_options *options, struct http_client **ret,
                    struct err *err)
{
        struct http_client *c = calloc(1, sizeof(*c));
        int r = 0;

        if (c == NULL)
                return err_set(err, -ENOMEM, "no memory for an HTTP client");
        *c = (struct http_client){ .loop = sd_event_ref(loop), .pem = { -1, -1, -1 } };
        if (!keep_options(c, options))
                r = err_set(err, -ENOMEM, "no memory or no descriptor for an HTTP client");
        if (r == 0 && c->tls_server_name != NULL)
                r = use_server_name(c, err);
        if (r == 0)
                r = set_up(c, options->connections_max, err);
        if (r < 0) {
                http_client_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

void http_client_free(struct http_client *c)
{
        if (c == NULL)
                return;
        while (c->calls != NULL) {
                struct http_call *call = c->calls;
                struct http_call_result result = { .error = -ECANCELED,
                                                   .sentence = "the client is closing",
                                                   .body = "" };

                call->done(call->userdata, &result);
                call_free(call);
        }
        if (c->multi != NULL)
                (void) curl_multi_cleanup(c->multi);
        if (c->share != NULL)
                (void) curl_share_cleanup(c->share);
        sd_event_source_disable_unref(c->timer);
        sd_event_source_disable_unref(c->adding);
        curl_slist_free_all(c->resolve_to);
        free(c->base_url);
        free(c->unix_socket);
        free(c->ca_file);
        free(c->certificate_file);
        free(c->key_file);
        for (size_t i = 0; i < 3; i++)
                if (c->pem[i] >= 0)
                        (void) close(c->pem[i]);
        free(c->tls_server_name);
        free(c->proxy);
        free(c->user_agent);
        sd_event_unref(c->loop);
        free(c);
}
