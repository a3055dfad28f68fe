/* What a server makes of every kind of request: those of another method or content, with a deadline that is
 * none, packed, cut or doubled messages. The caller is nghttp2 itself. And calls that end in odd orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/grpc/grpc_address.h"
#include "io/grpc/grpc_client.h"
#include "io/grpc/grpc_server.h"
#include "io/loop.h"
#include "io/tls/tls.h"
#include "io/tls/tls_keys.h"
#include "tests/support/patience.h"
#include "tests/support/refused_timers.h"

#define MESSAGE_MAX 16
#define LARGE_BYTES 300000

struct bed {
        sd_event *loop;
        struct grpc_server *server;
        unsigned handled;
        char peer[64];
        bool named;
        struct grpc_call *kept;
        unsigned closed;
        char refused[160]; /* what was said of a peer that was not trusted */
};

static void echo(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        struct bed *b = userdata;

        b->handled++;
        grpc_call_peer(call, b->peer, sizeof(b->peer));
        b->named = grpc_call_named(call);
        grpc_call_reply(call, message, size);
        grpc_call_finish(call, GRPC_OK, NULL); /* once more: the first end counts */
}

static void on_idle(void *userdata, struct grpc_call *call)
{
        (void) userdata;
        (void) call;
}

static void on_closed(void *userdata, struct grpc_call *call)
{
        (void) call;
        ((struct bed *) userdata)->closed++;
}

static void keep(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        struct bed *b = userdata;

        (void) message;
        (void) size;
        b->handled++;
        b->kept = call;
        grpc_call_keep(call, on_idle, on_closed, b);
}

static const struct grpc_method methods[] = { { "/t/Echo", echo }, { "/t/Keep", keep }, { NULL, NULL } };

static void on_refused(void *userdata, const char *why)
{
        struct bed *b = userdata;

        (void) text_copy(b->refused, sizeof(b->refused), why);
}

static struct bed *begin_with(const char *address, struct tls *tls)
{
        struct bed *b = calloc(1, sizeof(*b));
        struct grpc_server_options options = { .address = address,
                                               .methods = methods,
                                               .userdata = b,
                                               .message_max_bytes = tls != NULL ? LARGE_BYTES : MESSAGE_MAX,
                                               .wrap = tls != NULL ? tls_wrap : NULL,
                                               .wrap_userdata = tls,
                                               .on_refused = on_refused,
                                               .keepalive_usec = tls != NULL ? 60000000 : 0 };
        struct err err = { 0 };

        assert_non_null(b);
        assert_int_equal(loop_new(&b->loop, NULL), 0);
        if (grpc_server_new(b->loop, &options, &b->server, &err) < 0)
                fail_msg("%s", err.msg);
        return b;
}

static struct bed *begin(const char *address)
{
        return begin_with(address, NULL);
}

static void end(struct bed *b)
{
        grpc_server_free(b->server);
        sd_event_unref(b->loop);
        free(b);
}

/* A caller and what it was answered. */
struct caller {
        int fd;
        nghttp2_session *session;
        const char *body;
        size_t body_bytes, sent;
        bool half; /* its request has no end */
        char status[8], grpc_status[8], message[160];
        bool over;
};

