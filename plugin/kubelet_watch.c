/* Kubelet watch: inotify where it works, a look every second in any case. */
#include "plugin/kubelet_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>

#include "base/text.h"
#include "io/loop.h"

#define KUBELET_SOCKET "kubelet.sock"
#define TICK_USEC      ((uint64_t) 1000000)

/* The kubelet's socket, as it was seen; ctime, so that a reused inode is not taken for the old kubelet. */
struct socket_file {
        bool present;
        uint64_t device, inode;
        int64_t changed_nsec;
};

struct kubelet_watch {
        sd_event *loop;
        struct kubelet_watch_options options;
        sd_event_source *inotify, *tick;
        struct socket_file socket;
        uint64_t seen_total;
};

static bool identify(const struct kubelet_watch *w, struct socket_file *ret)
{
        char path[256];
        struct stat status;

        (void) text_format(path, sizeof(path), "%s/%s", w->options.directory, KUBELET_SOCKET);
        ret->present = lstat(path, &status) == 0 && S_ISSOCK(status.st_mode);
        if (!ret->present)
                return false;
        ret->device = status.st_dev;
        ret->inode = status.st_ino;
        ret->changed_nsec = (int64_t) status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec;
        return true;
}

/* @created: the kernel says that the socket was made just now */
static void look(struct kubelet_watch *w, bool created)
{
        struct socket_file now = { 0 }, before = w->socket;

        (void) identify(w, &now);
        w->socket = now;
        if (before.present && !now.present)
                w->options.left(w->options.userdata);
        if (now.present && (!before.present || created || now.device != before.device ||
                            now.inode != before.inode || now.changed_nsec != before.changed_nsec)) {
                w->seen_total++;
                w->options.arrived(w->options.userdata);
        }
}

static void watch_directory(struct kubelet_watch *w);

static int on_inotify(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
        struct kubelet_watch *w = userdata;

        (void) source;
        if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0) {
                w->inotify = sd_event_source_disable_unref(w->inotify);
                watch_directory(w);
                look(w, false);
        } else if ((event->mask & IN_Q_OVERFLOW) != 0) {
                look(w, false);
                w->options.check(w->options.userdata);
        } else if (event->len > 0 && strcmp(event->name, KUBELET_SOCKET) == 0) {
                look(w, (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0);
        } else if (event->len > 0 && text_starts_with(event->name, "remuda-") &&
                   (event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0) {
                w->options.check(w->options.userdata);
        }
        return 0;
}

static void watch_directory(struct kubelet_watch *w)
{
        uint32_t mask = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF |
                        IN_ONLYDIR;
        int r;

        if (w->inotify != NULL)
                return;
        r = sd_event_add_inotify(w->loop, &w->inotify, w->options.directory, mask, on_inotify, w);
        if (r < 0) /* not there yet, or no more watches: the tick sees to it */
                w->inotify = NULL;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct kubelet_watch *w = userdata;

        (void) usec;
        watch_directory(w);
        look(w, false);
        w->options.check(w->options.userdata);
        loop_rearm(source, TICK_USEC);
        return 0;
}

int kubelet_watch_new(sd_event *loop, const struct kubelet_watch_options *options, struct kubelet_watch **ret,
                      struct err *err)
{
        struct kubelet_watch *w = calloc(1, sizeof(*w));
        int r;

        if (w == NULL)
                return err_set(err, -ENOMEM, "no memory to watch the kubelet's directory");
        w->loop = loop;
        w->options = *options;
        r = sd_event_add_time_relative(loop, &w->tick, CLOCK_MONOTONIC, TICK_USEC, 100000, on_tick, w);
        if (r < 0) {
                free(w);
                return err_set(err, r, "watch the kubelet's directory: %s", strerror(-r));
        }
        *ret = w;
        watch_directory(w);
        look(w, false);
        return 0;
}

void kubelet_watch_free(struct kubelet_watch *w)
{
        if (w == NULL)
                return;
        (void) sd_event_source_disable_unref(w->inotify);
        (void) sd_event_source_disable_unref(w->tick);
        free(w);
}

bool kubelet_watch_is_present(const struct kubelet_watch *w)
{
        return w != NULL && w->socket.present;
}

uint64_t kubelet_watch_seen_total(const struct kubelet_watch *w)
{
        return w != NULL ? w->seen_total : 0;
}
