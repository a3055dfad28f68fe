/* What a client makes of every kind of server: one that answers, breaks off, babbles, is silent, or is not
 * there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/http/http_client.h"
#include "io/loop.h"

#define CONNECTIONS_MAX 8

static bool io_refused;
int __real_sd_event_add_io(sd_event *loop, sd_event_source **ret, int fd, uint32_t events,
                           sd_event_io_handler_t handler, void *userdata);
int __wrap_sd_event_add_io(sd_event *loop, sd_event_source **ret, int fd, uint32_t events,
                           sd_event_io_handler_t handler, void *userdata);
int __wrap_sd_event_add_io(sd_event *loop, sd_event_source **ret, int fd, uint32_t events,
                           sd_event_io_handler_t handler, void *userdata)
{
        return io_refused ? -ENOSPC : __real_sd_event_add_io(loop, ret, fd, events, handler, userdata);
}

/* A server that gives each connection the same bytes once it has asked for something. */
struct server {
        int listening, connections[CONNECTIONS_MAX];
        size_t connection_count;
        const char *reply; /* NULL = it is silent */
        bool keeps;        /* the connection open behind the reply */
        sd_event_source *source, *sources[CONNECTIONS_MAX];
        char url[64];
        struct text heard; /* of all connections */
};

/* What has become of a call. */
struct heard {
        bool done;
        struct http_call_result result;
        char body[64];
        unsigned began; /* status at the head; 0 = there was none */
        unsigned done_count;
};

static int on_request(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct server *server = userdata;
        char bytes[4096];
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        (void) events;
        if (n > 0)
                text_append_bytes(&server->heard, bytes, (size_t) n);
        if (n > 0 && server->reply != NULL)
                (void) send(fd, server->reply, strlen(server->reply), MSG_NOSIGNAL);
        if (n <= 0 || (server->reply != NULL && !server->keeps)) {
                (void) shutdown(fd, SHUT_RDWR);
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        }
        return 0;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct server *server = userdata;
        size_t i = server->connection_count++;

        (void) source;
        (void) events;
        assert_in_range(i, 0, CONNECTIONS_MAX - 1);
        server->connections[i] = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        assert_true(server->connections[i] >= 0);
        return sd_event_add_io(sd_event_source_get_event(source), &server->sources[i], server->connections[i],
                               EPOLLIN, on_request, server);
}

static void serve(sd_event *loop, struct server *server, const char *scheme, const char *reply, bool keeps)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(at);

        *server = (struct server){ .reply = reply, .keeps = keeps };
        server->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(server->listening, (const struct sockaddr *) &at, size), 0);
        assert_int_equal(listen(server->listening, 8), 0);
        assert_int_equal(getsockname(server->listening, (struct sockaddr *) &at, &size), 0);
        (void) text_format(server->url, sizeof(server->url), "%s://127.0.0.1:%u", scheme, ntohs(at.sin_port));
        assert_true(sd_event_add_io(loop, &server->source, server->listening, EPOLLIN, on_connection,
                                    server) >= 0);
}

static void stop(struct server *server)
{
        (void) sd_event_source_disable_unref(server->source);
        for (size_t i = 0; i < server->connection_count; i++) {
                (void) sd_event_source_disable_unref(server->sources[i]);
                (void) close(server->connections[i]);
        }
        (void) close(server->listening);
        text_free(&server->heard);
}

static void on_done(void *userdata, const struct http_call_result *result)
{
        struct heard *heard = userdata;

        heard->done = true;
        heard->done_count++;
        heard->result = *result;
        (void) text_format(heard->body, sizeof(heard->body), "%s", result->body);
        heard->result.body = heard->body;
}

static void on_began(void *userdata, unsigned status)
{
        ((struct heard *) userdata)->began = status;
}

static bool stops(void *userdata, const char *bytes, size_t size)
{
        (void) userdata;
        (void) bytes;
        return size == 0;
}

static bool goes_on(void *userdata, const char *bytes, size_t size)
{
        struct heard *heard = userdata;
        size_t have = strlen(heard->body);

        assert_in_range(have + size, 0, sizeof(heard->body) - 1);
        memcpy(heard->body + have, bytes, size);
        heard->body[have + size] = '\0';
        return true;
}

static bool never(void *userdata)
{
        (void) userdata;
        return false;
}

static bool always(void *userdata)
{
        (void) userdata;
        return true;
}

