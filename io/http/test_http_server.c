/* What our server answers to clients, polite and not, when it answers, and where it listens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/loop.h"
#include "tests/support/http_child.h"

static void many_requests_share_a_connection(void **state)
{
        struct http_child server = http_child_start();
        int fd = http_child_dial(&server);
        struct text body = { 0 };
        char *large = malloc(200001);

        (void) state;
        memset(large, 'x', 200000);
        large[200000] = '\0';
        for (int i = 0; i < 50; i++) {
                assert_int_equal(http_child_post(fd, "/echo", large, 200000, &body), 200);
                assert_int_equal(body.size_bytes, 200000);
                assert_string_equal(body.data, large);
                assert_int_equal(http_child_post(fd, "/echo", "", 0, &body), 200);
                assert_int_equal(body.size_bytes, 0);
        }
        (void) close(fd);
        http_child_stop(&server);
        free(large);
        text_free(&body);
}

static void paths_and_queries_reach_the_handler(void **state)
{
        struct http_child server = http_child_start();
        int fd = http_child_dial(&server);
        struct text body = { 0 };

        (void) state;
        assert_int_equal(
                http_child_ask(fd,
                               "GET /hello/a%20b?name=x%2Fy HTTP/1.1\r\nHost: x\r\nUser-Agent: me\r\n\r\n",
                               &body),
                200);
        assert_string_equal(body.data, "/hello/a b|x/y");
        assert_int_equal(http_child_ask(fd, "GET /hello/ HTTP/1.1\r\nHost: x\r\n\r\n", &body), 200);
        assert_string_equal(body.data, "/hello/|-");
        (void) close(fd);
        http_child_stop(&server);
        text_free(&body);
}

static void what_is_not_there_says_so(void **state)
{
        struct http_child server = http_child_start();
        int fd = http_child_dial(&server);
        struct text body = { 0 };

        (void) state;
        assert_int_equal(http_child_ask(fd, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", &body), 404);
        assert_string_equal(body.data, "{\"error\":\"there is nothing at '/nothing'\"}");
        assert_int_equal(http_child_ask(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", &body), 405);
        assert_string_equal(body.data, "{\"error\":\"'/echo' takes POST, not GET\"}");
        (void) close(fd);
        fd = http_child_dial(&server);
        assert_int_equal(http_child_post(fd, "/nothing", "body", 4, &body), 404);
        assert_int_equal(http_child_post(fd, "/echo", "body", 4, &body), 200); /* the connection lives on */
        (void) close(fd);
        http_child_stop(&server);
        text_free(&body);
}

static void garbage_is_refused(void **state)
{
        static const char *const requests[] = {
                "\r\n\r\n\r\nnonsense\r\n\r\n",
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5x\r\n\r\n",
                "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                "GET /hello/ HTTP/9.9\r\n\r\n",
        };
        struct http_child server = http_child_start();
        struct text body = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                int fd = http_child_dial(&server);
                unsigned status;

                http_child_send(fd, requests[i], strlen(requests[i]));
                (void) shutdown(fd, SHUT_WR);
                status = http_child_read_reply(fd, &body);
                if (status == 200 || (status != 0 && status / 100 != 4 && status != 505))
                        fail_msg("request %zu got %u", i, status);
                (void) close(fd);
        }
        http_child_stop(&server);
        text_free(&body);
}

/* On a server that is otherwise idle: eight answers, each given 50 ms later, and not when something else (the
 * sweep, once a second) happens to wake the server. */
static void a_later_answer_goes_out_at_once(void **state)
{
        struct http_child server = http_child_start();
        int fd = http_child_dial(&server);
        struct text body = { 0 };
        uint64_t begin;

        (void) state;
        begin = clock_monotonic_usec();
        for (int i = 0; i < 8; i++)
                assert_int_equal(http_child_post(fd, "/later", "hi", 2, &body), 202);
        assert_true(clock_monotonic_usec() - begin < 5000000);
        http_child_stop(&server);
        (void) close(fd);
        text_free(&body);
}

static void an_answer_may_come_later(void **state)
{
        struct http_child server = http_child_start();
        int first = http_child_dial(&server), second = http_child_dial(&server),
            third = http_child_dial(&server);
        struct text body = { 0 };
        static const char request[] = "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";

        (void) state;
        http_child_send(first, request, strlen(request));
        http_child_send(third, request, strlen(request));
        (void) close(third); /* goes away before it is answered */
        assert_int_equal(http_child_post(second, "/echo", "meanwhile", 9, &body), 200);
        assert_int_equal(http_child_read_reply(first, &body), 202);
        assert_string_equal(body.data, "later");
        assert_int_equal(http_child_post(first, "/echo", "again", 5, &body), 200);
        http_child_send(first, request, strlen(request)); /* the server stops with this one waiting */
        assert_int_equal(http_child_post(second, "/echo", "meanwhile", 9, &body), 200);
        http_child_stop(&server);
        (void) close(first);
        (void) close(second);
        text_free(&body);
}

