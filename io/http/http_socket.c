/* libcurl connects (proxies, TLS, keys), then it carries bytes: a request for an upgrade, and frames. */
#include "io/http/http_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/http/http_client_internal.h"
#include "io/http/http_handle.h"
#include "io/http/websocket.h"

#define HEAD_MAX_BYTES ((size_t) 32 << 10)
#define READ_BYTES     ((size_t) 32 << 10)
#define OUT_MAX_BYTES  (2 * HTTP_SOCKET_MESSAGE_MAX_BYTES) /* who pings and never reads gets no more pongs */
#define TURN_READS     4                                   /* then others of the loop have their turn */

struct http_socket {
        CURL *easy;
        sd_event_source *source;
        struct text in, message, out; /* not read yet; in parts so far; not sent yet */
        void (*on_message)(void *userdata, const char *bytes, size_t size_bytes);
        void (*drained)(void *userdata);
        void (*ended)(void *userdata, const char *sentence);
        void *userdata;
        bool held, over;
        bool due; /* what has come already is looked at without a new event */
};

/* Where to, and for which host: the client's URL may have a path of its own before that of the request. */
static bool put_request(const struct http_client *client, const struct http_socket_options *o,
                        struct text *ret)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *host = strstr(client->base_url, "://"), *path;
        char key[22] = "";

        host = host == NULL ? client->base_url : host + 3;
        path = host + strcspn(host, "/");
        if (getrandom(key, sizeof(key) - 1, 0) != sizeof(key) - 1)
                return false;
        for (size_t i = 0; i < sizeof(key) - 1; i++)
                key[i] = letters[(uint8_t) key[i] % 64];
        /* the last letter before == has two bits of the sixteen bytes: A is one of four that may stand there
         */
        text_printf(ret,
                    "GET %s%s HTTP/1.1\r\nHost: %.*s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %sA==\r\nSec-WebSocket-Protocol: %s\r\n"
                    "User-Agent: %s\r\n",
                    path, o->path, (int) (path - host), host, key, o->protocol,
                    client->user_agent != NULL ? client->user_agent : "remuda");
        if (o->authorization != NULL)
                text_printf(ret, "Authorization: %s\r\n", o->authorization);
        text_append(ret, "\r\n");
        return !ret->failed;
}

static int refuse(struct http_socket_refusal *refusal, int error, const char *sentence)
{
        refusal->result.error = error;
        (void) text_copy(refusal->result.sentence, sizeof(refusal->result.sentence), sentence);
        return error;
}

static int connect_to(struct http_socket *s, struct http_client *client, uint64_t timeout_usec,
                      struct http_socket_refusal *refusal)
{
        char problem[CURL_ERROR_SIZE] = "";
        CURLcode code;

        s->easy = curl_easy_init();
        if (s->easy == NULL)
                return refuse(refusal, -ENOMEM, "no memory for a connection");
        http_handle_set(client, s->easy);
        (void) curl_easy_setopt(s->easy, CURLOPT_URL, client->base_url);
        (void) curl_easy_setopt(s->easy, CURLOPT_CONNECT_ONLY, 1L);
        (void) curl_easy_setopt(s->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
        (void) curl_easy_setopt(s->easy, CURLOPT_TIMEOUT_MS, (long) (timeout_usec / 1000));
        (void) curl_easy_setopt(s->easy, CURLOPT_ERRORBUFFER, problem);
        code = curl_easy_perform(s->easy);
        (void) curl_easy_setopt(s->easy, CURLOPT_ERRORBUFFER, NULL);
        if (code == CURLE_OK)
                return 0;
        return refuse(refusal, http_handle_error(code),
                      problem[0] != '\0' ? problem : curl_easy_strerror(code));
}

static curl_socket_t socket_of(const struct http_socket *s)
{
        curl_socket_t fd = CURL_SOCKET_BAD;

        (void) curl_easy_getinfo(s->easy, CURLINFO_ACTIVESOCKET, &fd);
        return fd;
}

/* Until the descriptor may be read or written, or the time is over. */
static bool wait_for(const struct http_socket *s, short events, uint64_t end_usec)
{
        struct pollfd one = { .fd = socket_of(s), .events = events };
        uint64_t now = clock_monotonic_usec();

        return now < end_usec && poll(&one, 1, (int) ((end_usec - now + 999) / 1000)) > 0;
}

/* Return: 1 = there may be more, 0 = not now, -EPIPE = it is over, -ENOMEM. */
static int receive(struct http_socket *s)
{
        char bytes[READ_BYTES];
        size_t n = 0;
        CURLcode code = curl_easy_recv(s->easy, bytes, sizeof(bytes), &n);

        if (code == CURLE_AGAIN)
                return 0;
        if (code != CURLE_OK || n == 0)
                return -EPIPE;
        text_append_bytes(&s->in, bytes, n);
        return s->in.failed ? -ENOMEM : 1;
}

/* Return: 0 = all has left, 1 = not yet, -EPIPE. */
static int flush(struct http_socket *s)
{
        size_t sent = 0;
        CURLcode code = CURLE_OK;

        while (sent < s->out.size_bytes && code == CURLE_OK) {
                size_t n = 0;

                code = curl_easy_send(s->easy, s->out.data + sent, s->out.size_bytes - sent, &n);
                sent += n;
        }
        if (sent == s->out.size_bytes) {
                text_reset(&s->out);
                return 0;
        }
        memmove(s->out.data, s->out.data + sent, s->out.size_bytes - sent);
        s->out.size_bytes -= sent;
        return code == CURLE_AGAIN ? 1 : -EPIPE;
}

static void drop_read(struct http_socket *s, size_t bytes)
{
        memmove(s->in.data, s->in.data + bytes, s->in.size_bytes - bytes + 1);
        s->in.size_bytes -= bytes;
}

/* What the server says instead: its object between the first brace and the last, however it was sent. */
static int tell_refusal(struct http_socket *s, unsigned status, uint64_t end_usec,
                        struct http_socket_refusal *refusal)
{
        const char *begin, *end;

