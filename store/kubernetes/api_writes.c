/* Writes to the API server: bind, evict, delete, create, patch, put, change. Every one may be repeated, so a
 * reply that was lost is found out by asking again. */
#include "store/kubernetes/api_writes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "io/jitter.h"
#include "io/loop.h"
#include "store/kubernetes/store_kubernetes.h"
#include "store/metadata.h"

static struct operation_list *operations_of(struct store *store)
{
        return &((struct store_kubernetes *) store)->operations;
}

static void try_bind(void *userdata);
static void try_evict(void *userdata);

/* The truth about a pod whose bind (or eviction: no node) came to no clear end. Return: 1 = nothing has
 * happened, try again. */
static int judge_pod(const struct operation *o, const json_t *object, struct err *err)
{
        struct metadata pod = metadata_of(object);

        if (object == NULL)
                return -EBADMSG;
        if (o->uid != NULL && pod.uid[0] != '\0' && strcmp(pod.uid, o->uid) != 0)
                return err_set(err, -ESTALE, "pod '%s/%s' has uid '%s', not '%s'", o->namespace_, o->name,
                               pod.uid, o->uid);
        if (o->node == NULL)
                return pod.deleted[0] == '\0';
        if (strcmp(pod.node, o->node) == 0)
                return 0;
        if (pod.node[0] != '\0')
                return err_set(err, -EALREADY, "pod '%s/%s' is bound to node '%s'", o->namespace_, o->name,
                               pod.node);
        if (pod.deleted[0] != '\0')
                return err_set(err, -ESTALE, "pod '%s/%s' is being deleted", o->namespace_, o->name);
        return 1;
}

static void look_at_pod(void *userdata);

static void on_pod(void *userdata, const struct http_call_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));
        struct err err = { 0 };
        json_t *pod;

        if (r < 0 && operation_may_be_repeated(result) && operation_again(o, look_at_pod))
                return;
        if (r < 0) {
                operation_finish(o, r, sentence);
                return;
        }
        pod = json_read(result->body, result->body_bytes, 0, NULL);
        r = judge_pod(o, pod, &err);
        json_decref(pod);
        if (r == 1 && operation_again(o, o->node != NULL ? try_bind : try_evict))
                return;
        if (r == 1 || r == -EBADMSG)
                operation_finish(o, r == 1 ? -EAGAIN : r,
                                 o->node != NULL ? "the bind was tried and the pod is still not bound"
                                                 : "the eviction was tried and the pod is still there");
        else
                operation_finish(o, r, err.msg);
}

static void look_at_pod(void *userdata)
{
        operation_call(userdata, "GET", "", NULL, NULL, on_pod);
}

/* 409 may mean: bound already (perhaps by us, the reply was lost), another uid, being deleted, or a collision
 * of writes. The pod itself tells which. */
static void on_bind(void *userdata, const struct http_call_result *result)
{
        struct operation *o = userdata;

        if ((result->error == 0 && result->status == 409) || operation_may_be_repeated(result))
                look_at_pod(o);
        else
                operation_answer_as(o, result);
}

static void try_bind(void *userdata)
{
        struct operation *o = userdata;

        operation_call(o, "POST", "/binding", NULL, o->body, on_bind);
}

void api_writes_bind(struct store *store, const struct store_binding *binding, store_answer answer,
                     void *userdata)
{
        struct operation *o = operation_new(operations_of(store), STORE_POD, binding->namespace_,
                                            binding->name, binding->uid, answer, userdata);

        if (o == NULL)
                return;
        o->node = binding->node != NULL ? strdup(binding->node) : NULL;
        o->body = json_pack("{s:s, s:s, s:{s:s, s:s, s:s*, s:O*}, s:{s:s, s:s, s:s}}", "apiVersion", "v1",
                            "kind", "Binding", "metadata", "name", o->name, "namespace", o->namespace_, "uid",
                            o->uid, "annotations", binding->annotations, "target", "apiVersion", "v1", "kind",
                            "Node", "name", binding->node);
        if (o->node == NULL || o->body == NULL || o->node[0] == '\0')
                operation_finish(o, -EINVAL, "a bind needs a node, in UTF-8");
        else
                try_bind(o);
}

static void try_delete(void *userdata);
static void try_patch(void *userdata);

/* The API server itself tries for seconds when the uid is another's: the pod tells sooner. */
static void on_evict(void *userdata, const struct http_call_result *result)
{
        if (operation_may_be_repeated(result))
                look_at_pod(userdata);
        else
                operation_answer_as(userdata, result);
}

static void try_evict(void *userdata)
{
        struct operation *o = userdata;

        operation_call(o, "POST", "/eviction", NULL, o->body, on_evict);
}

