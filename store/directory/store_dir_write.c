/* Files that we write: our own objects whole, by rename; what we change about others' objects as an overlay
 * beside them, because nobody's file is ever rewritten. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "base/yaml/yaml_parse.h"
#include "io/loop.h"
#include "store/directory/store_dir.h"

#define FILE_NAME_BYTES 640

static bool is_safe(const char *s)
{
        if (s[0] == '.' || s[0] == '\0' || strlen(s) > 253)
                return false;
        return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")] == '\0';
}

static void lower(char *s)
{
        for (; *s != '\0'; s++)
                if (*s >= 'A' && *s <= 'Z')
                        *s = (char) (*s - 'A' + 'a');
}

/* object_file() - NAME.kind.json, or NAMESPACE.NAME.kind.json; overlay_file() - kind.NAMESPACE.NAME.patch. */
static int object_file(char *file, enum store_kind kind, const char *namespace_, const char *name,
                       struct err *err)
{
        const struct store_kind_info *info = store_kind_info(kind);
        char kind_name[64];

        if (namespace_ == NULL || namespace_[0] == '\0')
                namespace_ = "default";
        if (!is_safe(name) || !is_safe(namespace_))
                return err_set(err, -EINVAL, "'%.100s' is no name for an object", name);
        (void) text_copy(kind_name, sizeof(kind_name), info->kind);
        lower(kind_name);
        if (!text_format(file, 256, "%s%s%s.%s.json", info->namespaced ? namespace_ : "",
                         info->namespaced ? "." : "", name, kind_name))
                return err_set(err, -ENAMETOOLONG, "'%.100s' is too long a name for a file", name);
        return 0;
}

static int overlay_file(char *file, enum store_kind kind, const char *namespace_, const char *name,
                        struct err *err)
{
        const struct store_kind_info *info = store_kind_info(kind);
        char kind_name[64];

        if (!info->namespaced)
                namespace_ = "";
        else if (namespace_ == NULL || namespace_[0] == '\0')
                namespace_ = "default";
        if (!is_safe(name) || (namespace_[0] != '\0' && !is_safe(namespace_)))
                return err_set(err, -EINVAL, "'%.100s' is no name for an object", name);
        (void) text_copy(kind_name, sizeof(kind_name), info->kind);
        lower(kind_name);
        if (!text_format(file, 256, "%s.%s.%s.patch", kind_name, namespace_, name))
                return err_set(err, -ENAMETOOLONG, "'%.100s' is too long a name for a file", name);
        return 0;
}

static int write_synced(int directory_fd, const char *temporary, const char *bytes, size_t size,
                        struct err *err)
{
        CLEANUP(close_p)
        int fd = openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0)
                return err_set(err, -errno, "create '%s': %m", temporary);
        while (size > 0) {
                ssize_t n = write(fd, bytes, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_set(err, -errno, "write '%s': %m", temporary);
                bytes += n;
                size -= (size_t) n;
        }
        return fdatasync(fd) < 0 ? err_set(err, -errno, "sync '%s': %m", temporary) : 0;
}

/* @exclusive: -EEXIST if there is such a file; else it is replaced. Either way it appears complete or not at
 * all. */
static int write_file(struct store_dir *d, const char *name, const json_t *json, bool exclusive,
                      struct err *err)
{
        CLEANUP(free_p) char *bytes = json_dumps(json, JSON_INDENT(1));
        char temporary[FILE_NAME_BYTES];
        int r;

        if (bytes == NULL)
                return err_set(err, -ENOMEM, "out of memory for '%s'", name);
        (void) text_format(temporary, sizeof(temporary), ".%.200s.%d", name, (int) getpid());
        r = write_synced(d->fd, temporary, bytes, strlen(bytes), err);
        if (r == 0 && renameat2(d->fd, temporary, d->fd, name, exclusive ? RENAME_NOREPLACE : 0) < 0)
                r = err_set(err, -errno, "%s '%s': %m", exclusive ? "create" : "replace", name);
        if (r < 0)
                (void) unlinkat(d->fd, temporary, 0);
        return r;
}

static void answer_with(struct store_dir *d, store_answer answer, void *userdata, int r,
                        const struct err *err)
{
        store_answer_later(&d->store, answer, userdata, r, "%s", r < 0 ? err->msg : "");
}

