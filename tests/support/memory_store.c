/* See memory_store.h. Writes count at once, as they do behind an API server, and are answered by the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_prune.h"
#include "base/text.h"
#include "tests/support/memory_store.h"

#define NAME_BYTES 600

static const char *object_name(char name[NAME_BYTES], enum store_kind kind, const char *namespace_,
                               const char *of)
{
        bool within = store_kind_info(kind)->namespaced;

        (void) text_format(name, NAME_BYTES, "%s %s%s%s", store_kind_name(kind), within ? namespace_ : "",
                           within ? "/" : "", of);
        return name;
}

/* Return: is it to be done? Else it is answered. */
static bool takes(struct memory_store *m, const char *verb, const char *name, int result, store_answer answer,
                  void *userdata)
{
        char line[NAME_BYTES + 32];
        bool refused;

        (void) text_format(line, sizeof(line), "%s %s", verb, name);
        (void) json_array_append_new(m->lines, json_string(line));
        refused = m->refused != NULL && strstr(line, m->refused) != NULL;
        if (refused)
                result = m->result;
        store_answer_later(&m->store, answer, userdata, result, "%s", refused ? m->sentence : "");
        return result == 0;
}

static void touch(struct memory_store *m, const char *name)
{
        json_t *metadata = json_object_get(json_object_get(m->objects, name), "metadata");
        char version[16];

        (void) text_format(version, sizeof(version), "%u", ++m->versions);
        if (metadata != NULL)
                (void) json_object_set_new(metadata, "resourceVersion", json_string(version));
        (void) json_array_append_new(m->changed, json_string(name));
}

void memory_store_drop(struct memory_store *m, const char *name)
{
        (void) json_object_del(m->objects, name);
        touch(m, name);
}

static void merge(struct memory_store *m, const char *name, const json_t *with)
{
        json_t *object = json_object_get(m->objects, name), *metadata;

        if (object == NULL) {
                object = json_object();
                (void) json_object_set_new(m->objects, name, object);
        }
        (void) json_object_update_recursive(object, (json_t *) with);
        metadata = json_object_get(object, "metadata");
        if (json_object_get(metadata, "deletionTimestamp") != NULL &&
            json_object_get(metadata, "finalizers") != NULL &&
            json_array_size(json_object_get(metadata, "finalizers")) == 0)
                memory_store_drop(m, name);
        else
                touch(m, name);
}

void memory_store_merge(struct memory_store *m, const char *name, const char *json)
{
        json_error_t error;
        json_t *with = json_loads(json, 0, &error);

        if (with == NULL)
                fail_msg("%s: %s", json, error.text);
        merge(m, name, with);
        json_decref(with);
}

static void do_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                   const json_t *object, store_answer answer, void *userdata)
{
        struct memory_store *m = (struct memory_store *) store;
        char key[NAME_BYTES];
        json_t *copy;

        if (!takes(m, "put", object_name(key, kind, namespace_, name), 0, answer, userdata))
                return;
        copy = json_deep_copy(object);
        if (json_object_get(json_object_get(m->objects, key), "status") != NULL)
                (void) json_object_del(json_object_get(m->objects, key), "status"); /* put as a whole */
        merge(m, key, copy);
        json_decref(copy);
}

static void do_change(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                      store_changer change, store_answer answer, void *userdata)
{
        struct memory_store *m = (struct memory_store *) store;
        struct err err = { 0 };
        char key[NAME_BYTES];
        json_t *made =
                change(userdata, json_object_get(m->objects, object_name(key, kind, namespace_, name)), &err);

        if (takes(m, "change", key, err.code, answer, userdata) && made != NULL)
                merge(m, key, made);
        json_decref(made);
}

/* As a merge patch has it (RFC 7396): null takes a field away. */
static void drop_nulls(json_t *object)
{
        const char *name;
        json_t *value;
        void *next;

        json_object_foreach_safe(object, next, name, value)
        {
                if (json_is_null(value))
                        (void) json_object_del(object, name);
                else
                        drop_nulls(value);
        }
}

static void do_read(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                    store_read_taker take, store_answer answer, void *userdata)
{
        struct memory_store *m = (struct memory_store *) store;
        char key[NAME_BYTES];
        const json_t *object = json_object_get(m->objects, object_name(key, kind, namespace_, name));

        if (takes(m, "read", key, object == NULL ? -ENOENT : 0, answer, userdata) && object != NULL)
                take(userdata, object);
}

