/* Two maps, of files and of the objects that count, and the lists that hang on them. */
#include "store/directory/objects.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/metadata.h"

#define DEFAULT_NAMESPACE "default"

bool objects_key(char key[OBJECTS_KEY_BYTES], enum store_kind kind, const char *namespace_, const char *name)
{
        if (name == NULL || name[0] == '\0' || strlen(name) > 253)
                return false;
        if (!store_kind_info(kind)->namespaced)
                return text_format(key, OBJECTS_KEY_BYTES, "%c%s", '0' + (int) kind, name);
        if (namespace_ == NULL || namespace_[0] == '\0')
                namespace_ = DEFAULT_NAMESPACE;
        return strlen(namespace_) <= 253 &&
               text_format(key, OBJECTS_KEY_BYTES, "%c%s/%s", '0' + (int) kind, namespace_, name);
}

int objects_identify(json_t *object, const char *list_kind, enum store_kind *kind,
                     char key[OBJECTS_KEY_BYTES], struct err *err)
{
        struct metadata metadata = metadata_of(object);
        const char *kind_name = metadata.kind[0] != '\0' ? metadata.kind : list_kind;

        if (!json_is_object(object))
                return err_set(err, -EBADMSG, "an item is not an object");
        if (kind_name[0] == '\0')
                return err_set(err, -EBADMSG, "an object has no kind");
        if (store_kind_of(kind_name, metadata.api_version, kind) < 0)
                return 1;
        if (!objects_key(key, *kind, metadata.namespace_, metadata.name))
                return err_set(err, -EBADMSG, "a %s has no (usable) metadata.name", kind_name);
        if (store_kind_info(*kind)->namespaced && metadata.namespace_[0] == '\0')
                (void) json_object_set_new(json_object_get(object, "metadata"), "namespace",
                                           json_string(DEFAULT_NAMESPACE));
        return 0;
}

static bool is_safe(const char *s)
{
        if (s[0] == '.' || s[0] == '\0' || strlen(s) > 253)
                return false;
        return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")] == '\0';
}

int objects_file_name(char file[OBJECTS_FILE_BYTES], enum store_kind kind, const char *namespace_,
                      const char *name, bool overlay, struct err *err)
{
        const struct store_kind_info *info = store_kind_info(kind);
        char kind_name[64];
        bool fits;

        if (!info->namespaced)
                namespace_ = "";
        else if (namespace_ == NULL || namespace_[0] == '\0')
                namespace_ = DEFAULT_NAMESPACE;
        if (!is_safe(name) || (info->namespaced && !is_safe(namespace_)))
                return err_set(err, -EINVAL, "'%.100s' is no name for an object", name);
        (void) text_copy(kind_name, sizeof(kind_name), info->kind);
        for (char *s = kind_name; *s != '\0'; s++)
                *s = (char) tolower((unsigned char) *s);
        fits = overlay ? text_format(file, OBJECTS_FILE_BYTES, "%s.%s.%s.patch", kind_name, namespace_, name)
                       : text_format(file, OBJECTS_FILE_BYTES, "%s%s%s.%s.json", namespace_,
                                     info->namespaced ? "." : "", name, kind_name);
        return fits ? 0 : err_set(err, -ENAMETOOLONG, "'%.100s' is too long a name for a file", name);
}

struct object *objects_find(const struct objects *all, enum store_kind kind, const char *key)
{
        char full[OBJECTS_KEY_BYTES];

        if (!text_format(full, sizeof(full), "%c%s", '0' + (int) kind, key))
                return NULL;
        return (struct object *) name_map_find(&all->by_key, full);
}

bool objects_counts(const struct objects *all, const struct object *object)
{
        return name_map_find(&all->by_key, object->key) == &object->entry;
}

struct object *objects_find_in_file(const struct objects *all, const struct object_file *file,
                                    const char *key)
{
        struct object *o = (struct object *) name_map_find(&all->by_key, key);

        while (o != NULL && o->file != file)
                o = o->next_same;
        return o;
}

