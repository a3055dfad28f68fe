/* Store: where inventories, nodes, pods and jobs are read from and where binds are written to.
 *
 * One interface, two backends: "dir:PATH" and "kubernetes". All happens on the caller's loop; callbacks are
 * never made from within the call that caused them. JSON objects are borrowed for the callback. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"

struct store;
enum store_kind {
        STORE_NODE,
        STORE_POD,
        STORE_INVENTORY, /* NodeAccelerators */
        STORE_TRAINING_JOB,
        STORE_SPEED_TABLE,
        STORE_PRIORITY_CLASS,
        STORE_LEASE,             /* of kubelets (kube-node-lease); kubernetes only */
        STORE_SECRET,            /* made, never watched */
        STORE_DISRUPTION_BUDGET, /* made without being watched where that is not allowed */
        STORE_RESOURCE_SLICE,    /* this and the next three: of DRA, which a cluster may lack */
        STORE_RESOURCE_CLAIM,
        STORE_RESOURCE_CLAIM_TEMPLATE,
        STORE_DEVICE_CLASS,
        STORE_WORKLOAD, /* this and the next: of gangs, scheduling.k8s.io; likewise */
        STORE_POD_GROUP,
        STORE_KUEUE_WORKLOAD, /* this and the next: of Kueue; likewise */
        STORE_KUEUE_FLAVOR,
        STORE_CONFIG_MAP,
        STORE_KIND_COUNT
};

/* store_kind_name() - as kubectl: the `kind` of its objects, "Node", "Pod" ..., "Workload.kueue.x-k8s.io". */
const char *store_kind_name(enum store_kind kind);
int store_kind_parse(const char *name, enum store_kind *ret); /* 0 or -ENOENT */
/* store_key_split() - the name in "namespace/name"; *ret_namespace: what stands before it, "" = nothing. */
const char *store_key_split(const char *key, char ret_namespace[256]);
const char *store_directory(const char *spec); /* the PATH of "dir:PATH"; NULL = it is another, or none */

struct store_options {
        const char *spec;                /* "dir:PATH" or "kubernetes" */
        const char *kubeconfig;          /* kubernetes: NULL = in-cluster, else KUBECONFIG */
        unsigned kinds;                  /* bit set of (1u << STORE_...) to watch; 0 = write only */
        const char *field_selector_node; /* pods and slices of this node only; NULL = all */
        const char *const *namespaces; /* kubernetes: read what is in one in these alone; borrowed, as kept */
        size_t namespace_count;
        /* New or changed; NULL: gone, also before another uid comes under the same key. */
        void (*changed)(void *userdata, enum store_kind kind, const char *key, const json_t *object);
        /* The first complete list of a kind was delivered (again after every re-list, deletions first). */
        void (*synced)(void *userdata, enum store_kind kind);
        /* Something worth a log line or a metric happened: a file could not be read, a watch was lost... */
        void (*trouble)(void *userdata, enum store_kind kind, const char *sentence);
        /* kubernetes: asked before every write, and when it leaves; not = -EPERM; NULL = it may */
        bool (*may_commit)(void *userdata);
        uint64_t commit_usec;  /* every try of a write ends within it */
        uint64_t silence_usec; /* kubernetes: a silent watch with bookmarks is dead; 0 = 150 s */
        void *userdata;
};

/* store_open() - open and begin to watch. Return: 0; -ENOENT no such directory, -EINVAL bad spec... */
int store_open(sd_event *loop, const struct store_options *options, struct store **ret, struct err *err);
void store_close(struct store *store); /* accepts NULL; pending writes are answered -ECANCELED first */

/* store_refresh() - read everything anew, whatever is known: every object is delivered once more, then
 * synced() is called for every kind. store_is_rechecking() - is the object being delivered one that should
 * have been known in just this form? What the user has otherwise of it is then wrong, not old. */
void store_refresh(struct store *store);
bool store_is_rechecking(const struct store *store);
bool store_is_fresh(const struct store *store); /* was it read after store_refresh() was called? */

/* store_age_usec() - how long ago it was last in step with these kinds (a bit set); 0 = it is */
#define STORE_ALL_KINDS (~0u)
uint64_t store_age_usec(const struct store *store, unsigned which, uint64_t now_usec);

