/* Watch: uevents, inotify and a look; whatever tells first. */
#include "agent/watch.h"

#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"

#define DIRECTORIES_MAX   4096
#define DEPTH_MAX         24
#define ENTRIES_MAX       32768 /* of all directories: past that, walking them costs more than looking */
#define COSTLY_USEC       UINT64_C(50000)    /* a tree that takes longer to read ... */
#define COSTLY_WAIT_USEC  UINT64_C(10000000) /* ... and tells no changes is read less often */
#define LOOKS_WITH_EVENTS 5
#define SETTLE_USEC       20000 /* a burst of changes is one change */
#define EVENTS_BYTES      16384
#define UEVENT_BYTES      8192
#define LOOK_MASK                                                                                            \
        (IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF |      \
         IN_MOVE_SELF)
#define NEW_MASK (IN_CREATE | IN_MOVED_TO | IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF)

struct watch {
        sd_event *loop;
        struct watch_options options;
        int inotify_fd, uevent_fd;
        sd_event_source *inotify_source, *uevent_source, *look_timer, *settle_timer;
        bool live;                   /* a sysfs, with or without uevents */
        bool inotify_complete;       /* every directory is watched; otherwise none is */
        bool walk;                   /* directories have appeared */
        size_t directories, entries; /* counted by the walk */
        const char *why;             /* of the change that settles */
        char (*pci)[20];             /* functions that are looked at */
        size_t pci_count;
        uint64_t fingerprint;
        unsigned looks;
        uint64_t read_usec, cost_usec; /* when everything was read last, and how long that took */
};

static uint64_t mix_names(uint64_t hash, const struct tree *tree, const char *path)
{
        struct tree_names names = { 0 };

        if (tree_list(tree, path, &names) < 0)
                return hash_text("-", hash);
        for (size_t i = 0; i < names.count; i++)
                hash = hash_text(names.names[i], hash);
        tree_names_free(&names);
        return hash;
}

static uint64_t mix_device(uint64_t hash, const struct tree *tree, const char *pci)
{
        char path[96], driver[64];
        unsigned char config[4];
        ssize_t n;

        (void) text_format(path, sizeof(path), "sys/bus/pci/devices/%s/config", pci);
        n = tree_read(tree, path, config, sizeof(config));
        hash = hash_bytes(&n, sizeof(n), hash);
        if (n > 0)
                hash = hash_bytes(config, (size_t) n, hash);
        (void) text_format(path, sizeof(path), "sys/bus/pci/devices/%s/driver", pci);
        n = tree_link_name(tree, path, driver, sizeof(driver));
        return n > 0 ? hash_bytes(driver, (size_t) n, hash) : hash_text("-", hash);
}

static uint64_t look(const struct watch *w)
{
        static const char *const directories[] = {
                "sys/bus/pci/devices", "sys/class/accel", "sys/devices/system/node", "dev", "dev/dri",
                "dev/accel",
        };
        uint64_t hash = 0;

        for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
                hash = mix_names(hash, w->options.tree, directories[i]);
        for (size_t v = 0; vendors[v] != NULL; v++)
                for (size_t i = 0; vendors[v]->watched[i] != NULL; i++)
                        hash = mix_names(hash, w->options.tree, vendors[v]->watched[i]);
        for (size_t i = 0; i < w->pci_count; i++)
                hash = mix_device(hash, w->options.tree, w->pci[i]);
        return hash;
}

static bool add_directory(struct watch *w, const char *path)
{
        if (w->directories >= DIRECTORIES_MAX)
                return false;
        if (inotify_add_watch(w->inotify_fd, path, LOOK_MASK | IN_ONLYDIR | IN_DONT_FOLLOW) < 0)
                return errno == ENOENT || errno == ENOTDIR; /* gone meanwhile, or a link */
        w->directories++;
        return true;
}

/* Return: is everything below watched now? Recursion is bounded by DEPTH_MAX.
 * NOLINTNEXTLINE(misc-no-recursion) */