struct object_file *objects_file(struct objects *all, const char *name)
{
        return (struct object_file *) name_map_make(&all->files, name, sizeof(struct object_file));
}

void objects_forget_file(struct objects *all, struct object_file *file)
{
        name_map_remove(&all->files, &file->entry);
        free(file);
}

void objects_free_one(struct object *object)
{
        free(object->node);
        free(object->uid);
        free(object);
}

static bool is_newer(const struct object *a, const struct object *b)
{
        if (a->file->mtime_usec != b->file->mtime_usec)
                return a->file->mtime_usec > b->file->mtime_usec;
        return strcmp(a->file->entry.key, b->file->entry.key) > 0;
}

/* The newcomer, or the one that was there. */
static int enter(struct objects *all, struct object *object, struct object **ret_other)
{
        struct object *other = (struct object *) name_map_find(&all->by_key, object->key);

        *ret_other = other != NULL && other->file != object->file ? other : NULL;
        if (other == NULL)
                return name_map_insert(&all->by_key, &object->entry);
        if (!is_newer(object, other)) {
                object->next_same = other->next_same;
                other->next_same = object;
                return 0;
        }
        name_map_remove(&all->by_key, &other->entry);
        object->next_same = other;
        object->delivered = other->delivered;
        other->delivered = 0;
        return name_map_insert(&all->by_key, &object->entry); /* as many as before: no memory is needed */
}

struct object *objects_remove(struct objects *all, struct object *object)
{
        struct object *other = (struct object *) name_map_find(&all->by_key, object->key), *best = NULL, **at;

        if (other != object) {
                for (at = &other->next_same; *at != object;)
                        at = &(*at)->next_same;
                *at = object->next_same;
                object->next_same = NULL;
                return NULL;
        }
        name_map_remove(&all->by_key, &object->entry);
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
        object->delivered = 0;
        (void) name_map_insert(&all->by_key,
                               &best->entry); /* as many entries as before: no memory is needed */
        return best;
}

static char *copy_of(const char *value)
{
        return value[0] != '\0' ? strdup(value) : NULL;
}

void objects_note(struct object *object, const json_t *json)
{
        struct metadata metadata = metadata_of(json);

        free(object->uid);
        free(object->node);
        object->uid = copy_of(metadata.uid);
        object->node = object->kind == STORE_POD ? copy_of(metadata.node) : NULL;
        object->terminating = object->kind == STORE_POD && metadata.deleted[0] != '\0';
}

struct object *objects_add(struct objects *all, struct object_file *file, enum store_kind kind,
                           const char *key, const json_t *json, struct object **ret_other)
{
        struct object *object = calloc(1, sizeof(*object) + strlen(key) + 1);

        *ret_other = NULL;
        if (object == NULL)
                return NULL;
        memcpy(object->key, key, strlen(key) + 1);
        object->entry.key = object->key;
        object->kind = (uint8_t) kind;
        object->file = file;
        objects_note(object, json);
        if (enter(all, object, ret_other) == 0)
                return object;
        objects_free_one(object);
        return NULL;
}

bool objects_raise(struct objects *all, struct object *object, struct object **ret_other)
{
        if (objects_counts(all, object) ||
            !is_newer(object, (struct object *) name_map_find(&all->by_key, object->key)))
                return false;
        (void) objects_remove(all, object);
        return enter(all, object, ret_other) == 0;
}

void objects_free(struct objects *all)
{
        for (struct name_map_entry *e = name_map_first(&all->files), *next; e != NULL; e = next) {
                struct object_file *file = (struct object_file *) e;

                next = name_map_next(&all->files, e);
                while (file->objects != NULL) {
                        struct object *object = file->objects;

                        file->objects = object->next_in_file;
                        objects_free_one(object);
                }
                free(file);
        }
        name_map_free(&all->files);
        name_map_free(&all->by_key);
}