/* Whoever may have to wait need not: the answer is there before it is waited for. */
static void a_later_answer_may_come_at_once(void **state)
{
        struct http_child server = http_child_start();
        int fd = http_child_dial(&server);
        struct text body = { 0 };

        (void) state;
        for (int i = 0; i < 3; i++) {
                assert_int_equal(http_child_post(fd, "/at-once", "hi", 2, &body), 202);
                assert_string_equal(body.data, "at once");
        }
        assert_int_equal(http_child_post(fd, "/echo", "again", 5, &body), 200);
        http_child_stop(&server);
        (void) close(fd);
        text_free(&body);
}

static void unix_sockets_tell_who_is_there(void **state)
{
        char folder[] = "/tmp/remuda-http-XXXXXX", address[64], path[64], expected[64];
        struct http_child server;
        struct text body = { 0 };
        struct stat st;
        int fd;

        (void) state;
        assert_non_null(mkdtemp(folder));
        (void) text_format(path, sizeof(path), "%s/s", folder);
        (void) text_format(address, sizeof(address), "unix:%s", path);
        fd = socket(AF_UNIX, SOCK_STREAM, 0); /* one that a dead server left behind */
        {
                struct sockaddr_un un = { .sun_family = AF_UNIX };

                (void) text_copy(un.sun_path, sizeof(un.sun_path), path);
                assert_int_equal(bind(fd, (struct sockaddr *) &un, sizeof(un)), 0);
        }
        (void) close(fd);
        server = http_child_start_with((struct http_server_options){ .address = address, .unix_mode = 0600 });
        assert_string_equal(server.address, address);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        fd = http_child_dial(&server);
        assert_int_equal(http_child_ask(fd, "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n", &body), 200);
        (void) text_format(expected, sizeof(expected), "0 %d", (int) getpid());
        assert_string_equal(body.data, expected);
        (void) close(fd);
        http_child_stop(&server);
        assert_int_equal(rmdir(folder), 0); /* the server removed its socket */
        text_free(&body);
}

/* clang-format off */
static const struct {
        const char *address;
        bool loopback_only;
        int result;
} addresses[] = {
        { "127.0.0.1:0",          true,  0 },
        { "localhost:0",          true,  0 },
        { "127.8.9.1:0",          true,  0 },
        { "[::1]:0",              true,  0 },
        { "0.0.0.0:0",            true,  -EACCES },
        { ":0",                   true,  -EACCES },
        { "[::]:0",               true,  -EACCES },
        { "0.0.0.0:0",            false, 0 },
        { "127.0.0.1",            true,  -EINVAL },
        { "127.0.0.1:",           true,  -EINVAL },
        { "127.0.0.1:99999",      true,  -EINVAL },
        { "::1:0",                true,  -EINVAL },
        { "nonsense",             true,  -EINVAL },
        { "unix:relative",        true,  -EINVAL },
        { "",                     true,  -EINVAL },
};
/* clang-format on */

static void addresses_are_judged(void **state)
{
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
                struct http_server_options options = { .address = addresses[i].address,
                                                       .loopback_only = addresses[i].loopback_only,
                                                       .routes = http_child_routes };
                struct http_server *s = NULL;
                struct err err = { 0 };
                int r = http_server_new(loop, &options, &s, &err);

                if (r == -EADDRNOTAVAIL && addresses[i].address[0] == '[')
                        continue; /* no IPv6 here */
                if (r != addresses[i].result || (r < 0) != (err.msg[0] != '\0'))
                        fail_msg("'%s': want %d, got %d '%s'", addresses[i].address, addresses[i].result, r,
                                 err.msg);
                http_server_free(s);
        }
        sd_event_unref(loop);
}

static void an_address_in_use_is_an_error(void **state)
{
        struct http_child server = http_child_start();
        sd_event *loop = NULL;
        struct http_server *s = NULL;
        struct err err = { 0 };
        struct http_server_options options = { .address = server.address, .routes = http_child_routes };

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        assert_int_equal(http_server_new(loop, &options, &s, &err), -EADDRINUSE);
        sd_event_unref(loop);
        http_child_stop(&server);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(many_requests_share_a_connection),
                cmocka_unit_test(paths_and_queries_reach_the_handler),
                cmocka_unit_test(what_is_not_there_says_so),
                cmocka_unit_test(garbage_is_refused),
                cmocka_unit_test(an_answer_may_come_later),
                cmocka_unit_test(a_later_answer_goes_out_at_once),
                cmocka_unit_test(a_later_answer_may_come_at_once),
                cmocka_unit_test(unix_sockets_tell_who_is_there),
                cmocka_unit_test(addresses_are_judged),
                cmocka_unit_test(an_address_in_use_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