static void wait_for(sd_event *loop, const bool *done)
{
        for (unsigned turns = 0; !*done && turns < 2000; turns++)
                assert_true(sd_event_run(loop, 10000) >= 0);
        assert_true(*done);
}

#define OK(body) "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" body

/* clang-format off */
static const struct {
        const char *what, *scheme, *reply;
        bool keeps;
        struct http_call_options call;
        int error;
        unsigned status, retry_after_sec, began;
        const char *body, *sentence; /* sentence: a part of it */
} rows[] = {
        { "an answer",            "http",  OK("hello"), false, { .body = "x", .body_bytes = 1, .content_type = "text/plain" }, 0, 200, 0, 200, "hello", "" },
        { "one after a warning",  "http",  "HTTP/1.1 100 Continue\r\n\r\n" OK("hello"), false, { 0 }, 0, 200, 0, 200, "hello", "" },
        { "not now",              "http",  "HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", false, { 0 }, 0, 503, 7, 503, "", "" },
        { "not for a long time",  "http",  "HTTP/1.1 503 No\r\nRetry-After: 86400\r\nContent-Length: 0\r\n\r\n", false, { 0 }, 0, 503, 0, 503, "", "" },
        { "it leaves",            "http",  "", false, { 0 }, -EPIPE, 0, 0, 0, "", "mpty reply" },
        { "it breaks off",        "http",  OK("hel"), false, { 0 }, -EPIPE, 200, 0, 200, "hel", "2 bytes remaining" },
        { "it babbles",           "http",  "bla bla\r\n\r\n", false, { 0 }, -EPIPE, 0, 0, 0, "", "HTTP/0.9" },
        { "it says too much",     "http",  OK("hello"), true, { .reply_max_bytes = 4 }, -E2BIG, 200, 0, 200, "", "the reply is too long" },
        { "it is silent",         "http",  NULL, true, { .timeout_usec = 50000 }, -ETIMEDOUT, 0, 0, 0, "", "timed out" },
        { "it speaks no TLS",     "https", OK("hello"), false, { 0 }, -EPROTO, 0, 0, 0, "", "" },
        { "in pieces",            "http",  OK("hello"), true, { .chunk = goes_on }, 0, 200, 0, 200, "", "" },
        { "a piece too much",     "http",  OK("hello"), true, { .chunk = stops }, -ECANCELED, 200, 0, 200, "", "" },
        { "an error is no piece", "http",  "HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone", true, { .chunk = stops }, 0, 410, 0, 410, "gone", "" },
        { "it may be sent",       "http",  OK("hello"), false, { .may_send = always }, 0, 200, 0, 200, "hello", "" },
        { "it may not",           "http",  OK("hello"), false, { .may_send = never }, -EPERM, 0, 0, 0, "", "" },
};
/* clang-format on */

static void every_answer_is_told_as_what_it_is(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct http_client_options options = { .insecure = true };
                struct http_call_options call = rows[i].call;
                struct heard heard = { .done = false };
                struct http_client *client = NULL;
                struct server server;
                sd_event *loop = NULL;

                assert_int_equal(loop_new(&loop, NULL), 0);
                serve(loop, &server, rows[i].scheme, rows[i].reply, rows[i].keeps);
                options.base_url = server.url;
                call.method = call.body != NULL ? "POST" : "GET";
                call.path = "/";
                call.began = on_began;
                call.done = on_done;
                call.userdata = &heard;
                assert_int_equal(http_client_new(loop, &options, &client, NULL), 0);
                assert_int_equal(http_call_start(client, &call, NULL), 0);
                wait_for(loop, &heard.done);
                if (heard.result.error != rows[i].error || heard.result.status != rows[i].status ||
                    heard.result.retry_after_sec != rows[i].retry_after_sec || heard.began != rows[i].began ||
                    strcmp(heard.body, rows[i].body) != 0 ||
                    strstr(heard.result.sentence, rows[i].sentence) == NULL ||
                    (heard.result.error != 0) != (heard.result.sentence[0] != '\0'))
                        fail_msg("%s: %d %u %u %u '%s' '%s'", rows[i].what, heard.result.error,
                                 heard.result.status, heard.result.retry_after_sec, heard.began, heard.body,
                                 heard.result.sentence);
                http_client_free(client);
                stop(&server);
                sd_event_unref(loop);
        }
}

