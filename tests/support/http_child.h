/* Our HTTP server in a child process, and a client of plain sockets: what a test sees is what a client sees,
 * slow ones and rude ones included. */
#pragma once

#include "base/text.h"
#include "io/http/http_server.h"

struct http_child {
        pid_t pid;
        char address[128];
};

/* POST /echo and /small (10 bytes at most) give the body back, GET /hello/WHAT?name= its path and name, GET
 * /peer who asks; POST /later answers 202 after 50 ms, /at-once before its handler has returned. */
extern const struct http_route http_child_routes[];

/* http_child_start_with() - a server with these options and the routes above; it dies with the test. */
struct http_child http_child_start_with(struct http_server_options options);
/* http_child_start() - one on a free port of the loopback address. */
struct http_child http_child_start(void);
/* http_child_stop() - ends it, and fails the test unless it ended well. */
void http_child_stop(const struct http_child *server);

/* http_child_dial() - a new connection, whose reads give up after 20 s. */
int http_child_dial(const struct http_child *server);
/* http_child_send() - all bytes, or as many as the server takes before it closes. */
void http_child_send(int fd, const char *bytes, size_t size);
/* http_child_read_reply() - one whole reply, by its Content-Length. Return: the status, 0 when the connection
 * ended. */
unsigned http_child_read_reply(int fd, struct text *body);
/* http_child_post(), http_child_ask() - a request of this body, of these bytes, and its reply. */
unsigned http_child_post(int fd, const char *path, const char *bytes, size_t size, struct text *body);
unsigned http_child_ask(int fd, const char *request, struct text *body);
