/* One pass over a file: what it held before is met again by key or, cheaper, by order and hash. */
#include "store/directory/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json/json_items.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "io/clock.h"
#include "store/directory/delivery.h"
#include "store/directory/json_file.h"

#define FILE_MAX_BYTES ((uint64_t) 2 << 30)

struct reading {
        struct store_dir *d;
        struct object_file *file;
        struct object **old; /* in their former order */
        size_t old_count, expected;
        struct object **tail; /* where the next one of the new order goes */
        bool broken;          /* an item could not be used: what is missing now is kept */
};

/* Where an item stands, and a hash of its content. */
struct place {
        uint64_t hash, offset_bytes;
        size_t size_bytes;
};

static void say_twice(struct store_dir *d, const struct object *object, const struct object *other)
{
        if (other == NULL)
                return;
        store_trouble(&d->store, (enum store_kind) object->kind,
                      "%s '%s' is in '%s' and in '%s': the later modified one, '%s', counts",
                      store_kind_name((enum store_kind) object->kind), object->key + 1,
                      other->file->entry.key, object->file->entry.key,
                      objects_counts(&d->objects, object) ? object->file->entry.key : other->file->entry.key);
}

/* What somebody wrote over an object stays as long as any file has it. */
static void forget(struct store_dir *d, struct object *object)
{
        bool counted = objects_counts(&d->objects, object);
        struct object *successor = objects_remove(&d->objects, object);

        if (successor != NULL) {
                delivery_again(d, successor);
        } else if (counted) {
                delivery_gone(d, object);
                overlays_forget(&d->overlays, d->fd, object);
        }
        objects_free_one(object);
}

static void set_place(struct object *object, const struct place *place)
{
        object->hash = place->hash;
        object->offset_bytes = place->offset_bytes;
        object->size_bytes = (uint32_t) place->size_bytes;
}

/* The object is in the file: in which order, does it count, and must its user hear of it? @json: NULL = its
 * content is as it was. */
static void settle(struct reading *r, struct object *object, json_t *json)
{
        struct object *other = NULL;
        bool changed = json != NULL;

        object->seen = true;
        *r->tail = object;
        r->tail = &object->next_in_file;
        if (!objects_counts(&r->d->objects, object)) {
                if (!objects_raise(&r->d->objects, object, &other))
                        return;
                say_twice(r->d, object, other);
                changed = true;
        }
        if (changed && json != NULL)
                delivery_send(r->d, object, json);
        else if (changed)
                delivery_again(r->d, object);
}

static void complain(struct reading *r, enum store_kind kind, const char *what)
{
        r->broken = true;
        store_trouble(&r->d->store, kind, "'%s' %s; the last good version counts", r->file->entry.key, what);
}

/* An item whose content is new: an object that changed, or a new one. */
static void take_json(struct reading *r, json_t *json, const char *list_kind, const struct place *place)
{
        char key[OBJECTS_KEY_BYTES];
        enum store_kind kind = STORE_NODE;
        struct object *object, *other;
        struct err err = { 0 };
        int e = objects_identify(json, list_kind, &kind, key, &err);

        if (e < 0)
                complain(r, kind, err.msg);
        if (e != 0 || !store_wants(&r->d->store, kind))
                return;
        object = objects_find_in_file(&r->d->objects, r->file, key);
        if (object != NULL && object->seen) {
                store_trouble(&r->d->store, kind, "'%s' holds %s '%s' twice; the first one counts",
                              r->file->entry.key, store_kind_name(kind), key + 1);
                return;
        }
        if (object == NULL) {
                object = objects_add(&r->d->objects, r->file, kind, key, json, &other);
                if (object != NULL)
                        say_twice(r->d, object, other);
        } else if (object->hash == place->hash)
                json = NULL; /* it only moved */
        else
                objects_note(object, json);
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
        struct object *object = r->expected < r->old_count ? r->old[r->expected] : NULL;

        if (object == NULL || object->seen || object->hash != place->hash)
                return false;
        r->expected++;
        set_place(object, place);
        settle(r, object, NULL);
        return true;
}

