/* Caller: the words of SO_PEERCRED, of a cgroup's path and of the kubelet's log folders. */
#include "agent/launch/caller.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define UID_CHARACTERS 36 /* 8-4-4-4-12 */

static bool is_uid(const char *s)
{
        static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

        for (size_t i = 0; i < UID_CHARACTERS; i++)
                if (form[i] == '-' ? s[i] != '-' && s[i] != '_' : !isxdigit((unsigned char) s[i]))
                        return false;
        return true;
}

/* May a folder of this cgroup be a kubelet's? Not below a user's own slice, where that user makes folders of
 * any name. Seen from a cgroup namespace of its own, as an agent in a pod sees it, "/../../podUID" is above
 * the root, and the kubelet's "kubepods" with it. */
static const char *find_pods(const char *cgroup)
{
        const char *path = strchr(cgroup, ':');
        const char *pods = strstr(cgroup, "kubepods");

        path = path != NULL ? strchr(path + 1, ':') : NULL;
        if (path == NULL || strstr(path, "/user.slice/") != NULL)
                return NULL;
        return pods != NULL ? pods : text_starts_with(path + 1, "/../") ? path : NULL;
}

/* ".../kubepods-burstable-pod1b4e28ba_2fa1_...slice/..." (systemd) or
 * ".../kubepods/burstable/pod1b4e28ba-..."
 */
static bool find_uid(const char *cgroup, char *ret)
{
        const char *at = find_pods(cgroup);

        for (at = at != NULL ? strstr(at, "pod") : NULL; at != NULL; at = strstr(at + 1, "pod")) {
                if (strlen(at + 3) < UID_CHARACTERS || !is_uid(at + 3))
                        continue;
                memcpy(ret, at + 3, UID_CHARACTERS);
                ret[UID_CHARACTERS] = '\0';
                for (char *s = ret; *s != '\0'; s++)
                        if (*s == '_')
                                *s = '-';
                        else
                                *s = (char) tolower((unsigned char) *s);
                return true;
        }
        return false;
}

void caller_pod_uid(const char *cgroup, char *ret, size_t ret_bytes)
{
        char line[4096];

        ret[0] = '\0';
        while (*cgroup != '\0' && ret_bytes > UID_CHARACTERS) {
                size_t n = strcspn(cgroup, "\n");

                (void) text_format(line, sizeof(line), "%.*s", (int) n, cgroup);
                if (find_uid(line, ret))
                        return;
                cgroup += n + (cgroup[n] == '\n');
        }
}

static bool read_file(const char *path, char *buffer, size_t buffer_bytes)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t done = 0;
        ssize_t n;

        if (fd < 0)
                return false;
        while (done < buffer_bytes - 1 && (n = read(fd, buffer + done, buffer_bytes - 1 - done)) > 0)
                done += (size_t) n;
        buffer[done] = '\0';
        return true;
}

/* The kubelet keeps a folder NAMESPACE_NAME_UID a pod; the API that tells who holds what knows no uids. */
static void name_pod(const char *pod_logs, struct caller *c)
{
        DIR *dir = opendir(pod_logs);

        if (dir == NULL)
                return;
        for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
                const char *first = strchr(e->d_name, '_'), *last = strrchr(e->d_name, '_');

                if (first == NULL || last == first || strcmp(last + 1, c->pod_uid) != 0)
                        continue;
                (void) text_format(c->pod_namespace, sizeof(c->pod_namespace), "%.*s",
                                   (int) (first - e->d_name), e->d_name);
                (void) text_format(c->pod, sizeof(c->pod), "%.*s", (int) (last - first - 1), first + 1);
                break;
        }
        (void) closedir(dir);
}

static bool is_in_group(const char *proc, const struct caller *c, const char *group)
{
        const struct group *g = getgrnam(group); /* one thread: the static answer is ours */
        char path[64], status[8192], *line, *end;

        if (g == NULL)
                return false;
        if (c->gid == g->gr_gid)
                return true;
        (void) text_format(path, sizeof(path), "%s/%d/status", proc, (int) c->pid);
        line = read_file(path, status, sizeof(status)) ? strstr(status, "\nGroups:") : NULL;
        if (line == NULL)
                return false;
        line += strlen("\nGroups:");
        line[strcspn(line, "\n")] = '\0';
        for (unsigned long gid = strtoul(line, &end, 10); end != line; gid = strtoul(line, &end, 10)) {
                if (gid == g->gr_gid)
                        return true;
                line = end;
        }
        return false;
}

int caller_identify(const char *proc, const char *pod_logs, pid_t pid, uid_t uid, gid_t gid,
                    const char *trusted_group, struct caller *ret, struct err *err)
{
        struct caller c = { .pid = pid, .uid = uid, .gid = gid };
        char path[64], cgroup[8192];

        if (pid <= 0)
                return err_set(err, -ESRCH,
                               "the caller is in another PID namespace; run the agent with hostPID");
        (void) text_format(path, sizeof(path), "%s/%d/cgroup", proc, (int) pid);
        if (!read_file(path, cgroup, sizeof(cgroup)))
                return err_set(err, -ESRCH, "the caller has no cgroup that can be read");
        caller_pod_uid(cgroup, c.pod_uid, sizeof(c.pod_uid));
        if (c.pod_uid[0] != '\0')
                name_pod(pod_logs, &c);
        else
                c.trusted = uid == 0 || is_in_group(proc, &c, trusted_group);
        *ret = c;
        return 0;
}
