/* Listening, accepting within a limit, and letting go of peers in good order. */
#include "io/grpc/grpc_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/text.h"
#include "io/grpc/grpc_address.h"
#include "io/grpc/grpc_server_internal.h"
#include "io/loop.h"

#define ACCEPT_PAUSE_USEC ((uint64_t) 100000) /* out of descriptors: look again, do not spin */

static void peer_unlink(struct grpc_peer *peer)
{
        if (peer->next != NULL)
                peer->next->previous = peer->previous;
        if (peer->previous != NULL)
                peer->previous->next = peer->next;
        else
                peer->server->peers = peer->next;
        peer->server->peer_count--;
}

static void peer_free(struct grpc_peer *peer, bool goodbye)
{
        if (goodbye) /* answers that were given just now: a session that ends sends none */
                grpc_connection_flush(&peer->connection);
        peer_unlink(peer);
        /* the session must not find calls that are gone */
        for (struct grpc_call *call = peer->calls; call != NULL; call = peer->calls) {
                (void) nghttp2_session_set_stream_user_data(peer->connection.session, call->stream, NULL);
                if (goodbye && call->answered)
                        (void) nghttp2_submit_rst_stream(peer->connection.session, NGHTTP2_FLAG_NONE,
                                                         call->stream, NGHTTP2_CANCEL);
                grpc_call_free(call);
        }
        if (goodbye)
                grpc_connection_goodbye(&peer->connection);
        else
                grpc_connection_release(&peer->connection);
        free(peer);
}

static void on_connection_closed(struct grpc_connection *connection)
{
        const struct grpc_peer *peer = connection->owner;

        if (connection->refused && peer->server->options.on_refused != NULL)
                peer->server->options.on_refused(peer->server->options.userdata, connection->why);
        peer_free(connection->owner, false);
}

static void evict(struct grpc_server *server)
{
        struct grpc_peer *victim = NULL;

        for (struct grpc_peer *p = server->peers; p != NULL; p = p->next)
                if (victim == NULL || (p->call_count == 0) > (victim->call_count == 0) ||
                    ((p->call_count == 0) == (victim->call_count == 0) && p->last_used < victim->last_used))
                        victim = p;
        if (victim != NULL)
                peer_free(victim, true);
}

static void peer_new(struct grpc_server *server, int fd)
{
        struct grpc_peer *peer;
        nghttp2_session *session = NULL;

        if (server->peer_count >= server->options.connections_max)
                evict(server);
        peer = calloc(1, sizeof(*peer));
        if (peer == NULL || grpc_peer_session(peer, &session) < 0) {
                free(peer);
                (void) close(fd);
                return;
        }
        peer->server = server;
        peer->last_used = ++server->uses;
        peer->number = ++server->accepted;
        peer->connection.owner = peer;
        peer->connection.on_closed = on_connection_closed;
        if (server->options.wrap != NULL) {
                peer->connection.transport = server->options.wrap(server->options.wrap_userdata, fd);
                if (peer->connection.transport == NULL) {
                        nghttp2_session_del(session);
                        free(peer);
                        (void) close(fd);
                        return;
                }
        }
        if (grpc_connection_start(&peer->connection, server->loop, fd, session, false, NULL) < 0) {
                free(peer);
                return;
        }
        if (server->options.keepalive_usec > 0 &&
            grpc_connection_keepalive(&peer->connection, server->options.keepalive_usec,
                                      server->options.keepalive_timeout_usec) < 0) {
                grpc_connection_release(&peer->connection);
                free(peer);
                return;
        }
        peer->next = server->peers;
        if (peer->next != NULL)
                peer->next->previous = peer;
        server->peers = peer;
        server->peer_count++;
}

static int on_accept_pause(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct grpc_server *server = userdata;

        (void) source;
        (void) usec;
        return sd_event_source_set_enabled(server->accept, SD_EVENT_ON);
}

static int on_accept(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct grpc_server *server = userdata;

        (void) events;
        for (int i = 0; i < 16; i++) {
                int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (peer >= 0) {
                        peer_new(server, peer);
                        continue;
                }
                if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
                        return 0;
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
                loop_rearm(server->accept_pause, ACCEPT_PAUSE_USEC);
                return 0;
        }
        return 0;
}

