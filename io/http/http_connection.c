#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "io/http/http_server_internal.h"
#include "io/loop.h"

#define BYTES_PER_SECOND_MIN 65536 /* a body's sender gets a second more for every so many bytes */

static void unlink_from_rank(struct http_server *s, struct connection *c)
{
        struct connection_list *list;

        if (c->rank == CONNECTION_BUSY)
                return;
        list = &s->ranks[c->rank];
        if (c->previous != NULL)
                c->previous->next = c->next;
        else
                list->first = c->next;
        if (c->next != NULL)
                c->next->previous = c->previous;
        else
                list->last = c->previous;
        c->previous = c->next = NULL;
}

static void set_rank(struct http_server *s, struct connection *c, enum connection_rank rank)
{
        unlink_from_rank(s, c);
        c->rank = rank;
        if (rank == CONNECTION_BUSY)
                return;
        c->previous = s->ranks[rank].last;
        if (c->previous != NULL)
                c->previous->next = c;
        else
                s->ranks[rank].first = c;
        s->ranks[rank].last = c;
}

/* The library notices the end of the stream and closes; the descriptor itself is its own. */
static void close_soon(struct http_server *s, struct connection *c)
{
        if (c->closing)
                return;
        c->closing = true;
        s->connection_count--;
        set_rank(s, c, CONNECTION_BUSY); /* nothing more to choose it for */
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
static struct connection *oldest(const struct http_server *s, const uint64_t *address,
                                 const struct connection *not_this)
{
        for (int rank = 0; rank < CONNECTION_RANKS; rank++)
                for (struct connection *c = s->ranks[rank].first; c != NULL; c = c->next)
                        if (c != not_this && (address == NULL || c->address_hash == *address))
                                return c;
        return NULL;
}

static unsigned count_address(const struct http_server *s, uint64_t address)
{
        unsigned count = 0;

        for (int rank = 0; rank < CONNECTION_RANKS; rank++)
                for (const struct connection *c = s->ranks[rank].first; c != NULL; c = c->next)
                        count += c->address_hash == address;
        return count;
}

static void make_room(struct http_server *s, struct connection *newcomer)
{
        struct connection *victim = NULL;

        if (s->connection_count > s->connections_max)
                victim = oldest(s, NULL, newcomer);
        else if (s->connections_max_per_address > 0 &&
                 count_address(s, newcomer->address_hash) > s->connections_max_per_address)
                victim = oldest(s, &newcomer->address_hash, newcomer);
        if (victim != NULL)
                close_soon(s, victim);
}

static void opened(struct http_server *s, struct MHD_Connection *mhd, void **context)
{
        const union MHD_ConnectionInfo *fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        const union MHD_ConnectionInfo *address =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        struct connection *c = calloc(1, sizeof(*c));

        *context = c;
        if (c == NULL) {
                if (fd != NULL)
                        (void) shutdown(fd->connect_fd, SHUT_RDWR);
                return;
        }
        c->server = s;
        c->fd = fd != NULL ? fd->connect_fd : -1;
        c->address_hash = address != NULL ? hash_address(address->client_addr) : 0;
        c->rank = CONNECTION_BUSY; /* in no list yet */
        c->reading_since_usec = loop_now_usec(s->loop);
        s->connection_count++;
        set_rank(s, c, CONNECTION_FRESH);
        make_room(s, c);
}

static void closed(struct http_server *s, void **context)
{
        struct connection *c = *context;

        if (c == NULL)
                return;
        unlink_from_rank(s, c);
        if (!c->closing)
                s->connection_count--;
        free(c);
        *context = NULL;
}

void http_connection_notify(void *server, struct MHD_Connection *mhd, void **context,
                            enum MHD_ConnectionNotificationCode code)
{
        ((struct http_server *) server)->progress++;
        if (code == MHD_CONNECTION_NOTIFY_STARTED)
                opened(server, mhd, context);
        else
                closed(server, context);
}

struct connection *http_connection_of(struct MHD_Connection *mhd)
{
        return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void http_connection_reading(struct http_server *s, struct connection *c)
{
        if (c->proven || c->reading_since_usec == 0)
                c->reading_since_usec = loop_now_usec(s->loop);
        c->received_bytes = 0;
}

void http_connection_busy(struct http_server *s, struct connection *c)
{
        c->reading_since_usec = 0;
        if (!c->closing)
                set_rank(s, c, CONNECTION_BUSY);
}

void http_connection_idle(struct http_server *s, struct connection *c)
{
        c->reading_since_usec = 0;
        if (!c->closing)
                set_rank(s, c, c->proven ? CONNECTION_PROVEN : CONNECTION_FRESH);
}

void http_connection_proven(struct http_server *s, struct connection *c)
{
        c->proven = true;
        http_connection_idle(s, c);
}

void http_connection_give_way(struct http_server *s, const struct connection *not_this)
{
        for (int rank = 0; rank < CONNECTION_RANKS; rank++)
                for (struct connection *c = s->ranks[rank].first; c != NULL; c = c->next)
                        if (c != not_this && c->received_bytes > 0 && c->reading_since_usec != 0) {
                                close_soon(s, c);
                                return;
                        }
}

static bool too_slow(const struct http_server *s, const struct connection *c, uint64_t now_usec)
{
        uint64_t allowed_sec = s->idle_timeout_sec + c->received_bytes / BYTES_PER_SECOND_MIN;

        return c->reading_since_usec != 0 && now_usec > c->reading_since_usec + allowed_sec * 1000000;
}

void http_connections_sweep(struct http_server *s, uint64_t now_usec)
{
        for (int rank = 0; rank < CONNECTION_RANKS; rank++) {
                struct connection *next;

                for (struct connection *c = s->ranks[rank].first; c != NULL; c = next) {
                        next = c->next;
                        if (too_slow(s, c, now_usec))
                                close_soon(s, c);
                }
        }
}
