/* Sockets that do not block, and the mode of a UNIX socket's file before anybody may connect. */
#include "io/grpc/grpc_address.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/address.h"

static int open_socket(const char *address, struct address *ret, struct err *err)
{
        int fd, r = address_parse(address, ret, err);

        if (r < 0)
                return r;
        fd = socket(ret->u.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        return fd < 0 ? err_set(err, -errno, "socket: %m") : fd;
}

int grpc_address_connect(const char *address, bool *ret_connecting, struct err *err)
{
        struct address a;
        int fd = open_socket(address, &a, err), r, one = 1;

        if (fd < 0)
                return fd;
        if (a.u.any.sa_family != AF_UNIX)
                (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        /* EAGAIN: the backlog of a UNIX socket is full, an answer like a refusal: try again later */
        if (connect(fd, &a.u.any, a.size) < 0 && errno != EINPROGRESS) {
                r = err_set(err, -errno, "connect to '%s': %m", address);
                (void) close(fd);
                return r;
        }
        *ret_connecting = a.u.any.sa_family != AF_UNIX;
        return fd;
}

int grpc_address_listen(const char *address, mode_t unix_mode, struct err *err)
{
        struct address a;
        int fd = open_socket(address, &a, err), r, one = 1;

        if (fd < 0)
                return fd;
        if (a.u.any.sa_family != AF_UNIX)
                (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        /* the mode of the socket file is that of the descriptor before bind(): never wider, not for a moment
         */
        else if (fchmod(fd, unix_mode) < 0)
                goto failed;
        if (bind(fd, &a.u.any, a.size) < 0 || listen(fd, 128) < 0)
                goto failed;
        return fd;
failed:
        r = err_set(err, -errno, "listen on '%s': %m", address);
        (void) close(fd);
        return r;
}