static bool walk(struct watch *w, const char *path, unsigned depth)
{
        DIR *dir;
        bool all = add_directory(w, path);

        if (!all || depth == DEPTH_MAX)
                return all;
        dir = opendir(path);
        if (dir == NULL)
                return true;
        for (const struct dirent *e = readdir(dir); e != NULL && all; e = readdir(dir)) {
                char below[TREE_PATH_BYTES];

                all = ++w->entries <= ENTRIES_MAX;
                if (e->d_type != DT_DIR || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                if (all && text_format(below, sizeof(below), "%s/%s", path, e->d_name))
                        all = walk(w, below, depth + 1);
        }
        (void) closedir(dir);
        return all;
}

static void close_inotify(struct watch *w)
{
        w->inotify_source = sd_event_source_disable_unref(w->inotify_source);
        if (w->inotify_fd >= 0)
                (void) close(w->inotify_fd);
        w->inotify_fd = -1;
}

static void walk_root(struct watch *w)
{
        static const char *const tops[] = { "sys", "proc", "dev" };
        char path[TREE_PATH_BYTES];
        bool all;

        w->walk = false;
        w->directories = w->entries = 0;
        if (w->options.is_file) { /* a file that was replaced is another one */
                w->inotify_complete =
                        inotify_add_watch(w->inotify_fd, w->options.path, LOOK_MASK | IN_CLOSE_WRITE) >= 0;
                return;
        }
        all = add_directory(w, w->options.path);

        for (size_t i = 0; i < ARRAY_SIZE(tops) && all; i++)
                if (text_format(path, sizeof(path), "%s/%s", w->options.path, tops[i]))
                        all = walk(w, path, 0);
        w->inotify_complete = all;
        if (!all)
                close_inotify(w); /* half an eye is worse than looking */
}

/* A hostile tree costs tenths of a second to read: not each second, for everybody else waits meanwhile. */
static bool is_too_soon(const struct watch *w)
{
        return w->cost_usec > COSTLY_USEC && clock_monotonic_usec() - w->read_usec < COSTLY_WAIT_USEC;
}

static void tell(void *userdata)
{
        struct watch *w = userdata;
        const char *why = w->why;

        w->settle_timer = sd_event_source_unref(w->settle_timer);
        if (w->walk && w->inotify_fd >= 0)
                walk_root(w);
        w->read_usec = clock_monotonic_usec();
        w->options.changed(w->options.userdata, why);
        w->cost_usec = clock_monotonic_usec() - w->read_usec;
}

static void settle(struct watch *w, const char *why)
{
        if (w->settle_timer != NULL)
                return;
        w->why = why;
        if (loop_after(w->loop, SETTLE_USEC, tell, w, &w->settle_timer) < 0)
                w->options.changed(w->options.userdata, why);
}

static void on_look(void *userdata)
{
        struct watch *w = userdata;
        uint64_t now;

        if (w->options.tree == NULL || (!w->inotify_complete && !w->live)) {
                if (!is_too_soon(w))
                        settle(w, "poll"); /* nothing else would tell, or nothing was read yet: read
                                              everything */
                return;
        }
        if (w->inotify_complete && ++w->looks % LOOKS_WITH_EVENTS != 0)
                return; /* events tell sooner; looking is for file systems that keep quiet about some */
        now = look(w);
        if (now != w->fingerprint) {
                w->fingerprint = now;
                settle(w, "look");
        }
}

static int on_inotify(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        char events[EVENTS_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
        struct watch *w = userdata;
        ssize_t n;

        (void) source;
        (void) revents;
        while ((n = read(fd, events, sizeof(events))) > 0)
                for (const char *at = events; at < events + n;) {
                        const struct inotify_event *e = (const struct inotify_event *) (const void *) at;

                        if ((e->mask & NEW_MASK) != 0)
                                w->walk = true;
                        at += sizeof(*e) + e->len;
                }
        settle(w, "inotify");
        return 0;
}

static bool is_interesting(const char *message, size_t size_bytes)
{
        static const char *const subsystems[] = { "pci", "drm", "accel", "misc", "vfio", "node", "cpu" };

        for (const char *s = message; s < message + size_bytes; s += strlen(s) + 1) {
                if (!text_starts_with(s, "SUBSYSTEM="))
                        continue;
                for (size_t i = 0; i < ARRAY_SIZE(subsystems); i++)
                        if (strcmp(s + strlen("SUBSYSTEM="), subsystems[i]) == 0)
                                return true;
                if (vendor_is_subsystem(s + strlen("SUBSYSTEM=")))
                        return true;
        }
        return false;
}

static int on_uevent(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        char message[UEVENT_BYTES + 1];
        struct watch *w = userdata;
        bool interesting = false;

        (void) source;
        (void) revents;
        for (;;) {
                struct sockaddr_nl from = { 0 };
                socklen_t from_bytes = sizeof(from);
                ssize_t n = recvfrom(fd, message, UEVENT_BYTES, MSG_DONTWAIT, (struct sockaddr *) &from,
                                     &from_bytes);

                if (n < 0 && errno == ENOBUFS) {
                        interesting = true; /* some were lost: look at everything */
                        continue;
                }
                if (n <= 0)
                        break;
                message[n] = '\0';
                if (from.nl_pid == 0) /* the kernel, and nobody who plays it */
                        interesting |= is_interesting(message, (size_t) n);
        }
        if (interesting)
                settle(w, "uevent");
        return 0;
}

static void open_uevents(struct watch *w)
{
        struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = 1 };
        int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

        if (fd < 0)
                return;
        if (bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ||
            sd_event_add_io(w->loop, &w->uevent_source, fd, EPOLLIN, on_uevent, w) < 0) {
                (void) close(fd);
                return;
        }
        w->uevent_fd = fd;
}

bool watch_is_live(const char *root)
{
        char path[TREE_PATH_BYTES];
        struct statfs fs;

        return text_format(path, sizeof(path), "%s/sys", root) && statfs(path, &fs) == 0 &&
               fs.f_type == SYSFS_MAGIC;
}

static void open_inotify(struct watch *w)
{
        w->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (w->inotify_fd < 0)
                return;
        walk_root(w);
        if (w->inotify_fd >= 0)
                (void) sd_event_add_io(w->loop, &w->inotify_source, w->inotify_fd, EPOLLIN, on_inotify, w);
}

int watch_new(sd_event *loop, const struct watch_options *options, struct watch **ret, struct err *err)
{
        struct watch *w = calloc(1, sizeof(*w));
        uint64_t period_usec = (uint64_t) options->period_ms * 1000;
        int r;

        if (w == NULL)
                return err_set(err, -ENOMEM, "no memory to watch '%s'", options->path);
        *w = (struct watch){ .loop = loop, .options = *options, .inotify_fd = -1, .uevent_fd = -1 };
        w->live = !options->is_file && watch_is_live(options->path);
        if (w->live)
                open_uevents(w);
        else
                open_inotify(w);
        r = loop_every(loop, period_usec, period_usec, on_look, w, &w->look_timer);
        if (r < 0) {
                watch_free(w);
                return err_set(err, r, "watch '%s': %s", options->path, strerrordesc_np(-r));
        }
        *ret = w;
        return 0;
}

void watch_free(struct watch *w)
{
        if (w == NULL)
                return;
        (void) sd_event_source_unref(w->look_timer);
        (void) sd_event_source_unref(w->settle_timer);
        close_inotify(w);
        (void) sd_event_source_unref(w->uevent_source);
        if (w->uevent_fd >= 0)
                (void) close(w->uevent_fd);
        free(w->pci);
        free(w);
}

int watch_tree(struct watch *w, const struct tree *tree, const struct inventory *inventory)
{
        char(*pci)[20] = calloc(inventory->device_count + 1, sizeof(*pci));
        size_t n = 0;

        if (pci == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < inventory->device_count; i++)
                if (inventory->devices[i].pci[0] != '\0')
                        (void) text_copy(pci[n++], sizeof(*pci), inventory->devices[i].pci);
        if (tree != w->options.tree || n != w->pci_count ||
            (n > 0 && memcmp(pci, w->pci, n * sizeof(*pci)) != 0))
                w->fingerprint = 0; /* of other things: the next look differs, so that nothing is missed */
        free(w->pci);
        w->pci = pci;
        w->pci_count = n;
        w->options.tree = tree;
        return 0;
}

const char *watch_mode(const struct watch *w)
{
        return w->uevent_fd >= 0 ? "uevent" : w->inotify_complete ? "inotify" : w->live ? "look" : "poll";
}