/* store_serves() - are objects of this kind, which is synced, shown to us there (NULL: anywhere)? */
bool store_serves(const struct store *store, enum store_kind kind, const char *namespace_);

/* store_namespace_trouble() - why this one of options.namespaces is not read, NULL = it is. What was read of
 * it stands, and it counts as read, so that the others go on. Borrowed until the loop goes on. */
const char *store_namespace_trouble(const struct store *store, const char *namespace_);

/* store_inventory_mtime_usec() - dir: when the inventory's file was changed (CLOCK_REALTIME); 0 = unknown */
uint64_t store_inventory_mtime_usec(const struct store *store, const char *node);

/* Answers to writes: result 0 or a negative errno (-EEXIST/-EALREADY, -ECONFLICT as -ESTALE, -ENOENT,
 * -EPERM...), sentence says why and is never NULL. Called once, from the loop. */
typedef void (*store_answer)(void *userdata, int result, const char *sentence);

struct store_binding {
        const char *namespace_, *name, *uid, *node; /* borrowed for the call */
        const json_t *annotations;                  /* object of strings recorded with the bind, or NULL */
};

/* store_bind() - bind a pod to a node. dir: a line in PATH/bindings.jsonl, synced before the answer;
 * kubernetes: POST pods/NAME/binding. A repeated bind of the same uid to the same node is a success. */
void store_bind(struct store *store, const struct store_binding *binding, store_answer answer,
                void *userdata);

/* store_put() - create or replace an object of ours (NodeAccelerators incl. its status, TrainingJob status,
 * SpeedTable, ResourceSlice). dir: PATH/NAME.<kind>.json by rename. kubernetes: server-side apply, status
 * subresource where the kind has one. The object is copied. */
void store_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
               const json_t *object, store_answer answer, void *userdata);

/* store_change() - read an object of ours, change it, write it, so that no other writer's change is lost:
 * dir: under the directory's lock and by rename; kubernetes: with the resourceVersion that was read, again
 * after a conflict.
 * @change: makes the new object (a new reference) from the present one, NULL = there is none; may be called
 * more than once, from the loop or this call, never after the answer; NULL = leave it. */
typedef json_t *(*store_changer)(void *userdata, const json_t *object, struct err *err);
void store_change(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                  store_changer change, store_answer answer, void *userdata);

/* store_patch() - merge-patch metadata of any object, or spec of one that is no pod; or status (kubernetes):
 * of a Node conditions alone, where other types stay. Not of another metadata.resourceVersion: -ESTALE. */
void store_patch(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                 const json_t *patch, store_answer answer, void *userdata);

/* store_touch() - a sign of life of this node's agent, every ten seconds or so. dir: its file's time;
 * kubernetes: once a minute its Lease, which lasts three; what is wrong with it is told to `trouble`. */
#define STORE_AGENT_LEASE "remuda-agent."
int store_touch(struct store *store, const char *node);

/* store_create(), store_delete() - pods of a job, TrainingJobs, events. */
void store_create(struct store *store, enum store_kind kind, const char *namespace_, const json_t *object,
                  store_answer answer, void *userdata);
void store_delete(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                  const char *uid, unsigned grace_sec, store_answer answer, void *userdata);

/* store_evict() - through the Eviction API, or (dir:) a line in PATH/evictions.jsonl: it is then deleting. */
void store_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                 unsigned grace_sec, store_answer answer, void *userdata);

/* store_try_evict() - would it be done now, others staying? -EBUSY: a disruption budget forbids it. */
void store_try_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                     store_answer answer, void *userdata);

struct store_event {
        const char *object_kind, *namespace_, *name, *uid; /* the object it is about */
        const char *type;                                  /* Normal | Warning */
        const char *reason, *message;
        const char *field; /* a part of the object, "status.devices{GPU-1}"; NULL = all of it */
};
/* store_event() - write a Kubernetes Event (kubernetes) or a line in PATH/events.jsonl (dir:). Best effort.
 * Of one object, or part of one, and reason at most one in five minutes. */
void store_event(struct store *store, const struct store_event *event);
