/* Members that are kept are named; what a later Kubernetes adds is left out until somebody has looked at it.
 */
#include "cli/bundle/bundle_prune.h"

#include <string.h>

#include "base/text.h"

/* A copy of these members alone; names end with NULL. */
static json_t *keep(const json_t *object, const char *const *names)
{
        json_t *copy = json_object();

        for (; *names != NULL; names++) {
                json_t *value = json_object_get(object, *names);

                if (value != NULL && json_object_set_new(copy, *names, json_deep_copy(value)) < 0) {
                        json_decref(copy);
                        return NULL;
                }
        }
        return copy;
}
#define KEEP(object, ...) keep((object), (const char *const[]){ __VA_ARGS__, NULL })

static json_t *keep_annotations(const json_t *annotations)
{
        json_t *copy = json_object(), *value;
        const char *name;

        json_object_foreach((json_t *) annotations, name, value) if (text_starts_with(name, "remuda.dev/"))(
                void) json_object_set(copy, name, value);
        return copy;
}

static json_t *keep_metadata(const json_t *object)
{
        const json_t *metadata = json_object_get(object, "metadata");
        json_t *copy =
                KEEP(metadata, "name", "namespace", "uid", "generation", "resourceVersion",
                     "creationTimestamp", "deletionTimestamp", "labels", "ownerReferences", "finalizers");

        if (json_object_get(metadata, "annotations") != NULL)
                (void) json_object_set_new(copy, "annotations",
                                           keep_annotations(json_object_get(metadata, "annotations")));
        return copy;
}

/* Its kind and metadata, and these two. */
static json_t *object_of(const json_t *object, json_t *spec, json_t *status)
{
        json_t *copy = KEEP(object, "apiVersion", "kind");

        (void) json_object_set_new(copy, "metadata", keep_metadata(object));
        if (spec != NULL)
                (void) json_object_set_new(copy, "spec", spec);
        if (status != NULL)
                (void) json_object_set_new(copy, "status", status);
        return copy;
}

static json_t *keep_containers(const json_t *containers)
{
        json_t *copy = json_array(), *container;
        size_t i;

        json_array_foreach(containers, i, container)(void) json_array_append_new(
                copy, KEEP(container, "name", "image", "resources", "ports", "restartPolicy"));
        return copy;
}

json_t *bundle_prune_pod(const json_t *pod)
{
        const json_t *spec = json_object_get(pod, "spec");
        json_t *kept = KEEP(spec, "nodeName", "schedulerName", "priority", "priorityClassName",
                            "restartPolicy", "nodeSelector", "tolerations", "schedulingGates", "hostNetwork");

        (void) json_object_set_new(kept, "containers", keep_containers(json_object_get(spec, "containers")));
        (void) json_object_set_new(kept, "initContainers",
                                   keep_containers(json_object_get(spec, "initContainers")));
        return object_of(pod, kept,
                         KEEP(json_object_get(pod, "status"), "phase", "reason", "message", "conditions",
                              "startTime", "nominatedNodeName", "qosClass", "containerStatuses",
                              "initContainerStatuses"));
}

/* Of a container of a job that ended: with FallbackToLogsOnError its message is the end of its log. */
static void drop_last_words(json_t *status, const char *member)
{
        json_t *ended = json_object_get(json_object_get(status, member), "terminated");

        if (json_object_get(ended, "message") != NULL)
                (void) json_object_set_new(ended, "message", json_string(BUNDLE_PRUNE_LEFT_OUT));
}

static void drop_words_of(json_t *statuses)
{
        json_t *status;
        size_t i;

        json_array_foreach(statuses, i, status)
        {
                drop_last_words(status, "state");
                drop_last_words(status, "lastState");
        }
}

json_t *bundle_prune_job_pod(const json_t *pod)
{
        json_t *copy = bundle_prune_pod(pod), *status = json_object_get(copy, "status");

        drop_words_of(json_object_get(status, "containerStatuses"));
        drop_words_of(json_object_get(status, "initContainerStatuses"));
        return copy;
}

json_t *bundle_prune_node(const json_t *node)
{
        return object_of(
                node, KEEP(json_object_get(node, "spec"), "taints", "unschedulable"),
                KEEP(json_object_get(node, "status"), "capacity", "allocatable", "conditions", "nodeInfo"));
}

/* Variables, at any depth. */
static void drop_variables(json_t *value, unsigned depth)
{
        json_t *item;
        const char *key;
        size_t i;

        if (depth > 64)
                return;
        (void) json_object_del(value, "env");
        (void) json_object_del(value, "envFrom");
        json_object_foreach(value, key, item) drop_variables(item, depth + 1);
        json_array_foreach(value, i, item) drop_variables(item, depth + 1);
}

json_t *bundle_prune_job(const json_t *job)
{
        json_t *spec = json_deep_copy(json_object_get(job, "spec"));

        drop_variables(spec, 0);
        return object_of(job, spec, json_deep_copy(json_object_get(job, "status")));
}

json_t *bundle_prune_workload(const json_t *object)
{
        const json_t *spec = json_object_get(object, "spec"),
                     *template = json_object_get(json_object_get(spec, "template"), "spec");
        json_t *kept = KEEP(spec, "replicas", "strategy", "updateStrategy", "selector");

        (void) json_object_set_new(kept, "template",
                                   KEEP(template, "containers", "initContainers", "serviceAccountName",
                                        "nodeSelector", "tolerations", "affinity", "priorityClassName",
                                        "hostNetwork", "hostPID"));
        return object_of(object, kept, json_deep_copy(json_object_get(object, "status")));
}

json_t *bundle_prune_event(const json_t *event)
{
        json_t *copy = KEEP(event, "involvedObject", "type", "reason", "message", "count", "firstTimestamp",
                            "lastTimestamp", "eventTime", "reportingComponent", "source", "series");

        (void) json_object_set_new(copy, "metadata", keep_metadata(event));
        return copy;
}

json_t *bundle_prune_other(const json_t *object)
{
        json_t *copy = json_deep_copy(object);

        (void) json_object_set_new(copy, "metadata", keep_metadata(object));
        return copy;
}

json_t *bundle_prune_list(const json_t *list, json_t *(*prune)(const json_t *object))
{
        json_t *items = json_array(), *item;
        const char *more = json_string_value(json_object_get(json_object_get(list, "metadata"), "continue"));
        size_t i;

        json_array_foreach(json_object_get(list, "items"), i,
                           item) if (json_array_append_new(items, prune(item)) < 0)
        {
                json_decref(items);
                return NULL;
        }
        return json_pack("{s:o, s:b}", "items", items, "more", more != NULL && more[0] != '\0');
}
