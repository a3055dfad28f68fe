/* Our server against clients that are slow, many, rude or gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/http/http_server.h"
#include "io/loop.h"

/* The server runs in a child process: what is tested is what a client sees, slow ones and rude ones included.
 */
struct server {
        pid_t pid;
        char address[128];
};

static sd_event *the_loop; /* of the child */

static void echo(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        assert_int_equal(strlen(request->body), request->body_bytes);
        http_reply_text(reply, 200, "text/plain", request->body);
}

static void hello(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const char *name = http_request_query(request, "name");
        struct text t = { 0 };

        (void) userdata;
        text_printf(&t, "%s|%s", request->path, name != NULL ? name : "-");
        reply->body = text_take(&t, &reply->body_bytes);
        reply->content_type = "text/plain";
}

static void peer(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        pid_t pid = 0;
        uid_t uid = 0;
        gid_t gid = 0;
        char line[64];
        int r = http_request_peer(request, &pid, &uid, &gid);

        (void) userdata;
        (void) text_format(line, sizeof(line), "%d %d", r, (int) pid);
        http_reply_text(reply, 200, "text/plain", line);
}

struct waiting {
        struct http_pending *pending;
        sd_event_source *timer;
};

static void answer_now(void *userdata)
{
        struct waiting *w = userdata;
        struct http_reply reply = { 0 };

        http_reply_text(&reply, 202, "text/plain", "later");
        http_resume(w->pending, &reply);
        sd_event_source_unref(w->timer);
        free(w);
}

static void later(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct waiting *w = calloc(1, sizeof(*w));

        (void) userdata;
        (void) reply;
        w->pending = http_suspend(request);
        (void) loop_after(the_loop, 50000, answer_now, w, &w->timer);
}

static const struct http_route routes[] = {
        { "POST", "/echo", echo, 0 }, { "POST", "/small", echo, 10 }, { "GET", "/hello/*", hello, 0 },
        { "GET", "/peer", peer, 0 },  { "POST", "/later", later, 0 }, { 0 },
};

static struct server start_with(struct http_server_options options)
{
        struct server server = { 0 };
        int pipe_fds[2];

        assert_int_equal(pipe(pipe_fds), 0);
        options.routes = routes;
        server.pid = fork();
        if (server.pid == 0) {
                struct http_server *s = NULL;
                struct err err = { 0 };

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing running */
                if (loop_new(&the_loop, &err) < 0 || http_server_new(the_loop, &options, &s, &err) < 0)
                        _exit(write(pipe_fds[1], err.msg, strlen(err.msg)) > 0 ? 3 : 4);
                if (write(pipe_fds[1], http_server_address(s), strlen(http_server_address(s)) + 1) < 0)
                        _exit(4);
                (void) close(pipe_fds[1]);
                (void) loop_run(the_loop);
                http_server_free(s);
                sd_event_unref(the_loop);
                exit(0); /* not _exit(): leaks are looked for */
        }
        (void) close(pipe_fds[1]);
        assert_true(read(pipe_fds[0], server.address, sizeof(server.address) - 1) > 0);
        (void) close(pipe_fds[0]);
        return server;
}

static struct server start(void)
{
        return start_with((struct http_server_options){ .address = "127.0.0.1:0", .loopback_only = true });
}

static void stop(const struct server *server)
{
        int status = -1;

        (void) kill(server->pid, SIGTERM);
        assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
        if (status != 0)
                fail_msg("the server ended with status %d", status);
}

static int dial(const struct server *server)
{
        struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct timeval limit = { .tv_sec = 20 };
        int fd;

        if (text_starts_with(server->address, "unix:")) {
                struct sockaddr_un un = { .sun_family = AF_UNIX };

                (void) text_copy(un.sun_path, sizeof(un.sun_path), server->address + 5);
                fd = socket(AF_UNIX, SOCK_STREAM, 0);
                assert_int_equal(connect(fd, (struct sockaddr *) &un, sizeof(un)), 0);
        } else {
                sa.sin_port = htons((uint16_t) strtoul(strrchr(server->address, ':') + 1, NULL, 10));
                fd = socket(AF_INET, SOCK_STREAM, 0);
                assert_int_equal(connect(fd, (struct sockaddr *) &sa, sizeof(sa)), 0);
        }
        (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        return fd;
}

static void send_all(int fd, const char *bytes, size_t size)
{
        while (size > 0) {
                ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);

                if (n <= 0)
                        return; /* the server closed: what it answered is still to be read */
                bytes += n;
                size -= (size_t) n;
        }
}

