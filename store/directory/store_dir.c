/* The life of a store in a directory: the queue of files to read, inotify, and the directory that may go
 * away. */
#include "store/directory/store_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "store/directory/binding.h"
#include "store/directory/delivery.h"
#include "store/directory/reading.h"
#include "store/directory/writes.h"

#define CALM_USEC   2000    /* of reading what is known already, and as long for others in between */
#define SLICE_USEC  20000   /* of reading, before others on the loop get their turn */
#define REVIVE_USEC 1000000 /* between two looks for a directory that is gone */
#define WATCHED                                                                                              \
        (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ATTRIB | IN_MODIFY |      \
         IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

uint64_t store_dir_mtime(const struct stat *st)
{
        return (uint64_t) st->st_mtim.tv_sec * 1000000 + (uint64_t) st->st_mtim.tv_nsec / 1000;
}

bool store_dir_is_object_file(const char *name)
{
        return name[0] != '.' && (text_ends_with(name, ".json") || text_ends_with(name, ".yaml"));
}

static bool is_journal(const struct store_dir *d, const char *name)
{
        return strcmp(name, d->bindings.name) == 0 || strcmp(name, d->evictions.name) == 0;
}

struct object_file *store_dir_queue(struct store_dir *d, const char *name, bool first)
{
        struct object_file *file = objects_file(&d->objects, name);

        if (file == NULL) {
                store_trouble(&d->store, STORE_NODE, "'%s': out of memory", name);
                return NULL;
        }
        (void) sd_event_source_set_enabled(d->working, SD_EVENT_ON);
        if (file->queued) {
                file->recheck = false;
                return file;
        }
        file->queued = true;
        file->recheck = false;
        if (first) {
                file->next_queued = d->queue;
                d->queue = file;
                if (file->next_queued == NULL)
                        d->queue_end = &file->next_queued;
        } else {
                file->next_queued = NULL;
                *d->queue_end = file;
                d->queue_end = &file->next_queued;
        }
        return file;
}

static struct object_file *unqueue(struct store_dir *d)
{
        struct object_file *file = d->queue;

        d->queue = file->next_queued;
        if (d->queue == NULL)
                d->queue_end = &d->queue;
        file->queued = false;
        return file;
}

static bool is_there(const struct store_dir *d, const char *name)
{
        struct stat st;

        return fstatat(d->fd, name, &st, 0) == 0;
}

static void say_synced(struct store_dir *d)
{
        d->synced = true;
        d->refreshing = false;
        for (int kind = 0; kind < STORE_KIND_COUNT; kind++)
                if (store_wants(&d->store, (enum store_kind) kind) && d->store.options.synced != NULL)
                        d->store.options.synced(d->store.options.userdata, (enum store_kind) kind);
}

/* Files that are gone wait until the others were read: an object that moved to another file must not seem to
 * vanish in between. */
static struct object_file *next_to_read(struct store_dir *d)
{
        struct object_file *file;

        while (d->queue != NULL) {
                file = unqueue(d);
                if (is_there(d, file->entry.key))
                        return file;
                file->queued = true;
                file->next_queued = d->gone;
                d->gone = file;
        }
        file = d->gone;
        if (file != NULL) {
                d->gone = file->next_queued;
                file->queued = false;
        }
        return file;
}

static void on_pause_over(void *userdata)
{
        struct store_dir *d = userdata;

        d->pausing = sd_event_source_disable_unref(d->pausing);
        (void) sd_event_source_set_enabled(d->working, SD_EVENT_ON);
}

/* Who looks again is in no hurry: between two slices the loop is left to itself, also to its least urgent
 * work. */
static int pause_work(struct store_dir *d)
{
        if (d->pausing == NULL && loop_after(d->store.loop, CALM_USEC, on_pause_over, d, &d->pausing) < 0)
                return 0; /* no memory: on without a pause */
        return sd_event_source_set_enabled(d->working, SD_EVENT_OFF);
}

static int on_work(sd_event_source *source, void *userdata)
{
        struct store_dir *d = userdata;
        bool calm = d->synced && d->refreshing;
        uint64_t end = clock_monotonic_usec() + (calm ? CALM_USEC : SLICE_USEC);
        struct object_file *file;

        (void) source;
        while ((file = next_to_read(d)) != NULL) {
                bool whole = true;

                d->store.rechecking = file->recheck;
                if (file->recheck)
                        whole = reading_recheck(d, file, end);
                else
                        reading_file(d, file); /* which may free it */
                d->store.rechecking = false;
                if (!whole && store_dir_queue(d, file->entry.key, true) != NULL)
                        file->recheck = true;
                if (clock_monotonic_usec() >= end)
                        return calm ? pause_work(d) : 0;
        }
        (void) sd_event_source_set_enabled(d->working, SD_EVENT_OFF);
        if (!d->synced || d->refreshing)
                say_synced(d);
        return 0;
}

static int scan(struct store_dir *d, struct err *err)
{
        int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;

        if (directory == NULL) {
                int r = -errno;

                if (fd >= 0)
                        (void) close(fd);
                return err_set(err, r, "read the directory '%s': %s", d->path, strerror(-r));
        }
        while ((entry = readdir(directory)) != NULL) {
                if (store_dir_is_object_file(entry->d_name))
                        (void) store_dir_queue(d, entry->d_name, false);
                else if (overlays_is_file(entry->d_name))
                        (void) store_dir_queue(d, entry->d_name, true);
        }
        (void) closedir(directory);
        for (struct name_map_entry *e = name_map_first(&d->objects.files); e != NULL;
             e = name_map_next(&d->objects.files, e))
                (void) store_dir_queue(d, ((struct object_file *) e)->entry.key,
                                       false); /* those that may be gone */
        (void) sd_event_source_set_enabled(d->working, SD_EVENT_ON);
        return 0;
}

static void note_touch(struct store_dir *d, const char *name)
{
        struct object_file *file = (struct object_file *) name_map_find(&d->objects.files, name);
        struct stat st;

        if (file != NULL && fstatat(d->fd, name, &st, 0) == 0 && st.st_ino == file->inode)
                file->mtime_usec = store_dir_mtime(&st);
}

/* IN_CREATE comes for every new file, still empty; only a link (hard or symbolic) has content at that moment.
 */
static bool has_content_at_birth(const struct store_dir *d, const char *name)
{
        struct stat st;

        return fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISLNK(st.st_mode) || st.st_size > 0);
}