static const char *unix_path(const struct grpc_server *server)
{
        return text_starts_with(server->address, "unix:") ? server->address + strlen("unix:") : NULL;
}

bool grpc_server_listening(const struct grpc_server *server)
{
        const char *path = unix_path(server);
        struct stat status;

        if (server->fd < 0)
                return false;
        return path == NULL || (lstat(path, &status) == 0 && status.st_dev == server->device &&
                                status.st_ino == server->inode);
}

static void learn_address(struct grpc_server *server, const char *address)
{
        union {
                struct sockaddr any;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
        } u = { 0 };
        socklen_t size = sizeof(u);
        char host[INET6_ADDRSTRLEN] = "";
        struct stat status;

        (void) text_copy(server->address, sizeof(server->address), address);
        if (unix_path(server) != NULL) {
                if (lstat(unix_path(server), &status) == 0) {
                        server->device = status.st_dev;
                        server->inode = status.st_ino;
                }
                return;
        }
        if (getsockname(server->fd, &u.any, &size) < 0)
                return;
        if (u.any.sa_family == AF_INET) {
                (void) inet_ntop(AF_INET, &u.in.sin_addr, host, sizeof(host));
                (void) text_format(server->address, sizeof(server->address), "%s:%u", host,
                                   ntohs(u.in.sin_port));
        } else {
                (void) inet_ntop(AF_INET6, &u.in6.sin6_addr, host, sizeof(host));
                (void) text_format(server->address, sizeof(server->address), "[%s]:%u", host,
                                   ntohs(u.in6.sin6_port));
        }
}

int grpc_server_new(sd_event *loop, const struct grpc_server_options *options, struct grpc_server **ret,
                    struct err *err)
{
        struct grpc_server *server = calloc(1, sizeof(*server));
        int r;

        if (server == NULL)
                return err_set(err, -ENOMEM, "no memory for a server on '%s'", options->address);
        server->options = *options;
        if (server->options.message_max_bytes == 0)
                server->options.message_max_bytes = GRPC_MESSAGE_MAX_BYTES;
        if (server->options.connections_max == 0)
                server->options.connections_max = 64;
        if (server->options.keepalive_timeout_usec == 0)
                server->options.keepalive_timeout_usec = 20000000;
        server->fd = grpc_address_listen(options->address,
                                         options->unix_mode == 0 ? 0600 : options->unix_mode, err);
        if (server->fd < 0) {
                r = server->fd;
                free(server);
                return r;
        }
        server->loop = sd_event_ref(loop);
        learn_address(server, options->address);
        r = sd_event_add_io(loop, &server->accept, server->fd, EPOLLIN, on_accept, server);
        if (r >= 0)
                r = sd_event_add_time_relative(loop, &server->accept_pause, CLOCK_MONOTONIC, 0, 0,
                                               on_accept_pause, server);
        if (r >= 0)
                r = sd_event_source_set_enabled(server->accept_pause, SD_EVENT_OFF);
        if (r < 0) {
                grpc_server_free(server);
                return err_set(err, r, "watch '%s': %s", options->address, strerror(-r));
        }
        *ret = server;
        return 0;
}

void grpc_server_retire(struct grpc_server *server)
{
        if (server->fd < 0)
                return;
        if (unix_path(server) != NULL && grpc_server_listening(server))
                (void) unlink(unix_path(server));
        server->accept = sd_event_source_disable_unref(server->accept);
        server->accept_pause = sd_event_source_disable_unref(server->accept_pause);
        (void) close(server->fd);
        server->fd = -1;
}

void grpc_server_free(struct grpc_server *server)
{
        if (server == NULL)
                return;
        grpc_server_retire(server);
        while (server->peers != NULL)
                peer_free(server->peers, true);
        (void) sd_event_unref(server->loop);
        free(server);
}

size_t grpc_server_connections(const struct grpc_server *server)
{
        return server->peer_count;
}

const char *grpc_server_address(const struct grpc_server *server)
{
        return server->address;
}
