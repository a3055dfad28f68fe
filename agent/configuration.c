/* Configuration: one file, two readers of its keys, and an eye on its folder. */
#include "agent/configuration.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/read_file.h"

/* The keys of the plugin, with the line of a mistake as everywhere. */
static int parse_plugin(const char *name, const char *bytes, size_t size_bytes,
                        const struct agent_config *config, struct plugin_config *ret, struct err *err)
{
        int r;

        plugin_config_default(ret);
        r = plugin_config_parse(config->root, ret, err);
        return r < 0 && bytes != NULL ? agent_config_at(name, bytes, size_bytes, err) : r;
}

int configuration_load(const struct agent_options *options, struct configuration *c, struct err *err)
{
        const char *path = options->config, *name = path != NULL ? path : "defaults";
        CLEANUP(free_p) struct plugin_config *plugin = malloc(sizeof(*plugin));
        CLEANUP(free_p) char *bytes = NULL;
        struct agent_config config = { 0 };
        size_t size_bytes = 0;
        int r = 0;

        if (plugin == NULL)
                return err_set(err, -ENOMEM, "no memory for the configuration");
        if (path != NULL)
                r = read_file(path, AGENT_CONFIG_MAX_BYTES, &bytes, &size_bytes, err);
        if (r < 0)
                return err_wrap(err, r, "--config");
        r = agent_config_parse(name, bytes, size_bytes, &config, err);
        if (r < 0)
                return r;
        r = parse_plugin(name, bytes, size_bytes, &config, plugin, err);
        if (r < 0) {
                agent_config_free(&config);
                return r;
        }
        if (options->compat != NULL)
                (void) agent_config_compat_parse(
                        options->compat, &config.compat); /* the option's row takes these words alone */
        configuration_free(c);
        *c = (struct configuration){ .agent = config, .plugin = TAKE(plugin) };
        return 0;
}

void configuration_free(struct configuration *c)
{
        agent_config_free(&c->agent);
        free(c->plugin);
        *c = (struct configuration){ 0 };
}

void configuration_apply_log(const struct agent_options *options, const struct configuration *c,
                             struct log *log)
{
        log_set(log, options->log_format != NULL ? options->log_format : c->agent.log_format,
                options->log_level != NULL ? options->log_level : c->agent.log_level);
}

struct configuration_watch {
        const char *path;
        void (*changed)(void *userdata);
        void *userdata;
        sd_event_source *signal, *folder;
        int fd; /* inotify; -1 = none */
};

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct configuration_watch *w = userdata;

        (void) source;
        (void) info;
        w->changed(w->userdata);
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
        struct configuration_watch *w = userdata;
        bool ours = false;
        ssize_t n;

        (void) source;
        (void) revents;
        while ((n = read(fd, events, sizeof(events))) > 0)
                for (const char *at = events; at < events + n;) {
                        const struct inotify_event *e = (const struct inotify_event *) (const void *) at;

                        ours |= e->len > 0 &&
                                (strcmp(e->name, file_name(w->path)) == 0 || strcmp(e->name, "..data") == 0);
                        at += sizeof(*e) + e->len;
                }
        if (ours)
                w->changed(w->userdata);
        return 0;
}

static int watch_folder(sd_event *loop, struct configuration_watch *w)
{
        char folder[1024] = ".";

        if (strchr(w->path, '/') != NULL)
                (void) text_format(folder, sizeof(folder), "%.*s", (int) (file_name(w->path) - w->path),
                                   w->path);
        w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (w->fd < 0 || inotify_add_watch(w->fd, folder, IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
                return -errno;
        return sd_event_add_io(loop, &w->folder, w->fd, EPOLLIN, on_folder, w);
}

int configuration_watch_new(sd_event *loop, struct log *log, const char *path,
                            void (*changed)(void *userdata), void *userdata, struct configuration_watch **ret,
                            struct err *err)
{
        struct configuration_watch *w = calloc(1, sizeof(*w));
        sigset_t set;
        int r;

        if (w == NULL)
                return err_set(err, -ENOMEM, "no memory to watch the configuration");
        *w = (struct configuration_watch){ .path = path, .changed = changed, .userdata = userdata, .fd = -1 };
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGHUP);
        r = sigprocmask(SIG_BLOCK, &set, NULL) < 0
                    ? -errno
                    : sd_event_add_signal(loop, &w->signal, SIGHUP, on_hangup, w);
        if (r < 0) {
                configuration_watch_free(w);
                return err_set(err, r, "watch for SIGHUP: %s", strerrordesc_np(-r));
        }
        if (path != NULL && watch_folder(loop, w) < 0)
                log_line(log, LOG_WARNING, "reload", "trouble=\"cannot watch %s\" remedy=SIGHUP", path);
        *ret = w;
        return 0;
}

void configuration_watch_free(struct configuration_watch *w)
{
        if (w == NULL)
                return;
        (void) sd_event_source_unref(w->signal);
        (void) sd_event_source_unref(w->folder);
        if (w->fd >= 0)
                (void) close(w->fd);
        free(w);
}