static void on_name(struct store_dir *d, const char *name, uint32_t mask)
{
        struct err err = { 0 };

        if (is_journal(d, name)) {
                if (binding_read_journals(d, &err) < 0)
                        store_trouble(&d->store, STORE_POD, "%s", err.msg);
                return;
        }
        if (!store_dir_is_object_file(name) && !overlays_is_file(name))
                return;
        if ((mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)) != 0 ||
            ((mask & IN_CREATE) != 0 && has_content_at_birth(d, name)))
                (void) store_dir_queue(d, name, overlays_is_file(name));
        else if ((mask & IN_ATTRIB) != 0)
                note_touch(d, name);
}

static void lose(struct store_dir *d)
{
        if (d->lost_since_usec != 0)
                return;
        d->lost_since_usec = loop_now_usec(d->store.loop);
        store_trouble(&d->store, STORE_NODE,
                      "the directory '%s' is gone; what was read last counts, and grows old", d->path);
        d->inotify = sd_event_source_disable_unref(d->inotify);
        loop_rearm(d->reviving, REVIVE_USEC);
}

static int on_inotify(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
        struct store_dir *d = userdata;
        struct err err = { 0 };

        (void) source;
        if ((event->mask & IN_Q_OVERFLOW) != 0) {
                if (scan(d, &err) < 0 || binding_read_journals(d, &err) < 0)
                        store_trouble(&d->store, STORE_NODE, "%s", err.msg);
        } else if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0)
                lose(d);
        else if (event->len > 0)
                on_name(d, event->name, event->mask);
        return 0;
}

static int open_directory(struct store_dir *d, struct err *err)
{
        int fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return err_set(err, -errno, "open the store's directory '%s': %m", d->path);
        if (d->fd >= 0)
                (void) close(d->fd);
        d->fd = fd;
        journal_free(&d->bindings);
        journal_free(&d->evictions);
        journal_init(&d->bindings, fd, "bindings.jsonl");
        journal_init(&d->evictions, fd, "evictions.jsonl");
        return 0;
}

/* The watch comes before the first look, so that nothing is missed between the two. */
static int watch(struct store_dir *d, struct err *err)
{
        int r = sd_event_add_inotify(d->store.loop, &d->inotify, d->path, WATCHED, on_inotify, d);

        if (r < 0)
                return err_set(err, r, "watch the directory '%s': %s", d->path, strerror(-r));
        (void) sd_event_source_set_priority(d->inotify, SD_EVENT_PRIORITY_NORMAL - 1); /* before reading on */
        r = binding_read_journals(d, err);
        return r < 0 ? r : scan(d, err);
}

