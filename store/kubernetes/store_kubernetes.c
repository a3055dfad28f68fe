/* The life of a store in a cluster: one reflector a kind that is wanted, or one
 * a namespace of it, and the operations under way. */
#include "store/kubernetes/store_kubernetes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/timestamp.h"
#include "io/loop.h"
#include "store/kubernetes/api_read.h"
#include "store/kubernetes/api_writes.h"
#include "store/kubernetes/budget_reads.h"

#define BEAT_USEC (60 * UINT64_C(1000000)) /* a kubelet renews its Lease six times as often */

static void close_(struct store *store)
{
        struct store_kubernetes *k = (struct store_kubernetes *) store;

        for (size_t i = 0; i < k->reflector_count; i++)
                reflector_stop(&k->reflectors[i]);
        free(k->reflectors);
        operation_cancel_all(&k->operations);
        kube_client_free(k->client); /* answers the writes under way */
        store_done(store);
        events_forget(&k->events);
        free(k->node);
        free(k);
}

static void refresh(struct store *store)
{
        struct store_kubernetes *k = (struct store_kubernetes *) store;

        for (size_t i = 0; i < k->reflector_count; i++)
                reflector_refresh(&k->reflectors[i]);
}

static uint64_t age_usec(const struct store *store, unsigned kinds, uint64_t now_usec)
{
        const struct store_kubernetes *k = (const struct store_kubernetes *) store;
        uint64_t oldest = 0;

        for (size_t i = 0; i < k->reflector_count; i++) {
                uint64_t age = (kinds & 1u << k->reflectors[i].kind) != 0
                                       ? reflector_age_usec(&k->reflectors[i], now_usec)
                                       : 0;

                oldest = age > oldest ? age : oldest;
        }
        return oldest;
}

/* One that is read in all namespaces answers for each. */
static bool is_about(const struct reflector *reflector, enum store_kind kind, const char *namespace_)
{
        return reflector->kind == kind && (namespace_ == NULL || reflector->namespace_ == NULL ||
                                           strcmp(reflector->namespace_, namespace_) == 0);
}

static bool serves(const struct store *store, enum store_kind kind, const char *namespace_)
{
        const struct store_kubernetes *k = (const struct store_kubernetes *) store;
        bool missing = false;

        for (size_t i = 0; i < k->reflector_count; i++) {
                if (!is_about(&k->reflectors[i], kind, namespace_))
                        continue;
                if (!k->reflectors[i].missing)
                        return true;
                missing = true;
        }
        return !missing;
}

static const char *namespace_trouble(const struct store *store, const char *namespace_)
{
        const struct store_kubernetes *k = (const struct store_kubernetes *) store;

        for (size_t i = 0; i < k->reflector_count; i++)
                if (k->reflectors[i].denied[0] != '\0' &&
                    strcmp(k->reflectors[i].namespace_, namespace_) == 0)
                        return k->reflectors[i].denied;
        return NULL;
}

static uint64_t inventory_mtime_usec(const struct store *store, const char *node)
{
        (void) store;
        (void) node;
        return 0; /* the kubelet's Lease tells age here */
}

static void on_beat(void *userdata, int result, const char *sentence)
{
        struct store_kubernetes *k = userdata;

        if (result == -ECANCELED)
                return;
        if (result < 0 && result != k->beat_result)
                store_trouble(&k->store, STORE_LEASE, "the agent's Lease is not renewed: %s", sentence);
        if (result == API_WRITES_MADE && k->beaten) { /* it was taken away, and the inventory with it */
                node_owner_give_up(&k->owner);
                k->beat_usec = 0;
        }
        k->beaten = k->beaten || result >= 0;
        k->beat_result = result;
}

/* @object: of ours, about this node. */
static void set_owner(struct store_kubernetes *k, const char *node, json_t *object)
{
        json_t *metadata = json_object_get(object, "metadata");

        node_owner_look(&k->owner, kube_client_token(k->client), node);
        if (metadata == NULL) {
                metadata = json_object();
                (void) json_object_set_new(object, "metadata", metadata);
        }
        (void) json_object_set_new(metadata, "ownerReferences", node_owner_references(&k->owner, node));
}

/* Who watches compares the time for change alone: a clock that is wrong does no harm. */
static int touch(struct store *store, const char *node)
{
        struct store_kubernetes *k = (struct store_kubernetes *) store;
        uint64_t now = loop_now_usec(store->loop), real = loop_realtime_usec(store->loop);
        char name[600], time[TIMESTAMP_BYTES];
        json_t *object;

        if (k->owner.sent) /* whoever has not said it again has written it */
                k->owner.due = k->owner.sent = false;
        if (k->beat_usec != 0 && now - k->beat_usec < BEAT_USEC)
                return k->owner.due ? -ENOENT : 0;
        if (!text_format(name, sizeof(name), STORE_AGENT_LEASE "%s", node))
                return -ENAMETOOLONG;
        k->beat_usec = now;
        (void) timestamp_format(real % 1000000 != 0 ? real : real + 1, time); /* a MicroTime has six digits */
        object = json_pack("{s:{s:s, s:i, s:s}}", "spec", "holderIdentity", node, "leaseDurationSeconds",
                           (int) (3 * BEAT_USEC / 1000000), "renewTime", time);
        set_owner(k, node, object);
        api_writes_put(store, STORE_LEASE, "kube-node-lease", name, object, on_beat, k);
        json_decref(object);
        return k->owner.due ? -ENOENT : 0;
}

