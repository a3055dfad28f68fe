/* From files to objects: which item of which file is the object of a key, what changed, what is gone. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json/json_items.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "io/clock.h"
#include "store/directory/store_dir.h"

#define FILE_MAX_BYTES ((uint64_t) 2 << 30)

/* One pass over a file. What it held before is met again by key or, cheaper, by order and hash. */
struct reading {
        struct store_dir *d;
        struct dir_file *file;
        struct dir_object **old; /* in their former order */
        size_t old_count, expected;
        struct dir_object **tail; /* where the next one of the new order goes */
        bool broken;              /* an item could not be used: what is missing now is kept */
};

/* Where an item stands, and a hash of its content. */
struct place {
        uint64_t hash, offset_bytes;
        size_t size_bytes;
};

static void object_free(struct dir_object *object)
{
        free(object->node);
        free(object->uid);
        free(object);
}

static bool is_newer(const struct dir_object *a, const struct dir_object *b)
{
        if (a->file->mtime_usec != b->file->mtime_usec)
                return a->file->mtime_usec > b->file->mtime_usec;
        return strcmp(a->file->name, b->file->name) > 0;
}

/* The newcomer, or the one that was there: the later modified file's object counts. */
static int enter(struct store_dir *d, struct dir_object *object)
{
        struct dir_object *other = (struct dir_object *) name_map_find(&d->objects, object->key);
        bool wins = other == NULL || is_newer(object, other);

        if (other == NULL)
                return name_map_insert(&d->objects, &object->entry);
        if (other->file != object->file)
                store_trouble(&d->store, (enum store_kind) object->kind,
                              "%s '%s' is in '%s' and in '%s': the later modified one, '%s', counts",
                              store_kind_name((enum store_kind) object->kind), object->key + 1,
                              other->file->name, object->file->name,
                              wins ? object->file->name : other->file->name);
        if (!wins) {
                object->next_same = other->next_same;
                other->next_same = object;
                return 0;
        }
        name_map_remove(&d->objects, &other->entry);
        object->next_same = other;
        object->delivered = other->delivered;
        other->delivered = false;
        return name_map_insert(&d->objects, &object->entry);
}

static bool counts(const struct store_dir *d, const struct dir_object *object)
{
        return name_map_find(&d->objects, object->key) == &object->entry;
}

/* Leave the map or the list of those that do not count. Return: the one that counts now in its place, or
 * NULL. */
static struct dir_object *withdraw(struct store_dir *d, struct dir_object *object)
{
        struct dir_object *other = (struct dir_object *) name_map_find(&d->objects, object->key),
                          *best = NULL, **at;

        if (other != object) {
                for (at = &other->next_same; *at != object;)
                        at = &(*at)->next_same;
                *at = object->next_same;
                object->next_same = NULL;
                return NULL;
        }
        name_map_remove(&d->objects, &object->entry);
        for (other = object->next_same; other != NULL; other = other->next_same)
                if (best == NULL || is_newer(other, best))
                        best = other;
        if (best == NULL)
                return NULL;
        for (at = &object->next_same; *at != best;)
                at = &(*at)->next_same;
        *at = best->next_same;
        best->next_same = object->next_same;
        best->delivered = object->delivered;
        object->next_same = NULL;
        object->delivered = false;
        (void) name_map_insert(&d->objects,
                               &best->entry); /* as many entries as before: no memory is needed */
        return best;
}

static void forget(struct store_dir *d, struct dir_object *object)
{
        struct dir_object *successor = withdraw(d, object);

        if (successor != NULL)
                store_dir_deliver_again(d, successor);
        else {
                store_dir_deliver_gone(d, object);
                store_dir_overlay_gone(d, object);
        }
        object_free(object);
}

static char *copy_of(const json_t *string)
{
        const char *value = json_string_value(string);

        return value != NULL && value[0] != '\0' ? strdup(value) : NULL;
}

static void note(struct dir_object *object, const json_t *json)
{
        json_t *metadata = json_object_get(json, "metadata");

        free(object->uid);
        free(object->node);
        object->uid = copy_of(json_object_get(metadata, "uid"));
        object->node = NULL;
        if (object->kind != STORE_POD)
                return;
        object->node = copy_of(json_object_get(json_object_get(json, "spec"), "nodeName"));
        object->terminating = json_is_string(json_object_get(metadata, "deletionTimestamp"));
}