static void do_patch(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                     const json_t *patch, store_answer answer, void *userdata)
{
        struct memory_store *m = (struct memory_store *) store;
        char key[NAME_BYTES];
        const json_t *object = json_object_get(m->objects, object_name(key, kind, namespace_, name));
        const char *wanted =
                json_string_value(json_object_get(json_object_get(patch, "metadata"), "resourceVersion"));
        int result = object == NULL ? -ENOENT : 0;

        if (wanted != NULL && strcmp(wanted, memory_store_text(m, key, "metadata|resourceVersion")) != 0)
                result = -ESTALE;
        if (!takes(m, "patch", key, result, answer, userdata))
                return;
        merge(m, key, patch);
        drop_nulls(json_object_get(m->objects, key));
}

static void do_create(struct store *store, enum store_kind kind, const char *namespace_, const json_t *object,
                      store_answer answer, void *userdata)
{
        struct memory_store *m = (struct memory_store *) store;
        const char *name = json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
        char key[NAME_BYTES], uid[32];

        (void) object_name(key, kind, namespace_, name);
        if (!takes(m, "create", key, json_object_get(m->objects, key) != NULL ? -EEXIST : 0, answer,
                   userdata))
                return;
        merge(m, key, object);
        (void) text_format(uid, sizeof(uid), "uid-%u", m->versions);
        (void) json_object_set_new(json_object_get(json_object_get(m->objects, key), "metadata"), "uid",
                                   json_string(uid));
}

/* A pod that runs is given its grace time: the test takes it away. */
static void do_delete(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                      const char *uid, unsigned grace_sec, store_answer answer, void *userdata)
{
        struct memory_store *m = (struct memory_store *) store;
        char key[NAME_BYTES];
        bool there = json_object_get(m->objects, object_name(key, kind, namespace_, name)) != NULL;
        bool other = there && uid != NULL && strcmp(memory_store_text(m, key, "metadata|uid"), uid) != 0;

        if (!takes(m, grace_sec == 0 ? "force" : "delete", key,
                   !there  ? -ENOENT
                   : other ? -ESTALE
                           : 0,
                   answer, userdata))
                return;
        if (grace_sec > 0 && memory_store_text(m, key, "spec|nodeName")[0] != '\0')
                memory_store_merge(m, key, "{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"}}");
        else
                memory_store_drop(m, key);
}

static void do_bind(struct store *store, const struct store_binding *binding, store_answer answer,
                    void *userdata)
{
        struct memory_store *m = (struct memory_store *) store;
        char key[NAME_BYTES];
        bool there = json_object_get(m->objects,
                                     object_name(key, STORE_POD, binding->namespace_, binding->name)) != NULL;
        json_t *bound;

        if (!takes(m, "bind", key, there ? 0 : -ENOENT, answer, userdata))
                return;
        bound = json_pack("{s:{s:O*}, s:{s:s}}", "metadata", "annotations", binding->annotations, "spec",
                          "nodeName", binding->node);
        merge(m, key, bound);
        json_decref(bound);
}

static void do_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                     unsigned grace_sec, store_answer answer, void *userdata)
{
        struct memory_store *m = (struct memory_store *) store;
        char key[NAME_BYTES];
        bool there = json_object_get(m->objects, object_name(key, STORE_POD, namespace_, name)) != NULL;

        (void) uid;
        (void) grace_sec;
        if (takes(m, "evict", key, there ? 0 : -ENOENT, answer, userdata))
                memory_store_merge(m, key, "{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"}}");
}

static void do_try_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                         store_answer answer, void *userdata)
{
        char key[NAME_BYTES];

        (void) uid;
        (void) takes((struct memory_store *) store, "try", object_name(key, STORE_POD, namespace_, name), 0,
                     answer, userdata);
}

static void do_judge_evictions(struct store *store, const char *namespace_, const char *const *names,
                               size_t count, budgets_refuse refuse, store_answer answer, void *userdata)
{
        struct memory_store *m = (struct memory_store *) store;

        for (size_t i = 0; i < count; i++) {
                char key[NAME_BYTES], line[NAME_BYTES + 32];

                (void) text_format(line, sizeof(line), "beside %s",
                                   object_name(key, STORE_POD, namespace_, names[i]));
                (void) json_array_append_new(m->lines, json_string(line));
                if (m->refused != NULL && strstr(line, m->refused) != NULL)
                        refuse(userdata, namespace_, names[i], m->sentence);
        }
        (void) takes(m, "judge", namespace_, 0, answer, userdata);
}

