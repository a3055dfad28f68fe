/* Objects as they are told: read from their place in a file, and as they are by now, with what was committed
 * and laid over them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json/json_merge.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "store/directory/store_dir.h"

#define DEFAULT_NAMESPACE "default"

char *store_dir_slurp(int directory_fd, const char *name, uint64_t max_bytes, size_t *ret_size_bytes,
                      struct dir_file *file, struct err *err)
{
        CLEANUP(close_p) int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        CLEANUP(free_p) char *bytes = NULL;
        size_t size = 0, want;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return (void) err_set(err, -errno, "%m"), NULL;
        if (!S_ISREG(st.st_mode))
                return (void) err_set(err, -EINVAL, "is not a regular file"), NULL;
        if ((uint64_t) st.st_size > max_bytes)
                return (void) err_set(err, -E2BIG, "has %lld bytes; at most %llu are read",
                                      (long long) st.st_size, (unsigned long long) max_bytes),
                       NULL;
        want = (size_t) st.st_size;
        bytes = malloc(want + 1);
        if (bytes == NULL)
                return (void) err_set(err, -ENOMEM, "out of memory"), NULL;
        while (size < want) {
                ssize_t n = read(fd, bytes + size, want - size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return (void) err_set(err, -errno, "%m"), NULL;
                if (n == 0)
                        break;
                size += (size_t) n;
        }
        bytes[size] = '\0';
        *ret_size_bytes = size;
        if (file != NULL) {
                file->mtime_usec =
                        (uint64_t) st.st_mtim.tv_sec * 1000000 + (uint64_t) st.st_mtim.tv_nsec / 1000;
                file->size_bytes = (uint64_t) st.st_size;
                file->inode = st.st_ino;
        }
        return TAKE(bytes);
}

bool store_dir_key(char key[DIR_KEY_BYTES], enum store_kind kind, const char *namespace_, const char *name)
{
        if (name == NULL || name[0] == '\0' || strlen(name) > 253)
                return false;
        if (!store_kind_info(kind)->namespaced)
                return text_format(key, DIR_KEY_BYTES, "%c%s", '0' + (int) kind, name);
        if (namespace_ == NULL || namespace_[0] == '\0')
                namespace_ = DEFAULT_NAMESPACE;
        return strlen(namespace_) <= 253 &&
               text_format(key, DIR_KEY_BYTES, "%c%s/%s", '0' + (int) kind, namespace_, name);
}

int store_dir_identify(json_t *object, const char *list_kind, enum store_kind *kind, char key[DIR_KEY_BYTES],
                       struct err *err)
{
        json_t *metadata = json_object_get(object, "metadata");
        const char *kind_name = json_string_value(json_object_get(object, "kind"));
        const char *name = json_string_value(json_object_get(metadata, "name"));
        const char *namespace_ = json_string_value(json_object_get(metadata, "namespace"));

        if (!json_is_object(object))
                return err_set(err, -EBADMSG, "an item is not an object");
        if (kind_name == NULL)
                kind_name = list_kind;
        if (kind_name[0] == '\0')
                return err_set(err, -EBADMSG, "an object has no kind");
        if (store_kind_parse(kind_name, kind) < 0)
                return 1;
        if (!store_dir_key(key, *kind, namespace_, name))
                return err_set(err, -EBADMSG, "a %s has no (usable) metadata.name", kind_name);
        if (store_kind_info(*kind)->namespaced && (namespace_ == NULL || namespace_[0] == '\0'))
                (void) json_object_set_new(metadata, "namespace", json_string(DEFAULT_NAMESPACE));
        return 0;
}

struct dir_object *store_dir_find(const struct store_dir *d, enum store_kind kind, const char *key)
{
        char full[DIR_KEY_BYTES];

        if (!text_format(full, sizeof(full), "%c%s", '0' + (int) kind, key))
                return NULL;
        return (struct dir_object *) name_map_find(&d->objects, full);
}

static json_t *member(json_t *object, const char *name)
{
        json_t *value = json_object_get(object, name);

        if (!json_is_object(value)) {
                value = json_object();
                (void) json_object_set_new(object, name, value);
        }
        return value;
}

/* A pod is delivered as what it is by now: bound, evicted. */
static void apply_commitment(const struct store_dir *d, const struct dir_object *pod, json_t *object)
{
        const struct dir_commitment *c = store_dir_commitment(d, pod);

        if (c == NULL)
                return;
        if (c->node != NULL)
                (void) json_object_set_new(member(object, "spec"), "nodeName", json_string(c->node));
        if (c->annotations != NULL)
                (void) json_object_update(member(member(object, "metadata"), "annotations"), c->annotations);
        if (c->deletion_time != NULL && !pod->terminating)
                (void) json_object_set_new(member(object, "metadata"), "deletionTimestamp",
                                           json_string(c->deletion_time));
}