#define PEM "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n"

/* clang-format off */
static const struct {
        const char *what, *scheme;
        struct http_client_options client;
        struct http_call_options call;
        int error;
        const char *heard; /* a part of the request; NULL = there was none to be read */
} asked[] = {
        { "nothing special",          "http",  { 0 }, { 0 }, 0, "Accept: application/json\r\n" },
        { "another answer",           "http",  { 0 }, { .accept = "text/plain" }, 0, "Accept: text/plain\r\n" },
        { "who asks",                 "http",  { .user_agent = "test/1" }, { .authorization = "Bearer secret" }, 0, "Authorization: Bearer secret\r\n" },
        { "a body",                   "http",  { 0 }, { .body = "x", .body_bytes = 1, .content_type = "text/plain" }, 0, "Content-Type: text/plain\r\n" },
        { "a body of no kind",        "http",  { 0 }, { .body = "x", .body_bytes = 1 }, 0, "\r\n\r\nx" },
        { "keys that are not needed", "http",  { .ca_pem = PEM, .certificate_pem = PEM, .key_pem = PEM }, { 0 }, 0, "GET / " },
        { "files that are not there", "http",  { .ca_file = "/none", .certificate_file = "/none", .key_file = "/none" }, { 0 }, 0, "GET / " },
        { "no CA at that place",      "https", { .ca_file = "/none" }, { 0 }, -EPROTO, NULL },
        { "no certificate there",     "https", { .certificate_file = "/none", .key_file = "/none" }, { 0 }, -EPROTO, NULL },
        { "a CA that is none",        "https", { .ca_pem = PEM }, { 0 }, -EPROTO, NULL },
        { "text before the files",    "https", { .ca_file = "/none", .ca_pem = PEM }, { 0 }, -EPROTO, NULL },
        { "another name",             "https", { .insecure = true, .tls_server_name = "other.example" }, { 0 }, -EPROTO, NULL },
        { "another name, no TLS",     "http",  { .tls_server_name = "other.example" }, { 0 }, 0, "Host: other.example:" },
};
/* clang-format on */

static void what_is_asked_is_what_was_said(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
                struct http_client_options options = asked[i].client;
                struct http_call_options call = asked[i].call;
                struct heard heard = { .done = false };
                struct http_client *client = NULL;
                struct server server;
                sd_event *loop = NULL;

                assert_int_equal(loop_new(&loop, NULL), 0);
                serve(loop, &server, asked[i].scheme, OK("hello"), false);
                options.base_url = server.url;
                call.method = call.body != NULL ? "POST" : "GET";
                call.path = "/";
                call.done = on_done;
                call.userdata = &heard;
                assert_int_equal(http_client_new(loop, &options, &client, NULL), 0);
                assert_int_equal(http_call_start(client, &call, NULL), 0);
                wait_for(loop, &heard.done);
                if (heard.result.error != asked[i].error ||
                    (asked[i].heard != NULL && strstr(server.heard.data, asked[i].heard) == NULL))
                        fail_msg("%s: %d '%s', heard '%s'", asked[i].what, heard.result.error,
                                 heard.result.sentence, server.heard.data != NULL ? server.heard.data : "");
                http_client_free(client);
                stop(&server);
                sd_event_unref(loop);
        }
}

static void nobody_there_and_no_address(void **state)
{
        static const struct {
                const char *url, *proxy, *unix_socket;
                int error;
        } absent[] = {
                { "http://127.0.0.1:1", NULL, NULL, -ECONNREFUSED },
                { "http://127.0.0.1:1", NULL, "/nonexistent/socket", -ECONNREFUSED },
                { "http://", NULL, NULL, -EINVAL },
                { "http://127.0.0.1:1", "http://127.0.0.1:1", NULL, -ECONNREFUSED },
                { "gopher://127.0.0.1:1", NULL, NULL, -EPIPE },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(absent); i++) {
                const struct http_client_options options = { .base_url = absent[i].url,
                                                             .proxy = absent[i].proxy,
                                                             .unix_socket = absent[i].unix_socket,
                                                             .user_agent = "test" };
                struct heard heard = { .done = false };
                const struct http_call_options call = {
                        .method = "GET", .path = "/", .done = on_done, .userdata = &heard
                };
                struct http_client *client = NULL;
                sd_event *loop = NULL;

                assert_int_equal(loop_new(&loop, NULL), 0);
                assert_int_equal(http_client_new(loop, &options, &client, NULL), 0);
                assert_int_equal(http_call_start(client, &call, NULL), 0);
                wait_for(loop, &heard.done);
                if (heard.result.error != absent[i].error || heard.result.status != 0)
                        fail_msg("%s: %d '%s'", absent[i].url, heard.result.error, heard.result.sentence);
                http_client_free(client);
                sd_event_unref(loop);
        }
}