/* Of a slice, written whole: it is its node's. */
static void own_slice(struct store_kubernetes *k, json_t *slice)
{
        const char *node = json_string_value(json_object_get(json_object_get(slice, "spec"), "nodeName"));

        if (node != NULL)
                set_owner(k, node, slice);
}

/* Whose an inventory is stands beside its status, and is written where it is not known to stand there. */
static void put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                const json_t *object, store_answer answer, void *userdata)
{
        struct store_kubernetes *k = (struct store_kubernetes *) store;
        json_t *owned =
                kind == STORE_INVENTORY || kind == STORE_RESOURCE_SLICE ? json_deep_copy(object) : NULL;

        if (owned != NULL && kind == STORE_RESOURCE_SLICE) {
                own_slice(k, owned);
        } else if (owned != NULL) {
                set_owner(k, name, owned);
                k->owner.sent = k->owner.due;
                if (!k->owner.due)
                        (void) json_object_del(json_object_get(owned, "metadata"), "ownerReferences");
        }
        api_writes_put(store, kind, namespace_, name, owned != NULL ? owned : object, answer, userdata);
        json_decref(owned);
}

static void event(struct store *store, const struct store_event *said)
{
        events_write(&((struct store_kubernetes *) store)->events, said);
}

static const struct store_backend backend = {
        .close = close_,
        .refresh = refresh,
        .age_usec = age_usec,
        .serves = serves,
        .namespace_trouble = namespace_trouble,
        .inventory_mtime_usec = inventory_mtime_usec,
        .touch = touch,
        .bind = api_writes_bind,
        .put = put,
        .read = api_read,
        .patch = api_writes_patch,
        .change = api_writes_change,
        .create = api_writes_create,
        .delete = api_writes_delete,
        .evict = api_writes_evict,
        .try_evict = api_writes_try_evict,
        .judge_evictions = budget_reads_judge,
        .event = event,
};

/* Is it read namespace by namespace? Kubelets' Leases are in one by themselves. */
static bool is_split(const struct store_kubernetes *k, enum store_kind kind)
{
        return k->store.options.namespace_count > 0 && store_kind_info(kind)->namespaced &&
               kind != STORE_LEASE;
}

static size_t reflectors_of(const struct store_kubernetes *k, enum store_kind kind)
{
        if (!store_wants(&k->store, kind))
                return 0;
        return is_split(k, kind) ? k->store.options.namespace_count : 1;
}

static void add_reflectors(struct store_kubernetes *k, enum store_kind kind, size_t count)
{
        struct reflector *first = &k->reflectors[k->reflector_count];

        for (size_t i = 0; i < count; i++)
                first[i] =
                        (struct reflector){ .store = &k->store,
                                            .client = k->client,
                                            .node = k->node,
                                            .namespace_ =
                                                    is_split(k, kind) ? k->store.options.namespaces[i] : NULL,
                                            .of_kind = first,
                                            .of_kind_count = count,
                                            .kind = kind,
                                            .due = true,
                                            .opened_usec = loop_now_usec(k->store.loop) };
        k->reflector_count += count;
}

static int start_reflectors(struct store_kubernetes *k, struct err *err)
{
        size_t count = 0;

        for (int kind = 0; kind < STORE_KIND_COUNT; kind++)
                count += reflectors_of(k, (enum store_kind) kind);
        k->reflectors = calloc(count + 1, sizeof(*k->reflectors));
        if (k->reflectors == NULL)
                return err_set(err, -ENOMEM, "out of memory");
        for (int kind = 0; kind < STORE_KIND_COUNT; kind++)
                add_reflectors(k, (enum store_kind) kind, reflectors_of(k, (enum store_kind) kind));
        for (size_t i = 0; i < k->reflector_count; i++) {
                int r = reflector_start(&k->reflectors[i]);

                if (r < 0)
                        return err_set(err, r, "watch %s: %s", store_kind_name(k->reflectors[i].kind),
                                       strerrordesc_np(-r));
        }
        return 0;
}

static int start(struct store_kubernetes *k, const struct store_options *options, struct err *err)
{
        int r = kube_client_new(k->store.loop, options->kubeconfig, &k->client, err);

        if (r < 0)
                return r;
        if (options->field_selector_node != NULL) {
                if (!kube_name_is_safe(options->field_selector_node))
                        return err_set(err, -EINVAL, "'%s' is no name of a node",
                                       options->field_selector_node);
                k->node = strdup(options->field_selector_node);
                if (k->node == NULL)
                        return err_set(err, -ENOMEM, "out of memory");
        }
        k->operations = (struct operation_list){ .store = &k->store, .client = k->client };
        k->events.operations = &k->operations;
        return start_reflectors(k, err);
}

int store_kubernetes_new(sd_event *loop, const struct store_options *options, struct store **ret,
                         struct err *err)
{
        struct store_kubernetes *k = calloc(1, sizeof(*k));
        int r;

        if (k == NULL)
                return err_set(err, -ENOMEM, "out of memory");
        r = store_init(&k->store, &backend, loop, options, err);
        if (r == 0)
                r = start(k, options, err);
        if (r < 0) {
                close_(&k->store);
                return r;
        }
        *ret = &k->store;
        return 0;
}
