/* Streams: pieces come as they are sent, to all who read; who does not read, or has gone, is nobody's loss.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "io/address.h"
#include "io/clock.h"
#include "io/http/http_pages.h"
#include "io/http/http_server.h"
#include "io/http/http_stream.h"
#include "io/loop.h"
#include "tests/support/patience.h"

#define MAX_BYTES ((size_t) 1 << 20)

struct bed {
        sd_event *loop;
        struct http_server *server;
        struct http_stream *streams[4];
        size_t opened, closed;
};

static void on_closed(void *userdata)
{
        ((struct bed *) userdata)->closed++;
}

static void open_stream(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct bed *bed = userdata;

        (void) request;
        reply->stream = http_stream_new(MAX_BYTES, on_closed, bed);
        reply->content_type = "text/event-stream";
        bed->streams[bed->opened++] = reply->stream;
}

static const char *const headers[] = { "X-Of", "the route", NULL };
static const struct http_route routes[] = {
        { .method = "GET", .path = "/stream", .handler = open_stream, .headers = headers },
        { 0 },
};

static void begin(struct bed *bed)
{
        const struct http_server_options options = { .address = "127.0.0.1:0",
                                                     .loopback_only = true,
                                                     .idle_timeout_sec = 1,
                                                     .routes = routes,
                                                     .userdata = bed };
        struct err err = { 0 };

        *bed = (struct bed){ .loop = NULL };
        assert_int_equal(loop_new(&bed->loop, &err), 0);
        if (http_server_new(bed->loop, &options, &bed->server, &err) < 0)
                fail_msg("%s", err.msg);
}

static void end(struct bed *bed)
{
        http_server_free(bed->server);
        assert_int_equal(bed->closed, bed->opened);
        sd_event_unref(bed->loop);
}

#define UNTIL(bed, what)                                                                                     \
        for (uint64_t end_ = clock_monotonic_usec() + patience_usec(); !(what);) {                           \
                if (clock_monotonic_usec() > end_)                                                           \
                        fail_msg("never came: %s", #what);                                                   \
                (void) sd_event_run((bed)->loop, 1000);                                                      \
        }

static void send_text(struct http_stream *stream, const char *text)
{
        struct http_pages_page *piece = http_pages_new(strdup(text), strlen(text), NULL);

        assert_non_null(piece);
        assert_true(http_stream_send(stream, piece));
        http_pages_unref(piece);
}

/* A viewer: connected, and his stream is there. */
static int look_on(struct bed *bed, int receive_bytes)
{
        static const char request[] = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n";
        size_t opened = bed->opened;
        struct address a;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(address_parse(http_server_address(bed->server), &a, NULL), 0);
        if (receive_bytes > 0)
                (void) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
        assert_int_equal(connect(fd, (struct sockaddr *) &a.u.any, a.size), 0);
        assert_int_equal(send(fd, request, strlen(request), 0), (ssize_t) strlen(request));
        UNTIL(bed, bed->opened > opened);
        return fd;
}

/* What has come; true once it has all of these words. */
static bool has_come(int fd, struct text *text, const char *words)
{
        char piece[65536];
        ssize_t n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

        if (n > 0)
                text_append_bytes(text, piece, (size_t) n);
        return text->data != NULL && strstr(text->data, words) != NULL;
}

static void pieces_come_as_they_are_sent(void **state)
{
        struct bed bed;
        struct text text = { 0 };
        int fd;

        (void) state;
        begin(&bed);
        fd = look_on(&bed, 0);
        UNTIL(&bed, has_come(fd, &text, "\r\n\r\n"));
        assert_non_null(strstr(text.data, "X-Of: the route\r\n"));
        assert_non_null(strstr(text.data, "Transfer-Encoding: chunked\r\n"));
        send_text(bed.streams[0], "first;");
        UNTIL(&bed, has_come(fd, &text, "first;"));
        for (uint64_t until = clock_monotonic_usec() + 1500000; clock_monotonic_usec() < until;)
                (void) sd_event_run(bed.loop, 10000); /* longer than an idle connection may last */
        send_text(bed.streams[0], "second;");
        send_text(bed.streams[0], "third;");
        UNTIL(&bed, has_come(fd, &text, "third;"));
        assert_true(strstr(text.data, "second;") < strstr(text.data, "third;"));
        assert_int_equal(bed.closed, 0);
        http_stream_stop(bed.streams[0]);
        UNTIL(&bed, has_come(fd, &text, "\r\n0\r\n"));
        UNTIL(&bed, bed.closed == 1);
        (void) close(fd);
        end(&bed);
        text_free(&text);
}

static void who_does_not_read_is_dropped_alone(void **state)
{
        struct bed bed;
        struct text text = { 0 };
        char *large = malloc(100001);
        struct http_pages_page *piece;
        size_t sent = 0;
        int lazy, eager;

        (void) state;
        memset(large, 'x', 100000);
        begin(&bed);
        lazy = look_on(&bed, 4096);
        eager = look_on(&bed, 0);
        piece = http_pages_new(large, 100000, NULL);
        assert_non_null(piece);
        while (http_stream_send(bed.streams[0], piece)) { /* it ends: nothing is kept without end */
                assert_true(http_stream_send(bed.streams[1], piece));
                assert_true(++sent < 1000);
                for (int i = 0; i < 50; i++) {
                        (void) sd_event_run(bed.loop, 0);
                        (void) has_come(eager, &text, "never");
                        text_reset(&text);
                }
        }
        assert_true(sent * 100000 >= MAX_BYTES - 100000);
        UNTIL(&bed, bed.closed == 1);
        send_text(bed.streams[1], "last");
        UNTIL(&bed, has_come(eager, &text, "last"));
        http_pages_unref(piece);
        (void) close(lazy);
        (void) close(eager);
        end(&bed);
        text_free(&text);
}

static void who_has_gone_is_noticed(void **state)
{
        struct bed bed;
        struct http_pages_page *piece = http_pages_new(strdup("more"), 4, NULL);
        int fd;

        (void) state;
        begin(&bed);
        fd = look_on(&bed, 0);
        send_text(bed.streams[0], "first");
        (void) close(fd);
        UNTIL(&bed, bed.closed == 1 || !http_stream_send(bed.streams[0], piece));
        UNTIL(&bed, bed.closed == 1);
        http_pages_unref(piece);
        end(&bed);
}

static void a_server_ends_with_viewers(void **state)
{
        struct bed bed;
        int fds[2];

        (void) state;
        begin(&bed);
        fds[0] = look_on(&bed, 0);
        fds[1] = look_on(&bed, 0);
        send_text(bed.streams[1], "not taken yet");
        end(&bed);
        (void) close(fds[0]);
        (void) close(fds[1]);
}

static void one_that_is_not_sent_is_freed(void **state)
{
        struct bed bed = { .loop = NULL };
        struct http_reply reply = { .stream = http_stream_new(10, on_closed, &bed) };

        (void) state;
        send_text(reply.stream, "longer than it may be, but the first");
        http_reply_drop(&reply);
        assert_int_equal(bed.closed, 1);
        assert_null(reply.stream);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(pieces_come_as_they_are_sent),
                cmocka_unit_test(who_does_not_read_is_dropped_alone),
                cmocka_unit_test(who_has_gone_is_noticed),
                cmocka_unit_test(a_server_ends_with_viewers),
                cmocka_unit_test(one_that_is_not_sent_is_freed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
