/* Repair: one program at a time, remembered for a day. */
#include "agent/health/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/metrics.h"
#include "io/loop.h"

#define TIMEOUT_USEC UINT64_C(600000000)
#define DAY_USEC     UINT64_C(86400000000)
#define TRIES_MAX    64 /* remembered, of all devices together */
#define VARIABLES    6

struct attempt {
        char device[DEVICE_ID_BYTES];
        uint64_t usec; /* CLOCK_MONOTONIC; 0 = free */
};

struct repair {
        const struct services *services;
        bool (*is_held)(void *userdata, const char *device_id);
        struct attempt tries[TRIES_MAX];
        char device[DEVICE_ID_BYTES]; /* that is being repaired */
        pid_t pid;                    /* 0 = none */
        sd_event_source *child, *timeout;
        uint64_t succeeded, failed;
};

int repair_new(const struct services *services, bool (*is_held)(void *userdata, const char *device_id),
               struct repair **ret, struct err *err)
{
        *ret = calloc(1, sizeof(**ret));
        if (*ret == NULL)
                return err_set(err, -ENOMEM, "no memory for repairs");
        (*ret)->services = services;
        (*ret)->is_held = is_held;
        return 0;
}

void repair_free(struct repair *r)
{
        if (r == NULL)
                return;
        if (r->pid > 0)
                (void) kill(-r->pid, SIGKILL);
        (void) sd_event_source_unref(r->child);
        (void) sd_event_source_unref(r->timeout);
        free(r);
}

static unsigned tries_today(const struct repair *r, const char *device, uint64_t now)
{
        unsigned n = 0;

        for (size_t i = 0; i < TRIES_MAX; i++)
                n += r->tries[i].usec != 0 && now - r->tries[i].usec < DAY_USEC &&
                     strcmp(r->tries[i].device, device) == 0;
        return n;
}

/* Return: false when too much was tried today to remember one more. */
static bool remember(struct repair *r, const char *device, uint64_t now)
{
        for (size_t i = 0; i < TRIES_MAX; i++) {
                struct attempt *t = &r->tries[i];

                if (t->usec != 0 && now - t->usec < DAY_USEC)
                        continue;
                (void) text_copy(t->device, sizeof(t->device), device);
                t->usec = now;
                return true;
        }
        return false;
}

/* "--pci={pci}" -> "--pci=0000:18:00.0" */
static char *fill(const char *pattern, const struct device *d)
{
        char index[12];
        const struct {
                const char *key, *value;
        } keys[] = {
                { "{id}", d->id },         { "{pci}", d->pci },       { "{index}", index },
                { "{vendor}", d->vendor }, { "{reason}", d->reason },
        };
        struct text out = { 0 };

        (void) text_format(index, sizeof(index), "%u", d->ordinal);
        while (*pattern != '\0') {
                bool replaced = false;

                for (size_t i = 0; i < ARRAY_SIZE(keys) && !replaced; i++)
                        if (text_starts_with(pattern, keys[i].key)) {
                                text_append(&out, keys[i].value);
                                pattern += strlen(keys[i].key);
                                replaced = true;
                        }
                if (!replaced)
                        text_append_char(&out, *pattern++);
        }
        return text_take(&out, NULL);
}

/* Return: false when a word could not be made. */
static bool make_environment(const struct device *d, char *variables[VARIABLES])
{
        static const char *const patterns[] = {
                "REMUDA_DEVICE={id}",     "REMUDA_PCI={pci}",
                "REMUDA_INDEX={index}",   "REMUDA_VENDOR={vendor}",
                "REMUDA_REASON={reason}", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        };
        bool whole = true;

        for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
                variables[i] = fill(patterns[i], d);
                whole = whole && variables[i] != NULL;
        }
        return whole;
}

