/* SO_PEERCRED, SO_PEERPIDFD, and what /proc says of the process meanwhile. */
#include "io/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

static size_t read_of(pid_t pid, const char *name, char *buffer, size_t buffer_bytes)
{
        char path[48];
        CLEANUP(close_p) int fd = -1;
        ssize_t size;

        (void) text_format(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        size = fd < 0 ? -1 : read(fd, buffer, buffer_bytes - 1);
        buffer[size > 0 ? size : 0] = '\0';
        return size > 0 ? (size_t) size : 0;
}

/* Field 22 of proc_pid_stat(5); the name in field 2 may hold anything, but no ')' follows it. */
static uint64_t start_of(pid_t pid)
{
        char text[1024], *at;

        at = read_of(pid, "stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
        for (int field = 2; at != NULL && field < 22; field++)
                at = strchr(at + 1, ' ');
        return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

int peer_open(int fd, struct peer *ret)
{
        struct ucred credentials;
        socklen_t size = sizeof(credentials);
        struct peer peer = { .pidfd = -1 };
        char cgroups[4096];

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
                return -ENOTSUP;
        peer.pid = credentials.pid;
        peer.uid = credentials.uid;
        peer.gid = credentials.gid;
        size = sizeof(peer.pidfd);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &peer.pidfd, &size) < 0) {
                peer.pidfd = -1;
                if (errno != ENOPROTOOPT)
                        return -ESRCH;
                peer.start_ticks = start_of(peer.pid);
        }
        size = (socklen_t) read_of(peer.pid, "cgroup", cgroups, sizeof(cgroups));
        peer.place = size > 0 ? hash_bytes(cgroups, size, 0) : 0;
        *ret = peer;
        return 0;
}

void peer_close(struct peer *peer)
{
        close_p(&peer->pidfd);
        peer->pidfd = -1;
}

bool peer_is_there(const struct peer *peer)
{
        struct pollfd ended = { .fd = peer->pidfd, .events = POLLIN };

        if (peer->pidfd >= 0)
                return poll(&ended, 1, 0) == 0;
        return peer->start_ticks != 0 && start_of(peer->pid) == peer->start_ticks;
}