/* read_reply() - one whole reply, by its Content-Length. Return: the status, 0 when the connection ended. */
static unsigned read_reply(int fd, struct text *body)
{
        struct text head = { 0 };
        char c;
        unsigned status;
        size_t length = 0;
        char *field;

        text_reset(body);
        while (head.data == NULL || !text_ends_with(head.data, "\r\n\r\n")) {
                if (recv(fd, &c, 1, 0) != 1) {
                        text_free(&head);
                        return 0;
                }
                text_append_char(&head, c);
        }
        status = (unsigned) strtoul(head.data + strlen("HTTP/1.1 "), NULL, 10);
        field = strcasestr(head.data, "Content-Length: ");
        if (field == NULL)
                fail_msg("no Content-Length in: %s", head.data);
        length = strtoul(field + strlen("Content-Length: "), NULL, 10);
        text_free(&head);
        while (length > 0) {
                char block[4096];
                ssize_t n = recv(fd, block, length < sizeof(block) ? length : sizeof(block), 0);

                if (n <= 0)
                        return 0;
                text_append_bytes(body, block, (size_t) n);
                length -= (size_t) n;
        }
        return status;
}

static unsigned post(int fd, const char *path, const char *bytes, size_t size, struct text *body)
{
        char head[256];

        (void) text_format(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                           path, size);
        send_all(fd, head, strlen(head));
        send_all(fd, bytes, size);
        return read_reply(fd, body);
}

static unsigned ask(int fd, const char *request, struct text *body)
{
        send_all(fd, request, strlen(request));
        return read_reply(fd, body);
}

static void many_requests_share_a_connection(void **state)
{
        struct server server = start();
        int fd = dial(&server);
        struct text body = { 0 };
        char *large = malloc(200001);

        (void) state;
        memset(large, 'x', 200000);
        large[200000] = '\0';
        for (int i = 0; i < 50; i++) {
                assert_int_equal(post(fd, "/echo", large, 200000, &body), 200);
                assert_int_equal(body.size_bytes, 200000);
                assert_string_equal(body.data, large);
                assert_int_equal(post(fd, "/echo", "", 0, &body), 200);
                assert_int_equal(body.size_bytes, 0);
        }
        (void) close(fd);
        stop(&server);
        free(large);
        text_free(&body);
}

static void paths_and_queries_reach_the_handler(void **state)
{
        struct server server = start();
        int fd = dial(&server);
        struct text body = { 0 };

        (void) state;
        assert_int_equal(
                ask(fd, "GET /hello/a%20b?name=x%2Fy HTTP/1.1\r\nHost: x\r\nUser-Agent: me\r\n\r\n", &body),
                200);
        assert_string_equal(body.data, "/hello/a b|x/y");
        assert_int_equal(ask(fd, "GET /hello/ HTTP/1.1\r\nHost: x\r\n\r\n", &body), 200);
        assert_string_equal(body.data, "/hello/|-");
        (void) close(fd);
        stop(&server);
        text_free(&body);
}