static ssize_t send_bytes(nghttp2_session *session, const uint8_t *bytes, size_t size, int flags,
                          void *userdata)
{
        ssize_t n = send(((struct caller *) userdata)->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        (void) session;
        (void) flags;
        return n < 0 ? NGHTTP2_ERR_WOULDBLOCK : n;
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t length,
                         uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
        struct caller *c = userdata;
        size_t n = c->body_bytes - c->sent < length ? c->body_bytes - c->sent : length;

        (void) session;
        (void) stream;
        (void) source;
        if (n == 0 && c->half)
                return NGHTTP2_ERR_DEFERRED;
        memcpy(buffer, c->body + c->sent, n);
        c->sent += n;
        if (c->sent == c->body_bytes && !c->half)
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t) n;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                     void *userdata)
{
        struct caller *c = userdata;
        const struct {
                const char *name;
                char *to;
                size_t bytes;
        } fields[] = { { ":status", c->status, sizeof(c->status) },
                       { "grpc-status", c->grpc_status, sizeof(c->grpc_status) },
                       { "grpc-message", c->message, sizeof(c->message) } };

        (void) session;
        (void) frame;
        (void) flags;
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (strlen(fields[i].name) == name_bytes && memcmp(fields[i].name, name, name_bytes) == 0)
                        (void) text_format(fields[i].to, fields[i].bytes, "%.*s", (int) value_bytes,
                                           (const char *) value);
        return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *userdata)
{
        (void) session;
        (void) stream;
        (void) error;
        ((struct caller *) userdata)->over = true;
        return 0;
}

