/* What is taken off a cluster, and in which order. */
#include "cli/uninstall.h"

#include <string.h>

#include "base/json/json_field.h"
#include "base/text.h"
#include "job/controller/job_pods.h"
#include "scheduler-extender/labels.h"
#include "scheduler-extender/node_condition.h"
#include "scheduler-extender/node_taint.h"
#include "scheduler-extender/wake.h"
#include "scheduler-extender/wire/pod_json.h"
#include "store/kubernetes/kube.h"
#include "store/leader.h"
#include "store/store.h"

#define REMUDA  "/apis/remuda.dev/v1alpha1"
#define APPS    "/apis/apps/v1"
#define RBAC    "/apis/rbac.authorization.k8s.io/v1"
#define RULES   "/apis/admissionregistration.k8s.io/v1"
#define LEASES  "/apis/coordination.k8s.io/v1"
#define PART_OF "?labelSelector=app.kubernetes.io%2Fpart-of%3Dremuda"
#define OF_JOBS "?labelSelector=remuda.dev%2Fjob"

/* Rules that keep tenants from our objects go after these, or they would be open in between; kinds go after
 * their last writer, and rights after all that needs them. */
/* clang-format off */
const struct uninstall_step uninstall_steps[] = {
        { "trainingjob",      REMUDA,    "trainingjobs", NULL, UNINSTALL_ALL, UNINSTALL_JOBS },
        { "pod",              "/api/v1", "pods",         NULL, UNINSTALL_OF_JOB, UNINSTALL_WAIT },
        { "deployment",       APPS,      "deployments",  NULL, UNINSTALL_PART_OF, UNINSTALL_WITH_PODS },
        { "daemonset",        APPS,      "daemonsets",   NULL, UNINSTALL_PART_OF, UNINSTALL_WITH_PODS },
        { "lease",            LEASES,    "leases", "kube-node-lease", UNINSTALL_AGENT, UNINSTALL_DELETE },
        { "lease",            LEASES,    "leases",       NULL, UNINSTALL_LEADER, UNINSTALL_DELETE },
        { "customresourcedefinition", "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", NULL, UNINSTALL_PART_OF, UNINSTALL_WAIT },
        { "validatingadmissionpolicybinding", RULES, "validatingadmissionpolicybindings", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "validatingadmissionpolicy", RULES, "validatingadmissionpolicies", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "deviceclass",      "/apis/resource.k8s.io/v1", "deviceclasses", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "priorityclass",    "/apis/scheduling.k8s.io/v1", "priorityclasses", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "rolebinding",      RBAC,      "rolebindings", NULL, UNINSTALL_ADMITTING, UNINSTALL_DELETE },
        { "rolebinding",      RBAC,      "rolebindings", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "role",             RBAC,      "roles",        NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "clusterrolebinding", RBAC,    "clusterrolebindings", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "clusterrole",      RBAC,      "clusterroles", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "podmonitor",       "/apis/monitoring.coreos.com/v1", "podmonitors", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "prometheusrule",   "/apis/monitoring.coreos.com/v1", "prometheusrules", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "networkpolicy",    "/apis/networking.k8s.io/v1", "networkpolicies", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "configmap",        "/api/v1", "configmaps",   NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "serviceaccount",   "/api/v1", "serviceaccounts", NULL, UNINSTALL_PART_OF, UNINSTALL_DELETE },
        { "namespace",        "/api/v1", "namespaces",   NULL, UNINSTALL_PART_OF, UNINSTALL_WAIT },
        { .kind = NULL },
};
/* clang-format on */

const size_t uninstall_rest_step = 2, uninstall_nodes_step = 4;

bool uninstall_list_path(const struct uninstall_step *step, char *path, size_t path_bytes)
{
        return text_format(path, path_bytes, "%s%s%s/%s%s", step->group,
                           step->namespace_ != NULL ? "/namespaces/" : "",
                           step->namespace_ != NULL ? step->namespace_ : "", step->plural,
                           step->match == UNINSTALL_PART_OF  ? PART_OF
                           : step->match == UNINSTALL_OF_JOB ? OF_JOBS
                                                             : "");
}

static const char *metadata_of(const json_t *object, const char *name)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata");
        const char *text = "";

        (void) json_field_string(&metadata, name, &text, NULL);
        return text;
}

bool uninstall_object_path(const struct uninstall_step *step, const json_t *object, char *path,
                           size_t path_bytes)
{
        const char *name = metadata_of(object, "name"), *in = metadata_of(object, "namespace");

        return kube_name_is_safe(name) && (in[0] == '\0' || kube_name_is_safe(in)) &&
               text_format(path, path_bytes, "%s%s%s/%s/%s", step->group, in[0] != '\0' ? "/namespaces/" : "",
                           in, step->plural, name);
}

bool uninstall_says(const json_t *object, char *name, size_t name_bytes)
{
        const char *in = metadata_of(object, "namespace");

        return text_format(name, name_bytes, "%s%s%s", in, in[0] != '\0' ? "/" : "",
                           metadata_of(object, "name"));
}