static json_t *delete_options(const char *uid, unsigned grace_sec)
{
        json_t *options = json_pack("{s:i}", "gracePeriodSeconds", (int) grace_sec);

        if (options != NULL && uid != NULL)
                (void) json_object_set_new(options, "preconditions", json_pack("{s:s}", "uid", uid));
        return options;
}

/* @options: taken */
static void begin_evict(struct operation *o, json_t *options)
{
        o->body =
                json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "policy/v1", "kind", "Eviction",
                          "metadata", "name", o->name, "namespace", o->namespace_, "deleteOptions", options);
        if (o->body == NULL)
                operation_finish(o, -ENOMEM, "out of memory");
        else
                try_evict(o);
}

void api_writes_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                      unsigned grace_sec, store_answer answer, void *userdata)
{
        struct operation *o =
                operation_new(operations_of(store), STORE_POD, namespace_, name, uid, answer, userdata);

        if (o != NULL)
                begin_evict(o, delete_options(o->uid, grace_sec));
}

void api_writes_try_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                          store_answer answer, void *userdata)
{
        struct operation *o =
                operation_new(operations_of(store), STORE_POD, namespace_, name, uid, answer, userdata);
        json_t *options;

        if (o == NULL)
                return;
        options = delete_options(o->uid, 0);
        if (json_object_set_new(options, "dryRun", json_pack("[s]", "All")) < 0) { /* it would be no try */
                json_decref(options);
                operation_finish(o, -ENOMEM, "out of memory");
                return;
        }
        begin_evict(o, options);
}

static void on_delete(void *userdata, const struct http_call_result *result)
{
        struct operation *o = userdata;

        if (operation_may_be_repeated(result) && operation_again(o, try_delete))
                return;
        if (result->error == 0 && result->status == 404 && o->tries > 0)
                operation_finish(o, 0, ""); /* the try whose reply was lost did it */
        else
                operation_answer_as(o, result);
}

static void try_delete(void *userdata)
{
        struct operation *o = userdata;

        operation_call(o, "DELETE", "", NULL, o->body, on_delete);
}

void api_writes_delete(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                       const char *uid, unsigned grace_sec, store_answer answer, void *userdata)
{
        struct operation *o =
                operation_new(operations_of(store), kind, namespace_, name, uid, answer, userdata);

        if (o == NULL)
                return;
        o->body = delete_options(o->uid, grace_sec);
        if (kind != STORE_POD)
                (void) json_object_del(o->body, "gracePeriodSeconds");
        (void) json_object_set_new(o->body, "propagationPolicy", json_string("Background"));
        try_delete(o);
}

static void on_create(void *userdata, const struct http_call_result *result)
{
        operation_answer_as(userdata,
                            result); /* not repeated: its caller names what it makes, and asks again itself */
}

void api_writes_create(struct store *store, enum store_kind kind, const char *namespace_,
                       const json_t *object, store_answer answer, void *userdata)
{
        struct operation *o =
                operation_new(operations_of(store), kind, namespace_, NULL, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->body = json_deep_copy(object);
        store_kind_write(kind, o->body);
        operation_call(o, "POST", "", NULL, o->body, on_create);
}

static void on_patch(void *userdata, const struct http_call_result *result)
{
        if (!operation_may_be_repeated(result) || !operation_again(userdata, try_patch))
                operation_answer_as(userdata, result);
}

/* Of pods annotations are written by way of their status: that right does not reach images. A Node's
 * conditions are others', too: the strategic merge goes by their types. */
static void try_patch(void *userdata)
{
        struct operation *o = userdata;
        bool status = json_object_get(o->body, "status") != NULL,
             conditions = o->kind == STORE_NODE && status;

        operation_call(o, "PATCH",
                       o->kind == STORE_POD || status ? "/status?fieldManager=" OPERATION_FIELD_MANAGER
                                                      : "?fieldManager=" OPERATION_FIELD_MANAGER,
                       conditions ? "application/strategic-merge-patch+json" : "application/merge-patch+json",
                       o->body, on_patch);
}

void api_writes_patch(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                      const json_t *patch, store_answer answer, void *userdata)
{
        struct operation *o =
                operation_new(operations_of(store), kind, namespace_, name, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->body = json_deep_copy(patch);
        try_patch(o);
}

static void try_apply(void *userdata);

/* Return: had it an owner? */
static bool disown(struct operation *o)
{
        bool owned =
                json_array_size(json_object_get(json_object_get(o->body, "metadata"), "ownerReferences")) > 0;

        if (owned)
                (void) json_object_del(json_object_get(o->body, "metadata"), "ownerReferences");
        o->disowned = o->disowned || owned;
        return owned;
}

static void finish_put(struct operation *o, bool made, int result, const char *sentence)
{
        if (result == 0 && o->disowned) {
                node_owner_give_up(&((struct store_kubernetes *) o->all->store)->owner);
                store_trouble(o->all->store, o->kind,
                              "%s '%s' may not name its Node as its owner: it stays when the Node is removed",
                              store_kind_name(o->kind), o->name);
        }
        operation_finish(o, result == 0 && made && o->kind == STORE_LEASE ? API_WRITES_MADE : result,
                         sentence);
}

/* The status goes to its own door; if there is no such object yet, it is made first (not a job: those are
 * made by people). */
static void on_apply(void *userdata, const struct http_call_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));

        if (r < 0 && operation_may_be_repeated(result) && operation_again(o, try_apply))
                return;
        if (r == -EPERM && disown(o)) {
                try_apply(o);
                return;
        }
        if (r == -ENOENT && o->status != NULL && !o->creating && o->kind != STORE_TRAINING_JOB) {
                o->creating = true;
                try_apply(o);
        } else if (r == 0 && o->creating && o->status != NULL) {
                o->creating = false;
                if (o->tries++ < OPERATION_TRIES_MAX)
                        try_apply(o);
                else
                        finish_put(o, false, -EAGAIN, "the object vanishes as often as it is made");
        } else
                finish_put(o, result->status == 201, r, sentence);
}

