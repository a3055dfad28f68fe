/* Foreign: a round over /proc once a minute, a few processes at a time. */
#include "agent/health/foreign.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/health/holders.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/text.h"
#include "io/loop.h"

#define ROUND_USEC UINT64_C(60000000)
#define STEP_USEC  UINT64_C(200000)
#define STEP_MAX   32 /* processes looked at in one step */

struct count {
        char id[DEVICE_ID_BYTES];
        unsigned processes;
};

struct foreign {
        const struct services *services;
        sd_event_source *timer;
        DIR *proc;                /* of the round that goes on; NULL = none */
        struct count *now, *last; /* by device; of this round, and of the last whole one */
        size_t now_count, last_count;
        const char *pid; /* that is looked at */
};

static void note(struct foreign *f, const struct device *d, const char *pid)
{
        struct count *more;

        for (size_t i = 0; i < f->now_count; i++)
                if (strcmp(f->now[i].id, d->id) == 0) {
                        f->now[i].processes++;
                        return;
                }
        more = array_add(&f->now, &f->now_count, NULL, sizeof(*more));
        if (more == NULL)
                return;
        (void) text_copy(more->id, sizeof(more->id), d->id);
        more->processes = 1;
        services_event(f->services, "Warning", "ForeignProcess", d->id,
                       "process %s holds it, in no pod and not by the launch door", pid);
}

static void on_found(void *userdata, const struct device *device)
{
        struct foreign *f = userdata;

        if (!holders_accounted("/proc", f->pid))
                note(f, device, f->pid);
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
                f->pid = e->d_name;
                holders_look("/proc", f->pid, f->services->published, on_found, f);
                looked++;
        }
        loop_rearm(f->timer, next);
}

/* Without it the kernel shows the files of our own kin alone. */
static bool may_look_at_others(void)
{
        CLEANUP(fclose_p) FILE *status = fopen("/proc/self/status", "re");
        unsigned long long effective = 0;
        char line[256];

        while (status != NULL && fgets(line, sizeof(line), status) != NULL)
                if (text_starts_with(line, "CapEff:"))
                        effective = strtoull(line + strlen("CapEff:"), NULL, 16);
        return (effective >> CAP_SYS_PTRACE & 1) != 0;
}

int foreign_new(const struct services *services, bool live, struct foreign **ret, struct err *err)
{
        struct foreign *f = calloc(1, sizeof(*f));
        int r;

        if (f == NULL)
                return err_set(err, -ENOMEM, "no memory");
        f->services = services;
        *ret = f;
        if (!live)
                return 0;
        if (!may_look_at_others())
                log_line(services->log, LOG_INFO, "foreign",
                         "looking_at=own remedy=\"hostPID and CAP_SYS_PTRACE (manifests/agent-launch), to "
                         "see what processes of others hold\"");
        r = loop_timer(services->loop, on_timer, f, &f->timer);
        if (r == 0)
                loop_rearm(f->timer, ROUND_USEC);
        return r;
}

void foreign_free(struct foreign *f)
{
        if (f == NULL)
                return;
        sd_event_source_disable_unref(f->timer);
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