static void set_place(struct dir_object *object, const struct place *place)
{
        object->hash = place->hash;
        object->offset_bytes = place->offset_bytes;
        object->size_bytes = (uint32_t) place->size_bytes;
}

/* The object is in the file: in which order, does it count, and must its user hear of it? @json: NULL = its
 * content is as it was. */
static void settle(struct reading *r, struct dir_object *object, json_t *json)
{
        bool changed = json != NULL;

        object->seen = true;
        *r->tail = object;
        r->tail = &object->next_in_file;
        if (!counts(r->d, object)) {
                if (!is_newer(object, (struct dir_object *) name_map_find(&r->d->objects, object->key)))
                        return;
                (void) withdraw(r->d, object);
                if (enter(r->d, object) < 0)
                        return;
                changed = true;
        }
        if (changed && json != NULL)
                store_dir_deliver(r->d, object, json);
        else if (changed)
                store_dir_deliver_again(r->d, object);
}

static struct dir_object *find_in_file(const struct reading *r, const char *key)
{
        struct dir_object *o = (struct dir_object *) name_map_find(&r->d->objects, key);

        while (o != NULL && o->file != r->file)
                o = o->next_same;
        return o;
}

static struct dir_object *add(struct reading *r, enum store_kind kind, const char *key, const json_t *json)
{
        struct dir_object *object = calloc(1, sizeof(*object) + strlen(key) + 1);

        if (object == NULL)
                return NULL;
        memcpy(object->key, key, strlen(key) + 1);
        object->entry.key = object->key;
        object->kind = (uint8_t) kind;
        object->file = r->file;
        note(object, json);
        if (enter(r->d, object) == 0)
                return object;
        object_free(object);
        return NULL;
}

static void complain(struct reading *r, enum store_kind kind, const char *what)
{
        r->broken = true;
        store_trouble(&r->d->store, kind, "'%s' %s; the last good version counts", r->file->name, what);
}

/* An item whose content is new: an object that changed, or a new one. */
static void take_json(struct reading *r, json_t *json, const char *list_kind, const struct place *place)
{
        char key[DIR_KEY_BYTES];
        enum store_kind kind = STORE_NODE;
        struct dir_object *object;
        struct err err = { 0 };
        int e = store_dir_identify(json, list_kind, &kind, key, &err);

        if (e < 0)
                complain(r, kind, err.msg);
        if (e != 0 || !store_wants(&r->d->store, kind))
                return;
        object = find_in_file(r, key);
        if (object != NULL && object->seen) {
                store_trouble(&r->d->store, kind, "'%s' holds %s '%s' twice; the first one counts",
                              r->file->name, store_kind_name(kind), key + 1);
                return;
        }
        if (object == NULL)
                object = add(r, kind, key, json);
        else if (object->hash == place->hash)
                json = NULL; /* it only moved */
        else
                note(object, json);
        if (object == NULL) {
                complain(r, kind, "cannot be kept: out of memory");
                return;
        }
        set_place(object, place);
        settle(r, object, json);
}

/* Most items of a changed list are as they were and where they were: they are not even parsed. */
static bool take_unchanged(struct reading *r, const struct place *place)
{
        struct dir_object *object = r->expected < r->old_count ? r->old[r->expected] : NULL;

        if (object == NULL || object->seen || object->hash != place->hash)
                return false;
        r->expected++;
        set_place(object, place);
        settle(r, object, NULL);
        return true;
}

static void take_bytes(struct reading *r, const char *bytes, const struct place *place, const char *list_kind)
{
        json_error_t error;
        json_t *json;
        char what[256];

        if (take_unchanged(r, place))
                return;
        json = json_loadb(bytes, place->size_bytes, 0, &error);
        if (json == NULL) {
                (void) text_format(what, sizeof(what), "holds JSON that cannot be read (near byte %llu: %s)",
                                   (unsigned long long) place->offset_bytes + (unsigned) error.position,
                                   error.text);
                complain(r, STORE_NODE, what);
                return;
        }
        take_json(r, json, list_kind, place);
        json_decref(json);
        if (r->expected < r->old_count && r->old[r->expected]->seen)
                r->expected++;
}