        while (s->in.size_bytes < HTTP_SOCKET_REFUSAL_BYTES) {
                int r = receive(s);

                begin = s->in.size_bytes > 0 ? strchr(s->in.data, '{') : NULL;
                end = begin != NULL ? strrchr(begin, '}') : NULL;
                if (r < 0 || (r == 0 && (end != NULL || !wait_for(s, POLLIN, end_usec))))
                        break;
        }
        begin = s->in.size_bytes > 0 ? strchr(s->in.data, '{') : NULL;
        end = begin != NULL ? strrchr(begin, '}') : NULL;
        if (end != NULL && (size_t) (end - begin) + 2 <= sizeof(refusal->bytes)) {
                memcpy(refusal->bytes, begin, (size_t) (end - begin) + 1);
                refusal->result.body_bytes = (size_t) (end - begin) + 1;
        }
        refusal->result.status = status;
        return -EPROTO;
}

/* The reply's head: 101 and the protocol that was asked for. (That the server has read the key is asked of
 * those who might be something else: here TLS says who it is.) */
static int judge_head(struct http_socket *s, const char *protocol, uint64_t end_usec,
                      struct http_socket_refusal *refusal)
{
        char *end = strstr(s->in.data, "\r\n\r\n");
        CLEANUP(free_p) char *head = strndup(s->in.data, (size_t) (end - s->in.data));
        CLEANUP(text_free) struct text line = { 0 };
        unsigned status = 0;

        if (head == NULL)
                return refuse(refusal, -ENOMEM, "no memory");
        if (strncmp(head, "HTTP/1.", 7) == 0 && head[7] != '\0' && head[8] == ' ')
                status = (unsigned) strtoul(head + 9, NULL, 10);
        drop_read(s, (size_t) (end - s->in.data) + 4);
        if (status >= 200 && status < 600)
                return tell_refusal(s, status, end_usec, refusal);
        text_printf(&line, "\r\nSec-WebSocket-Protocol: %s", protocol);
        if (status != 101 || line.failed || strcasestr(head, line.data) == NULL)
                return refuse(refusal, -EPROTO, "the server opens no such WebSocket");
        return 0;
}

static int upgrade(struct http_socket *s, const struct http_client *client,
                   const struct http_socket_options *o, uint64_t end_usec,
                   struct http_socket_refusal *refusal)
{
        int r;