/* Two merge patches as one: unlike applying a patch, nulls are kept, they still have to remove something. */
static int compose(json_t *patch, const json_t *newer)
{
        const char *name;
        json_t *value;

        json_object_foreach((json_t *) newer, name, value)
        {
                json_t *old = json_object_get(patch, name);
                int r = json_is_object(old) && json_is_object(value)
                                ? compose(old, value)
                                : json_object_set_new(patch, name, json_deep_copy(value));

                if (r < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* The object of that key as far as this store knows it. -ENOENT only when it would know. */
static int find(struct store_dir *d, enum store_kind kind, const char *namespace_, const char *name,
                struct dir_object **ret, struct err *err)
{
        char key[DIR_KEY_BYTES];

        *ret = NULL;
        if (!store_dir_key(key, kind, namespace_, name))
                return err_set(err, -EINVAL, "'%.100s' is no name for an object", name);
        *ret = store_dir_find(d, kind, key + 1);
        if (*ret == NULL && d->synced && store_wants(&d->store, kind))
                return err_set(err, -ENOENT, "%s '%s' is not in the store", store_kind_name(kind), key + 1);
        return 0;
}

static json_t *load_overlay(struct store_dir *d, const char *file, const char *uid)
{
        size_t size = 0;
        CLEANUP(free_p) char *bytes = store_dir_slurp(d->fd, file, YAML_PARSE_MAX_BYTES, &size, NULL, NULL);
        json_t *overlay = bytes != NULL ? json_loadb(bytes, size, 0, NULL) : NULL;
        const char *old_uid = json_string_value(json_object_get(overlay, "uid"));

        if (json_is_object(overlay) && (old_uid == NULL || uid == NULL || strcmp(old_uid, uid) == 0) &&
            !json_is_true(json_object_get(overlay, "deleted")))
                return overlay;
        json_decref(overlay); /* about an earlier object of the same name */
        return json_object();
}

struct overlay_change {
        const json_t *patch, *status; /* or NULL */
        bool deleted;
};

static int change_overlay(struct store_dir *d, enum store_kind kind, const char *namespace_, const char *name,
                          struct overlay_change change, struct err *err)
{
        char file[FILE_NAME_BYTES];
        struct dir_object *object;
        json_t *overlay, *patch;
        int r = find(d, kind, namespace_, name, &object, err);

        if (r == 0)
                r = overlay_file(file, kind, namespace_, name, err);
        if (r < 0)
                return r;
        overlay = load_overlay(d, file, object != NULL ? object->uid : NULL);
        patch = json_object_get(overlay, "patch");
        (void) json_object_set_new(overlay, "kind", json_string(store_kind_name(kind)));
        if (store_kind_info(kind)->namespaced)
                (void) json_object_set_new(overlay, "namespace", json_string(namespace_));
        (void) json_object_set_new(overlay, "name", json_string(name));
        if (object != NULL && object->uid != NULL)
                (void) json_object_set_new(overlay, "uid", json_string(object->uid));
        if (change.patch != NULL && patch == NULL)
                r = json_object_set_new(overlay, "patch", json_deep_copy(change.patch));
        else if (change.patch != NULL)
                r = compose(patch, change.patch);
        if (change.status != NULL)
                (void) json_object_set(overlay, "status", (json_t *) change.status);
        if (change.deleted)
                (void) json_object_set_new(overlay, "deleted", json_true());
        r = r < 0 ? err_set(err, -ENOMEM, "out of memory") : write_file(d, file, overlay, false, err);
        json_decref(overlay);
        d->wrote_overlay = true;
        return r;
}

/* What was said about an object without a uid must not fall on the next one of its name. */
void store_dir_overlay_gone(struct store_dir *d, const struct dir_object *object)
{
        struct dir_overlay *overlay = (struct dir_overlay *) name_map_find(&d->overlays, object->key);
        char file[FILE_NAME_BYTES], namespace_[256] = "";
        const char *slash = strchr(object->key, '/'), *name = slash != NULL ? slash + 1 : object->key + 1;

        if (overlay == NULL)
                return;
        name_map_remove(&d->overlays, &overlay->entry);
        store_dir_free_overlay(overlay);
        if (slash != NULL)
                (void) text_format(namespace_, sizeof(namespace_), "%.*s", (int) (slash - object->key - 1),
                                   object->key + 1);
        if (d->wrote_overlay &&
            overlay_file(file, (enum store_kind) object->kind, namespace_, name, NULL) == 0)
                (void) unlinkat(d->fd, file, 0);
}

void store_dir_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                   const json_t *object, store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        const json_t *status = json_object_get(object, "status");
        char file[FILE_NAME_BYTES];
        struct err err = { 0 };
        int r;

        if (kind == STORE_TRAINING_JOB) /* the job's file is its author's; its status is ours */
                r = status == NULL ? err_set(&err, -EINVAL, "a job without a status")
                                   : change_overlay(d, kind, namespace_, name,
                                                    (struct overlay_change){ .status = status }, &err);
        else {
                r = object_file(file, kind, namespace_, name, &err);
                if (r == 0)
                        r = write_file(d, file, object, false, &err);
        }
        answer_with(d, answer, userdata, r, &err);
}

/* The file as it is now, whatever was delivered: another process may have written it since. */
static int change_file(struct store_dir *d, const char *file, store_changer change, void *userdata,
                       struct err *err)
{
        size_t size = 0;
        CLEANUP(free_p) char *bytes = store_dir_slurp(d->fd, file, YAML_PARSE_MAX_BYTES, &size, NULL, err);
        json_t *object = NULL, *changed;
        int r = 0;

        if (bytes == NULL && faccessat(d->fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return err != NULL && err->code < 0 ? err->code : -EIO;
        if (bytes != NULL && size > 0 && (object = json_loadb(bytes, size, 0, NULL)) == NULL)
                return err_set(err, -EBADMSG, "'%s' holds no JSON; mend or remove it", file);
        changed = change(userdata, object, err);
        if (changed != NULL)
                r = write_file(d, file, changed, false, err);
        else if (err->code < 0)
                r = err->code;
        json_decref(changed);
        json_decref(object);
        return r;
}

void store_dir_change(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                      store_changer change, store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        CLEANUP(close_p) int folder = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char file[FILE_NAME_BYTES];
        struct err err = { 0 };
        int r = object_file(file, kind, namespace_, name, &err);

        if (r == 0 && (folder < 0 || flock(folder, LOCK_EX) < 0))
                r = err_set(&err, -errno, "lock the store's directory: %m");
        err.code = 0; /* "no such file" is none */
        if (r == 0)
                r = change_file(d, file, change, userdata, &err);
        answer_with(d, answer, userdata, r, &err);
}

void store_dir_patch(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                     const json_t *patch, store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        struct err err = { 0 };
        int r = change_overlay(d, kind, namespace_, name, (struct overlay_change){ .patch = patch }, &err);

        answer_with(d, answer, userdata, r, &err);
}

static void make_uid(char uid[40])
{
        unsigned char b[16] = { 0 };

        if (getrandom(b, sizeof(b), 0) != sizeof(b)) /* only before the kernel's pool is filled, at boot */
                memcpy(b, &(uint64_t){ (uint64_t) getpid() }, sizeof(uint64_t));
        b[6] = (unsigned char) ((b[6] & 0x0f) | 0x40); /* version 4: random */
        b[8] = (unsigned char) ((b[8] & 0x3f) | 0x80);
        (void) text_format(uid, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                           b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                           b[13], b[14], b[15]);
}

/* What an API server adds to an object when it is created. */
static json_t *complete(struct store_dir *d, enum store_kind kind, const char *namespace_,
                        const json_t *object)
{
        json_t *copy = json_deep_copy(object), *metadata = json_object_get(copy, "metadata");
        const char *prefix = json_string_value(json_object_get(metadata, "generateName"));
        char uid[40], time[TIMESTAMP_BYTES], name[300];

        if (!json_is_object(metadata)) {
                json_decref(copy);
                return NULL;
        }
        make_uid(uid);
        if (json_object_get(metadata, "name") == NULL && prefix != NULL) {
                (void) text_format(name, sizeof(name), "%.240s%.5s", prefix, uid);
                (void) json_object_set_new(metadata, "name", json_string(name));
        }
        if (store_kind_info(kind)->namespaced)
                (void) json_object_set_new(
                        metadata, "namespace",
                        json_string(namespace_ != NULL && namespace_[0] != '\0' ? namespace_ : "default"));
        (void) json_object_set_new(metadata, "uid", json_string(uid));
        (void) json_object_set_new(metadata, "creationTimestamp",
                                   json_string(timestamp_format(loop_realtime_usec(d->store.loop), time)));
        (void) json_object_set_new(copy, "apiVersion", json_string(store_kind_info(kind)->api_version));
        (void) json_object_set_new(copy, "kind", json_string(store_kind_name(kind)));
        return copy;
}

static int create(struct store_dir *d, enum store_kind kind, const char *namespace_, const json_t *object,
                  struct err *err)
{
        json_t *whole = complete(d, kind, namespace_, object);
        const char *name = json_string_value(json_object_get(json_object_get(whole, "metadata"), "name"));
        char file[FILE_NAME_BYTES], key[DIR_KEY_BYTES];
        const struct dir_object *there;
        int r = name == NULL ? err_set(err, -EINVAL, "the object has no metadata.name")
                             : object_file(file, kind, namespace_, name, err);

        if (r == 0 && store_dir_key(key, kind, namespace_, name)) {
                there = store_dir_find(d, kind, key + 1);
                if (there != NULL && there->delivered)
                        r = err_set(err, -EEXIST, "%s '%s' exists", store_kind_name(kind), key + 1);
        }
        if (r == 0)
                r = write_file(d, file, whole, true, err);
        json_decref(whole);
        return r;
}

void store_dir_create(struct store *store, enum store_kind kind, const char *namespace_, const json_t *object,
                      store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        struct err err = { 0 };
        int r = create(d, kind, namespace_, object, &err);

        answer_with(d, answer, userdata, r, &err);
}

static int delete_(struct store_dir *d, enum store_kind kind, const char *namespace_, const char *name,
                   const char *uid, struct err *err)
{
        char file[FILE_NAME_BYTES];
        struct dir_object *object;
        int r = find(d, kind, namespace_, name, &object, err);

        if (r == 0)
                r = object_file(file, kind, namespace_, name, err);
        if (r < 0)
                return r;
        if (uid != NULL && uid[0] != '\0' && object != NULL && object->uid != NULL &&
            strcmp(uid, object->uid) != 0)
                return err_set(err, -ESTALE, "%s '%s' has uid '%s', not '%s'", store_kind_name(kind), name,
                               object->uid, uid);
        if (object != NULL && strcmp(object->file->name, file) != 0) /* in somebody else's file */
                return change_overlay(d, kind, namespace_, name, (struct overlay_change){ .deleted = true },
                                      err);
        if (unlinkat(d->fd, file, 0) < 0)
                return err_set(err, -errno, "remove '%s': %m", file);
        return 0;
}

void store_dir_delete(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                      const char *uid, unsigned grace_sec, store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        struct err err = { 0 };
        int r = delete_(d, kind, namespace_, name, uid, &err);

        (void) grace_sec; /* nobody runs here who would need it */
        answer_with(d, answer, userdata, r, &err);
}

int store_dir_touch(struct store *store, const char *node)
{
        struct store_dir *d = (struct store_dir *) store;
        char file[FILE_NAME_BYTES];
        int r = object_file(file, STORE_INVENTORY, NULL, node, NULL);

        if (r < 0)
                return r;
        return utimensat(d->fd, file, NULL, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

void store_dir_event(struct store *store, const struct store_event *event)
{
        struct store_dir *d = (struct store_dir *) store;
        char time[TIMESTAMP_BYTES];
        json_t *line =
                json_pack("{s:s, s:s*, s:s*, s:s*, s:s*, s:s*, s:s*, s:s*}", "time",
                          timestamp_format(loop_realtime_usec(store->loop), time), "type", event->type,
                          "reason", event->reason, "message", event->message, "kind", event->object_kind,
                          "namespace", event->namespace_, "name", event->name, "uid", event->uid);
        CLEANUP(free_p) char *text = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;
        struct text whole = { 0 };
        CLEANUP(close_p)
        int fd = openat(d->fd, "events.jsonl", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

        json_decref(line);
        if (text == NULL || fd < 0)
                return;
        text_append(&whole, text);
        text_append_char(&whole, '\n');
        if (whole.failed || write(fd, whole.data, whole.size_bytes) != (ssize_t) whole.size_bytes)
                store_trouble(store, STORE_POD, "an event could not be written: %m");
        text_free(&whole);
}
