/* Writes to the API server. Each is an operation of one or more calls; every one may be repeated, so a reply
 * that was lost is found out by asking again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "codec/timestamp.h"
#include "core/cleanup.h"
#include "io/loop.h"
#include "io/store_kubernetes.h"

#define CALL_USEC        (5 * UINT64_C(1000000))
#define OPERATION_USEC   (20 * UINT64_C(1000000))
#define TRIES_MAX        6
#define RETRY_FIRST_USEC UINT64_C(50000)
#define EVENT_QUIET_USEC (300 * UINT64_C(1000000)) /* one event per object and reason in five minutes */
#define EVENTS_KEPT      4096
#define FIELD_MANAGER    "remuda"

struct operation {
        struct store_kubernetes *k;
        struct operation *previous, *next; /* in k->operations */
        enum store_kind kind;
        char *namespace_, *name, *uid, *node; /* each may be NULL */
        json_t *body, *status;                /* what is written; or NULL */
        store_answer answer;
        void *userdata;
        uint64_t end_usec;
        unsigned tries;
        bool creating; /* of a put or a change: the object itself is being made */
        bool unnamed;  /* the path is the collection's, though there is a name */
        store_changer change;
        unsigned conflicts; /* of a change */
        sd_event_source *waiting;
};

/* --- operations
 * ---------------------------------------------------------------------------------------------- */

static void operation_free(struct operation *o)
{
        if (o->previous != NULL)
                o->previous->next = o->next;
        else
                o->k->operations = o->next;
        if (o->next != NULL)
                o->next->previous = o->previous;
        free(o->namespace_);
        free(o->name);
        free(o->uid);
        free(o->node);
        json_decref(o->body);
        json_decref(o->status);
        sd_event_source_disable_unref(o->waiting);
        free(o);
}

static void finish(struct operation *o, int result, const char *sentence)
{
        store_answer_later(&o->k->store, o->answer, o->userdata, result, "%s", sentence);
        operation_free(o);
}

void store_kubernetes_cancel_writes(struct store_kubernetes *k)
{
        struct operation *next;

        for (struct operation *o = k->operations; o != NULL; o = next) {
                next = o->next;
                if (o->waiting != NULL) /* those with a call under way end with it */
                        finish(o, -ECANCELED, "the store is closing");
        }
}

static char *copy(const char *value)
{
        return value != NULL ? strdup(value) : NULL;
}

/* @uid: NULL or "" = any. On failure the answer is given. */
static struct operation *operation_new(struct store *store, enum store_kind kind, const char *namespace_,
                                       const char *name, const char *uid, store_answer answer, void *userdata)
{
        struct operation *o = calloc(1, sizeof(*o));
        bool namespaced = store_kind_info(kind)->namespaced;

        if (o == NULL) {
                store_answer_later(store, answer, userdata, -ENOMEM, "out of memory");
                return NULL;
        }
        o->k = (struct store_kubernetes *) store;
        o->next = o->k->operations;
        if (o->next != NULL)
                o->next->previous = o;
        o->k->operations = o;
        o->kind = kind;
        o->answer = answer;
        o->userdata = userdata;
        o->namespace_ = namespaced
                                ? copy(namespace_ != NULL && namespace_[0] != '\0' ? namespace_ : "default")
                                : NULL;
        o->name = copy(name);
        o->uid = copy(uid != NULL && uid[0] != '\0' ? uid : NULL);
        o->end_usec = loop_now_usec(store->loop) + OPERATION_USEC;
        if ((name != NULL && !kube_name_is_safe(name)) ||
            (o->namespace_ != NULL && !kube_name_is_safe(o->namespace_))) {
                store_answer_later(store, answer, userdata, -EINVAL, "'%.100s' is no name for a %s",
                                   name != NULL ? name : "", store_kind_name(kind));
                operation_free(o);
                return NULL;
        }
        return o;
}

/* "/api/v1/namespaces/NS/pods/NAME" + suffix */
static void append_path(struct text *path, const struct operation *o, const char *suffix)
{
        const char *collection = store_kind_info(o->kind)->collection, *plural = strrchr(collection, '/');

        if (o->namespace_ != NULL)
                text_printf(path, "%.*s/namespaces/%s%s", (int) (plural - collection), collection,
                            o->namespace_, plural);
        else
                text_append(path, collection);
        if (o->name != NULL && !o->unnamed)
                text_printf(path, "/%s", o->name);
        text_append(path, suffix);
}

