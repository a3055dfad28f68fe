/* Holders: the links of /proc/PID/fd, compared with the device files that were published. */
#include "agent/health/holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/caller.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"

#define DESCRIPTORS 4096 /* of one process that are looked at */

static bool is_known_daemon(const char *name)
{
        static const char *const names[] = { "Xorg", "remuda-agent", "remuda-probe", "systemd",
                                             "systemd-logind" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strncmp(name, names[i], 15) == 0)
                        return true;
        return vendor_is_monitor(name);
}

static bool read_small(const char *proc, const char *pid, const char *file, char *buffer, size_t buffer_bytes)
{
        char path[300];
        CLEANUP(close_p) int fd = -1;
        ssize_t n;

        (void) text_format(path, sizeof(path), "%s/%s/%s", proc, pid, file);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, buffer, buffer_bytes - 1);
        if (n < 0)
                return false;
        buffer[n] = '\0';
        return true;
}

bool holders_accounted(const char *proc, const char *pid)
{
        char text[4096], uid[40];

        if (!read_small(proc, pid, "comm", text, sizeof(text)))
                return true;
        text[strcspn(text, "\n")] = '\0';
        if (is_known_daemon(text))
                return true;
        if (!read_small(proc, pid, "cgroup", text, sizeof(text)))
                return true;
        caller_pod_uid(text, uid, sizeof(uid));
        if (uid[0] != '\0')
                return true;
        if (!read_small(proc, pid, "environ", text, sizeof(text)))
                return false;
        for (const char *s = text; *s != '\0'; s += strlen(s) + 1)
                if (text_starts_with(s, "REMUDA_DEVICES="))
                        return true;
        return false;
}

/* A device file that belongs to one device: a vendor's control file is everybody's. */
static const struct device *device_of(const struct inventory *published, const char *file)
{
        const struct device *found = NULL;

        for (size_t i = 0; i < published->device_count; i++)
                for (size_t n = 0; n < published->devices[i].node_count; n++)
                        if (strcmp(published->devices[i].nodes[n], file) == 0) {
                                if (found != NULL)
                                        return NULL;
                                found = &published->devices[i];
                        }
        return found;
}

void holders_look(const char *proc, const char *pid, const struct inventory *published, holders_found found,
                  void *userdata)
{
        bool seen[DEVICES_MAX] = { false };
        char path[300], target[300];
        DIR *dir;
        unsigned left = DESCRIPTORS;

        (void) text_format(path, sizeof(path), "%s/%s/fd", proc, pid);
        dir = opendir(path);
        if (dir == NULL)
                return;
        for (const struct dirent *e = readdir(dir); e != NULL && left-- > 0; e = readdir(dir)) {
                ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
                const struct device *d;

                if (n < 6 || strncmp(target, "/dev/", 5) != 0)
                        continue;
                target[n] = '\0';
                d = device_of(published, target);
                if (d == NULL || seen[d - published->devices])
                        continue;
                seen[d - published->devices] = true;
                found(userdata, d);
        }
        (void) closedir(dir);
}
