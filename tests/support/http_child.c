/* See http_child.h. The child answers by the routes here; the client's side is plain sockets, to be as rude
 * as it likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/loop.h"
#include "io/peer.h"
#include "tests/support/http_child.h"

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
        const struct peer *p = http_request_peer(request);
        char line[64];

        (void) userdata;
        (void) text_format(line, sizeof(line), "%d %d", p != NULL && peer_is_there(p) ? 0 : -1,
                           p != NULL ? (int) p->pid : 0);
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

static void at_once(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct http_pending *pending = http_suspend(request);
        struct http_reply answer = { 0 };

        (void) userdata;
        (void) reply;
        http_reply_text(&answer, 202, "text/plain", "at once");
        http_resume(pending, &answer);
}

const struct http_route http_child_routes[] = {
        { .method = "POST", .path = "/echo", .handler = echo },
        { .method = "POST", .path = "/small", .handler = echo, .body_max_bytes = 10 },
        { .method = "GET", .path = "/hello/*", .handler = hello },
        { .method = "GET", .path = "/peer", .handler = peer },
        { .method = "POST", .path = "/later", .handler = later },
        { .method = "POST", .path = "/at-once", .handler = at_once },
        { 0 },
};

struct http_child http_child_start_with(struct http_server_options options)
{
        struct http_child server = { 0 };
        int pipe_fds[2];

        assert_int_equal(pipe(pipe_fds), 0);
        options.routes = http_child_routes;
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

struct http_child http_child_start(void)
{
        return http_child_start_with(
                (struct http_server_options){ .address = "127.0.0.1:0", .loopback_only = true });
}

void http_child_stop(const struct http_child *server)
{
        int status = -1;

        (void) kill(server->pid, SIGTERM);
        assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
        if (status != 0)
                fail_msg("the server ended with status %d", status);
}

int http_child_dial(const struct http_child *server)
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

void http_child_send(int fd, const char *bytes, size_t size)
{
        while (size > 0) {
                ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);

                if (n <= 0)
                        return; /* the server closed: what it answered is still to be read */
                bytes += n;
                size -= (size_t) n;
        }
}

/* http_child_read_reply() - one whole reply, by its Content-Length. Return: the status, 0 when the connection
 * ended. */
unsigned http_child_read_reply(int fd, struct text *body)
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

unsigned http_child_post(int fd, const char *path, const char *bytes, size_t size, struct text *body)
{
        char head[256];

        (void) text_format(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                           path, size);
        http_child_send(fd, head, strlen(head));
        http_child_send(fd, bytes, size);
        return http_child_read_reply(fd, body);
}

unsigned http_child_ask(int fd, const char *request, struct text *body)
{
        http_child_send(fd, request, strlen(request));
        return http_child_read_reply(fd, body);
}