static bool is_fenced(const struct operation *o)
{
        return o->k->store.options.may_commit != NULL;
}

static void call(struct operation *o, const char *method, const char *suffix, const char *content_type,
                 const json_t *body, void (*done)(void *userdata, const struct http_result *result))
{
        struct text path = { 0 };
        struct kube_request request = {
                .method = method,
                .content_type = content_type,
                .body = body,
                .timeout_usec = is_fenced(o) ? o->k->store.options.commit_usec : CALL_USEC,
                .deadline_usec = is_fenced(o) ? o->k->store.options.commit_usec : OPERATION_USEC,
                .done = done,
                .userdata = o
        };
        int r = -ENOMEM;

        o->waiting = sd_event_source_disable_unref(o->waiting);
        append_path(&path, o, suffix);
        request.path = path.data;
        if (!path.failed)
                r = kube_call_start(o->k->client, &request, NULL);
        text_free(&path);
        if (r < 0)
                finish(o, r, "out of memory");
}

/* Was the call a failure that says nothing about the request itself? */
static bool may_be_repeated(const struct http_result *result)
{
        if (result->error == -ECANCELED)
                return false;
        return result->error != 0 || result->status / 100 == 5;
}

/* Once more, a little later. False: it has been tried often or long enough. */
static bool again(struct operation *o, void (*step)(void *userdata))
{
        uint64_t wait_usec = RETRY_FIRST_USEC << o->tries;
        uint32_t jitter = 0;

        if (o->tries >= TRIES_MAX || loop_now_usec(o->k->store.loop) + wait_usec > o->end_usec)
                return false;
        o->tries++;
        (void) !getrandom(&jitter, sizeof(jitter), GRND_NONBLOCK);
        wait_usec += jitter % RETRY_FIRST_USEC;
        o->waiting = sd_event_source_disable_unref(o->waiting);
        return loop_after(o->k->store.loop, wait_usec, step, o, &o->waiting) >= 0;
}

static void answer_as(struct operation *o, const struct http_result *result)
{
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));

        finish(o, r, sentence);
}

/* --- bind
 * ---------------------------------------------------------------------------------------------------------
 */

static void try_bind(void *userdata);
static void try_evict(void *userdata);

/* The truth about a pod whose bind (or eviction: no node) came to no clear end. Return: 1 = nothing has
 * happened, try again. */
static int judge_pod(const struct operation *o, const json_t *pod, char *sentence, size_t sentence_bytes)
{
        json_t *metadata = json_object_get(pod, "metadata");
        const char *uid = json_string_value(json_object_get(metadata, "uid"));
        const char *node = json_string_value(json_object_get(json_object_get(pod, "spec"), "nodeName"));

        sentence[0] = '\0';
        if (o->uid != NULL && uid != NULL && strcmp(uid, o->uid) != 0) {
                (void) text_format(sentence, sentence_bytes, "pod '%s/%s' has uid '%s', not '%s'",
                                   o->namespace_, o->name, uid, o->uid);
                return -ESTALE;
        }
        if (o->node == NULL)
                return json_is_string(json_object_get(metadata, "deletionTimestamp")) ? 0 : 1;
        if (node != NULL && strcmp(node, o->node) == 0)
                return 0;
        if (node != NULL && node[0] != '\0') {
                (void) text_format(sentence, sentence_bytes, "pod '%s/%s' is bound to node '%s'",
                                   o->namespace_, o->name, node);
                return -EALREADY;
        }
        if (json_is_string(json_object_get(metadata, "deletionTimestamp"))) {
                (void) text_format(sentence, sentence_bytes, "pod '%s/%s' is being deleted", o->namespace_,
                                   o->name);
                return -ESTALE;
        }
        return 1;
}

static void look_at_pod(void *userdata);

