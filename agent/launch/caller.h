/* Caller: who is at the other end of the launch API's socket, by the kernel's word (io/peer.h) and the cgroup
 * it lives in. A process in a pod's cgroup is that pod and nobody else, root or not. A process of the host
 * (system.slice, user.slice, init.scope, the root, or the agent's own cgroup) is trusted when it is root or
 * in the group of the configuration. Whoever is neither, such as a static pod, which has no uid that others
 * know, or a container that the kubelet did not make, is refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "io/peer.h"

struct caller {
        pid_t pid;
        uid_t uid;
        gid_t gid;
        bool trusted;                     /* outside any pod, and root or of the group */
        char pod_uid[40];                 /* "" = in no pod */
        char pod_namespace[64], pod[254]; /* "" = not known */
};

/* caller_identify() - @proc, @pod_logs: "/proc" and "/var/log/pods" but in tests
 * Return: 0; -ESRCH when the kernel does not say who it is (another PID namespace, or it has ended); -EACCES
 * (neither a pod that can be named nor the host's). */
int caller_identify(const char *proc, const char *pod_logs, const struct peer *peer,
                    const char *trusted_group, struct caller *ret, struct err *err);

/* caller_pod_uid() - the pod's uid in the text of /proc/PID/cgroup, with dashes; "" when there is none. */
void caller_pod_uid(const char *cgroup, char *ret, size_t ret_bytes);
