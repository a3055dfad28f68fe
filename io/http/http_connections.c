/* Lists by rank; a connection that has to go is shut down, and the library notices the end of its stream. */
#include "io/http/http_connections.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "io/http/http_tls.h"

#define BYTES_PER_SECOND_MIN 65536 /* a body's sender gets a second more for every so many bytes */
#define STRANGER_SEND_BYTES  131072
#define SENDING_SEC          10 /* an answer's reader has this and the same */

static void unlink_from_rank(struct http_connections *all, struct http_connection *c)
{
        if (c->rank == HTTP_CONNECTIONS_CLOSING)
                return;
        if (c->previous != NULL)
                c->previous->next = c->next;
        else
                all->ranks[c->rank].first = c->next;
        if (c->next != NULL)
                c->next->previous = c->previous;
        else
                all->ranks[c->rank].last = c->previous;
        c->previous = c->next = NULL;
}

static void set_rank(struct http_connections *all, struct http_connection *c, enum http_connections_rank rank)
{
        unlink_from_rank(all, c);
        c->rank = rank;
        if (rank == HTTP_CONNECTIONS_CLOSING)
                return;
        c->previous = all->ranks[rank].last;
        if (c->previous != NULL)
                c->previous->next = c;
        else
                all->ranks[rank].first = c;
        all->ranks[rank].last = c;
}

/* The library notices the end of the stream and closes; the descriptor itself is its own. */
static void close_soon(struct http_connections *all, struct http_connection *c)
{
        if (c->closing)
                return;
        if (c->rank ==
            HTTP_CONNECTIONS_SENDING) /* what it does not take is not kept for it, by the kernel neither */
                (void) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
                                  sizeof(struct linger));
        c->closing = true;
        all->count--;
        set_rank(all, c, HTTP_CONNECTIONS_CLOSING); /* nothing more to choose it for */
        (void) shutdown(c->fd, SHUT_RDWR);
}

static uint64_t hash_address(const struct sockaddr *sa)
{
        if (sa != NULL && sa->sa_family == AF_INET)
                return hash_bytes(&((const struct sockaddr_in *) sa)->sin_addr, sizeof(struct in_addr), 0);
        if (sa != NULL && sa->sa_family == AF_INET6)
                return hash_bytes(&((const struct sockaddr_in6 *) sa)->sin6_addr, sizeof(struct in6_addr), 0);
        return 0;
}

/* oldest() - who gives way; with `address` only among that address's connections. */
static struct http_connection *oldest(const struct http_connections *all, const uint64_t *address,
                                      const struct http_connection *not_this)
{
        for (int rank = 0; rank < HTTP_CONNECTIONS_BUSY; rank++)
                for (struct http_connection *c = all->ranks[rank].first; c != NULL; c = c->next)
                        if (c != not_this && (address == NULL || c->address_hash == *address))
                                return c;
        return NULL;
}

static unsigned count_address(const struct http_connections *all, uint64_t address)
{
        unsigned count = 0;

        for (int rank = 0; rank < HTTP_CONNECTIONS_RANKS; rank++)
                for (const struct http_connection *c = all->ranks[rank].first; c != NULL; c = c->next)
                        count += c->address_hash == address;
        return count;
}

static void make_room(struct http_connections *all, struct http_connection *newcomer)
{
        const uint64_t *address = NULL;
        struct http_connection *victim;

        if (all->max_per_address > 0 && count_address(all, newcomer->address_hash) > all->max_per_address)
                address = &newcomer->address_hash;
        else if (all->count <= all->max)
                return;
        victim = oldest(all, address, newcomer);
        close_soon(all, victim != NULL ? victim : newcomer);
}

