/* Patches composed, written beside the file, and laid over the object when it is read. */
#include "store/directory/overlays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json/json_merge.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "store/directory/json_file.h"

static void overlay_free(struct overlay *overlay)
{
        if (overlay == NULL)
                return;
        json_decref(overlay->patch);
        json_decref(overlay->status);
        free(overlay->uid);
        free(overlay);
}

void overlays_free(struct overlays *all)
{
        for (struct name_map_entry *e = name_map_first(&all->by_key), *next; e != NULL; e = next) {
                next = name_map_next(&all->by_key, e);
                overlay_free((struct overlay *) e);
        }
        name_map_free(&all->by_key);
}

bool overlays_is_file(const char *name)
{
        return name[0] != '.' && text_ends_with(name, ".patch");
}

static json_t *load(int directory_fd, const char *file, struct stat *ret_stat)
{
        size_t size = 0;
        CLEANUP(free_p)
        char *bytes = json_file_read(directory_fd, file, YAML_PARSE_MAX_BYTES, &size, ret_stat, NULL);

        return bytes != NULL ? json_read(bytes, size, 0, NULL) : NULL;
}

static struct overlay *parse(const json_t *json, uint64_t mtime_usec)
{
        const char *kind_name = json_string_value(json_object_get(json, "kind")),
                   *uid = json_string_value(json_object_get(json, "uid"));
        struct overlay *overlay = NULL;
        char key[OBJECTS_KEY_BYTES];
        enum store_kind kind;

        if (kind_name != NULL && store_kind_parse(kind_name, &kind) == 0 &&
            objects_key(key, kind, json_string_value(json_object_get(json, "namespace")),
                        json_string_value(json_object_get(json, "name"))))
                overlay = calloc(1, sizeof(*overlay) + strlen(key) + 1);
        if (overlay == NULL)
                return NULL;
        memcpy(overlay->key, key, strlen(key) + 1);
        overlay->entry.key = overlay->key;
        overlay->patch = json_incref(json_object_get(json, "patch"));
        overlay->status = json_incref(json_object_get(json, "status"));
        overlay->deleted = json_is_true(json_object_get(json, "deleted"));
        overlay->uid = uid != NULL && uid[0] != '\0' ? strdup(uid) : NULL;
        overlay->mtime_usec = mtime_usec;
        return overlay;
}

const struct overlay *overlays_read(struct overlays *all, int directory_fd, const char *file)
{
        struct stat st = { 0 };
        json_t *json = load(directory_fd, file, &st);
        struct overlay *overlay = parse(json, (uint64_t) st.st_mtim.tv_sec * 1000000 +
                                                      (uint64_t) st.st_mtim.tv_nsec / 1000),
                       *old;

        json_decref(json);
        if (overlay == NULL)
                return NULL;
        old = (struct overlay *) name_map_find(&all->by_key, overlay->key);
        if (old != NULL)
                name_map_remove(&all->by_key, &old->entry);
        overlay_free(old);
        if (name_map_insert(&all->by_key, &overlay->entry) == 0)
                return overlay;
        overlay_free(overlay);
        return NULL;
}

static bool same_or_none(const char *a, const char *b)
{
        return a == NULL || b == NULL || strcmp(a, b) == 0;
}

const struct overlay *overlays_of(const struct overlays *all, const struct object *object)
{
        const struct overlay *o = (struct overlay *) name_map_find(&all->by_key, object->key);

        return o != NULL && same_or_none(o->uid, object->uid) ? o : NULL;
}

bool overlays_deletes(const struct overlay *overlay, const struct object *object)
{
        return overlay->deleted && (overlay->uid != NULL || object->file->mtime_usec <= overlay->mtime_usec);
}

void overlays_apply(const struct overlay *overlay, json_t *object)
{
        if (overlay->patch != NULL)
                (void) json_merge_patch(object, overlay->patch);
        if (overlay->status != NULL)
                (void) json_object_set(object, "status", overlay->status);
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

/* What the file says so far; nothing, if it is about an earlier object of the same name. */
static json_t *load_for(int directory_fd, const char *file, const char *uid)
{
        json_t *json = load(directory_fd, file, NULL);

        if (json_is_object(json) && same_or_none(json_string_value(json_object_get(json, "uid")), uid) &&
            !json_is_true(json_object_get(json, "deleted")))
                return json;
        json_decref(json);
        return json_object();
}

int overlays_change(struct overlays *all, int directory_fd, enum store_kind kind, const char *namespace_,
                    const char *name, const struct object *object, struct overlays_change change,
                    struct err *err)
{
        const char *uid = object != NULL ? object->uid : NULL;
        char file[OBJECTS_FILE_BYTES];
        json_t *json, *patch;
        int r = objects_file_name(file, kind, namespace_, name, true, err);

        if (r < 0)
                return r;
        json = load_for(directory_fd, file, uid);
        patch = json_object_get(json, "patch");
        (void) json_object_set_new(json, "kind", json_string(store_kind_name(kind)));
        if (store_kind_info(kind)->namespaced)
                (void) json_object_set_new(json, "namespace", json_string(namespace_));
        (void) json_object_set_new(json, "name", json_string(name));
        if (uid != NULL)
                (void) json_object_set_new(json, "uid", json_string(uid));
        if (change.patch != NULL && patch == NULL)
                r = json_object_set_new(json, "patch", json_deep_copy(change.patch));
        else if (change.patch != NULL)
                r = compose(patch, change.patch);
        if (change.status != NULL)
                (void) json_object_set(json, "status", (json_t *) change.status);
        if (change.deleted)
                (void) json_object_set_new(json, "deleted", json_true());
        r = r < 0 ? err_set(err, -ENOMEM, "out of memory")
                  : json_file_write(directory_fd, file, json, false, err);
        json_decref(json);
        all->wrote = true;
        return r;
}

void overlays_forget(struct overlays *all, int directory_fd, const struct object *object)
{
        struct overlay *overlay = (struct overlay *) name_map_find(&all->by_key, object->key);
        char file[OBJECTS_FILE_BYTES], namespace_[256];
        const char *name = store_key_split(object->key + 1, namespace_);

        if (overlay == NULL)
                return;
        name_map_remove(&all->by_key, &overlay->entry);
        overlay_free(overlay);
        if (all->wrote &&
            objects_file_name(file, (enum store_kind) object->kind, namespace_, name, true, NULL) == 0)
                (void) unlinkat(directory_fd, file, 0);
}