static void what_is_not_there_says_so(void **state)
{
        struct server server = start();
        int fd = dial(&server);
        struct text body = { 0 };

        (void) state;
        assert_int_equal(ask(fd, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", &body), 404);
        assert_string_equal(body.data, "{\"error\":\"there is nothing at '/nothing'\"}");
        assert_int_equal(ask(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", &body), 405);
        assert_string_equal(body.data, "{\"error\":\"'/echo' takes POST, not GET\"}");
        (void) close(fd);
        fd = dial(&server);
        assert_int_equal(post(fd, "/nothing", "body", 4, &body), 404);
        assert_int_equal(post(fd, "/echo", "body", 4, &body), 200); /* the connection lives on */
        (void) close(fd);
        stop(&server);
        text_free(&body);
}

static void a_body_at_the_limit_passes_and_one_beyond_is_413(void **state)
{
        struct server server = start();
        int fd = dial(&server);
        struct text body = { 0 };

        (void) state;
        assert_int_equal(post(fd, "/small", "0123456789", 10, &body), 200);
        assert_int_equal(post(fd, "/small", "0123456789a", 11, &body), 413);
        assert_string_equal(body.data, "{\"error\":\"the body has 11 bytes; at most 10 are taken\"}");
        (void) close(fd);
        fd = dial(&server);
        assert_int_equal(ask(fd,
                             "POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "8\r\n01234567\r\n8\r\n01234567\r\n0\r\n\r\n",
                             &body),
                         413);
        (void) close(fd);
        fd = dial(&server);
        assert_int_equal(ask(fd,
                             "POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n",
                             &body),
                         200);
        assert_string_equal(body.data, "0123456789");
        (void) close(fd);
        stop(&server);
        text_free(&body);
}

/* AddressSanitizer keeps what is freed: memory is only judged without it. */
#ifdef __SANITIZE_ADDRESS__
#define MEMORY_IS_TRUE false
#else
#define MEMORY_IS_TRUE true
#endif

static long peak_rss_kib(pid_t pid)
{
        char path[64], line[128];
        long kib = -1;
        FILE *f;

        (void) text_format(path, sizeof(path), "/proc/%d/status", (int) pid);
        f = fopen(path, "re");
        while (f != NULL && fgets(line, sizeof(line), f) != NULL)
                if (strncmp(line, "VmHWM:", 6) == 0)
                        kib = strtol(line + 6, NULL, 10);
        if (f != NULL)
                (void) fclose(f);
        return kib;
}

static void a_hundred_megabytes_are_refused_in_bounded_memory(void **state)
{
        struct server server = start_with(
                (struct http_server_options){ .address = "127.0.0.1:0", .body_max_bytes = 1 << 20 });
        int fd = dial(&server);
        struct text body = { 0 };
        size_t size = (size_t) 100 << 20;
        char *large = calloc(1, size);
        long before = peak_rss_kib(server.pid);

        (void) state;
        assert_int_equal(post(fd, "/echo", large, size, &body),
                         413); /* the client that sends it all hears why */
        if (MEMORY_IS_TRUE)
                assert_in_range(peak_rss_kib(server.pid) - before, 0, 8 * 1024);
        (void) close(fd);
        fd = dial(&server);
        assert_int_equal(ask(fd,
                             "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n"
                             "Expect: 100-continue\r\n\r\n",
                             &body),
                         413); /* the one that asks first is not made to send */
        (void) close(fd);
        free(large);
        stop(&server);
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
        struct server server = start();
        struct text body = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                int fd = dial(&server);
                unsigned status;

                send_all(fd, requests[i], strlen(requests[i]));
                (void) shutdown(fd, SHUT_WR);
                status = read_reply(fd, &body);
                if (status == 200 || (status != 0 && status / 100 != 4 && status != 505))
                        fail_msg("request %zu got %u", i, status);
                (void) close(fd);
        }
        stop(&server);
        text_free(&body);
}

/* On a server that is otherwise idle: eight answers, each given 50 ms later, and not when something else (the
 * sweep, once a second) happens to wake the server. */
static void a_later_answer_goes_out_at_once(void **state)
{
        struct server server = start();
        int fd = dial(&server);
        struct text body = { 0 };
        uint64_t begin;

        (void) state;
        begin = clock_monotonic_usec();
        for (int i = 0; i < 8; i++)
                assert_int_equal(post(fd, "/later", "hi", 2, &body), 202);
        assert_true(clock_monotonic_usec() - begin < 5000000);
        stop(&server);
        (void) close(fd);
        text_free(&body);
}

static void an_answer_may_come_later(void **state)
{
        struct server server = start();
        int first = dial(&server), second = dial(&server), third = dial(&server);
        struct text body = { 0 };
        static const char request[] = "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";

        (void) state;
        send_all(first, request, strlen(request));
        send_all(third, request, strlen(request));
        (void) close(third); /* goes away before it is answered */
        assert_int_equal(post(second, "/echo", "meanwhile", 9, &body), 200);
        assert_int_equal(read_reply(first, &body), 202);
        assert_string_equal(body.data, "later");
        assert_int_equal(post(first, "/echo", "again", 5, &body), 200);
        send_all(first, request, strlen(request)); /* the server stops with this one waiting */
        assert_int_equal(post(second, "/echo", "meanwhile", 9, &body), 200);
        stop(&server);
        (void) close(first);
        (void) close(second);
        text_free(&body);
}

static void too_many_connections_close_the_oldest_unused_one(void **state)
{
        struct server server =
                start_with((struct http_server_options){ .address = "127.0.0.1:0", .connections_max = 50 });
        int scheduler = dial(&server), idle[300];
        struct text body = { 0 };
        char c;

        (void) state;
        assert_int_equal(post(scheduler, "/echo", "first", 5, &body), 200);
        for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
                idle[i] = dial(&server);
        assert_int_equal(post(scheduler, "/echo", "second", 6, &body),
                         200);                        /* proven: it was not the one to go */
        assert_int_equal(recv(idle[0], &c, 1, 0), 0); /* the oldest that never asked was */
        assert_int_equal(post(idle[299], "/echo", "third", 5, &body), 200);
        for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
                (void) close(idle[i]);
        (void) close(scheduler);
        stop(&server);
        text_free(&body);
}

static void one_address_cannot_lock_itself_out(void **state)
{
        struct server server = start_with(
                (struct http_server_options){ .address = "127.0.0.1:0", .connections_max_per_address = 20 });
        struct text body = { 0 };
        int idle[100];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
                idle[i] = dial(&server);
        assert_int_equal(post(idle[99], "/echo", "x", 1, &body), 200);
        for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
                (void) close(idle[i]);
        stop(&server);
        text_free(&body);
}

static void slow_readers_are_closed(void **state)
{
        struct server server =
                start_with((struct http_server_options){ .address = "127.0.0.1:0", .idle_timeout_sec = 1 });
        int fd = dial(&server);
        char c;

        (void) state;
        for (int i = 0; i < 16; i++) { /* a byte now and then keeps the library's own timeout away */
                send_all(fd, "G", 1);
                if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 500) > 0)
                        break;
        }
        assert_true(recv(fd, &c, 1, 0) <= 0);
        (void) close(fd);
        stop(&server);
}

static void bodies_together_have_a_budget(void **state)
{
        struct server server = start_with(
                (struct http_server_options){ .address = "127.0.0.1:0", .body_max_bytes = 8 << 20 });
        struct text body = { 0 };
        static const char head[] = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n";
        char *part = calloc(1, 4000000);
        int hoarder[20], scheduler;
        long before = peak_rss_kib(server.pid);

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(hoarder); i++) {
                hoarder[i] = dial(&server);
                send_all(hoarder[i], head, strlen(head));
                send_all(hoarder[i], part, 4000000); /* and no more: 80 MB if all were kept */
        }
        scheduler = dial(&server);
        assert_int_equal(post(scheduler, "/echo", "x", 1, &body), 200);
        if (MEMORY_IS_TRUE)
                assert_in_range(peak_rss_kib(server.pid) - before, 0, 60 * 1024);
        for (size_t i = 0; i < ARRAY_SIZE(hoarder); i++)
                (void) close(hoarder[i]);
        (void) close(scheduler);
        free(part);
        stop(&server);
        text_free(&body);
}