static void on_revive(void *userdata)
{
        struct store_dir *d = userdata;

        if (open_directory(d, NULL) < 0 || watch(d, NULL) < 0) {
                d->inotify = sd_event_source_disable_unref(d->inotify);
                loop_rearm(d->reviving, REVIVE_USEC);
                return;
        }
        d->lost_since_usec = 0;
        store_trouble(&d->store, STORE_NODE, "the directory '%s' is back", d->path);
}

static void close_(struct store *store)
{
        struct store_dir *d = (struct store_dir *) store;

        binding_stop(d);
        store_done(store);
        sd_event_source_disable_unref(d->inotify);
        sd_event_source_disable_unref(d->working);
        sd_event_source_disable_unref(d->pausing);
        sd_event_source_disable_unref(d->binding);
        sd_event_source_disable_unref(d->reviving);
        journal_free(&d->bindings);
        journal_free(&d->evictions);
        objects_free(&d->objects);
        overlays_free(&d->overlays);
        commitments_free(&d->commitments);
        if (d->fd >= 0)
                (void) close(d->fd);
        free(d->path);
        free(d);
}

/* Everything is read as if it had never been; a file that is waiting to be read has news anyway. */
static void refresh(struct store *store)
{
        struct store_dir *d = (struct store_dir *) store;
        struct err err = { 0 };
        bool recheck = d->synced && !d->refreshing;

        for (struct name_map_entry *e = name_map_first(&d->objects.files); recheck && e != NULL;
             e = name_map_next(&d->objects.files, e)) {
                struct object_file *file = (struct object_file *) e;

                file->recheck_at = NULL;
                if (!file->queued && store_dir_queue(d, file->entry.key, false) != NULL)
                        file->recheck = true;
        }
        d->refreshing = true;
        (void) sd_event_source_set_enabled(d->working, SD_EVENT_ON);
        if (binding_read_journals(d, &err) < 0)
                store_trouble(store, STORE_POD, "%s", err.msg);
}

static uint64_t age_usec(const struct store *store, unsigned kinds, uint64_t now_usec)
{
        const struct store_dir *d = (const struct store_dir *) store;
        uint64_t since = d->lost_since_usec != 0 ? d->lost_since_usec : d->synced ? now_usec : d->opened_usec;

        (void) kinds;
        return now_usec > since ? now_usec - since : 0;
}

static uint64_t inventory_mtime_usec(const struct store *store, const char *node)
{
        const struct object *object =
                objects_find(&((const struct store_dir *) store)->objects, STORE_INVENTORY, node);

        return object != NULL ? object->file->mtime_usec : 0;
}

static const struct store_backend backend = {
        .close = close_,
        .refresh = refresh,
        .age_usec = age_usec,
        .inventory_mtime_usec = inventory_mtime_usec,
        .touch = writes_touch,
        .bind = binding_bind,
        .put = writes_put,
        .read = delivery_read,
        .patch = writes_patch,
        .change = writes_change,
        .create = writes_create,
        .delete = writes_delete,
        .evict = binding_evict,
        .event = writes_event,
};

static int start(struct store_dir *d, const char *path, struct err *err)
{
        int r;

        d->path = strdup(path);
        if (d->path == NULL)
                return err_set(err, -ENOMEM, "out of memory");
        r = open_directory(d, err);
        if (r < 0)
                return r;
        r = sd_event_add_defer(d->store.loop, &d->working, on_work, d);
        if (r >= 0)
                r = sd_event_source_set_enabled(d->working, SD_EVENT_OFF);
        if (r >= 0)
                r = loop_timer(d->store.loop, on_revive, d, &d->reviving);
        if (r >= 0)
                r = binding_start(d);
        if (r < 0)
                return err_set(err, r, "attach the store to the loop: %s", strerror(-r));
        return d->store.options.kinds != 0 && d->store.options.changed != NULL ? watch(d, err) : 0;
}

int store_dir_new(sd_event *loop, const struct store_options *options, const char *path, struct store **ret,
                  struct err *err)
{
        struct store_dir *d = calloc(1, sizeof(*d));
        int r;

        if (d == NULL)
                return err_set(err, -ENOMEM, "out of memory");
        d->fd = -1;
        d->queue_end = &d->queue;
        d->binds_end = &d->binds;
        journal_init(&d->bindings, -1, "bindings.jsonl");
        journal_init(&d->evictions, -1, "evictions.jsonl");
        r = store_init(&d->store, &backend, loop, options, err);
        if (r == 0 && path[0] == '\0')
                r = err_set(err, -EINVAL, "'dir:' needs a path");
        d->opened_usec = loop_now_usec(loop);
        if (r == 0)
                r = start(d, path, err);
        if (r < 0) {
                close_(&d->store);
                return r;
        }
        *ret = &d->store;
        return 0;
}
