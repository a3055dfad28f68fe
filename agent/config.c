#include "agent/config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/launch/door.h"
#include "agent/probe/deep.h"
#include "agent/report.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/plugin.h"

static int read_file(const char *path, char **ret, size_t *ret_bytes, struct err *err)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct text text = { .max_bytes = AGENT_CONFIG_MAX_BYTES };
        char buffer[4096];
        ssize_t n;

        if (fd < 0)
                return err_set(err, -errno, "--config %s: %m", path);
        while ((n = read(fd, buffer, sizeof(buffer))) > 0)
                text_append_bytes(&text, buffer, (size_t) n);
        if (n < 0) {
                int r = err_set(err, -errno, "--config %s: %m", path);

                text_free(&text);
                return r;
        }
        *ret = text_take(&text, ret_bytes);
        return *ret == NULL ? err_set(err, -E2BIG, "--config %s: larger than %zu bytes", path,
                                      AGENT_CONFIG_MAX_BYTES)
                            : 0;
}

/* The keys of the plugin, with the line of a mistake as everywhere. */
static int parse_plugin(const char *name, const char *bytes, size_t size_bytes,
                        const struct agent_config *config, struct plugin_config *ret, struct err *err)
{
        int r;

        plugin_config_default(ret);
        r = plugin_config_parse(config->root, ret, err);
        return r < 0 && bytes != NULL ? agent_config_at(name, bytes, size_bytes, err) : r;
}

int agent_config_load(struct agent *a, struct err *err)
{
        const char *path = a->options->config, *name = path != NULL ? path : "defaults";
        CLEANUP(free_p) struct plugin_config *plugin = malloc(sizeof(*plugin));
        CLEANUP(free_p) char *bytes = NULL;
        struct agent_config config = { 0 };
        size_t size_bytes = 0;
        int r = 0;

        if (plugin == NULL)
                return err_set(err, -ENOMEM, "no memory for the configuration");
        if (path != NULL)
                r = read_file(path, &bytes, &size_bytes, err);
        if (r == 0)
                r = agent_config_parse(name, bytes, size_bytes, &config, err);
        if (r < 0)
                return r;
        r = parse_plugin(name, bytes, size_bytes, &config, plugin, err);
        if (r < 0) {
                agent_config_free(&config);
                return r;
        }
        if (a->options->compat != NULL)
                config.compat_dcgm = strcmp(a->options->compat, "dcgm") == 0;
        agent_config_free(&a->config);
        a->config = config;
        free(a->plugin_config);
        a->plugin_config = TAKE(plugin);
        return 0;
}

static void reload(struct agent *a)
{
        struct err err = { 0 };

        (void) sd_notify(0, "RELOADING=1");
        if (agent_config_load(a, &err) < 0) {
                a->reload_failures_total++;
                log_line(&a->log, LOG_ERR, "reload", "keeping=last error=\"%s\"", err.msg);
                report_event(a->report, "Warning", "ConfigurationRefused", NULL, "%s", err.msg);
        } else {
                a->reloads_total++;
                log_line(&a->log, LOG_INFO, "reload", "result=done");
                if (a->plugin != NULL)
                        (void) plugin_configure(a->plugin, a->plugin_config, NULL);
                deep_configure(a->deep);
                door_configure(a->door);
                agent_scan(a, "reload");
        }
        (void) sd_notify(0, "READY=1");
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        (void) source;
        (void) info;
        reload(userdata);
        return 0;
}

static const char *file_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash != NULL ? slash + 1 : path;
}

/* The folder is watched, since editors and ConfigMaps replace the file ("..data" is a ConfigMap's link). */
static int on_folder(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
        struct agent *a = userdata;
        bool ours = false;
        ssize_t n;

        (void) source;
        (void) revents;
        while ((n = read(fd, events, sizeof(events))) > 0)
                for (const char *at = events; at < events + n;) {
                        const struct inotify_event *e = (const struct inotify_event *) (const void *) at;

                        ours |= e->len > 0 && (strcmp(e->name, file_name(a->options->config)) == 0 ||
                                               strcmp(e->name, "..data") == 0);
                        at += sizeof(*e) + e->len;
                }
        if (ours)
                reload(a);
        return 0;
}

static int watch_folder(struct agent *a)
{
        const char *path = a->options->config;
        char folder[1024] = ".";

        if (strchr(path, '/') != NULL)
                (void) text_format(folder, sizeof(folder), "%.*s", (int) (file_name(path) - path), path);
        a->config_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (a->config_fd < 0 || inotify_add_watch(a->config_fd, folder, IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
                return -errno;
        return sd_event_add_io(a->loop, &a->config_watch, a->config_fd, EPOLLIN, on_folder, a);
}

int agent_config_watch(struct agent *a, struct err *err)
{
        sigset_t set;
        int r;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGHUP);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return err_set(err, -errno, "block SIGHUP: %m");
        r = sd_event_add_signal(a->loop, &a->config_signal, SIGHUP, on_hangup, a);
        if (r < 0)
                return err_set(err, r, "watch for SIGHUP: %s", strerrordesc_np(-r));
        if (a->options->config != NULL && watch_folder(a) < 0)
                log_line(&a->log, LOG_WARNING, "reload", "trouble=\"cannot watch %s\" remedy=SIGHUP",
                         a->options->config);
        return 0;
}

void agent_config_unwatch(struct agent *a)
{
        (void) sd_event_source_unref(a->config_signal);
        (void) sd_event_source_unref(a->config_watch);
        if (a->config_fd >= 0)
                (void) close(a->config_fd);
}