static void on_pod(void *userdata, const struct http_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *pod;

        if (r < 0 && may_be_repeated(result) && again(o, look_at_pod))
                return;
        if (r < 0) {
                finish(o, r, sentence);
                return;
        }
        pod = json_loadb(result->body, result->body_bytes, 0, NULL);
        r = pod != NULL ? judge_pod(o, pod, sentence, sizeof(sentence)) : -EBADMSG;
        json_decref(pod);
        if (r == 1 && again(o, o->node != NULL ? try_bind : try_evict))
                return;
        if (r == 1 || r == -EBADMSG)
                finish(o, r == 1 ? -EAGAIN : r,
                       o->node != NULL ? "the bind was tried and the pod is still not bound"
                                       : "the eviction was tried and the pod is still there");
        else
                finish(o, r, sentence);
}

static void look_at_pod(void *userdata)
{
        call(userdata, "GET", "", NULL, NULL, on_pod);
}

/* 409 may mean: bound already (perhaps by us, the reply was lost), another uid, being deleted, or a collision
 * of writes. The pod itself tells which. */
static void on_bind(void *userdata, const struct http_result *result)
{
        struct operation *o = userdata;

        if ((result->error == 0 && result->status == 409) || may_be_repeated(result))
                look_at_pod(o);
        else
                answer_as(o, result);
}

/* Whoever no longer leads commits no more, not even what was begun. */
static bool may_commit(struct operation *o)
{
        if (!is_fenced(o) || o->k->store.options.may_commit(o->k->store.options.userdata))
                return true;
        finish(o, -EPERM, "this replica does not lead any longer; another one will do it");
        return false;
}

static void try_bind(void *userdata)
{
        struct operation *o = userdata;

        if (may_commit(o))
                call(o, "POST", "/binding", NULL, o->body, on_bind);
}

void store_kubernetes_bind(struct store *store, const struct store_binding *binding, store_answer answer,
                           void *userdata)
{
        struct operation *o = operation_new(store, STORE_POD, binding->namespace_, binding->name,
                                            binding->uid, answer, userdata);

        if (o == NULL)
                return;
        o->node = copy(binding->node);
        o->body = json_pack("{s:s, s:s, s:{s:s, s:s, s:s*, s:O*}, s:{s:s, s:s, s:s}}", "apiVersion", "v1",
                            "kind", "Binding", "metadata", "name", o->name, "namespace", o->namespace_, "uid",
                            o->uid, "annotations", binding->annotations, "target", "apiVersion", "v1", "kind",
                            "Node", "name", binding->node);
        if (o->node == NULL || o->body == NULL || o->node[0] == '\0')
                finish(o, -EINVAL, "a bind needs a node, in UTF-8");
        else
                try_bind(o);
}

/* --- evict, delete, create, patch
 * ----------------------------------------------------------------------------- */

static void try_delete(void *userdata);
static void try_patch(void *userdata);

/* The API server itself tries for seconds when the uid is another's: the pod tells sooner. */
static void on_evict(void *userdata, const struct http_result *result)
{
        if (may_be_repeated(result))
                look_at_pod(userdata);
        else
                answer_as(userdata, result);
}

static void try_evict(void *userdata)
{
        struct operation *o = userdata;

        if (may_commit(o))
                call(o, "POST", "/eviction", NULL, o->body, on_evict);
}

static json_t *delete_options(const char *uid, unsigned grace_sec)
{
        json_t *options = json_pack("{s:i}", "gracePeriodSeconds", (int) grace_sec);

        if (options != NULL && uid != NULL)
                (void) json_object_set_new(options, "preconditions", json_pack("{s:s}", "uid", uid));
        return options;
}

void store_kubernetes_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                            unsigned grace_sec, store_answer answer, void *userdata)
{
        struct operation *o = operation_new(store, STORE_POD, namespace_, name, uid, answer, userdata);

        if (o == NULL)
                return;
        o->body = json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "policy/v1", "kind", "Eviction",
                            "metadata", "name", o->name, "namespace", o->namespace_, "deleteOptions",
                            delete_options(o->uid, grace_sec));
        try_evict(o);
}

static void on_delete(void *userdata, const struct http_result *result)
{
        struct operation *o = userdata;

        if (may_be_repeated(result) && again(o, try_delete))
                return;
        if (result->error == 0 && result->status == 404 && o->tries > 0)
                finish(o, 0, ""); /* the try whose reply was lost did it */
        else
                answer_as(o, result);
}