struct http_connection *http_connections_add(struct http_connections *all, struct MHD_Connection *mhd,
                                             uint64_t now_usec)
{
        const union MHD_ConnectionInfo *fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        const union MHD_ConnectionInfo *address =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        struct http_connection *c = calloc(1, sizeof(*c));

        if (c == NULL) {
                if (fd != NULL)
                        (void) shutdown(fd->connect_fd, SHUT_RDWR);
                return NULL;
        }
        c->mhd = mhd;
        c->fd = fd != NULL ? fd->connect_fd : -1;
        c->address_hash = address != NULL ? hash_address(address->client_addr) : 0;
        c->has_peer = address == NULL || address->client_addr->sa_family == AF_UNIX
                              ? peer_open(c->fd, &c->peer) == 0
                              : false;
        if (c->has_peer)
                c->address_hash = c->peer.place;
        if (all->max_per_address >
            0) /* strangers: the kernel would take megabytes for each that does not read */
                (void) setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &(int){ STRANGER_SEND_BYTES }, sizeof(int));
        c->rank = HTTP_CONNECTIONS_CLOSING; /* in no list yet */
        c->reading_since_usec = now_usec;
        all->count++;
        set_rank(all, c, HTTP_CONNECTIONS_FRESH);
        make_room(all, c);
        return c;
}

void http_connections_remove(struct http_connections *all, struct http_connection *c)
{
        unlink_from_rank(all, c);
        if (!c->closing)
                all->count--;
        if (c->has_peer)
                peer_close(&c->peer);
        free(c);
}

struct http_connection *http_connections_of(struct MHD_Connection *mhd)
{
        return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void http_connections_reading(struct http_connection *c, uint64_t now_usec)
{
        if (c->proven || c->reading_since_usec == 0)
                c->reading_since_usec = now_usec;
        c->received_bytes = 0;
}

void http_connections_busy(struct http_connections *all, struct http_connection *c)
{
        c->reading_since_usec = 0;
        if (!c->closing)
                set_rank(all, c, HTTP_CONNECTIONS_BUSY);
}

void http_connections_sending(struct http_connections *all, struct http_connection *c, size_t size_bytes,
                              uint64_t now_usec)
{
        c->reading_since_usec = 0;
        c->sending_since_usec = now_usec;
        c->sending_bytes = size_bytes;
        if (!c->closing)
                set_rank(all, c, HTTP_CONNECTIONS_SENDING);
}

void http_connections_idle(struct http_connections *all, struct http_connection *c, bool answered)
{
        c->proven = c->proven || answered;
        c->reading_since_usec = 0;
        c->sending_since_usec = 0;
        if (!c->closing)
                set_rank(all, c, c->proven ? HTTP_CONNECTIONS_PROVEN : HTTP_CONNECTIONS_FRESH);
}

void http_connections_shed(struct http_connections *all, const struct http_connection *not_this)
{
        for (int rank = 0; rank < HTTP_CONNECTIONS_RANKS; rank++)
                for (struct http_connection *c = all->ranks[rank].first; c != NULL; c = c->next)
                        if (c != not_this && c->received_bytes > 0 && c->reading_since_usec != 0) {
                                close_soon(all, c);
                                return;
                        }
}

void http_connections_drop(struct http_connections *all, struct http_connection *c)
{
        close_soon(all, c);
}

size_t http_connections_unread(const struct http_connections *all)
{
        size_t sum = 0;

        for (int rank = HTTP_CONNECTIONS_FRESH; rank <= HTTP_CONNECTIONS_PROVEN; rank++)
                for (const struct http_connection *c = all->ranks[rank].first; c != NULL; c = c->next) {
                        int bytes = 0;

                        sum += ioctl(c->fd, FIONREAD, &bytes) == 0 ? (size_t) bytes : 0;
                        sum += http_tls_pending(c->mhd);
                }
        return sum;
}

static bool too_slow(const struct http_connections *all, const struct http_connection *c, uint64_t now_usec)
{
        uint64_t since = c->sending_since_usec != 0 ? c->sending_since_usec : c->reading_since_usec;
        uint64_t allowed_sec = c->sending_since_usec != 0
                                       ? SENDING_SEC + c->sending_bytes / BYTES_PER_SECOND_MIN
                                       : all->idle_timeout_sec + c->received_bytes / BYTES_PER_SECOND_MIN;

        return since != 0 && now_usec > since + allowed_sec * 1000000;
}

void http_connections_sweep(struct http_connections *all, uint64_t now_usec)
{
        for (int rank = 0; rank < HTTP_CONNECTIONS_RANKS; rank++) {
                struct http_connection *next;

                for (struct http_connection *c = all->ranks[rank].first; c != NULL; c = next) {
                        next = c->next;
                        if (too_slow(all, c, now_usec))
                                close_soon(all, c);
                }
        }
}
