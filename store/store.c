/* The kinds of objects, the answers that are given from the loop, and the way to the backend. */
#include "store/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/store_internal.h"

/* Nine tenths of a node, two thirds of a pod, and who set which field of whatever else. Whoever begins to
 * read one of these takes it from here: scheduler-extender/test_unread.c catches who does not. */
/* clang-format off */
static const char *const unread[] = { "metadata.managedFields", NULL };
static const char *const unread_of_nodes[] = {
        "metadata.managedFields",        "status.addresses",
        "status.daemonEndpoints",        "status.images",
        "status.volumesAttached",        "status.volumesInUse",
        "status.conditions.lastHeartbeatTime", "status.conditions.lastTransitionTime",
        NULL
};
static const char *const unread_of_pods[] = {
        "metadata.managedFields",        "spec.volumes",
        "spec.containers.args",          "spec.initContainers.args",
        "spec.containers.command",       "spec.initContainers.command",
        "spec.containers.env",           "spec.initContainers.env",
        "spec.containers.livenessProbe", "spec.containers.readinessProbe",
        "spec.containers.volumeMounts",  "spec.initContainers.volumeMounts",
        NULL
};

static const struct store_kind_info kinds[] = {
        [STORE_NODE]           = { "Node",             "v1",                     "/api/v1/nodes",                                 false, true, false, unread_of_nodes },
        [STORE_POD]            = { "Pod",              "v1",                     "/api/v1/pods",                                  true,  true, false, unread_of_pods },
        [STORE_INVENTORY]      = { "NodeAccelerators", "remuda.dev/v1alpha1",    "/apis/remuda.dev/v1alpha1/nodeaccelerators",    false, true, false, unread },
        [STORE_TRAINING_JOB]   = { "TrainingJob",      "remuda.dev/v1alpha1",    "/apis/remuda.dev/v1alpha1/trainingjobs",        true,  true, false, unread },
        [STORE_SPEED_TABLE]    = { "SpeedTable",       "remuda.dev/v1alpha1",    "/apis/remuda.dev/v1alpha1/speedtables",         false, false, false, unread },
        [STORE_PRIORITY_CLASS] = { "PriorityClass",    "scheduling.k8s.io/v1",   "/apis/scheduling.k8s.io/v1/priorityclasses",    false, false, false, unread },
        [STORE_LEASE]          = { "Lease",            "coordination.k8s.io/v1", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", true, false, false, unread },
        [STORE_SECRET]         = { "Secret",           "v1",                     "/api/v1/secrets",                               true,  false, false, NULL },
        [STORE_DISRUPTION_BUDGET] = { "PodDisruptionBudget", "policy/v1",           "/apis/policy/v1/poddisruptionbudgets",          true,  false, true,  unread },
        [STORE_RESOURCE_SLICE] = { "ResourceSlice",    "resource.k8s.io/v1",     "/apis/resource.k8s.io/v1/resourceslices",       false, false, true, unread },
        [STORE_RESOURCE_CLAIM] = { "ResourceClaim",    "resource.k8s.io/v1",     "/apis/resource.k8s.io/v1/resourceclaims",       true,  true,  true, unread },
        [STORE_RESOURCE_CLAIM_TEMPLATE] = { "ResourceClaimTemplate", "resource.k8s.io/v1", "/apis/resource.k8s.io/v1/resourceclaimtemplates", true, false, true, unread },
        [STORE_DEVICE_CLASS]   = { "DeviceClass",      "resource.k8s.io/v1",     "/apis/resource.k8s.io/v1/deviceclasses",        false, false, true, unread },
        [STORE_WORKLOAD]       = { "Workload",         "scheduling.k8s.io/v1alpha1", "/apis/scheduling.k8s.io/v1alpha1/workloads", true, false, true, unread },
        [STORE_POD_GROUP]      = { "PodGroup",         "scheduling.k8s.io/v1alpha2", "/apis/scheduling.k8s.io/v1alpha2/podgroups", true, true,  true, unread },
        [STORE_KUEUE_WORKLOAD] = { "Workload.kueue.x-k8s.io", "kueue.x-k8s.io/v1beta1", "/apis/kueue.x-k8s.io/v1beta1/workloads", true, true, true, unread },
        [STORE_KUEUE_FLAVOR]   = { "ResourceFlavor",   "kueue.x-k8s.io/v1beta1", "/apis/kueue.x-k8s.io/v1beta1/resourceflavors",  false, false, true, unread },
        [STORE_CONFIG_MAP]     = { "ConfigMap",        "v1",                     "/api/v1/configmaps",                            true,  false, false, NULL },
};
/* clang-format on */

const struct store_kind_info *store_kind_info(enum store_kind kind)
{
        return &kinds[kind];
}

const char *store_kind_name(enum store_kind kind)
{
        return kinds[kind].kind;
}

int store_kind_parse(const char *name, enum store_kind *ret)
{
        for (int kind = 0; kind < STORE_KIND_COUNT; kind++)
                if (strcmp(kinds[kind].kind, name) == 0) {
                        *ret = (enum store_kind) kind;
                        return 0;
                }
        return -ENOENT;
}

void store_collection(enum store_kind kind, const char *namespace_, struct text *path)
{
        const char *collection = kinds[kind].collection, *plural = strrchr(collection, '/');

        if (namespace_ != NULL && kinds[kind].namespaced && strstr(collection, "/namespaces/") == NULL)
                text_printf(path, "%.*s/namespaces/%s%s", (int) (plural - collection), collection, namespace_,
                            plural);
        else
                text_append(path, collection);
}

void store_kind_write(enum store_kind kind, json_t *object)
{
        const char *name = kinds[kind].kind;

        (void) json_object_set_new(object, "apiVersion", json_string(kinds[kind].api_version));
        (void) json_object_set_new(object, "kind", json_stringn(name, strcspn(name, ".")));
}

int store_kind_of(const char *kind, const char *api_version, enum store_kind *ret)
{
        char full[128];

        if (text_format(full, sizeof(full), "%.60s.%.*s", kind, (int) strcspn(api_version, "/"),
                        api_version) &&
            store_kind_parse(full, ret) == 0)
                return 0;
        return store_kind_parse(kind, ret);
}

const char *store_key_split(const char *key, char ret_namespace[256])
{
        const char *slash = strchr(key, '/');

        (void) text_format(ret_namespace, 256, "%.*s", slash == NULL ? 0 : (int) (slash - key), key);
        return slash == NULL ? key : slash + 1;
}

bool store_wants(const struct store *store, enum store_kind kind)
{
        return store->options.changed != NULL && (store->options.kinds & (1u << kind)) != 0;
}

void store_trouble(struct store *store, enum store_kind kind, const char *fmt, ...)
{
        char sentence[1024];
        va_list ap;

        if (store->options.trouble == NULL)
                return;
        va_start(ap, fmt);
        (void) vsnprintf(sentence, sizeof(sentence), fmt, ap);
        va_end(ap);
        store->options.trouble(store->options.userdata, kind, sentence);
}

static void give_answers(struct store *store)
{
        struct pending_answer *answers = store->first_answer;

        store->first_answer = NULL;
        store->last_answer = &store->first_answer;
        while (answers != NULL) {
                struct pending_answer *next = answers->next;

                answers->answer(answers->userdata, answers->result, answers->sentence);
                free(answers);
                answers = next;
        }
}

static int on_answering(sd_event_source *source, void *userdata)
{
        (void) source;
        give_answers(userdata);
        return 0;
}

void store_answer_later(struct store *store, store_answer answer, void *userdata, int result, const char *fmt,
                        ...)
{
        struct pending_answer *pending;
        va_list ap;

        if (answer == NULL)
                return;
        pending = calloc(1, sizeof(*pending));
        if (pending == NULL) {
                answer(userdata, result, "out of memory");
                return;
        }
        pending->answer = answer;
        pending->userdata = userdata;
        pending->result = result;
        va_start(ap, fmt);
        (void) vsnprintf(pending->sentence, sizeof(pending->sentence), fmt, ap);
        va_end(ap);
        *store->last_answer = pending;
        store->last_answer = &pending->next;
        (void) sd_event_source_set_enabled(store->answering, SD_EVENT_ONESHOT);
}

int store_init(struct store *store, const struct store_backend *backend, sd_event *loop,
               const struct store_options *options, struct err *err)
{
        int r;

        store->backend = backend;
        store->loop = sd_event_ref(loop);
        store->options = *options;
        store->options.spec = store->options.kubeconfig = store->options.field_selector_node = NULL;
        store->last_answer = &store->first_answer;
        r = sd_event_add_defer(loop, &store->answering, on_answering, store);
        if (r >= 0)
                r = sd_event_source_set_enabled(store->answering, SD_EVENT_OFF);
        return r < 0 ? err_set(err, r, "attach the store to the loop: %s", strerror(-r)) : 0;
}

void store_done(struct store *store)
{
        while (store->first_answer != NULL)
                give_answers(store);
        sd_event_source_disable_unref(store->answering);
        sd_event_unref(store->loop);
}

const char *store_directory(const char *spec)
{
        return text_starts_with(spec, "dir:") ? spec + strlen("dir:") : NULL;
}

int store_open(sd_event *loop, const struct store_options *options, struct store **ret, struct err *err)
{
        const char *directory = store_directory(options->spec);

        if (strcmp(options->spec, "kubernetes") == 0)
                return store_kubernetes_new(loop, options, ret, err);
        if (directory != NULL)
                return store_dir_new(loop, options, directory, ret, err);
        return err_set(err, -EINVAL, "'%s' is no store: write dir:PATH or kubernetes", options->spec);
}

void store_close(struct store *store)
{
        if (store != NULL)
                store->backend->close(store);
}

void store_refresh(struct store *store)
{
        store->backend->refresh(store);
}

bool store_is_rechecking(const struct store *store)
{
        return store->rechecking;
}

bool store_is_fresh(const struct store *store)
{
        return store->rechecking || store->listing;
}

uint64_t store_age_usec(const struct store *store, unsigned which, uint64_t now_usec)
{
        return store->backend->age_usec(store, which, now_usec);
}

bool store_serves(const struct store *store, enum store_kind kind, const char *namespace_)
{
        return store->backend->serves == NULL || store->backend->serves(store, kind, namespace_);
}

const char *store_namespace_trouble(const struct store *store, const char *namespace_)
{
        return store->backend->namespace_trouble == NULL
                       ? NULL
                       : store->backend->namespace_trouble(store, namespace_);
}

uint64_t store_inventory_mtime_usec(const struct store *store, const char *node)
{
        return store->backend->inventory_mtime_usec(store, node);
}

int store_touch(struct store *store, const char *node)
{
        return store->backend->touch(store, node);
}

void store_bind(struct store *store, const struct store_binding *binding, store_answer answer, void *userdata)
{
        store->backend->bind(store, binding, answer, userdata);
}

void store_put(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
               const json_t *object, store_answer answer, void *userdata)
{
        store->backend->put(store, kind, namespace_, name, object, answer, userdata);
}

void store_change(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                  store_changer change, store_answer answer, void *userdata)
{
        store->backend->change(store, kind, namespace_, name, change, answer, userdata);
}

void store_patch(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                 const json_t *patch, store_answer answer, void *userdata)
{
        store->backend->patch(store, kind, namespace_, name, patch, answer, userdata);
}

void store_create(struct store *store, enum store_kind kind, const char *namespace_, const json_t *object,
                  store_answer answer, void *userdata)
{
        store->backend->create(store, kind, namespace_, object, answer, userdata);
}

void store_delete(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                  const char *uid, unsigned grace_sec, store_answer answer, void *userdata)
{
        store->backend->delete (store, kind, namespace_, name, uid, grace_sec, answer, userdata);
}

void store_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                 unsigned grace_sec, store_answer answer, void *userdata)
{
        store->backend->evict(store, namespace_, name, uid, grace_sec, answer, userdata);
}

void store_try_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                     store_answer answer, void *userdata)
{
        if (store->backend->try_evict == NULL)
                store_answer_later(store, answer, userdata, 0, "%s", "");
        else
                store->backend->try_evict(store, namespace_, name, uid, answer, userdata);
}

void store_event(struct store *store, const struct store_event *event)
{
        store->backend->event(store, event);
}