static void try_delete(void *userdata)
{
        struct operation *o = userdata;

        call(o, "DELETE", "", NULL, o->body, on_delete);
}

void store_kubernetes_delete(struct store *store, enum store_kind kind, const char *namespace_,
                             const char *name, const char *uid, unsigned grace_sec, store_answer answer,
                             void *userdata)
{
        struct operation *o = operation_new(store, kind, namespace_, name, uid, answer, userdata);

        if (o == NULL)
                return;
        o->body = delete_options(o->uid, grace_sec);
        if (kind != STORE_POD)
                (void) json_object_del(o->body, "gracePeriodSeconds");
        (void) json_object_set_new(o->body, "propagationPolicy", json_string("Background"));
        try_delete(o);
}

static void on_create(void *userdata, const struct http_result *result)
{
        answer_as(userdata, result); /* not repeated: its caller names what it makes, and asks again itself */
}

void store_kubernetes_create(struct store *store, enum store_kind kind, const char *namespace_,
                             const json_t *object, store_answer answer, void *userdata)
{
        struct operation *o = operation_new(store, kind, namespace_, NULL, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->body = json_deep_copy(object);
        (void) json_object_set_new(o->body, "apiVersion", json_string(store_kind_info(kind)->api_version));
        (void) json_object_set_new(o->body, "kind", json_string(store_kind_name(kind)));
        call(o, "POST", "", NULL, o->body, on_create);
}

static void on_patch(void *userdata, const struct http_result *result)
{
        if (!may_be_repeated(result) || !again(userdata, try_patch))
                answer_as(userdata, result);
}

static void try_patch(void *userdata)
{
        struct operation *o = userdata;

        call(o, "PATCH", "?fieldManager=" FIELD_MANAGER, "application/merge-patch+json", o->body, on_patch);
}

void store_kubernetes_patch(struct store *store, enum store_kind kind, const char *namespace_,
                            const char *name, const json_t *patch, store_answer answer, void *userdata)
{
        struct operation *o = operation_new(store, kind, namespace_, name, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->body = json_deep_copy(patch);
        try_patch(o);
}

/* --- put: server-side apply
 * ---------------------------------------------------------------------------------- */

static void try_apply(void *userdata);

/* The status goes to its own door; if there is no such object yet, it is made first (not a job: those are
 * made by people). */
static void on_apply(void *userdata, const struct http_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));

        if (r < 0 && may_be_repeated(result) && again(o, try_apply))
                return;
        if (r == -ENOENT && o->status != NULL && !o->creating && o->kind != STORE_TRAINING_JOB) {
                o->creating = true;
                try_apply(o);
        } else if (r == 0 && o->creating && o->status != NULL) {
                o->creating = false;
                if (o->tries++ < TRIES_MAX)
                        try_apply(o);
                else
                        finish(o, -EAGAIN, "the object vanishes as often as it is made");
        } else
                finish(o, r, sentence);
}

static void try_apply(void *userdata)
{
        struct operation *o = userdata;
        bool to_status = o->status != NULL && !o->creating;

        call(o, "PATCH",
             to_status ? "/status?fieldManager=" FIELD_MANAGER "&force=true"
                       : "?fieldManager=" FIELD_MANAGER "&force=true",
             "application/apply-patch+yaml", to_status ? o->status : o->body, on_apply);
}

/* What server-side apply takes: no fields that the server owns. */
static json_t *applicable(const struct operation *o, const json_t *object)
{
        static const char *const server_owned[] = { "managedFields", "resourceVersion", "uid",
                                                    "creationTimestamp", "generation" };
        json_t *copy_of = json_deep_copy(object), *metadata = json_object_get(copy_of, "metadata");

        if (!json_is_object(metadata)) {
                metadata = json_object();
                (void) json_object_set_new(copy_of, "metadata", metadata);
        }
        for (size_t i = 0; i < ARRAY_SIZE(server_owned); i++)
                (void) json_object_del(metadata, server_owned[i]);
        (void) json_object_set_new(metadata, "name", json_string(o->name));
        if (o->namespace_ != NULL)
                (void) json_object_set_new(metadata, "namespace", json_string(o->namespace_));
        (void) json_object_set_new(copy_of, "apiVersion", json_string(store_kind_info(o->kind)->api_version));
        (void) json_object_set_new(copy_of, "kind", json_string(store_kind_name(o->kind)));
        return copy_of;
}

