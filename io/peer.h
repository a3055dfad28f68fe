/* Peer: the process that connected to a UNIX socket, by the kernel's word.
 *
 * Its number alone says little: by the time that it is looked up in /proc it may be another process's. So
 * what was read there counts only if peer_is_there() afterwards. Where the kernel has no SO_PEERPIDFD
 * (before 6.5) the time of its start, read when it was accepted, stands in: a process that takes the number
 * between connect() and accept() is then not told apart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
        pid_t pid; /* when it connected; 0 = of another PID namespace */
        uid_t uid;
        gid_t gid;
        int pidfd;            /* -1 = the kernel gives none */
        uint64_t start_ticks; /* since boot; without a pidfd */
        uint64_t place; /* a hash of its cgroups: the processes of a container have the same; 0 = not known */
};

/* peer_open() - @fd: accepted. Return: 0; -ENOTSUP (no UNIX socket); -ESRCH (it is gone already). */
int peer_open(int fd, struct peer *ret);
void peer_close(struct peer *peer);

bool peer_is_there(const struct peer *peer); /* it has not ended since it connected */