static int take_json_file(struct reading *r, const char *bytes, size_t size, struct err *err)
{
        struct json_items items;
        const char *item;
        struct place place;
        int e = json_items_open(bytes, size, &items, err);

        if (e < 0)
                return e;
        while (json_items_next(&items, &item, &place.size_bytes)) {
                place.offset_bytes = (uint64_t) (item - bytes);
                place.hash = hash_bytes(item, place.size_bytes, 0);
                take_bytes(r, item, &place, items.is_list ? items.kind : "");
        }
        return 0;
}

static void take_document(struct reading *r, json_t *document)
{
        CLEANUP(free_p) char *text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);
        struct place place = { 0 };

        if (text == NULL) {
                complain(r, STORE_NODE, "cannot be kept: out of memory");
                return;
        }
        place.hash = hash_text(text, 0);
        if (!take_unchanged(r, &place))
                take_json(r, document, "", &place);
}

static int take_yaml_file(struct reading *r, const char *bytes, size_t size, struct err *err)
{
        json_t *documents = NULL, *document, *item;
        size_t index, i;
        int e = yaml_parse_all(bytes, size, &documents, err);

        if (e < 0)
                return e;
        json_array_foreach(documents, index, document)
        {
                json_t *items = json_object_get(document, "items");

                if (json_object_size(document) == 0)
                        continue; /* between two "---" */
                if (!json_is_array(items))
                        take_document(r, document);
                json_array_foreach(items, i, item) take_document(r, item);
        }
        json_decref(documents);
        return 0;
}

static int remember_old(struct reading *r)
{
        for (struct dir_object *o = r->file->objects; o != NULL; o = o->next_in_file)
                r->old_count++;
        if (r->old_count == 0)
                return 0;
        r->old = calloc(r->old_count, sizeof(struct dir_object *));
        if (r->old == NULL)
                return -ENOMEM;
        r->old_count = 0;
        for (struct dir_object *o = r->file->objects; o != NULL; o = o->next_in_file) {
                o->seen = false;
                r->old[r->old_count++] = o;
        }
        return 0;
}

/* What the file no longer holds is gone; but nothing is, while a part of the file cannot be read. */
static void drop_unseen(struct reading *r)
{
        for (size_t i = 0; i < r->old_count; i++) {
                if (r->old[i]->seen)
                        continue;
                if (r->broken) {
                        *r->tail = r->old[i];
                        r->tail = &r->old[i]->next_in_file;
                }
        }
        *r->tail = NULL;
        for (size_t i = 0; i < r->old_count; i++)
                if (!r->old[i]->seen && !r->broken)
                        forget(r->d, r->old[i]);
}

static void read_objects(struct store_dir *d, struct dir_file *file)
{
        struct reading r = { .d = d, .file = file };
        struct err err = { 0 };
        size_t size = 0;
        CLEANUP(free_p) char *bytes = store_dir_slurp(d->fd, file->name, FILE_MAX_BYTES, &size, file, &err);
        struct dir_object *before = file->objects;
        int e = bytes == NULL ? err.code : remember_old(&r);

        if (e == 0 && size == 0)
                e = err_set(&err, -ENODATA, "is empty (half-written?)");
        r.tail = &file->objects;
        file->recheck_at = NULL;
        if (e == 0)
                e = text_ends_with(file->name, ".json") ? take_json_file(&r, bytes, size, &err)
                                                        : take_yaml_file(&r, bytes, size, &err);
        if (e == 0)
                drop_unseen(&r);
        else {
                file->objects = before;
                store_trouble(&d->store, STORE_NODE, "'%s': %s; the last good version counts", file->name,
                              err.msg);
        }
        free(r.old);
}

static void forget_file(struct store_dir *d, struct dir_file *file)
{
        while (file->objects != NULL) {
                struct dir_object *object = file->objects;

                file->objects = object->next_in_file;
                forget(d, object);
        }
        name_map_remove(&d->files, &file->entry);
        free(file);
}

void store_dir_free_overlay(struct dir_overlay *overlay)
{
        if (overlay == NULL)
                return;
        json_decref(overlay->patch);
        json_decref(overlay->status);
        free(overlay->uid);
        free(overlay);
}