void store_kubernetes_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                          const json_t *object, store_answer answer, void *userdata)
{
        struct operation *o = operation_new(store, kind, namespace_, name, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->body = applicable(o, object);
        if (store_kind_info(kind)->status && json_object_get(object, "status") != NULL) {
                o->status = applicable(o, object);
                (void) json_object_del(o->status, "spec");
                (void) json_object_del(o->body, "status");
        }
        try_apply(o);
}

/* --- change: read, change, write what was read, or begin again
 * ---------------------------------------------------------------------------------- */

static void try_change(void *userdata);

/* Who lost a race tries again soon, not together with the others that lost it, and as long as there is time.
 */
static bool again_soon(struct operation *o)
{
        uint64_t now = loop_now_usec(o->k->store.loop);
        uint32_t dice = 0;

        if (now + RETRY_FIRST_USEC > o->end_usec)
                return false;
        o->conflicts += o->conflicts < 16;
        (void) !getrandom(&dice, sizeof(dice), GRND_NONBLOCK);
        o->waiting = sd_event_source_disable_unref(o->waiting);
        return loop_after(o->k->store.loop, dice % (RETRY_FIRST_USEC / 4 * o->conflicts) + 1, try_change, o,
                          &o->waiting) >= 0;
}

static void on_changed(void *userdata, const struct http_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));

        /* Somebody was quicker, or the object vanished. */
        if ((r == -ESTALE || r == -EEXIST || (r == -ENOENT && !o->creating)) && again_soon(o))
                return;
        /* A reply that was lost: what is there now is changed, and a change that is made twice is the
         * caller's to bear. */
        if (r < 0 && may_be_repeated(result) && again(o, try_change))
                return;
        finish(o, r, sentence);
}

static void write_changed(struct operation *o, const json_t *object)
{
        struct err err = { 0 };

        json_decref(o->body);
        o->body = o->change(o->userdata, object, &err);
        if (o->body == NULL) {
                finish(o, err.code, err.msg);
                return;
        }
        (void) json_object_set_new(o->body, "apiVersion", json_string(store_kind_info(o->kind)->api_version));
        o->creating = o->unnamed = object == NULL;
        call(o, o->creating ? "POST" : "PUT", "?fieldManager=" FIELD_MANAGER, "application/json", o->body,
             on_changed);
}

static void on_read(void *userdata, const struct http_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object;

        if (r == -ENOENT) {
                write_changed(o, NULL);
                return;
        }
        if (r < 0 && may_be_repeated(result) && again(o, try_change))
                return;
        if (r < 0) {
                finish(o, r, sentence);
                return;
        }
        object = json_loadb(result->body, result->body_bytes, 0, NULL);
        if (!json_is_object(object))
                finish(o, -EBADMSG, "the API server's reply is no JSON object");
        else
                write_changed(o, object);
        json_decref(object);
}

static void try_change(void *userdata)
{
        ((struct operation *) userdata)->unnamed = false;
        call(userdata, "GET", "", NULL, NULL, on_read);
}