        if (!put_request(client, o, &s->out))
                return refuse(refusal, -ENOMEM, "no memory for a request");
        while ((r = flush(s)) > 0 && wait_for(s, POLLOUT, end_usec))
                ;
        while (r == 0 && (s->in.size_bytes == 0 || strstr(s->in.data, "\r\n\r\n") == NULL)) {
                r = receive(s);
                if (r == 0 && !wait_for(s, POLLIN, end_usec))
                        r = -ETIMEDOUT;
                else if (r > 0 && s->in.size_bytes > HEAD_MAX_BYTES)
                        r = -EPROTO;
                r = r > 0 ? 0 : r;
        }
        if (r > 0 || r == -ETIMEDOUT)
                return refuse(refusal, -ETIMEDOUT, "the server opens no WebSocket in time");
        if (r < 0)
                return refuse(refusal, r, "the server ends the connection");
        return judge_head(s, o->protocol, end_usec, refusal);
}

static void end(struct http_socket *s, const char *sentence)
{
        if (s->over)
                return;
        s->over = true;
        (void) sd_event_source_set_enabled(s->source, SD_EVENT_OFF);
        s->ended(s->userdata, sentence);
}

static void rearm(struct http_socket *s)
{
        uint32_t events = (s->held ? 0u : EPOLLIN) | (s->out.size_bytes > 0 || s->due ? EPOLLOUT : 0u);

        if (!s->over && sd_event_source_set_io_events(s->source, events) < 0)
                end(s, "its socket cannot be watched");
}

static void send_out(struct http_socket *s)
{
        bool unsent = s->out.size_bytes > 0;
        int r = s->over || s->out.failed ? -EPIPE : flush(s);

        if (r < 0)
                end(s, "the connection broke while it was written to");
        else if (r == 0 && unsent)
                s->drained(s->userdata);
}

static int put_frame(struct http_socket *s, enum websocket_kind kind, const void *bytes, size_t size_bytes)
{
        uint8_t mask[4];

        if (s->over || getrandom(mask, sizeof(mask), 0) != sizeof(mask))
                return -EPIPE;
        websocket_write(&s->out, kind, mask, bytes, size_bytes);
        return s->out.failed ? -ENOMEM : 0;
}

static void take_frame(struct http_socket *s, const struct websocket_frame *frame)
{
        switch (frame->kind) {
        case WEBSOCKET_PING:
                (void) put_frame(s, WEBSOCKET_PONG, frame->bytes, frame->size_bytes);
                break;
        case WEBSOCKET_PONG:
                break;
        case WEBSOCKET_CLOSE:
                end(s, "");
                break;
        case WEBSOCKET_MORE:
        case WEBSOCKET_TEXT:
        case WEBSOCKET_BINARY:
                text_append_bytes(&s->message, frame->bytes, frame->size_bytes);
                if (s->message.failed)
                        end(s, "a message is too long");
                else if (frame->last && s->message.size_bytes > 0)
                        s->on_message(s->userdata, s->message.data, s->message.size_bytes);
                if (frame->last)
                        text_reset(&s->message);
                break;
        default:
                end(s, "a frame is of no known kind");
        }
}

/* All whole frames that are there, unless the user has enough. */
static void take_frames(struct http_socket *s)
{
        size_t used = 0, one = 0;
        struct websocket_frame frame;
        struct err err = { 0 };
        int r = 1;

        while (!s->over && !s->held && r > 0) {
                r = websocket_read(s->in.data + used, s->in.size_bytes - used, HTTP_SOCKET_MESSAGE_MAX_BYTES,
                                   &frame, &one, &err);
                if (r > 0) {
                        take_frame(s, &frame);
                        used += one;
                }
        }
        if (used > 0)
                drop_read(s, used);
        if (r < 0)
                end(s, err.msg);
}

static void read_in(struct http_socket *s)
{
        int r = 1;

        for (unsigned reads = 0; !s->over && !s->held && r > 0; reads++) {
                take_frames(s); /* of what came with the head, or before it was held */
                s->due = s->due || reads == TURN_READS;
                r = s->held || reads == TURN_READS ? 0 : receive(s);
        }
        if (r < 0)
                end(s, r == -EPIPE ? "the connection broke" : "no memory for what came");
}

static int on_ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct http_socket *s = userdata;

        (void) source;
        (void) fd;
        (void) events;
        s->due = false;
        read_in(s);
        send_out(s);
        rearm(s);
        return 0;
}

int http_socket_open(sd_event *loop, struct http_client *client, const struct http_socket_options *o,
                     struct http_socket **ret, struct http_socket_refusal *refusal)
{
        uint64_t end_usec = clock_monotonic_usec() + o->timeout_usec;
        struct http_socket *s = calloc(1, sizeof(*s));
        int r;

        *refusal = (struct http_socket_refusal){ 0 };
        refusal->result.body = refusal->bytes;
        if (s == NULL)
                return refuse(refusal, -ENOMEM, "no memory for a WebSocket");
        s->on_message = o->message;
        s->drained = o->drained;
        s->ended = o->ended;
        s->userdata = o->userdata;
        s->due = true;
        s->message.max_bytes = HTTP_SOCKET_MESSAGE_MAX_BYTES;
        s->out.max_bytes = OUT_MAX_BYTES;
        r = connect_to(s, client, o->timeout_usec, refusal);
        if (r == 0)
                r = upgrade(s, client, o, end_usec, refusal);
        if (r == 0) {
                r = sd_event_add_io(loop, &s->source, socket_of(s), EPOLLIN | EPOLLOUT, on_ready, s);
                if (r < 0)
                        (void) refuse(refusal, r, "its socket cannot be watched");
        }
        if (r < 0) {
                http_socket_close(s);
                return r;
        }
        *ret = s;
        return 0;
}

void http_socket_close(struct http_socket *s)
{
        if (s == NULL)
                return;
        sd_event_source_disable_unref(s->source);
        curl_easy_cleanup(s->easy);
        text_free(&s->in);
        text_free(&s->message);
        text_free(&s->out);
        free(s);
}

int http_socket_send(struct http_socket *s, const void *bytes, size_t size_bytes)
{
        int r = put_frame(s, WEBSOCKET_BINARY, bytes, size_bytes);

        rearm(s);
        return r;
}

size_t http_socket_unsent(const struct http_socket *s)
{
        return s->out.size_bytes;
}

void http_socket_hold(struct http_socket *s, bool hold)
{
        s->held = hold;
        s->due = !hold;
        rearm(s);
}
