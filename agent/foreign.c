#include "agent/foreign.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/caller.h"
#include "agent/report.h"
#include "agent/watch.h"
#include "core/cleanup.h"
#include "io/loop.h"

#define ROUND_USEC  UINT64_C(60000000)
#define STEP_USEC   UINT64_C(200000)
#define STEP_MAX    32 /* processes looked at in one step */
#define DESCRIPTORS 4096

struct count {
        char id[DEVICE_ID_BYTES];
        unsigned processes;
};

struct foreign {
        struct agent *agent;
        sd_event_source *timer;
        DIR *proc;                /* of the round that goes on; NULL = none */
        struct count *now, *last; /* by device; of this round, and of the last whole one */
        size_t now_count, last_count;
};

static bool is_known_daemon(const char *name)
{
        static const char *const names[] = { "nvidia-persiste", "nv-hostengine", "nv-fabricmanage",
                                             "dcgm-exporter",   "Xorg",          "remuda-agent",
                                             "remuda-probe",    "gpu-manager",   "npu-exporter",
                                             "amd-smi",         "systemd",       "systemd-logind" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strncmp(name, names[i], 15) == 0)
                        return true;
        return false;
}

static bool read_small(const char *pid, const char *file, char *buffer, size_t buffer_bytes)
{
        char path[300];
        CLEANUP(close_p) int fd = -1;
        ssize_t n;

        (void) text_format(path, sizeof(path), "/proc/%s/%s", pid, file);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, buffer, buffer_bytes - 1);
        if (n < 0)
                return false;
        buffer[n] = '\0';
        return true;
}

/* Ours by birth: the launch door's children are in its list of process groups by REMUDA_DEVICES; a pod's
 * process is the kubelet's business. */
static bool is_accounted(const char *pid)
{
        char text[4096], uid[40];

        if (!read_small(pid, "comm", text, sizeof(text)) || is_known_daemon(text))
                return true;
        if (!read_small(pid, "cgroup", text, sizeof(text)))
                return true;
        caller_pod_uid(text, uid, sizeof(uid));
        if (uid[0] != '\0')
                return true;
        if (!read_small(pid, "environ", text, sizeof(text)))
                return false;
        for (const char *s = text; *s != '\0'; s += strlen(s) + 1)
                if (text_starts_with(s, "REMUDA_DEVICES="))
                        return true;
        return false;
}

static void note(struct foreign *f, const struct device *d, const char *pid)
{
        struct count *more;

        for (size_t i = 0; i < f->now_count; i++)
                if (strcmp(f->now[i].id, d->id) == 0) {
                        f->now[i].processes++;
                        return;
                }
        more = realloc(f->now, (f->now_count + 1) * sizeof(*more));
        if (more == NULL)
                return;
        f->now = more;
        more += f->now_count++;
        (void) text_copy(more->id, sizeof(more->id), d->id);
        more->processes = 1;
        report_event(f->agent->report, "Warning", "ForeignProcess", d->id,
                     "process %s holds it, in no pod and not by the launch door", pid);
}

/* A device file that belongs to one device: a vendor's control file is everybody's. */
static const struct device *device_of(const struct inventory *told, const char *file)
{
        const struct device *found = NULL;

        for (size_t i = 0; i < told->device_count; i++)
                for (size_t n = 0; n < told->devices[i].node_count; n++)
                        if (strcmp(told->devices[i].nodes[n], file) == 0) {
                                if (found != NULL)
                                        return NULL;
                                found = &told->devices[i];
                        }
        return found;
}

static void look_at(struct foreign *f, const char *pid)
{
        char path[300], target[300];
        const struct device *last = NULL;
        DIR *dir;
        unsigned left = DESCRIPTORS;

        (void) text_format(path, sizeof(path), "/proc/%s/fd", pid);
        dir = opendir(path);
        if (dir == NULL)
                return;
        for (const struct dirent *e = readdir(dir); e != NULL && left-- > 0; e = readdir(dir)) {
                ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
                const struct device *d;

                if (n < 6 || strncmp(target, "/dev/", 5) != 0)
                        continue;
                target[n] = '\0';
                d = device_of(&f->agent->told, target);
                if (d == NULL || d == last || is_accounted(pid))
                        continue;
                note(f, d, pid);
                last = d;
        }
        (void) closedir(dir);
}

static void finish_round(struct foreign *f)
{
        (void) closedir(f->proc);
        f->proc = NULL;
        free(f->last);
        f->last = f->now;
        f->last_count = f->now_count;
        f->now = NULL;
        f->now_count = 0;
}

static void on_timer(void *userdata)
{
        struct foreign *f = userdata;
        uint64_t next = STEP_USEC;
        unsigned looked = 0;

        f->timer = sd_event_source_unref(f->timer);
        if (f->proc == NULL)
                f->proc = opendir("/proc");
        while (f->proc != NULL && looked < STEP_MAX) {
                const struct dirent *e = readdir(f->proc);

                if (e == NULL) {
                        finish_round(f);
                        next = ROUND_USEC;
                        break;
                }
                if (!isdigit((unsigned char) e->d_name[0]))
                        continue;
                look_at(f, e->d_name);
                looked++;
        }
        (void) loop_after(f->agent->loop, next, on_timer, f, &f->timer);
}

int foreign_new(struct agent *agent, struct foreign **ret, struct err *err)
{
        struct foreign *f = calloc(1, sizeof(*f));

        if (f == NULL)
                return err_set(err, -ENOMEM, "no memory");
        f->agent = agent;
        *ret = f;
        if (agent->options->machine != NULL || !watch_is_live(agent->options->root))
                return 0;
        return loop_after(agent->loop, ROUND_USEC, on_timer, f, &f->timer);
}

void foreign_free(struct foreign *f)
{
        if (f == NULL)
                return;
        (void) sd_event_source_unref(f->timer);
        if (f->proc != NULL)
                (void) closedir(f->proc);
        free(f->now);
        free(f->last);
        free(f);
}

void foreign_metrics(const struct foreign *f, struct text *page)
{
        metrics_family(page, "remuda_device_foreign_processes", METRIC_GAUGE,
                       "Processes outside any pod and the launch door that hold a device");
        for (size_t i = 0; i < f->last_count; i++)
                metrics_sample(page, "remuda_device_foreign_processes",
                               METRIC_LABELS({ "uuid", f->last[i].id }), f->last[i].processes);
}