void store_kubernetes_change(struct store *store, enum store_kind kind, const char *namespace_,
                             const char *name, store_changer change, store_answer answer, void *userdata)
{
        struct operation *o = operation_new(store, kind, namespace_, name, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->change = change;
        try_change(o);
}

/* --- events
 * -------------------------------------------------------------------------------------------------------- */

struct said_event {
        struct name_entry entry;
        uint64_t time_usec;
        char key[];
};

void store_kubernetes_forget_events(struct store_kubernetes *k)
{
        for (struct name_entry *e = name_map_first(&k->said), *next; e != NULL; e = next) {
                next = name_map_next(&k->said, e);
                free(e);
        }
        name_map_free(&k->said);
}

/* Was this said about this object within the last minutes? If not, it is now. */
static bool was_said(struct store_kubernetes *k, const struct store_event *event)
{
        uint64_t now = loop_now_usec(k->store.loop);
        struct text key = { 0 };
        struct said_event *said;
        bool recently;

        text_printf(&key, "%s/%s/%s/%s/%s/%s", event->object_kind,
                    event->namespace_ != NULL ? event->namespace_ : "", event->name,
                    event->uid != NULL ? event->uid : "", event->reason,
                    event->field != NULL ? event->field : "");
        if (key.failed)
                return true;
        said = (struct said_event *) name_map_find(&k->said, key.data);
        recently = said != NULL && now < said->time_usec + EVENT_QUIET_USEC;
        if (said == NULL) {
                if (k->said.count >= EVENTS_KEPT)
                        store_kubernetes_forget_events(k);
                said = calloc(1, sizeof(*said) + key.size_bytes + 1);
                if (said != NULL) {
                        memcpy(said->key, key.data, key.size_bytes + 1);
                        said->entry.key = said->key;
                        if (name_map_insert(&k->said, &said->entry) < 0) {
                                free(said);
                                said = NULL;
                        }
                }
        }
        if (said != NULL && !recently)
                said->time_usec = now;
        text_free(&key);
        return recently;
}

static void on_event(void *userdata, const struct http_result *result)
{
        struct operation *o = userdata;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));

        if (r < 0 && r != -ECANCELED)
                store_trouble(&o->k->store, o->kind, "an event could not be written: %s", sentence);
        operation_free(o);
}

static const char *micro_time(uint64_t usec, char text[TIMESTAMP_BYTES])
{
        (void) timestamp_format(usec % 1000000 != 0 ? usec : usec + 1, text); /* six digits are required */
        return text;
}

/* A text that was cut may end in a part of a character; the API takes whole ones only. */
static void cut_to_whole_character(char *text)
{
        size_t length = strlen(text);

        while (length > 0 && ((unsigned char) text[length - 1] & 0xc0) == 0x80)
                length--;
        if (length > 0 && ((unsigned char) text[length - 1] & 0x80) != 0)
                length--;
        text[length] = '\0';
}

void store_kubernetes_event(struct store *store, const struct store_event *event)
{
        struct store_kubernetes *k = (struct store_kubernetes *) store;
        bool node = strcmp(event->object_kind, "Node") == 0;
        enum store_kind kind = STORE_POD;
        struct operation *o;
        char time[TIMESTAMP_BYTES], note[1024];
        const char *namespace_ =
                event->namespace_ != NULL && event->namespace_[0] != '\0' ? event->namespace_ : "default";
        struct text path = { 0 };
        int r = -ENOMEM;

        if (was_said(k, event))
                return;
        (void) store_kind_parse(event->object_kind, &kind);
        o = operation_new(store, STORE_POD, namespace_, NULL, NULL, NULL, NULL);
        if (o == NULL)
                return;
        if (!text_copy(note, sizeof(note), event->message))
                cut_to_whole_character(note);
        o->body = json_pack("{s:s, s:s, s:{s:s+, s:s}, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s, "
                            "s:s*, s:s*, s:s*}}",
                            "apiVersion", "events.k8s.io/v1", "kind", "Event", "metadata", "generateName",
                            event->name, "-", "namespace", namespace_, "eventTime",
                            micro_time(loop_realtime_usec(store->loop), time), "type", event->type, "reason",
                            event->reason, "action", event->reason, "note", note, "reportingController",
                            "remuda.dev/remuda", "reportingInstance", "remuda", "regarding", "apiVersion",
                            store_kind_info(kind)->api_version, "kind", event->object_kind, "name",
                            event->name, "namespace", node ? NULL : event->namespace_, "uid",
                            node ? event->name : event->uid, "fieldPath", event->field);
        text_printf(&path, "/apis/events.k8s.io/v1/namespaces/%s/events", namespace_);
        if (o->body != NULL && !path.failed)
                r = kube_call_start(k->client,
                                    &(struct kube_request){ .method = "POST",
                                                            .path = path.data,
                                                            .body = o->body,
                                                            .timeout_usec = CALL_USEC,
                                                            .done = on_event,
                                                            .userdata = o },
                                    NULL);
        text_free(&path);
        if (r < 0)
                operation_free(o);
}