static bool is_of_job(const json_t *object)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata"),
                          owners = json_field_get(&metadata, "ownerReferences");

        for (size_t i = 0; i < json_field_count(&owners); i++) {
                struct json_field owner = json_field_at(&owners, i);
                const char *kind = "", *version = "";

                (void) json_field_string(&owner, "kind", &kind, NULL);
                (void) json_field_string(&owner, "apiVersion", &version, NULL);
                if (strcmp(kind, "TrainingJob") == 0 && text_starts_with(version, "remuda.dev/"))
                        return true;
        }
        return false;
}

static bool is_admitting(const json_t *object)
{
        struct json_field root = json_field_root(object), role = json_field_get(&root, "roleRef");
        const char *name = "", *kind = "";

        (void) json_field_string(&role, "name", &name, NULL);
        (void) json_field_string(&role, "kind", &kind, NULL);
        return strcmp(kind, "ClusterRole") == 0 && strcmp(name, "remuda-job-namespace") == 0;
}

static bool is_leader(const char *name)
{
        return strcmp(name, LEADER_EXTENDER) == 0 || strcmp(name, LEADER_CONTROLLER) == 0;
}

bool uninstall_matches(const struct uninstall_step *step, const json_t *object)
{
        switch (step->match) {
        case UNINSTALL_ALL:
        case UNINSTALL_PART_OF:
                return true;
        case UNINSTALL_AGENT:
                return text_starts_with(metadata_of(object, "name"), "remuda-agent.");
        case UNINSTALL_LEADER:
                return is_leader(metadata_of(object, "name"));
        case UNINSTALL_OF_JOB:
                return is_of_job(object);
        case UNINSTALL_ADMITTING:
                return is_admitting(object);
        }
        return false;
}

/* Of labels or annotations, those that are ours, each to be taken away; NULL: none. */
static json_t *marks_gone(const json_t *node, const char *of, bool (*is_ours)(const char *name))
{
        json_t *marks = json_object_get(json_object_get(node, "metadata"), of), *gone = json_object(), *value;
        const char *name;

        json_object_foreach(marks, name, value)
        {
                if (is_ours(name))
                        (void) json_object_set_new(gone, name, json_null());
        }
        if (json_object_size(gone) > 0)
                return gone;
        json_decref(gone);
        return NULL;
}

json_t *uninstall_node_patch(const json_t *node)
{
        json_t *labels = marks_gone(node, "labels", labels_are_ours),
               *annotations = marks_gone(node, "annotations", wake_is_mark);

        if (labels == NULL && annotations == NULL)
                return NULL;
        return json_pack("{s:{s:o*, s:o*}}", "metadata", "labels", labels, "annotations", annotations);
}

json_t *uninstall_condition_patch(const json_t *node)
{
        if (node_condition_read(node).status[0] == '\0')
                return NULL;
        return json_pack("{s:{s:[{s:s, s:s}]}}", "status", "conditions", "type", NODE_CONDITION_TYPE,
                         "$patch", "delete");
}

json_t *uninstall_taint_patch(const json_t *node)
{
        json_t *taints = json_object_get(json_object_get(node, "spec"), "taints");
        int ours = node_taint_index(taints);
        char at[40], key[48], effect[48];

        if (ours < 0)
                return NULL;
        (void) text_format(at, sizeof(at), "/spec/taints/%d", ours);
        (void) text_format(key, sizeof(key), "%s/key", at);
        (void) text_format(effect, sizeof(effect), "%s/effect", at);
        return json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s}]", "op", "test", "path", key, "value",
                         NODE_TAINT_KEY, "op", "test", "path", effect, "value", NODE_TAINT_EFFECT, "op",
                         "remove", "path", at);
}

json_t *uninstall_finalizer_patch(const json_t *job)
{
        json_t *list = json_object_get(json_object_get(job, "metadata"), "finalizers"), *left = json_array(),
               *value;
        size_t i;

        json_array_foreach(list, i, value)
        {
                if (!json_is_string(value) || strcmp(json_string_value(value), JOB_FINALIZER) != 0)
                        (void) json_array_append(left, value);
        }
        if (json_array_size(left) < json_array_size(list)) /* of this very state: others may add theirs */
                return json_pack("{s:{s:s, s:s, s:o}}", "metadata", "uid", metadata_of(job, "uid"),
                                 "resourceVersion", metadata_of(job, "resourceVersion"), "finalizers", left);
        json_decref(left);
        return NULL;
}

bool uninstall_controls(const json_t *deployment)
{
        struct json_field root = json_field_root(deployment), metadata = json_field_get(&root, "metadata"),
                          labels = json_field_get(&metadata, "labels"),
                          status = json_field_get(&root, "status");
        const char *component = "";
        unsigned available = 0;

        (void) json_field_string(&labels, "app.kubernetes.io/component", &component, NULL);
        (void) json_field_unsigned(&status, "availableReplicas", 0, 1u << 20, &available, NULL);
        return strcmp(component, "controller") == 0 && available > 0;
}
