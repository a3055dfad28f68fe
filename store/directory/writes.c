/* Our own objects are written whole, by rename; what we change about others' objects goes into overlays. */
#include "store/directory/writes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "base/yaml/yaml_parse.h"
#include "io/loop.h"
#include "store/directory/json_file.h"

static void answer_with(struct store_dir *d, store_answer answer, void *userdata, int r,
                        const struct err *err)
{
        store_answer_later(&d->store, answer, userdata, r, "%s", r < 0 ? err->msg : "");
}

/* The object of that key as far as this store knows it. -ENOENT only when it would know. */
static int find(struct store_dir *d, enum store_kind kind, const char *namespace_, const char *name,
                struct object **ret, struct err *err)
{
        char key[OBJECTS_KEY_BYTES];

        *ret = NULL;
        if (!objects_key(key, kind, namespace_, name))
                return err_set(err, -EINVAL, "'%.100s' is no name for an object", name);
        *ret = objects_find(&d->objects, kind, key + 1);
        if (*ret == NULL && d->synced && store_wants(&d->store, kind))
                return err_set(err, -ENOENT, "%s '%s' is not in the store", store_kind_name(kind), key + 1);
        return 0;
}

static int change_overlay(struct store_dir *d, enum store_kind kind, const char *namespace_, const char *name,
                          struct overlays_change change, struct err *err)
{
        struct object *object;
        int r = find(d, kind, namespace_, name, &object, err);

        return r < 0 ? r : overlays_change(&d->overlays, d->fd, kind, namespace_, name, object, change, err);
}

void writes_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                const json_t *object, store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        const json_t *status = json_object_get(object, "status");
        char file[OBJECTS_FILE_BYTES];
        struct err err = { 0 };
        int r;

        if (kind == STORE_TRAINING_JOB) /* the job's file is its author's; its status is ours */
                r = status == NULL ? err_set(&err, -EINVAL, "a job without a status")
                                   : change_overlay(d, kind, namespace_, name,
                                                    (struct overlays_change){ .status = status }, &err);
        else {
                r = objects_file_name(file, kind, namespace_, name, false, &err);
                if (r == 0)
                        r = json_file_write(d->fd, file, object, false, &err);
        }
        answer_with(d, answer, userdata, r, &err);
}

/* The file as it is now, whatever was delivered: another process may have written it since. */
static int change_file(struct store_dir *d, const char *file, store_changer change, void *userdata,
                       struct err *err)
{
        size_t size = 0;
        CLEANUP(free_p) char *bytes = json_file_read(d->fd, file, YAML_PARSE_MAX_BYTES, &size, NULL, err);
        json_t *object = NULL, *changed;
        int r = 0;

        if (bytes == NULL && faccessat(d->fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return err != NULL && err->code < 0 ? err->code : -EIO;
        if (bytes != NULL && size > 0 && (object = json_loadb(bytes, size, 0, NULL)) == NULL)
                return err_set(err, -EBADMSG, "'%s' holds no JSON; mend or remove it", file);
        changed = change(userdata, object, err);
        if (changed != NULL)
                r = json_file_write(d->fd, file, changed, false, err);
        else if (err->code < 0)
                r = err->code;
        json_decref(changed);
        json_decref(object);
        return r;
}

void writes_change(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                   store_changer change, store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        CLEANUP(close_p) int folder = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char file[OBJECTS_FILE_BYTES];
        struct err err = { 0 };
        int r = objects_file_name(file, kind, namespace_, name, false, &err);

        if (r == 0 && (folder < 0 || flock(folder, LOCK_EX) < 0))
                r = err_set(&err, -errno, "lock the store's directory: %m");
        err.code = 0; /* "no such file" is none */
        if (r == 0)
                r = change_file(d, file, change, userdata, &err);
        answer_with(d, answer, userdata, r, &err);
}

void writes_patch(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                  const json_t *patch, store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        struct err err = { 0 };
        int r = change_overlay(d, kind, namespace_, name, (struct overlays_change){ .patch = patch }, &err);

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
        store_kind_write(kind, copy);
        return copy;
}

static int create(struct store_dir *d, enum store_kind kind, const char *namespace_, const json_t *object,
                  struct err *err)
{
        json_t *whole = complete(d, kind, namespace_, object);
        const char *name = json_string_value(json_object_get(json_object_get(whole, "metadata"), "name"));
        char file[OBJECTS_FILE_BYTES], key[OBJECTS_KEY_BYTES];
        const struct object *there;
        int r = name == NULL ? err_set(err, -EINVAL, "the object has no metadata.name")
                             : objects_file_name(file, kind, namespace_, name, false, err);

        if (r == 0 && objects_key(key, kind, namespace_, name)) {
                there = objects_find(&d->objects, kind, key + 1);
                if (there != NULL && there->delivered)
                        r = err_set(err, -EEXIST, "%s '%s' exists", store_kind_name(kind), key + 1);
        }
        if (r == 0)
                r = json_file_write(d->fd, file, whole, true, err);
        json_decref(whole);
        return r;
}

void writes_create(struct store *store, enum store_kind kind, const char *namespace_, const json_t *object,
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
        char file[OBJECTS_FILE_BYTES];
        struct object *object;
        int r = find(d, kind, namespace_, name, &object, err);

        if (r == 0)
                r = objects_file_name(file, kind, namespace_, name, false, err);
        if (r < 0)
                return r;
        if (uid != NULL && uid[0] != '\0' && object != NULL && object->uid != NULL &&
            strcmp(uid, object->uid) != 0)
                return err_set(err, -ESTALE, "%s '%s' has uid '%s', not '%s'", store_kind_name(kind), name,
                               object->uid, uid);
        if (object != NULL && strcmp(object->file->entry.key, file) != 0) /* in somebody else's file */
                return change_overlay(d, kind, namespace_, name, (struct overlays_change){ .deleted = true },
                                      err);
        if (unlinkat(d->fd, file, 0) < 0)
                return err_set(err, -errno, "remove '%s': %m", file);
        return 0;
}

void writes_delete(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                   const char *uid, unsigned grace_sec, store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        struct err err = { 0 };
        int r = delete_(d, kind, namespace_, name, uid, &err);

        (void) grace_sec; /* nobody runs here who would need it */
        answer_with(d, answer, userdata, r, &err);
}

int writes_touch(struct store *store, const char *node)
{
        struct store_dir *d = (struct store_dir *) store;
        char file[OBJECTS_FILE_BYTES];
        int r = objects_file_name(file, STORE_INVENTORY, NULL, node, false, NULL);

        if (r < 0)
                return r;
        return utimensat(d->fd, file, NULL, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

void writes_event(struct store *store, const struct store_event *event)
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
