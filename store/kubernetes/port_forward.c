/* What comes on the one connection that is taken goes into messages, and back. */
#include "store/kubernetes/port_forward.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/http/http_socket.h"

#define PROTOCOL     "v4.channel.k8s.io"
#define CHANNELS     2
#define PORT_BYTES   2 /* at the beginning of each channel */
#define PIECE_BYTES  ((size_t) 16 << 10)
#define UNSENT_BYTES ((size_t) 256 << 10) /* beyond, the user waits */

enum { CHANNEL_DATA, CHANNEL_ERROR };

struct port_forward {
        struct http_socket *socket;
        sd_event *loop; /* borrowed */
        sd_event_source *source;
        bool taken;             /* the connection is there */
        int fd;                 /* our end; -1 = it is over */
        size_t begun[CHANNELS]; /* bytes of the port that have come */
        struct text to_user;    /* has not gone yet */
        char failure[256];
};

static void rearm(struct port_forward *f)
{
        uint32_t events = (http_socket_unsent(f->socket) < UNSENT_BYTES ? EPOLLIN : 0u) |
                          (f->to_user.size_bytes > 0 ? EPOLLOUT : 0u);

        if (f->taken && f->fd >= 0)
                (void) sd_event_source_set_io_events(f->source, events);
}

/* The user reads what he was given, and then the end. */
static void hang_up(struct port_forward *f, const char *why)
{
        if (f->failure[0] == '\0')
                (void) text_copy(f->failure, sizeof(f->failure), why);
        if (f->fd < 0)
                return;
        f->source = sd_event_source_disable_unref(f->source);
        (void) close(f->fd);
        f->fd = -1;
}

static void give(struct port_forward *f)
{
        while (f->taken && f->fd >= 0 && f->to_user.size_bytes > 0) {
                ssize_t n = send(f->fd, f->to_user.data, f->to_user.size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno != EAGAIN)
                        hang_up(f, "");
                if (n <= 0)
                        break;
                memmove(f->to_user.data, f->to_user.data + n, f->to_user.size_bytes - (size_t) n);
                f->to_user.size_bytes -= (size_t) n;
        }
        http_socket_hold(f->socket, f->to_user.size_bytes > 0);
        rearm(f);
}

static void on_message(void *userdata, const char *bytes, size_t size_bytes)
{
        struct port_forward *f = userdata;
        unsigned channel = (unsigned char) bytes[0];
        size_t port;

        if (channel >= CHANNELS) {
                hang_up(f, "the kubelet speaks of a channel that there is not");
                return;
        }
        port = PORT_BYTES - f->begun[channel];
        port = port < size_bytes - 1 ? port : size_bytes - 1;
        f->begun[channel] += port;
        bytes += 1 + port;
        size_bytes -= 1 + port;
        if (size_bytes == 0)
                return;
        if (channel == CHANNEL_ERROR) {
                char why[sizeof(f->failure)];

                (void) text_format(why, sizeof(why), "%.*s", (int) size_bytes, bytes);
                hang_up(f, why);
                return;
        }
        text_append_bytes(&f->to_user, bytes, size_bytes);
        if (f->to_user.failed)
                hang_up(f, "no memory for what came");
        else
                give(f);
}

static void on_drained(void *userdata)
{
        rearm(userdata);
}

static void on_ended(void *userdata, const char *sentence)
{
        hang_up(userdata, sentence);
}

static void take(struct port_forward *f)
{
        char piece[1 + PIECE_BYTES] = { CHANNEL_DATA };
        ssize_t n = recv(f->fd, piece + 1, PIECE_BYTES, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                hang_up(f, "");
        else if (n > 0 && http_socket_send(f->socket, piece, 1 + (size_t) n) < 0)
                hang_up(f, "no memory for what goes");
}

static int on_ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct port_forward *f = userdata;

        (void) source;
        (void) fd;
        if ((events & EPOLLOUT) != 0)
                give(f);
        if (f->fd >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
                take(f);
        rearm(f);
        return 0;
}

/* Others of this machine see the name; they are sent away. */
static bool is_ourselves(int fd)
{
        struct ucred who;
        socklen_t size = sizeof(who);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid == getpid();
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct port_forward *f = userdata;
        int taken = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        (void) source;
        (void) events;
        if (taken < 0)
                return 0;
        if (!is_ourselves(taken)) {
                (void) close(taken);
                return 0;
        }
        sd_event_source_disable_unref(f->source);
        (void) close(f->fd);
        f->fd = taken;
        f->source = NULL;
        if (sd_event_add_io(f->loop, &f->source, taken, EPOLLIN | EPOLLOUT, on_ready, f) < 0)
                hang_up(f, "its socket cannot be watched");
        f->taken = f->fd >= 0;
        return 0;
}

/* The system chooses a name. */
static int listen_to_user(struct port_forward *f, char ret_name[PORT_FORWARD_NAME_BYTES])
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        socklen_t size = sizeof(address.sun_family);

        f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (f->fd < 0 || bind(f->fd, (struct sockaddr *) &address, size) < 0 || listen(f->fd, 8) < 0)
                return -errno;
        size = sizeof(address);
        if (getsockname(f->fd, (struct sockaddr *) &address, &size) < 0)
                return -errno;
        if (!text_format(ret_name, PORT_FORWARD_NAME_BYTES, "@%.*s",
                         (int) (size - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1))
                return -ENAMETOOLONG;
        return sd_event_add_io(f->loop, &f->source, f->fd, EPOLLIN, on_connection, f);
}

int port_forward_open(sd_event *loop, struct kube_client *client, const struct port_forward_target *target,
                      uint64_t timeout_usec, struct port_forward **ret,
                      char ret_name[PORT_FORWARD_NAME_BYTES], struct err *err)
{
        struct port_forward *f = calloc(1, sizeof(*f));
        char path[700], sentence[300];
        struct http_socket_refusal refusal;
        struct http_socket_options options = { .path = path,
                                               .protocol = PROTOCOL,
                                               .timeout_usec = timeout_usec,
                                               .message = on_message,
                                               .drained = on_drained,
                                               .ended = on_ended,
                                               .userdata = f };
        int r;

        if (f == NULL)
                return err_set(err, -ENOMEM, "no memory");
        f->loop = loop;
        f->fd = -1;
        (void) text_format(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/portforward?ports=%u",
                           target->namespace_, target->pod, target->port);
        r = kube_client_socket(client, &options, &f->socket, &refusal);
        if (r < 0) {
                r = kube_result(&refusal.result, sentence, sizeof(sentence));
                r = err_set(err, r < 0 ? r : -EPROTO, "%s", r < 0 ? sentence : "no port is forwarded");
        } else {
                r = listen_to_user(f, ret_name);
                if (r < 0)
                        (void) err_set(err, r, "listen on a UNIX socket: %s", strerrordesc_np(-r));
        }
        if (r < 0) {
                port_forward_close(f);
                return r;
        }
        *ret = f;
        return 0;
}

void port_forward_close(struct port_forward *f)
{
        if (f == NULL)
                return;
        sd_event_source_disable_unref(f->source);
        http_socket_close(f->socket);
        if (f->fd >= 0)
                (void) close(f->fd);
        text_free(&f->to_user);
        free(f);
}

const char *port_forward_failure(const struct port_forward *f)
{
        return f->failure;
}