static void take_bytes(struct reading *r, const char *bytes, const struct place *place, const char *list_kind)
{
        struct err err = { 0 };
        json_t *json;
        char what[sizeof(err.msg) + 64];

        if (take_unchanged(r, place))
                return;
        json = json_read(bytes, place->size_bytes, 0, &err);
        if (json == NULL) {
                (void) text_format(what, sizeof(what), "holds an item at byte %llu that cannot be read (%s)",
                                   (unsigned long long) place->offset_bytes, err.msg);
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
        for (struct object *o = r->file->objects; o != NULL; o = o->next_in_file)
                r->old_count++;
        if (r->old_count == 0)
                return 0;
        r->old = calloc(r->old_count, sizeof(struct object *));
        if (r->old == NULL)
                return -ENOMEM;
        r->old_count = 0;
        for (struct object *o = r->file->objects; o != NULL; o = o->next_in_file) {
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

static void read_objects(struct store_dir *d, struct object_file *file)
{
        struct reading r = { .d = d, .file = file };
        struct err err = { 0 };
        struct stat st = { 0 };
        size_t size = 0;
        CLEANUP(free_p)
        char *bytes = json_file_read(d->fd, file->entry.key, FILE_MAX_BYTES, &size, &st, &err);
        struct object *before = file->objects;
        int e = bytes == NULL ? err.code : remember_old(&r);

        if (bytes != NULL) {
                file->mtime_usec = store_dir_mtime(&st);
                file->inode = st.st_ino;
        }
        if (e == 0 && size == 0)
                e = err_set(&err, -ENODATA, "is empty (half-written?)");
        r.tail = &file->objects;
        file->recheck_at = NULL;
        if (e == 0)
                e = text_ends_with(file->entry.key, ".json") ? take_json_file(&r, bytes, size, &err)
                                                             : take_yaml_file(&r, bytes, size, &err);
        if (e == 0)
                drop_unseen(&r);
        else {
                file->objects = before;
                store_trouble(&d->store, STORE_NODE, "'%s': %s; the last good version counts",
                              file->entry.key, err.msg);
        }
        free(r.old);
}

static void forget_file(struct store_dir *d, struct object_file *file)
{
        while (file->objects != NULL) {
                struct object *object = file->objects;

                file->objects = object->next_in_file;
                forget(d, object);
        }
        objects_forget_file(&d->objects, file);
}

static void read_overlay(struct store_dir *d, const struct object_file *file)
{
        const struct overlay *overlay = overlays_read(&d->overlays, d->fd, file->entry.key);
        struct object *object =
                overlay != NULL ? (struct object *) name_map_find(&d->objects.by_key, overlay->key) : NULL;

        if (object != NULL)
                delivery_again(d, object);
}

/* A JSON object is read alone, at its place; the documents of a YAML file together. */
bool reading_recheck(struct store_dir *d, struct object_file *file, uint64_t end_usec)
{
        struct object *object = file->recheck_at != NULL ? file->recheck_at : file->objects;

        if (!text_ends_with(file->entry.key, ".json")) {
                for (; object != NULL; object = object->next_in_file)
                        object->hash = 0;
                reading_file(d, file);
                return true;
        }
        for (; object != NULL; object = object->next_in_file) {
                char key[OBJECTS_KEY_BYTES];
                enum store_kind kind;
                json_t *json;

                if (clock_monotonic_usec() >= end_usec) {
                        file->recheck_at = object;
                        return false;
                }
                if (!objects_counts(&d->objects, object))
                        continue;
                json = delivery_load_json(d, object);
                if (json == NULL) { /* it has changed, and nobody has said so */
                        file->recheck_at = NULL;
                        reading_file(d, file);
                        return true;
                }
                if (objects_identify(json, store_kind_name((enum store_kind) object->kind), &kind, key,
                                     NULL) == 0)
                        delivery_send(d, object, json);
                json_decref(json);
        }
        file->recheck_at = NULL;
        return true;
}

void reading_file(struct store_dir *d, struct object_file *file)
{
        struct stat st;

        if (fstatat(d->fd, file->entry.key, &st, 0) < 0 && errno == ENOENT)
                forget_file(d, file);
        else if (store_dir_is_object_file(file->entry.key))
                read_objects(d, file);
        else
                read_overlay(d, file);
}
