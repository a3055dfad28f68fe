/* Addresses to sockets; a UNIX socket's file is replaced by rename, so that it is there at every moment. */
#include "io/http/http_listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/address.h"
#include "io/failpoint.h"
#include "io/stale_socket.h"

#define BACKLOG           1024
#define SPARE_DESCRIPTORS 128 /* for everything that is not a connection: files, timers, children */
#define UNIX_DEFAULT_MODE 0660
#define UNIX_ADDRESS      "unix:"

static void name_socket(struct http_listen *l)
{
        struct sockaddr_storage sa = { 0 };
        socklen_t size = sizeof(sa);
        char host[64] = "", port[8] = "";

        if (getsockname(l->fd, (struct sockaddr *) &sa, &size) < 0)
                return;
        (void) getnameinfo((struct sockaddr *) &sa, size, host, sizeof(host), port, sizeof(port),
                           NI_NUMERICHOST | NI_NUMERICSERV);
        (void) text_format(l->address, sizeof(l->address), sa.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
                           host, port);
}

static int listen_tcp(const char *address, bool loopback_only, struct http_listen *l, struct err *err)
{
        char any[HTTP_ADDRESS_BYTES];
        struct address a;
        int one = 1;

        if (!text_format(any, sizeof(any), "%s%s", address[0] == ':' ? "0.0.0.0" : "", address) ||
            address_parse(any, &a, NULL) < 0)
                return err_set(
                        err, -EINVAL,
                        "'%s' is no address to listen on: write 127.0.0.1:PORT, [::1]:PORT or unix:PATH",
                        address);
        l->loopback = address_is_loopback(&a);
        if (loopback_only && !l->loopback)
                return err_set(err, -EACCES,
                               "'%s' is not a loopback address: other machines are only served with client "
                               "certificates (a certificate, its key and a client CA)",
                               address);
        l->fd = socket(a.u.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (l->fd < 0 || setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
            setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
            bind(l->fd, &a.u.any, a.size) < 0 || listen(l->fd, BACKLOG) < 0)
                return err_set(err, -errno, "listen on '%s': %m", address);
        name_socket(l);
        return 0;
}

static int bind_unix(int fd, const struct sockaddr_un *sa, mode_t mode)
{
        mode_t old = umask((mode_t) (~mode & 0777)); /* no moment at which others may connect */
        int r = bind(fd, (const struct sockaddr *) sa, sizeof(*sa)) < 0 ? -errno : 0;

        (void) umask(old);
        return r;
}

/* What servers that died in replace_unix() left beside. */
static void sweep_beside(const char *path)
{
        const char *slash = strrchr(path, '/');
        char directory[sizeof(((struct sockaddr_un *) NULL)->sun_path)], prefix[sizeof(directory)];

        if (text_format(directory, sizeof(directory), "%.*s/", (int) (slash - path), path) &&
            text_format(prefix, sizeof(prefix), "%s.", slash + 1))
                stale_socket_sweep(directory, prefix);
}

/* Beside, and renamed: there is a server at the path at every moment. */
static int replace_unix(int fd, const struct sockaddr_un *sa, mode_t mode)
{
        struct sockaddr_un beside = { .sun_family = AF_UNIX };
        int r;

        if (!text_format(beside.sun_path, sizeof(beside.sun_path), "%s.%d", sa->sun_path, (int) getpid()))
                return -ENAMETOOLONG;
        (void) unlink(beside.sun_path);
        r = bind_unix(fd, &beside, mode);
        if (r == 0 && listen(fd, BACKLOG) < 0)
                r = -errno;
        FAILPOINT("socket.beside");
        if (r == 0 && rename(beside.sun_path, sa->sun_path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(beside.sun_path);
        return r;
}

static int listen_unix(const char *path, mode_t mode, bool take_over, struct http_listen *l, struct err *err)
{
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        struct stat st;
        int r;

        if (path[0] != '/' || !text_copy(sa.sun_path, sizeof(sa.sun_path), path))
                return err_set(err, -EINVAL, "'%s' is no socket path: absolute, and at most %zu bytes", path,
                               sizeof(sa.sun_path) - 1);
        l->loopback = true;
        l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (l->fd < 0)
                return err_set(err, -errno, "make a socket: %m");
        r = bind_unix(l->fd, &sa, mode);
        if (r == -EADDRINUSE && stale_socket_is(path)) {
                (void) unlink(path);
                r = bind_unix(l->fd, &sa, mode);
        } else if (r == -EADDRINUSE && take_over && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
                r = replace_unix(l->fd, &sa, mode);
        }
        FAILPOINT("socket.bound");
        if (r == 0 && listen(l->fd, BACKLOG) < 0)
                r = -errno;
        if (r < 0)
                return err_set(err, r, "listen on 'unix:%s': %s", path, strerror(-r));
        sweep_beside(path);
        if (lstat(path, &st) == 0) {
                l->unix_device = st.st_dev;
                l->unix_inode = st.st_ino;
        }
        (void) text_copy(l->unix_path, sizeof(l->unix_path), path);
        (void) text_format(l->address, sizeof(l->address), "unix:%s", path);
        return 0;
}

bool http_listen_is_there(const struct http_listen *l)
{
        struct stat st;

        return l->unix_path[0] == '\0' ||
               (lstat(l->unix_path, &st) == 0 && st.st_dev == l->unix_device && st.st_ino == l->unix_inode);
}

void http_listen_remove(const struct http_listen *l)
{
        if (l->unix_path[0] != '\0' && http_listen_is_there(l))
                (void) unlink(l->unix_path);
}

int http_listen_open(const char *address, mode_t unix_mode, bool loopback_only, bool take_over,
                     struct http_listen *ret, struct err *err)
{
        struct http_listen l = { .fd = -1 };
        int r;

        if (text_starts_with(address, UNIX_ADDRESS))
                r = listen_unix(address + strlen(UNIX_ADDRESS),
                                unix_mode != 0 ? unix_mode : UNIX_DEFAULT_MODE, take_over, &l, err);
        else
                r = listen_tcp(address, loopback_only, &l, err);
        if (r < 0) {
                if (l.fd >= 0)
                        (void) close(l.fd);
                return r;
        }
        *ret = l;
        return 0;
}

unsigned http_listen_descriptors(unsigned wanted)
{
        struct rlimit limit;
        rlim_t need = (rlim_t) wanted + SPARE_DESCRIPTORS;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return wanted;
        if (limit.rlim_cur < need) {
                limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
                (void) setrlimit(RLIMIT_NOFILE, &limit);
                (void) getrlimit(RLIMIT_NOFILE, &limit);
        }
        if (limit.rlim_cur >= need)
                return wanted;
        return limit.rlim_cur > 2ul * SPARE_DESCRIPTORS ? (unsigned) (limit.rlim_cur - SPARE_DESCRIPTORS)
                                                        : SPARE_DESCRIPTORS;
}
