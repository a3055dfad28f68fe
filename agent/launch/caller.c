/* Caller: the words of a cgroup's path and of the kubelet's log folders. */
#include "agent/launch/caller.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/read_file.h"

#define UID_CHARACTERS   36 /* 8-4-4-4-12 */
#define CONTAINER_DIGITS 64
#define PROC_MAX_BYTES   ((size_t) 1 << 16) /* of a process: its status, its cgroups */

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
        CLEANUP(free_p) char *status = NULL;
        char path[64], *line, *end;

        if (g == NULL)
                return false;
        if (c->gid == g->gr_gid)
                return true;
        (void) text_format(path, sizeof(path), "%s/%d/status", proc, (int) c->pid);
        line = read_file(path, PROC_MAX_BYTES, &status, NULL, NULL) == 0 ? strstr(status, "\nGroups:") : NULL;
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

/* "/system.slice/ssh.service", "/"; seen from a cgroup namespace of its own, as an agent in a pod sees it,
 * with as many "/.." before it as it is above the agent's. Runtimes name what they run by 64 hexadecimal
 * digits. */
static bool is_host_path(const char *path)
{
        static const char *const roots[] = { "/init.scope", "/system.slice", "/user.slice" };
        size_t digits = 0;

        while (text_starts_with(path, "/.."))
                path += strlen("/..");
        for (const char *s = path; *s != '\0' && digits < CONTAINER_DIGITS; s++)
                digits = isxdigit((unsigned char) *s) ? digits + 1 : 0;
        if (digits >= CONTAINER_DIGITS || strstr(path, "kubepods") != NULL)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
                size_t n = strlen(roots[i]);

                if (strncmp(path, roots[i], n) == 0 && (path[n] == '/' || path[n] == '\0'))
                        return true;
        }
        return path[0] == '\0' || strcmp(path, "/") == 0;
}

/* "0::PATH" or "4:memory:PATH". Of the hierarchies of version 1 systemd's own counts; a container is in all.
 */
static bool is_of_host(const char *cgroup)
{
        char line[4096];
        bool any = false;

        while (*cgroup != '\0') {
                size_t n = strcspn(cgroup, "\n");
                const char *first, *path;

                (void) text_format(line, sizeof(line), "%.*s", (int) n, cgroup);
                first = strchr(line, ':');
                path = first != NULL ? strchr(first + 1, ':') : NULL;
                if (path != NULL && (path == first + 1 || text_starts_with(first, ":name=systemd:"))) {
                        if (!is_host_path(path + 1))
                                return false;
                        any = true;
                }
                cgroup += n + (cgroup[n] == '\n');
        }
        return any;
}

/* Who shares the agent's own cgroup came into its container by its runtime, or is of its unit. */
static bool is_of_our_own(const char *proc, const char *cgroup)
{
        CLEANUP(free_p) char *own = NULL;
        char path[64];

        (void) text_format(path, sizeof(path), "%s/self/cgroup", proc);
        return read_file(path, PROC_MAX_BYTES, &own, NULL, NULL) == 0 && strcmp(own, cgroup) == 0;
}

static int judge_place(const char *proc, const char *pod_logs, const char *cgroup, const char *trusted_group,
                       struct caller *c, struct err *err)
{
        bool of_our_own = is_of_our_own(proc, cgroup);

        if (!of_our_own)
                caller_pod_uid(cgroup, c->pod_uid, sizeof(c->pod_uid));
        if (c->pod_uid[0] != '\0')
                name_pod(pod_logs, c);
        else if (of_our_own || is_of_host(cgroup))
                c->trusted = c->uid == 0 || is_in_group(proc, c, trusted_group);
        else
                return err_set(err, -EACCES,
                               "process %d is neither of a pod that can be told from others (a static pod "
                               "cannot) nor "
                               "of the host: its cgroup is '%.80s'",
                               (int) c->pid, cgroup);
        return 0;
}

int caller_identify(const char *proc, const char *pod_logs, const struct peer *peer,
                    const char *trusted_group, struct caller *ret, struct err *err)
{
        struct caller c = { .pid = peer->pid, .uid = peer->uid, .gid = peer->gid };
        CLEANUP(free_p) char *cgroup = NULL;
        char path[64];
        int r;

        if (peer->pid <= 0)
                return err_set(err, -ESRCH,
                               "the caller is in another PID namespace; run the agent with hostPID");
        (void) text_format(path, sizeof(path), "%s/%d/cgroup", proc, (int) peer->pid);
        if (read_file(path, PROC_MAX_BYTES, &cgroup, NULL, NULL) < 0)
                return err_set(err, -ESRCH, "the caller has no cgroup that can be read");
        r = judge_place(proc, pod_logs, cgroup, trusted_group, &c, err);
        if (!peer_is_there(peer)) /* what was read may be of another process with its number */
                return err_set(err, -ESRCH, "the caller has ended");
        if (r == 0)
                *ret = c;
        return r;
}