static void a_name_that_no_server_has_is_refused_at_once(void **state)
{
        const struct http_client_options options = { .base_url = "https://127.0.0.1:1",
                                                     .tls_server_name = "a b" };
        struct http_client *client = NULL;
        struct err err = { 0 };
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        assert_true(http_client_new(loop, &options, &client, &err) < 0);
        assert_string_equal(err.msg, "'a b' is no server name for 'https://127.0.0.1:1'");
        assert_null(client);
        http_client_free(NULL);
        sd_event_unref(loop);
}

static void what_runs_ends_with_its_client_and_what_was_cancelled_with_nothing(void **state)
{
        struct http_client_options options = { .connections_max = 1 };
        struct heard running = { .done = false }, waiting = running, cancelled = running;
        struct http_call_options call = { .method = "GET", .path = "/", .done = on_done };
        struct http_client *client = NULL;
        struct http_call *handle = NULL;
        struct server server;
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        serve(loop, &server, "http", NULL, true);
        options.base_url = server.url;
        assert_int_equal(http_client_new(loop, &options, &client, NULL), 0);
        call.userdata = &running;
        assert_int_equal(http_call_start(client, &call, NULL), 0);
        call.userdata = &cancelled;
        assert_int_equal(http_call_start(client, &call, &handle), 0);
        call.userdata = &waiting;
        assert_int_equal(http_call_start(client, &call, NULL), 0);
        http_call_cancel(handle); /* from the middle of the list */
        http_call_cancel(NULL);
        for (unsigned turns = 0; server.heard.size_bytes == 0 && turns < 2000; turns++)
                assert_true(sd_event_run(loop, 10000) >= 0);
        http_client_free(client);
        assert_int_equal(running.result.error, -ECANCELED);
        assert_int_equal(waiting.result.error, -ECANCELED);
        assert_string_equal(waiting.result.sentence, "the client is closing");
        assert_int_equal(running.done_count + waiting.done_count, 2);
        assert_false(cancelled.done);
        stop(&server);
        sd_event_unref(loop);
}

/* A call that another's bytes have started. */
struct chain {
        struct http_client *client;
        struct heard first, second;
};

static bool start_another(void *userdata, const char *bytes, size_t size)
{
        struct chain *chain = userdata;
        const struct http_call_options call = {
                .method = "GET", .path = "/second", .done = on_done, .userdata = &chain->second
        };

        (void) bytes;
        (void) size;
        return http_call_start(chain->client, &call, NULL) == 0;
}

static void on_first_done(void *userdata, const struct http_call_result *result)
{
        on_done(&((struct chain *) userdata)->first, result);
}

static void a_call_may_start_another_from_within(void **state)
{
        struct http_client_options options = { .connections_max = 2 };
        struct chain chain = { .client = NULL };
        const struct http_call_options call = { .method = "GET",
                                                .path = "/",
                                                .chunk = start_another,
                                                .done = on_first_done,
                                                .userdata = &chain };
        struct server server;
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        serve(loop, &server, "http", OK("hello"), false);
        options.base_url = server.url;
        assert_int_equal(http_client_new(loop, &options, &chain.client, NULL), 0);
        assert_int_equal(http_call_start(chain.client, &call, NULL), 0);
        wait_for(loop, &chain.second.done);
        assert_int_equal(chain.first.result.status, 200);
        assert_int_equal(chain.second.result.status, 200);
        assert_string_equal(chain.second.body, "hello");
        assert_non_null(strstr(server.heard.data, "GET /second "));
        http_client_free(chain.client);
        stop(&server);
        sd_event_unref(loop);
}

static void on_first_lost(void *userdata, const struct http_call_result *result)
{
        on_first_done(userdata, result);
        io_refused = false;
        (void) start_another(userdata, "", 0);
}