static struct dir_overlay *parse_overlay(const struct store_dir *d, struct dir_file *file)
{
        size_t size = 0;
        CLEANUP(free_p)
        char *bytes = store_dir_slurp(d->fd, file->name, YAML_PARSE_MAX_BYTES, &size, file, NULL);
        json_t *json = bytes != NULL ? json_loadb(bytes, size, 0, NULL) : NULL;
        struct dir_overlay *overlay = NULL;
        char key[DIR_KEY_BYTES];
        const char *kind_name = json_string_value(json_object_get(json, "kind"));
        enum store_kind kind;

        if (kind_name != NULL && store_kind_parse(kind_name, &kind) == 0 &&
            store_dir_key(key, kind, json_string_value(json_object_get(json, "namespace")),
                          json_string_value(json_object_get(json, "name"))))
                overlay = calloc(1, sizeof(*overlay) + strlen(key) + 1);
        if (overlay != NULL) {
                memcpy(overlay->key, key, strlen(key) + 1);
                overlay->entry.key = overlay->key;
                overlay->patch = json_incref(json_object_get(json, "patch"));
                overlay->status = json_incref(json_object_get(json, "status"));
                overlay->deleted = json_is_true(json_object_get(json, "deleted"));
                overlay->uid = copy_of(json_object_get(json, "uid"));
                overlay->mtime_usec = file->mtime_usec;
        }
        json_decref(json);
        return overlay;
}

static void deliver_key(struct store_dir *d, const char *key)
{
        struct dir_object *object = (struct dir_object *) name_map_find(&d->objects, key);

        if (object != NULL)
                store_dir_deliver_again(d, object);
}

static void read_overlay(struct store_dir *d, struct dir_file *file)
{
        struct dir_overlay *overlay = parse_overlay(d, file), *old;

        if (overlay == NULL)
                return; /* half-written, or nothing of ours: the last good version counts */
        old = (struct dir_overlay *) name_map_find(&d->overlays, overlay->key);
        if (old != NULL)
                name_map_remove(&d->overlays, &old->entry);
        store_dir_free_overlay(old);
        if (name_map_insert(&d->overlays, &overlay->entry) < 0) {
                store_dir_free_overlay(overlay);
                return;
        }
        deliver_key(d, overlay->key);
}

/* A JSON object is read alone, at its place; the documents of a YAML file together. */
bool store_dir_recheck_file(struct store_dir *d, struct dir_file *file, uint64_t end_usec)
{
        struct dir_object *object = file->recheck_at != NULL ? file->recheck_at : file->objects;

        if (!text_ends_with(file->name, ".json")) {
                for (; object != NULL; object = object->next_in_file)
                        object->hash = 0;
                store_dir_read_file(d, file);
                return true;
        }
        for (; object != NULL; object = object->next_in_file) {
                char key[DIR_KEY_BYTES];
                enum store_kind kind;
                json_t *json;

                if (clock_monotonic_usec() >= end_usec) {
                        file->recheck_at = object;
                        return false;
                }
                if (!counts(d, object))
                        continue;
                json = store_dir_load_json(d, object);
                if (json == NULL) { /* it has changed, and nobody has said so */
                        file->recheck_at = NULL;
                        store_dir_read_file(d, file);
                        return true;
                }
                if (store_dir_identify(json, store_kind_name((enum store_kind) object->kind), &kind, key,
                                       NULL) == 0)
                        store_dir_deliver(d, object, json);
                json_decref(json);
        }
        file->recheck_at = NULL;
        return true;
}

void store_dir_read_file(struct store_dir *d, struct dir_file *file)
{
        struct stat st;

        if (fstatat(d->fd, file->name, &st, 0) < 0 && errno == ENOENT)
                forget_file(d, file);
        else if (store_dir_is_object_file(file->name))
                read_objects(d, file);
        else
                read_overlay(d, file);
}

void store_dir_free_objects(struct store_dir *d)
{
        for (struct name_entry *e = name_map_first(&d->files), *next; e != NULL; e = next) {
                struct dir_file *file = (struct dir_file *) e;

                next = name_map_next(&d->files, e);
                while (file->objects != NULL) {
                        struct dir_object *object = file->objects;

                        file->objects = object->next_in_file;
                        object_free(object);
                }
                free(file);
        }
        for (struct name_entry *e = name_map_first(&d->overlays), *next; e != NULL; e = next) {
                next = name_map_next(&d->overlays, e);
                store_dir_free_overlay((struct dir_overlay *) e);
        }
        name_map_free(&d->files);
        name_map_free(&d->objects);
        name_map_free(&d->overlays);
}