static bool same_or_none(const char *a, const char *b)
{
        return a == NULL || b == NULL || strcmp(a, b) == 0;
}

static const struct dir_overlay *overlay_of(const struct store_dir *d, const struct dir_object *object)
{
        const struct dir_overlay *o = (struct dir_overlay *) name_map_find(&d->overlays, object->key);

        return o != NULL && same_or_none(o->uid, object->uid) ? o : NULL;
}

static bool is_deleted(const struct dir_object *object, const struct dir_overlay *overlay)
{
        return overlay != NULL && overlay->deleted &&
               (overlay->uid != NULL || object->file->mtime_usec <= overlay->mtime_usec);
}

void store_dir_deliver_gone(struct store_dir *d, struct dir_object *object)
{
        if (object->delivered)
                d->store.options.changed(d->store.options.userdata, (enum store_kind) object->kind,
                                         object->key + 1, NULL);
        object->delivered = false;
}

void store_dir_deliver(struct store_dir *d, struct dir_object *object, json_t *json)
{
        const struct dir_overlay *overlay = overlay_of(d, object);

        if (!store_wants(&d->store, (enum store_kind) object->kind))
                return;
        if (is_deleted(object, overlay)) {
                store_dir_deliver_gone(d, object);
                return;
        }
        if (object->kind == STORE_POD)
                apply_commitment(d, object, json);
        if (overlay != NULL && overlay->patch != NULL)
                (void) json_merge_patch(json, overlay->patch);
        if (overlay != NULL && overlay->status != NULL)
                (void) json_object_set(json, "status", overlay->status);
        object->delivered = true;
        d->store.options.changed(d->store.options.userdata, (enum store_kind) object->kind, object->key + 1,
                                 json);
}

json_t *store_dir_load_json(const struct store_dir *d, const struct dir_object *object)
{
        CLEANUP(close_p) int fd = openat(d->fd, object->file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        CLEANUP(free_p) char *bytes = malloc(object->size_bytes);

        if (fd < 0 || bytes == NULL ||
            pread(fd, bytes, object->size_bytes, (off_t) object->offset_bytes) !=
                    (ssize_t) object->size_bytes ||
            hash_bytes(bytes, object->size_bytes, 0) != object->hash)
                return NULL; /* the file has changed: inotify will say so */
        return json_loadb(bytes, object->size_bytes, 0, NULL);
}

static json_t *load_yaml(const struct store_dir *d, const struct dir_object *object)
{
        size_t size = 0, index;
        CLEANUP(free_p)
        char *bytes = store_dir_slurp(d->fd, object->file->name, YAML_PARSE_MAX_BYTES, &size, NULL, NULL);
        json_t *documents = NULL, *document, *found = NULL;
        char key[DIR_KEY_BYTES];
        enum store_kind kind;

        if (bytes == NULL || yaml_parse_all(bytes, size, &documents, NULL) < 0)
                return NULL;
        json_array_foreach(documents, index, document)
        {
                json_t *items = json_object_get(document, "items"), *item;
                size_t i;

                if (store_dir_identify(document, "", &kind, key, NULL) == 0 && strcmp(key, object->key) == 0)
                        found = json_incref(document);
                json_array_foreach(items, i, item)
                {
                        if (found == NULL && store_dir_identify(item, "", &kind, key, NULL) == 0 &&
                            strcmp(key, object->key) == 0)
                                found = json_incref(item);
                }
        }
        json_decref(documents);
        return found;
}

void store_dir_deliver_again(struct store_dir *d, struct dir_object *object)
{
        json_t *json = object->size_bytes > 0 ? store_dir_load_json(d, object) : load_yaml(d, object);
        char key[DIR_KEY_BYTES];
        enum store_kind kind;

        if (json != NULL &&
            store_dir_identify(json, store_kind_name((enum store_kind) object->kind), &kind, key, NULL) == 0)
                store_dir_deliver(d, object, json);
        else
                (void) store_dir_queue(d, object->file->name, false);
        json_decref(json);
}