static void a_call_that_cannot_be_watched_ends_alone(void **state)
{
        struct http_client_options options = { .connections_max = 2 };
        struct chain chain = { .client = NULL };
        struct heard running = { .done = false };
        struct http_call_options call = {
                .method = "GET", .path = "/", .done = on_done, .userdata = &running
        };
        struct server server;
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        serve(loop, &server, "http", NULL, true);
        options.base_url = server.url;
        assert_int_equal(http_client_new(loop, &options, &chain.client, NULL), 0);
        assert_int_equal(http_call_start(chain.client, &call, NULL), 0);
        for (unsigned turns = 0; server.heard.size_bytes == 0 && turns < 2000; turns++)
                assert_true(sd_event_run(loop, 10000) >= 0);
        server.reply = OK("hello");
        io_refused = true;
        call.done = on_first_lost;
        call.userdata = &chain;
        assert_int_equal(http_call_start(chain.client, &call, NULL), 0);
        wait_for(loop, &chain.second.done);
        assert_int_equal(chain.first.result.error, -EPIPE);
        assert_string_equal(chain.first.result.sentence,
                            "its socket cannot be watched: No space left on device");
        assert_int_equal(chain.second.result.status, 200);
        assert_false(running.done);
        assert_int_equal(send(server.connections[0], OK("later"), strlen(OK("later")), MSG_NOSIGNAL),
                         strlen(OK("later")));
        wait_for(loop, &running.done);
        assert_string_equal(running.body, "later");
        http_client_free(chain.client);
        stop(&server);
        sd_event_unref(loop);
}

static size_t open_at(const struct server *server)
{
        size_t count = 0;
        int on = 0;

        for (size_t i = 0; i < server->connection_count; i++)
                count += sd_event_source_get_enabled(server->sources[i], &on) > 0 && on != SD_EVENT_OFF;
        return count;
}

static void ask_after(sd_event *loop, struct http_client *client, useconds_t pause_usec)
{
        struct heard heard = { .done = false };

        (void) usleep(pause_usec);
        assert_true(sd_event_run(loop, 0) >= 0); /* it is later */
        assert_int_equal(
                http_call_start(client,
                                &(struct http_call_options){
                                        .method = "GET", .path = "/", .done = on_done, .userdata = &heard },
                                NULL),
                0);
        wait_for(loop, &heard.done);
        assert_int_equal(heard.result.status, 200);
}

/* Who asks on loses what a burst left; who asked nothing for as long keeps it, for his next call. */
static void a_burst_leaves_no_connections(void **state)
{
        struct http_client_options options = { .idle_max_sec = 1 };
        struct http_client *client = NULL;
        struct heard burst[CONNECTIONS_MAX];
        struct server server;
        sd_event *loop = NULL;

        (void) state;
        memset(burst, 0, sizeof(burst));
        assert_int_equal(loop_new(&loop, NULL), 0);
        serve(loop, &server, "http", OK("hello"), true);
        options.base_url = server.url;
        assert_int_equal(http_client_new(loop, &options, &client, NULL), 0);
        for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
                const struct http_call_options call = {
                        .method = "GET", .path = "/", .done = on_done, .userdata = &burst[i]
                };

                assert_int_equal(http_call_start(client, &call, NULL), 0);
        }
        for (size_t i = 0; i < CONNECTIONS_MAX; i++)
                wait_for(loop, &burst[i].done);
        assert_int_equal(server.connection_count, CONNECTIONS_MAX);
        ask_after(loop, client, 2100000);
        assert_int_equal(open_at(&server), CONNECTIONS_MAX);
        for (unsigned turns = 0; open_at(&server) > 1 && turns < 200; turns++)
                ask_after(loop, client, 100000);
        assert_int_equal(open_at(&server), 1);
        assert_int_equal(server.connection_count, CONNECTIONS_MAX); /* no call had to make one */
        http_client_free(client);
        stop(&server);
        sd_event_unref(loop);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_answer_is_told_as_what_it_is),
                cmocka_unit_test(what_is_asked_is_what_was_said),
                cmocka_unit_test(nobody_there_and_no_address),
                cmocka_unit_test(a_name_that_no_server_has_is_refused_at_once),
                cmocka_unit_test(what_runs_ends_with_its_client_and_what_was_cancelled_with_nothing),
                cmocka_unit_test(a_call_may_start_another_from_within),
                cmocka_unit_test(a_call_that_cannot_be_watched_ends_alone),
                cmocka_unit_test(a_burst_leaves_no_connections),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