static void unix_sockets_tell_who_is_there(void **state)
{
        char folder[] = "/tmp/remuda-http-XXXXXX", address[64], path[64], expected[64];
        struct server server;
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
        server = start_with((struct http_server_options){ .address = address, .unix_mode = 0600 });
        assert_string_equal(server.address, address);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        fd = dial(&server);
        assert_int_equal(ask(fd, "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n", &body), 200);
        (void) text_format(expected, sizeof(expected), "0 %d", (int) getpid());
        assert_string_equal(body.data, expected);
        (void) close(fd);
        stop(&server);
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
                                                       .routes = routes };
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
        struct server server = start();
        sd_event *loop = NULL;
        struct http_server *s = NULL;
        struct err err = { 0 };
        struct http_server_options options = { .address = server.address, .routes = routes };

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        assert_int_equal(http_server_new(loop, &options, &s, &err), -EADDRINUSE);
        sd_event_unref(loop);
        stop(&server);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(many_requests_share_a_connection),
                cmocka_unit_test(paths_and_queries_reach_the_handler),
                cmocka_unit_test(what_is_not_there_says_so),
                cmocka_unit_test(a_body_at_the_limit_passes_and_one_beyond_is_413),
                cmocka_unit_test(a_hundred_megabytes_are_refused_in_bounded_memory),
                cmocka_unit_test(garbage_is_refused),
                cmocka_unit_test(an_answer_may_come_later),
                cmocka_unit_test(a_later_answer_goes_out_at_once),
                cmocka_unit_test(too_many_connections_close_the_oldest_unused_one),
                cmocka_unit_test(one_address_cannot_lock_itself_out),
                cmocka_unit_test(slow_readers_are_closed),
                cmocka_unit_test(bodies_together_have_a_budget),
                cmocka_unit_test(unix_sockets_tell_who_is_there),
                cmocka_unit_test(addresses_are_judged),
                cmocka_unit_test(an_address_in_use_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