static void connect_caller(struct bed *b, struct caller *c)
{
        nghttp2_session_callbacks *callbacks;
        bool connecting;

        *c = (struct caller){ .fd = grpc_address_connect(grpc_server_address(b->server), &connecting, NULL) };
        assert_true(c->fd >= 0);
        assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
        nghttp2_session_callbacks_set_send_callback(callbacks, send_bytes);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
        assert_int_equal(nghttp2_session_client_new(&c->session, callbacks, c), 0);
        nghttp2_session_callbacks_del(callbacks);
        assert_int_equal(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

static void close_caller(struct caller *c)
{
        nghttp2_session_del(c->session);
        close_p(&c->fd);
}

static void turn(struct bed *b, struct caller *c)
{
        uint8_t bytes[4096];
        ssize_t n;

        assert_int_equal(nghttp2_session_send(c->session), 0);
        assert_true(sd_event_run(b->loop, 1000) >= 0);
        n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n > 0)
                assert_int_equal(nghttp2_session_mem_recv(c->session, bytes, (size_t) n), n);
}

#define WAIT(b, c, what)                                                                                     \
        for (uint64_t end_ = clock_monotonic_usec() + patience_usec(); !(what);) {                           \
                if (clock_monotonic_usec() > end_)                                                           \
                        fail_msg("never came: %s", #what);                                                   \
                turn(b, c);                                                                                  \
        }

#define HELLO    "\0\0\0\0\5hello"
#define OF(text) text, sizeof(text) - 1

/* clang-format off */
static const struct {
        const char *what, *method, *path, *content, *field, *value; /* one more header, or NULL */
        const char *body;
        size_t body_bytes;
        bool half;
        const char *status, *grpc_status, *message;
        unsigned handled;
} rows[] = {
        { "a call",                "POST", "/t/Echo", "application/grpc", NULL, NULL, OF(HELLO), false, "200", "0", "", 1 },
        { "with a subtype",        "POST", "/t/Echo", "application/grpc+proto", "grpc-encoding", "identity", OF(HELLO), false, "200", "0", "", 1 },
        { "in time",               "POST", "/t/Echo", "application/grpc", "grpc-timeout", "1H", OF(HELLO), false, "200", "0", "", 1 },
        { "of no message",         "POST", "/t/Echo", "application/grpc", NULL, NULL, OF("\0\0\0\0\0"), false, "200", "0", "", 1 },
        { "read only",             "GET",  "/t/Echo", "application/grpc", NULL, NULL, OF(HELLO), false, "405", "", "", 0 },
        { "of another content",    "POST", "/t/Echo", "application/json", NULL, NULL, OF(HELLO), false, "415", "", "", 0 },
        { "of no content",         "POST", "/t/Echo", NULL, NULL, NULL, OF(HELLO), false, "415", "", "", 0 },
        { "of no method",          "POST", "/t/None", "application/grpc", NULL, NULL, OF(HELLO), false, "200", "12", "unknown method /t/None", 0 },
        { "a deadline that is none", "POST", "/t/Echo", "application/grpc", "grpc-timeout", "soon", OF(HELLO), false, "200", "13", "malformed grpc-timeout", 0 },
        { "half a message",        "POST", "/t/Echo", "application/grpc", NULL, NULL, OF("\0\0\0\0\5he"), false, "200", "13", "the request ended before its message did", 0 },
        { "nothing at all",        "POST", "/t/Echo", "application/grpc", NULL, NULL, OF(""), false, "200", "13", "the request ended before its message did", 0 },
        { "two messages",          "POST", "/t/Echo", "application/grpc", NULL, NULL, OF(HELLO HELLO), false, "200", "13", "more than one message in the request", 0 },
        { "a packed one, said so", "POST", "/t/Echo", "application/grpc", "grpc-encoding", "gzip", OF("\1\0\0\0\5hello"), false, "200", "12", "compressed messages are not supported; send identity", 0 },
        { "a packed one",          "POST", "/t/Echo", "application/grpc", NULL, NULL, OF("\1\0\0\0\5hello"), false, "200", "13", "a compressed message without grpc-encoding", 0 },
        { "a flag that is none",   "POST", "/t/Echo", "application/grpc", NULL, NULL, OF("\7\0\0\0\5hello"), false, "200", "13", "malformed message frame", 0 },
        { "one too large",         "POST", "/t/Echo", "application/grpc", NULL, NULL, OF("\0\0\0\0\21hello"), true, "200", "8", "the message is larger than what is accepted", 0 },
        { "no, before its end",    "POST", "/t/None", "application/grpc", NULL, NULL, OF("\0\0\0\0\5he"), true, "200", "12", "unknown method /t/None", 0 },
};
/* clang-format on */

static nghttp2_nv header(const char *name, const char *value)
{
        return (nghttp2_nv){ .name = (uint8_t *) name,
                             .value = (uint8_t *) value,
                             .namelen = strlen(name),
                             .valuelen = strlen(value) };
}

static void submit(struct caller *c, size_t row)
{
        const nghttp2_data_provider provider = { .read_callback = read_body };
        nghttp2_nv headers[6];
        size_t n = 0;

        headers[n++] = header(":method", rows[row].method);
        headers[n++] = header(":scheme", "http");
        headers[n++] = header(":path", rows[row].path);
        headers[n++] = header(":authority", "localhost");
        if (rows[row].content != NULL)
                headers[n++] = header("content-type", rows[row].content);
        if (rows[row].field != NULL)
                headers[n++] = header(rows[row].field, rows[row].value);
        c->body = rows[row].body;
        c->body_bytes = rows[row].body_bytes;
        c->half = rows[row].half;
        c->sent = 0;
        assert_true(nghttp2_submit_request(c->session, NULL, headers, n, &provider, NULL) > 0);
}

static void every_request_is_answered_as_what_it_is(void **state)
{
        struct bed *b = begin("127.0.0.1:0");

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct caller c;

                b->handled = 0;
                connect_caller(b, &c);
                submit(&c, i);
                WAIT(b, &c, c.over);
                if (strcmp(c.status, rows[i].status) != 0 ||
                    strcmp(c.grpc_status, rows[i].grpc_status) != 0 ||
                    strcmp(c.message, rows[i].message) != 0 || b->handled != rows[i].handled)
                        fail_msg("%s: %s, %s '%s', %u", rows[i].what, c.status, c.grpc_status, c.message,
                                 b->handled);
                close_caller(&c);
        }
        assert_string_equal(b->peer, "127.0.0.1");
        assert_true(b->named); /* without TLS nobody can be asked for more */
        end(b);
}

static void a_caller_of_the_other_family_has_an_address_too(void **state)
{
        int r = grpc_address_listen("[::1]:0", 0, NULL);
        struct caller c;
        struct bed *b;

        (void) state;
        if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT)
                return; /* no IPv6 here */
        close_p(&r);
        b = begin("[::1]:0");
        connect_caller(b, &c);
        submit(&c, 0);
        WAIT(b, &c, c.over);
        assert_string_equal(b->peer, "::1");
        close_caller(&c);
        end(b);
}

