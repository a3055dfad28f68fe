/* An object's bytes are read again from their place, and what was committed and laid over them is put on. */
#include "store/directory/delivery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json/json_read.h"
#include "base/yaml/yaml_parse.h"
#include "store/directory/json_file.h"

void delivery_gone(struct store_dir *d, struct object *object)
{
        if (object->delivered)
                d->store.options.changed(d->store.options.userdata, (enum store_kind) object->kind,
                                         object->key + 1, NULL);
        object->delivered = 0;
}

/* Another uid under the same name is another object: the old one goes first. Where either has none, the name
 * is the identity. */
static void take_place(struct store_dir *d, struct object *object)
{
        uint32_t uid = object->uid != NULL ? (uint32_t) hash_text(object->uid, 0) | 2 : OBJECTS_NO_UID;

        if (object->delivered > OBJECTS_NO_UID && uid > OBJECTS_NO_UID && object->delivered != uid)
                delivery_gone(d, object);
        object->delivered = uid;
}

void delivery_send(struct store_dir *d, struct object *object, json_t *json)
{
        const struct overlay *overlay = overlays_of(&d->overlays, object);
        const struct commitment *commitment =
                object->kind == STORE_POD ? commitments_of(&d->commitments, object->uid, object->key + 1)
                                          : NULL;

        if (!store_wants(&d->store, (enum store_kind) object->kind))
                return;
        if (overlay != NULL && overlays_deletes(overlay, object)) {
                delivery_gone(d, object);
                return;
        }
        if (commitment != NULL)
                commitments_apply(commitment, json);
        if (overlay != NULL)
                overlays_apply(overlay, json);
        take_place(d, object);
        d->store.options.changed(d->store.options.userdata, (enum store_kind) object->kind, object->key + 1,
                                 json);
}

json_t *delivery_load_json(const struct store_dir *d, const struct object *object)
{
        CLEANUP(close_p) int fd = openat(d->fd, object->file->entry.key, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        CLEANUP(free_p) char *bytes = malloc(object->size_bytes);

        if (fd < 0 || bytes == NULL ||
            pread(fd, bytes, object->size_bytes, (off_t) object->offset_bytes) !=
                    (ssize_t) object->size_bytes ||
            hash_bytes(bytes, object->size_bytes, 0) != object->hash)
                return NULL; /* the file has changed: inotify will say so */
        return json_read(bytes, object->size_bytes, 0, NULL);
}

static json_t *load_yaml(const struct store_dir *d, const struct object *object)
{
        size_t size = 0, index;
        CLEANUP(free_p)
        char *bytes = json_file_read(d->fd, object->file->entry.key, YAML_PARSE_MAX_BYTES, &size, NULL, NULL);
        json_t *documents = NULL, *document, *found = NULL;
        char key[OBJECTS_KEY_BYTES];
        enum store_kind kind;

        if (bytes == NULL || yaml_parse_all(bytes, size, &documents, NULL) < 0)
                return NULL;
        json_array_foreach(documents, index, document)
        {
                json_t *items = json_object_get(document, "items"), *item;
                size_t i;

                if (objects_identify(document, "", &kind, key, NULL) == 0 && strcmp(key, object->key) == 0)
                        found = json_incref(document);
                json_array_foreach(items, i, item)
                {
                        if (found == NULL && objects_identify(item, "", &kind, key, NULL) == 0 &&
                            strcmp(key, object->key) == 0)
                                found = json_incref(item);
                }
        }
        json_decref(documents);
        return found;
}

static json_t *load(const struct store_dir *d, const struct object *object)
{
        return object->size_bytes > 0 ? delivery_load_json(d, object) : load_yaml(d, object);
}

void delivery_again(struct store_dir *d, struct object *object)
{
        json_t *json = load(d, object);
        char key[OBJECTS_KEY_BYTES];
        enum store_kind kind;

        if (json != NULL &&
            objects_identify(json, store_kind_name((enum store_kind) object->kind), &kind, key, NULL) == 0)
                delivery_send(d, object, json);
        else
                (void) store_dir_queue(d, object->file->entry.key, false);
        json_decref(json);
}

/* Of a file that we would have written; NULL = there is none, or it is about something else. */
static json_t *from_own_file(const struct store_dir *d, enum store_kind kind, const char *namespace_,
                             const char *name, const char *key)
{
        char file[OBJECTS_FILE_BYTES], found[OBJECTS_KEY_BYTES];
        enum store_kind found_kind;
        size_t size = 0;
        CLEANUP(free_p) char *bytes = NULL;
        json_t *json;

        if (objects_file_name(file, kind, namespace_, name, false, NULL) < 0)
                return NULL;
        bytes = json_file_read(d->fd, file, YAML_PARSE_MAX_BYTES, &size, NULL, NULL);
        json = bytes == NULL ? NULL : json_read(bytes, size, 0, NULL);
        if (json != NULL && objects_identify(json, "", &found_kind, found, NULL) == 0 &&
            strcmp(found, key) == 0)
                return json;
        json_decref(json);
        return NULL;
}

/* Return: a new reference; NULL = there is none. */
static json_t *present(const struct store_dir *d, enum store_kind kind, const char *namespace_,
                       const char *name, const char *key)
{
        const struct object *object = objects_find(&d->objects, kind, key + 1);
        const struct overlay *overlay = object == NULL ? NULL : overlays_of(&d->overlays, object);
        json_t *json;

        if (overlay != NULL && overlays_deletes(overlay, object))
                return NULL;
        json = from_own_file(d, kind, namespace_, name, key);
        if (json == NULL && object != NULL)
                json = load(d, object);
        if (json != NULL && overlay != NULL)
                overlays_apply(overlay, json);
        return json;
}

void delivery_read(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                   store_read_taker take, store_answer answer, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        char key[OBJECTS_KEY_BYTES];
        json_t *json;

        if (!objects_key(key, kind, namespace_, name)) {
                store_answer_later(store, answer, userdata, -EINVAL, "'%.100s' is no name for an object",
                                   name);
                return;
        }
        json = present(d, kind, namespace_, name, key);
        if (json == NULL) {
                store_answer_later(store, answer, userdata, -ENOENT, "%s '%s' is not in the store",
                                   store_kind_name(kind), key + 1);
                return;
        }
        take(userdata, json);
        json_decref(json);
        store_answer_later(store, answer, userdata, 0, "%s", "");
}
