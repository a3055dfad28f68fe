/* Between the socket (or what it goes through), nghttp2's session and the loop; and the two kinds of
 * address. */
#include "io/grpc/grpc_connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"

/* One turn reads at most this much, so that one busy peer leaves room for the others. */
#define READ_TURN_BYTES ((size_t) 256 << 10)

static void close_soon(struct grpc_connection *c, const char *why)
{
        if (c->closing)
                return;
        c->closing = true;
        (void) text_copy(c->why, sizeof(c->why), why);
}

/* As recv(), send(), with a negative errno. */
static ssize_t take_bytes(struct grpc_connection *c, uint8_t *buffer, size_t size_bytes)
{
        ssize_t n;

        if (c->transport != NULL)
                return c->transport->read(c->transport, buffer, size_bytes);
        n = recv(c->fd, buffer, size_bytes, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

static ssize_t give_bytes(struct grpc_connection *c, const uint8_t *bytes, size_t size_bytes)
{
        ssize_t n;

        if (c->transport != NULL)
                return c->transport->write(c->transport, bytes, size_bytes);
        n = send(c->fd, bytes, size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

static void close_broken(struct grpc_connection *c, const char *why)
{
        bool named = c->transport != NULL && c->transport->why[0] != '\0';

        c->refused = c->transport != NULL && c->transport->refused;
        close_soon(c, named ? c->transport->why : why);
}

/* A record of TLS where HTTP/2 was to begin: a handshake or, as an answer to ours, an alert. */
static bool is_foreign(struct grpc_connection *c, const uint8_t *bytes, size_t size_bytes)
{
        bool first = !c->began;

        c->began = true;
        if (!first || c->transport != NULL || size_bytes < 2 || (bytes[0] != 0x15 && bytes[0] != 0x16) ||
            bytes[1] != 0x03)
                return false;
        c->refused = true;
        close_soon(c, "the peer speaks TLS and this side does not; give both sides their keys, or neither");
        return true;
}

const uint8_t *grpc_connection_binding(const struct grpc_connection *c)
{
        static const uint8_t none[TRANSPORT_BINDING_BYTES];

        return c->transport != NULL ? c->transport->binding : none;
}

static int write_some(struct grpc_connection *c)
{
        ssize_t n;

        if (c->out_bytes == 0) {
                const uint8_t *data;
                ssize_t size = nghttp2_session_mem_send(c->session, &data);

                if (size < 0)
                        return -ENOMEM;
                if (size == 0)
                        return 0;
                c->out = data;
                c->out_bytes = (size_t) size;
        }
        n = give_bytes(c, c->out, c->out_bytes);
        if (n < 0)
                return n == -EINTR ? 1 : (int) n;
        c->out += n;
        c->out_bytes -= (size_t) n;
        return 1;
}

static void set_interest(struct grpc_connection *c, bool blocked)
{
        uint32_t interest = (nghttp2_session_want_read(c->session) ? EPOLLIN : 0u) |
                            (blocked || c->connecting ? EPOLLOUT : 0u);

        if (interest == c->interest || c->closing)
                return;
        c->interest = interest;
        if (sd_event_source_set_io_events(c->io, interest) < 0)
                close_soon(c, "the loop refused the descriptor");
}

static void write_all(struct grpc_connection *c)
{
        int r = 1;

        if (c->connecting || c->closing)
                return;
        while (r > 0)
                r = write_some(c);
        if (r < 0 && r != -EAGAIN) {
                close_broken(c, r == -ENOMEM ? "out of memory" : "the peer has gone away");
                return;
        }
        if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session) &&
            c->out_bytes == 0)
                close_soon(c, "the session has ended");
        set_interest(c, r == -EAGAIN && (c->transport == NULL || c->transport->wants_write));
}

/* Reads what there is. Return: false at the end of the stream. */
static bool read_some(struct grpc_connection *c)
{
        uint8_t buffer[16384];

        for (size_t total = 0;
             total < READ_TURN_BYTES || (c->transport != NULL && c->transport->pending(c->transport));) {
                ssize_t n = take_bytes(c, buffer, sizeof(buffer)), used;

                if (n == -EINTR)
                        continue;
                if (n < 0)
                        return n == -EAGAIN;
                if (n == 0)
                        return false;
                if (is_foreign(c, buffer, (size_t) n))
                        return true;
                total += (size_t) n;
                used = nghttp2_session_mem_recv(c->session, buffer, (size_t) n);
                if (used < 0) {
                        close_soon(c, nghttp2_strerror((int) used));
                        return true;
                }
        }
        return true;
}

/* Where nobody listens, a port of outgoing connections may meet itself: TCP calls that a connection, and it
 * would keep a server from that port. Reset, so that the port is free at once. */
static bool is_connected_to_itself(int fd)
{
        const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
        struct sockaddr_storage own = { 0 }, peer = { 0 };
        socklen_t own_size = sizeof(own), peer_size = sizeof(peer);

        if (getsockname(fd, (struct sockaddr *) &own, &own_size) < 0 ||
            getpeername(fd, (struct sockaddr *) &peer, &peer_size) < 0 || own.ss_family == AF_UNIX ||
            own_size != peer_size || memcmp(&own, &peer, own_size) != 0)
                return false;
        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        return true;
}

static void finish_connect(struct grpc_connection *c)
{
        int error = 0;
        socklen_t size = sizeof(error);

        if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
                error = errno;
        if (error != 0) {
                char why[128];

                (void) text_format(why, sizeof(why), "connect: %s", strerror(error));
                close_soon(c, why);
                return;
        }
        if (is_connected_to_itself(c->fd)) {
                close_soon(c, "connect: nobody listens there");
                return;
        }
        c->connecting = false;
}

static void settle(struct grpc_connection *c)
{
        c->dispatching = true;
        write_all(c);
        c->dispatching = false;
        if (c->closing)
                c->on_closed(c);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct grpc_connection *c = userdata;

        (void) source;
        (void) fd;
        c->dispatching = true;
        if (c->connecting)
                finish_connect(c);
        else if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !read_some(c))
                close_broken(c, "the peer closed the connection");
        c->dispatching = false;
        settle(c);
        return 0;
}

static int on_flush(sd_event_source *source, void *userdata)
{
        (void) source;
        settle(userdata);
        return 0;
}

static int on_keepalive(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct grpc_connection *c = userdata;

        (void) usec;
        if (c->ping_open) {
                close_soon(c, "keep-alive was not answered");
        } else {
                c->ping_open = true;
                (void) nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
                loop_rearm(source, c->keepalive_timeout_usec);
        }
        settle(c);
        return 0;
}

void grpc_connection_pong(struct grpc_connection *c)
{
        if (!c->ping_open)
                return;
        c->ping_open = false;
        loop_rearm(c->keepalive, c->keepalive_usec);
}

int grpc_connection_keepalive(struct grpc_connection *c, uint64_t every_usec, uint64_t timeout_usec)
{
        c->keepalive_usec = every_usec;
        c->keepalive_timeout_usec = timeout_usec;
        return sd_event_add_time_relative(c->loop, &c->keepalive, CLOCK_MONOTONIC, every_usec, 0,
                                          on_keepalive, c);
}

int grpc_connection_start(struct grpc_connection *c, sd_event *loop, int fd, nghttp2_session *session,
                          bool connecting, struct err *err)
{
        int r;

        c->loop = sd_event_ref(loop);
        c->fd = fd;
        c->session = session;
        c->connecting = connecting;
        c->interest = EPOLLIN | (connecting ? EPOLLOUT : 0u);
        r = sd_event_add_io(loop, &c->io, fd, c->interest, on_io, c);
        if (r >= 0)
                r = sd_event_add_defer(loop, &c->flush, on_flush, c);
        if (r < 0) {
                grpc_connection_release(c);
                return err_set(err, r, "watch a connection: %s", strerror(-r));
        }
        return 0;
}

void grpc_connection_kick(struct grpc_connection *c)
{
        if (!c->dispatching)
                (void) sd_event_source_set_enabled(c->flush, SD_EVENT_ONESHOT);
}

void grpc_connection_flush(struct grpc_connection *c)
{
        if (c->session == NULL)
                return;
        c->dispatching = true;
        write_all(c);
        c->dispatching = false;
}

void grpc_connection_goodbye(struct grpc_connection *c)
{
        if (c->session != NULL && !c->closing && !c->connecting) {
                c->dispatching = true;
                (void) nghttp2_session_terminate_session(c->session, NGHTTP2_NO_ERROR);
                write_all(c);
                c->dispatching = false;
        }
        grpc_connection_release(c);
}

void grpc_connection_release(struct grpc_connection *c)
{
        c->io = sd_event_source_disable_unref(c->io);
        c->flush = sd_event_source_disable_unref(c->flush);
        c->keepalive = sd_event_source_disable_unref(c->keepalive);
        if (c->session != NULL)
                nghttp2_session_del(TAKE(c->session));
        if (c->transport != NULL)
                c->transport->free(TAKE(c->transport));
        if (c->fd >= 0)
                (void) close(c->fd);
        c->fd = -1;
        c->out_bytes = 0;
        c->loop = sd_event_unref(c->loop);
}