static int on_end(sd_event_source *source, const siginfo_t *info, void *userdata)
{
        struct repair *r = userdata;
        bool well = info->si_code == CLD_EXITED && info->si_status == 0;

        (void) source;
        r->child = sd_event_source_unref(r->child);
        r->timeout = sd_event_source_disable_unref(r->timeout);
        r->pid = 0;
        r->succeeded += well;
        r->failed += !well;
        if (well)
                services_event(r->services, "Normal", "RepairSucceeded", r->device,
                               "the repair program ended well; the device must now answer well for a while");
        else
                services_event(r->services, "Warning", "RepairFailed", r->device,
                               "the repair program ended with %s %d",
                               info->si_code == CLD_EXITED ? "exit status" : "signal", info->si_status);
        services_scan(r->services, "repair");
        return 0;
}

static void on_timeout(void *userdata)
{
        const struct repair *r = userdata;

        (void) kill(-r->pid, SIGKILL);
}

/* A program without one of its words would do something else: to every device, say. It is not run then. */
static int spawn(struct repair *r, const struct agent_config_repair *repair, const struct device *d)
{
        char *argv[REPAIR_ARGS_MAX + 2] = { (char *) repair->path }, *variables[VARIABLES + 1] = { NULL };
        bool whole = make_environment(d, variables);
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;
        int result;

        for (size_t i = 0; i < repair->arg_count; i++) {
                argv[i + 1] = fill(repair->args[i], d);
                whole = whole && argv[i + 1] != NULL;
        }
        (void) sigemptyset(&none);
        (void) posix_spawn_file_actions_init(&actions);
        (void) posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        (void) posix_spawnattr_init(&attributes);
        (void) posix_spawnattr_setsigmask(&attributes, &none);
        (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
        result =
                whole ? -posix_spawn(&r->pid, repair->path, &actions, &attributes, argv, variables) : -ENOMEM;
        (void) posix_spawnattr_destroy(&attributes);
        (void) posix_spawn_file_actions_destroy(&actions);
        for (size_t i = 0; i < repair->arg_count; i++)
                free(argv[i + 1]);
        for (size_t i = 0; i < VARIABLES; i++)
                free(variables[i]);
        return result;
}

static int start(struct repair *r, const struct agent_config_repair *repair, const struct device *d)
{
        int result = spawn(r, repair, d);

        if (result < 0) {
                r->pid = 0;
                return result;
        }
        (void) text_copy(r->device, sizeof(r->device), d->id);
        result = loop_after(r->services->loop, TIMEOUT_USEC, on_timeout, r, &r->timeout);
        if (result >= 0)
                result = sd_event_add_child(r->services->loop, &r->child, r->pid, WEXITED, on_end, r);
        if (result < 0) { /* nobody would see its end, and no other could ever begin */
                (void) kill(-r->pid, SIGKILL);
                (void) waitpid(r->pid, NULL, 0);
                r->timeout = sd_event_source_disable_unref(r->timeout);
                r->pid = 0;
        }
        return result;
}

void repair_consider(struct repair *r, const struct judge *judge)
{
        uint64_t now = loop_now_usec(r->services->loop);

        for (size_t i = 0; i < judge->record_count && r->pid == 0; i++) {
                const struct judge_record *record = judge->records[i];
                const struct device *d = &record->device;
                const struct agent_config_repair *repair =
                        agent_config_repair(r->services->config, d->vendor);
                int result;

                if (repair == NULL || !record->judged || !record->health.bad ||
                    d->health != HEALTH_UNHEALTHY || r->is_held(r->services->userdata, d->id) ||
                    tries_today(r, d->id, now) >= repair->max_per_day || !remember(r, d->id, now))
                        continue;
                services_event(r->services, "Normal", "RepairStarted", d->id, "%s is run: %s", repair->path,
                               d->reason);
                result = start(r, repair, d);
                if (result < 0) {
                        r->failed++;
                        services_event(r->services, "Warning", "RepairFailed", d->id, "%s: %s", repair->path,
                                       strerrordesc_np(-result));
                }
        }
}

void repair_metrics(const struct repair *r, struct text *page)
{
        metrics_family(page, "remuda_repairs_total", METRIC_COUNTER, "Repair programs that have ended");
        metrics_sample_uint64(page, "remuda_repairs_total", METRIC_LABELS({ "result", "succeeded" }),
                              r->succeeded);
        metrics_sample_uint64(page, "remuda_repairs_total", METRIC_LABELS({ "result", "failed" }), r->failed);
}