struct outcome {
        unsigned done;
        enum grpc_status status;
        char sentence[GRPC_SENTENCE_BYTES];
};

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct outcome *o = userdata;

        o->done++;
        o->status = status;
        (void) text_copy(o->sentence, sizeof(o->sentence), sentence);
}

static struct grpc_client_call *call(struct grpc_client *client, const char *path, struct outcome *o)
{
        const struct grpc_client_handlers handlers = { .on_done = on_done, .userdata = o };
        struct grpc_client_call *handle = NULL;

        *o = (struct outcome){ .done = 0 };
        assert_int_equal(
                grpc_client_call(client, path, (const uint8_t *) "x", 1, 60000000, &handlers, &handle), 0);
        return handle;
}

#define RUN(b, what)                                                                                         \
        for (uint64_t end_ = clock_monotonic_usec() + patience_usec(); !(what);) {                           \
                if (clock_monotonic_usec() > end_)                                                           \
                        fail_msg("never came: %s", #what);                                                   \
                assert_true(sd_event_run((b)->loop, 10000) >= 0);                                            \
        }

static void calls_may_end_in_any_order(void **state)
{
        struct bed *b = begin("127.0.0.1:0");
        const struct grpc_client_options options = { .address = grpc_server_address(b->server) };
        struct outcome one, two, three, four;
        struct grpc_client_call *second, *first;
        struct grpc_client *client = NULL;

        (void) state;
        assert_int_equal(grpc_client_new(b->loop, &options, &client, NULL), 0);
        grpc_client_disconnect(client); /* which is not connected */
        first = call(client, "/t/Keep", &one);
        second = call(client, "/t/Keep", &two);
        (void) call(client, "/t/Keep", &three);
        RUN(b, b->handled == 3);
        grpc_client_cancel(second); /* from the middle, then the oldest */
        grpc_client_cancel(first);
        RUN(b, b->closed == 2);
        grpc_client_disconnect(client);
        grpc_client_disconnect(client);
        RUN(b, three.done == 1);
        assert_int_equal(three.status, GRPC_UNAVAILABLE);
        assert_string_equal(three.sentence, "disconnected");
        assert_int_equal(one.done + two.done, 0); /* nothing follows a cancel */
        RUN(b, b->closed == 3);
        (void) call(client, "/t/Echo", &four); /* and it connects anew */
        RUN(b, four.done == 1);
        assert_int_equal(four.status, GRPC_OK);
        grpc_client_free(client);
        grpc_client_free(NULL);
        end(b);
}

/* Who waits until a deadline waits for ever where it has no timer: such a call is refused at once, by the
 * client and by the server, and so is a connection that nobody would find dead. */
static void without_a_timer_nobody_waits(void **state)
{
        struct bed *b = begin("127.0.0.1:0");
        struct grpc_client_options options = { .address = grpc_server_address(b->server) };
        struct outcome o = { 0 };
        const struct grpc_client_handlers handlers = { .on_done = on_done, .userdata = &o };
        struct grpc_client *client = NULL, *alive = NULL;

        (void) state;
        assert_int_equal(grpc_client_new(b->loop, &options, &client, NULL), 0);
        options.keepalive_usec = 60000000;
        assert_int_equal(grpc_client_new(b->loop, &options, &alive, NULL), 0);
        timers_refused = true;
        assert_int_equal(grpc_client_call(client, "/t/Keep", NULL, 0, 60000000, &handlers, NULL), -ENOMEM);
        assert_int_equal(grpc_client_call(alive, "/t/Keep", NULL, 0, 0, &handlers, NULL), 0);
        RUN(b, o.done == 1);
        assert_int_equal(o.status, GRPC_UNAVAILABLE);
        assert_non_null(strstr(o.sentence, "timer"));
        assert_int_equal(b->handled, 0);
        timers_refused = false;
        (void) call(client, "/t/Keep", &o);
        timers_refused = true; /* the server's, now */
        RUN(b, o.done == 1);
        timers_refused = false;
        assert_int_equal(o.status, GRPC_RESOURCE_EXHAUSTED);
        assert_string_equal(o.sentence, "no timer for the call's deadline");
        assert_int_equal(b->handled, 0);
        (void) call(alive, "/t/Echo", &o);
        RUN(b, o.done == 1);
        assert_int_equal(o.status, GRPC_OK);
        grpc_client_free(client);
        grpc_client_free(alive);
        end(b);
}

static struct tls_keys keys;

static struct tls *open_side(bool server)
{
        const struct tls_keys_pair *own = &keys.pairs[server ? 0 : 1];
        const struct tls_options options = {
                .identity = { { own->certificate, "c" }, { own->key, "k" }, { keys.ca, "a" } },
                .server = server,
                .name = "server.example",
        };
        struct tls *tls = NULL;
        struct err err = { 0 };

        if (tls_new(&options, &tls, &err) < 0)
                fail_msg("%s", err.msg);
        return tls;
}

/* Both sides over TLS, one of them, the other: who is served, and what is said to whom. */
static void a_wrapped_server_serves_whom_it_trusts(void **state)
{
        static const struct {
                bool server, client;
                enum grpc_status status;
                const char *said, *refused;
        } pairs[] = {
                { true, true, GRPC_OK, "", "" },
                { true, false, GRPC_UNAUTHENTICATED, "the peer speaks TLS and this side does not",
                  "the client does not speak TLS" },
                { false, true, GRPC_UNAUTHENTICATED, "the server does not speak TLS", "" },
        };
        static const struct tls_keys_purpose purposes[] = { { { "server.example" }, true, true },
                                                            { { "client.example" }, false, true } };
        uint8_t *large = calloc(1, LARGE_BYTES);

        (void) state;
        assert_non_null(large);
        assert_int_equal(tls_keys_make(purposes, clock_realtime_usec(), &keys, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                struct tls *server = pairs[i].server ? open_side(true) : NULL,
                           *caller = pairs[i].client ? open_side(false) : NULL;
                struct bed *b = begin_with("127.0.0.1:0", server);
                const struct grpc_client_options options = { .address = grpc_server_address(b->server),
                                                             .wrap = caller != NULL ? tls_wrap : NULL,
                                                             .wrap_userdata = caller };
                struct grpc_client *client = NULL;
                struct outcome o = { .done = 0 };
                const struct grpc_client_handlers handlers = { .on_done = on_done, .userdata = &o };

                assert_int_equal(grpc_client_new(b->loop, &options, &client, NULL), 0);
                assert_int_equal(grpc_client_call(client, "/t/Echo", large, pairs[i].server ? LARGE_BYTES : 1,
                                                  0, &handlers, NULL),
                                 0);
                RUN(b, o.done == 1 && (pairs[i].refused[0] == '\0' || b->refused[0] != '\0'));
                if (o.status != pairs[i].status || strstr(o.sentence, pairs[i].said) == NULL ||
                    strstr(b->refused, pairs[i].refused) == NULL)
                        fail_msg("%zu: %s '%s', '%s'", i, grpc_status_name(o.status), o.sentence, b->refused);
                assert_true(b->named == (pairs[i].status == GRPC_OK));
                grpc_client_free(client);
                end(b);
                tls_free(caller);
                tls_free(server);
        }
        tls_keys_free(&keys);
        free(large);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_request_is_answered_as_what_it_is),
                cmocka_unit_test(a_caller_of_the_other_family_has_an_address_too),
                cmocka_unit_test(calls_may_end_in_any_order),
                cmocka_unit_test(without_a_timer_nobody_waits),
                cmocka_unit_test(a_wrapped_server_serves_whom_it_trusts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
