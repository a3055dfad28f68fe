/* Kubelet watch: a kubelet that restarts wipes the sockets in its directory and makes its own anew. The
 * directory is watched, and looked at every second in any case: events can be missed, inotify can be used up,
 * the directory itself can go and come back. */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <syslog.h>

#include "base/text.h"
#include "plugin/internal.h"

#define KUBELET_SOCKET "kubelet.sock"

static bool identify(const struct plugin *plugin, struct kubelet_watch *ret)
{
        char path[256];
        struct stat status;

        (void) text_format(path, sizeof(path), "%s/%s", plugin->directory, KUBELET_SOCKET);
        ret->present = lstat(path, &status) == 0 && S_ISSOCK(status.st_mode);
        if (!ret->present)
                return false;
        ret->device = status.st_dev;
        ret->inode = status.st_ino;
        ret->changed_nsec = (int64_t) status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec;
        return true;
}

static void new_kubelet(struct plugin *plugin)
{
        plugin->kubelet_seen_total++;
        plugin_log(plugin, LOG_INFO, "a kubelet is at %s/%s", plugin->directory, KUBELET_SOCKET);
        for (struct resource *r = plugin->resources; r != NULL; r = r->next) {
                r->failures = 0;
                if (r->member_count > 0 && !plugin->config.watcher)
                        registration_begin(r, 0);
        }
        grpc_client_disconnect(plugin->kubelet);
}

/* @created: the kernel says that the socket was made just now */
static void look(struct plugin *plugin, bool created)
{
        struct kubelet_watch *watch = &plugin->watch, now = { 0 };
        bool other;

        (void) identify(plugin, &now);
        other = now.present && (!watch->present || created || now.device != watch->device ||
                                now.inode != watch->inode || now.changed_nsec != watch->changed_nsec);
        if (watch->present && !now.present)
                plugin_log(plugin, LOG_NOTICE, "the kubelet's socket is gone; waiting for it to come back");
        watch->present = now.present;
        watch->device = now.device;
        watch->inode = now.inode;
        watch->changed_nsec = now.changed_nsec;
        if (other)
                new_kubelet(plugin);
}

static void check_sockets(struct plugin *plugin)
{
        for (struct resource *r = plugin->resources; r != NULL; r = r->next)
                resource_check(r);
}

static void watch_directory(struct plugin *plugin);

static int on_inotify(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
        struct plugin *plugin = userdata;

        (void) source;
        if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0) {
                plugin->watch.inotify = sd_event_source_disable_unref(plugin->watch.inotify);
                watch_directory(plugin);
                look(plugin, false);
        } else if ((event->mask & IN_Q_OVERFLOW) != 0) {
                look(plugin, false);
                check_sockets(plugin);
        } else if (event->len > 0 && strcmp(event->name, KUBELET_SOCKET) == 0) {
                look(plugin, (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0);
        } else if (event->len > 0 && text_starts_with(event->name, "remuda-") &&
                   (event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0) {
                check_sockets(plugin);
        }
        return 0;
}

static void watch_directory(struct plugin *plugin)
{
        uint32_t mask = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF |
                        IN_ONLYDIR;
        int r;

        if (plugin->watch.inotify != NULL)
                return;
        r = sd_event_add_inotify(plugin->loop, &plugin->watch.inotify, plugin->directory, mask, on_inotify,
                                 plugin);
        if (r < 0) /* not there yet, or no more watches: the tick sees to it */
                plugin->watch.inotify = NULL;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct plugin *plugin = userdata;

        (void) usec;
        watch_directory(plugin);
        look(plugin, false);
        check_sockets(plugin);
        (void) sd_event_source_set_time_relative(source, TICK_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int kubelet_watch_start(struct plugin *plugin, struct err *err)
{
        int r = sd_event_add_time_relative(plugin->loop, &plugin->watch.tick, CLOCK_MONOTONIC, TICK_USEC,
                                           100000, on_tick, plugin);

        if (r < 0)
                return err_set(err, r, "watch the kubelet's directory: %s", strerror(-r));
        watch_directory(plugin);
        look(plugin, false);
        return 0;
}

void kubelet_watch_stop(struct plugin *plugin)
{
        plugin->watch.inotify = sd_event_source_disable_unref(plugin->watch.inotify);
        plugin->watch.tick = sd_event_source_disable_unref(plugin->watch.tick);
}