static uint64_t age_usec(const struct store *store, unsigned kinds, uint64_t now_usec)
{
        (void) kinds;
        (void) now_usec;
        return ((const struct memory_store *) store)->age_usec;
}

/* It is for the test to say when all is read: memory_store_read(). */
static void do_refresh(struct store *store)
{
        (void) takes((struct memory_store *) store, "refresh", "all", 0, NULL, NULL);
}

static void do_event(struct store *store, const struct store_event *event)
{
        char name[NAME_BYTES];

        (void) text_format(name, sizeof(name), "%s %s/%s", event->reason, event->namespace_, event->name);
        (void) takes((struct memory_store *) store, "event", name, 0, NULL, NULL);
}

static void do_close(struct store *store)
{
        struct memory_store *m = (struct memory_store *) store;

        store_done(store);
        json_decref(m->objects);
        json_decref(m->changed);
        json_decref(m->lines);
        free(m);
}

struct memory_store *memory_store_new(sd_event *loop, const struct store_options *options)
{
        static const struct store_backend backend = { .close = do_close,
                                                      .refresh = do_refresh,
                                                      .put = do_put,
                                                      .change = do_change,
                                                      .read = do_read,
                                                      .patch = do_patch,
                                                      .create = do_create,
                                                      .delete = do_delete,
                                                      .event = do_event,
                                                      .bind = do_bind,
                                                      .evict = do_evict,
                                                      .try_evict = do_try_evict,
                                                      .judge_evictions = do_judge_evictions,
                                                      .age_usec = age_usec };
        struct memory_store *m = calloc(1, sizeof(*m));

        assert_non_null(m);
        assert_int_equal(store_init(&m->store, &backend, loop, options, NULL), 0);
        m->objects = json_object();
        m->changed = json_array();
        m->lines = json_array();
        return m;
}

struct memory_store *memory_store_replace(struct store **store)
{
        struct store_options options = (*store)->options;
        struct memory_store *m = memory_store_new((*store)->loop, &options);

        store_close(*store);
        *store = &m->store;
        return m;
}

void memory_store_refuse(struct memory_store *m, const char *words, int result, const char *sentence)
{
        m->refused = words;
        m->result = result;
        m->sentence = sentence;
}

/* As an API server's store tells it: without what nobody reads. */
static json_t *as_told(enum store_kind kind, const json_t *object)
{
        const char *const *unread = store_kind_info(kind)->unread;
        CLEANUP(free_p) char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
        CLEANUP(free_p) char *pruned = text != NULL ? malloc(strlen(text) + 1) : NULL;

        if (pruned == NULL || unread == NULL)
                return json_incref((json_t *) object);
        return json_loadb(pruned, json_prune(text, strlen(text), unread, NULL, pruned), 0, NULL);
}

void memory_store_tell(struct memory_store *m)
{
        while (json_array_size(m->changed) > 0) {
                json_t *name = json_incref(json_array_get(m->changed, 0));
                char kind[32];
                const char *text = json_string_value(name), *key = strchr(text, ' ') + 1;
                enum store_kind which = STORE_NODE;
                json_t *object;

                (void) json_array_remove(m->changed, 0);
                (void) text_format(kind, sizeof(kind), "%.*s", (int) (key - text - 1), text);
                assert_int_equal(store_kind_parse(kind, &which), 0);
                object = as_told(which, json_object_get(m->objects, text));
                m->store.options.changed(m->store.options.userdata, which, key, object);
                json_decref(object);
                json_decref(name);
        }
}

void memory_store_read(struct memory_store *m)
{
        for (int kind = 0; kind < STORE_KIND_COUNT; kind++)
                m->store.options.synced(m->store.options.userdata, (enum store_kind) kind);
}

const char *memory_store_text(const struct memory_store *m, const char *name, const char *path)
{
        const json_t *value = json_object_get(m->objects, name);
        char part[64];

        while (value != NULL && *path != '\0') {
                size_t length = strcspn(path, "|");

                (void) text_format(part, sizeof(part), "%.*s", (int) length, path);
                value = json_object_get(value, part);
                path += length + (path[length] != '\0');
        }
        return json_is_string(value) ? json_string_value(value) : value != NULL ? "?" : "";
}

unsigned memory_store_count(const struct memory_store *m, const char *words)
{
        unsigned count = 0;

        for (size_t i = 0; i < json_array_size(m->lines); i++)
                count += strstr(json_string_value(json_array_get(m->lines, i)), words) != NULL;
        return count;
}