static void try_apply(void *userdata)
{
        struct operation *o = userdata;
        bool to_status = o->status != NULL && !o->creating;

        operation_call(o, "PATCH",
                       to_status ? "/status?fieldManager=" OPERATION_FIELD_MANAGER "&force=true"
                                 : "?fieldManager=" OPERATION_FIELD_MANAGER "&force=true",
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
        store_kind_write(o->kind, copy_of);
        return copy_of;
}

void api_writes_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                    const json_t *object, store_answer answer, void *userdata)
{
        struct operation *o =
                operation_new(operations_of(store), kind, namespace_, name, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->body = applicable(o, object);
        if (store_kind_info(kind)->status && json_object_get(object, "status") != NULL) {
                o->status = applicable(o, object);
                o->creating =
                        json_object_get(json_object_get(o->body, "metadata"), "ownerReferences") != NULL;
                (void) json_object_del(o->status, "spec");
                (void) json_object_del(o->body, "status");
        }
        try_apply(o);
}

static void try_change(void *userdata);

/* Who lost a race tries again soon, not together with the others that lost it, and as long as there is time.
 */
static bool again_soon(struct operation *o)
{
        uint64_t now = loop_now_usec(o->all->store->loop);

        if (now + OPERATION_RETRY_FIRST_USEC > o->end_usec)
                return false;
        o->conflicts += o->conflicts < 16;
        o->waiting = sd_event_source_disable_unref(o->waiting);
        return loop_after(o->all->store->loop,
                          jitter_below(OPERATION_RETRY_FIRST_USEC / 4 * o->conflicts) + 1, try_change, o,
                          &o->waiting) >= 0;
}

static void on_changed(void *userdata, const struct http_call_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));

        /* Somebody was quicker, or the object vanished. */
        if ((r == -ESTALE || r == -EEXIST || (r == -ENOENT && !o->creating)) && again_soon(o))
                return;
        /* A reply that was lost: what is there now is changed, and a change that is made twice is the
         * caller's to bear. */
        if (r < 0 && operation_may_be_repeated(result) && operation_again(o, try_change))
                return;
        operation_finish(o, r, sentence);
}

static void write_changed(struct operation *o, const json_t *object)
{
        struct err err = { 0 };

        json_decref(o->body);
        o->body = o->change(o->userdata, object, &err);
        if (o->body == NULL) {
                operation_finish(o, err.code, err.msg);
                return;
        }
        (void) json_object_set_new(o->body, "apiVersion", json_string(store_kind_info(o->kind)->api_version));
        o->creating = o->unnamed = object == NULL;
        operation_call(o, o->creating ? "POST" : "PUT", "?fieldManager=" OPERATION_FIELD_MANAGER,
                       "application/json", o->body, on_changed);
}

static void on_read(void *userdata, const struct http_call_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object;

        if (r == -ENOENT) {
                write_changed(o, NULL);
                return;
        }
        if (r < 0 && operation_may_be_repeated(result) && operation_again(o, try_change))
                return;
        if (r < 0) {
                operation_finish(o, r, sentence);
                return;
        }
        object = json_read(result->body, result->body_bytes, 0, NULL);
        if (!json_is_object(object))
                operation_finish(o, -EBADMSG, "the API server's reply is no JSON object");
        else
                write_changed(o, object);
        json_decref(object);
}

static void try_change(void *userdata)
{
        ((struct operation *) userdata)->unnamed = false;
        operation_call(userdata, "GET", "", NULL, NULL, on_read);
}

void api_writes_change(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                       store_changer change, store_answer answer, void *userdata)
{
        struct operation *o =
                operation_new(operations_of(store), kind, namespace_, name, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->change = change;
        try_change(o);
}
