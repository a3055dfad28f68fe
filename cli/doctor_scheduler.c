/* remuda doctor --cluster: how kube-scheduler is set up beside the extender. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "cli/doctor_cluster.h"
#include "cli/scheduler_profile.h"

#define INVENTORIES_MAX 5000
#define FOLLOW          "an overlay says newTag of registry.k8s.io/kube-scheduler, as docs/how-to/install.md has it"
#define PEACE                                                                                                \
        "disable DefaultPreemption at plugins.postFilter of its profiles, as "                               \
        "manifests/scheduler/configmap.yaml does"

/* scheduler.yaml of the ConfigMap that the manifests have. Return: its owner, a new reference, and the text
 * in it; NULL is a finding. */
static json_t *read_profile(const struct doctor_patient *p, struct doctor_finding *f, const char **ret_text)
{
        char namespace_[256], user[400], path[512], name[300];
        struct doctor_cluster_answer answer;
        json_t *object;

        if (!doctor_cluster_find_account(p, "remuda-scheduler", f, namespace_, user))
                return NULL;
        (void) text_format(path, sizeof(path), "/api/v1/namespaces/%s/configmaps/remuda-scheduler",
                           namespace_);
        object = doctor_cluster_ask(p, path, NULL, &answer);
        *ret_text = json_string_value(json_object_get(json_object_get(object, "data"), "scheduler.yaml"));
        if (*ret_text != NULL)
                return object;
        (void) text_format(name, sizeof(name), "%s/remuda-scheduler", namespace_);
        if (object == NULL && answer.result != -ENOENT)
                doctor_cluster_found_none(f, &answer, "ConfigMap ", name);
        else
                doctor_found(f, DOCTOR_WARN, "compare it with manifests/scheduler/configmap.yaml",
                             "kube-scheduler's configuration is not scheduler.yaml of ConfigMap %s%s%s", name,
                             object == NULL ? ": " : "", answer.sentence);
        json_decref(object);
        return NULL;
}

/* Who makes room for an emergency: the extender, or kube-scheduler, too, that knows no pools. */
void doctor_cluster_preemption(const struct doctor_patient *p, struct doctor_finding *f)
{
        struct scheduler_profile profile = { 0 };
        struct err err = { 0 };
        const char *text;
        json_t *object = read_profile(p, f, &text);

        if (object == NULL)
                return;
        if (scheduler_profile_read(text, &profile, &err) < 0)
                doctor_found(f, DOCTOR_FAIL, DOCTOR_CLUSTER_INSTALL, "kube-scheduler's configuration: %s",
                             err.msg);
        else if (profile.preempts)
                doctor_found(f, DOCTOR_WARN, PEACE,
                             "profile %s of kube-scheduler preempts, too: for chips that the extender then "
                             "refuses",
                             profile.name);
        else
                doctor_found(f, DOCTOR_PASS, "", "kube-scheduler leaves preemption to the extender");
        json_decref(object);
}

/* The resources of all inventories, each with a node that has it; a new reference. NULL is a finding. */
static json_t *resources_told(const struct doctor_patient *p, struct doctor_finding *f)
{
        char path[100];
        struct doctor_cluster_answer answer;
        json_t *nodes, *node, *group, *told;
        size_t i, k;

        (void) text_format(path, sizeof(path), "/apis/remuda.dev/v1alpha1/nodeaccelerators?limit=%d",
                           INVENTORIES_MAX);
        nodes = doctor_cluster_ask(p, path, NULL, &answer);
        if (nodes == NULL) {
                doctor_cluster_found_none(f, &answer, "kind of objects ", "nodeaccelerators");
                return NULL;
        }
        told = json_object();
        json_array_foreach(json_object_get(nodes, "items"), i, node)
        {
                json_array_foreach(json_object_get(json_object_get(node, "status"), "groups"), k, group)
                {
                        if (json_read_word(group, "resource")[0] != '\0')
                                (void) json_object_set_new(
                                        told, json_read_word(group, "resource"),
                                        json_string(
                                                json_read_word(json_object_get(node, "metadata"), "name")));
                }
        }
        if (json_read_word(json_object_get(nodes, "metadata"), "continue")[0] != '\0')
                doctor_found(f, DOCTOR_WARN, "kubectl get nodeaccelerators -o yaml names the others'",
                             "there are more than %d inventories, and only their resources were looked at",
                             INVENTORIES_MAX);
        json_decref(nodes);
        return told;
}

/* Pods of a resource that kube-scheduler does not send to the extender go by no rule of ours. */
void doctor_cluster_managed(const struct doctor_patient *p, struct doctor_finding *f)
{
        const char *text, *resource;
        json_t *profile = read_profile(p, f, &text), *told, *node;

        if (profile == NULL)
                return;
        told = resources_told(p, f);
        json_object_foreach(told, resource, node)
        {
                if (!scheduler_profile_asks(text, resource))
                        doctor_found(f, DOCTOR_FAIL,
                                     "add its name to managedResources of kube-scheduler's extender",
                                     "pods that ask for %s (node %s) never come to the extender", resource,
                                     json_string_value(node));
        }
        doctor_found(f, DOCTOR_PASS, "", "pods of every resource in an inventory come to the extender");
        json_decref(profile);
        json_decref(told);
}

/* The minor of "v1.34.4", or of an image of that tag; -1: it says none. */
static int minor_of(const char *text)
{
        const char *at = text == NULL ? NULL : strstr(text, "v1.");
        char *end;
        long minor = at == NULL ? -1 : strtol(at + strlen("v1."), &end, 10);

        return minor >= 0 && minor < 1000 && (end[0] == '.' || end[0] == '\0') ? (int) minor : -1;
}

/* The image of the kube-scheduler beside the extender; NULL: it has none. */
static const char *scheduler_image(const json_t *deployment)
{
        const json_t *pod = json_object_get(json_object_get(deployment, "spec"), "template");
        const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers"), *container;
        size_t i;

        json_array_foreach(containers, i, container)
        {
                if (strcmp(json_read_word(container, "name"), "kube-scheduler") == 0)
                        return json_string_value(json_object_get(container, "image"));
        }
        return NULL;
}

static void compare_versions(const char *image, const char *version, struct doctor_finding *f)
{
        int minor = minor_of(image), of_server = minor_of(version);

        if (minor < 0 || of_server < 0)
                doctor_found(f, DOCTOR_WARN, FOLLOW,
                             "kube-scheduler '%s' cannot be compared with Kubernetes '%s'",
                             image == NULL ? "" : image, version);
        else if (minor > of_server || minor + 1 < of_server)
                doctor_found(f, DOCTOR_FAIL, FOLLOW, "kube-scheduler is of version 1.%d, Kubernetes is %s",
                             minor, version);
        else
                doctor_found(f, DOCTOR_PASS, "", "kube-scheduler 1.%d suits Kubernetes %s", minor, version);
}

/* A kube-scheduler is of its API server's version or of the minor before; a newer one asks for kinds of
 * objects that are not there. */
void doctor_cluster_version(const struct doctor_patient *p, struct doctor_finding *f)
{
        char namespace_[256], user[400], path[512], name[300];
        struct doctor_cluster_answer of_server, of_deployment;
        json_t *deployment, *server;

        if (!doctor_cluster_find_account(p, "remuda-scheduler", f, namespace_, user))
                return;
        (void) text_format(path, sizeof(path), "/apis/apps/v1/namespaces/%s/deployments/remuda-scheduler",
                           namespace_);
        (void) text_format(name, sizeof(name), "%s/remuda-scheduler", namespace_);
        server = doctor_cluster_ask(p, "/version", NULL, &of_server);
        deployment = doctor_cluster_ask(p, path, NULL, &of_deployment);
        if (server == NULL)
                doctor_cluster_found_none(f, &of_server, "the API server's /version", "");
        else if (deployment == NULL && of_deployment.result != -ENOENT)
                doctor_cluster_found_none(f, &of_deployment, "Deployment ", name);
        else
                compare_versions(scheduler_image(deployment), json_read_word(server, "gitVersion"), f);
        json_decref(server);
        json_decref(deployment);
}

/* May the scheduler's account read the groups of pods that this API server has? */
static void check_group_version(const struct doctor_patient *p, const char *version, struct doctor_finding *f)
{
        static const struct {
                const char *version;
                struct doctor_cluster_right right;
        } known[] = {
                { "v1alpha1", { "list", "workloads", NULL, "scheduling.k8s.io" } },
                { "v1alpha2", { "list", "podgroups", NULL, "scheduling.k8s.io" } },
        };
        char namespace_[256], user[400];

        for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
                const struct doctor_cluster_right *right = &known[i].right;

                if (strcmp(version, known[i].version) != 0)
                        continue;
                if (doctor_cluster_find_account(p, "remuda-scheduler", f, namespace_, user) &&
                    doctor_cluster_has_right(p, user, NULL, right) <= 0)
                        doctor_found(f, DOCTOR_FAIL, DOCTOR_CLUSTER_INSTALL,
                                     "%s may not %s %s: pods of such groups go each by itself", user,
                                     right->verb, right->resource);
                return;
        }
        doctor_found(f, DOCTOR_WARN, "serve v1alpha1 (1.35) or v1alpha2 (1.36) as well",
                     "groups of pods of scheduling.k8s.io/%s are not read: their pods go each by itself",
                     version);
}

void doctor_cluster_groups(const struct doctor_patient *p, struct doctor_finding *f)
{
        struct doctor_cluster_answer answer;
        json_t *object = doctor_cluster_ask(p, "/apis/scheduling.k8s.io", NULL, &answer), *versions, *version;
        size_t i;

        if (object == NULL)
                doctor_cluster_found_none(f, &answer, "API group ", "scheduling.k8s.io");
        versions = json_object_get(object, "versions");
        json_array_foreach(versions, i, version)
        {
                if (strcmp(json_read_word(version, "version"), "v1") != 0)
                        check_group_version(p, json_read_word(version, "version"), f);
        }
        doctor_found(f, DOCTOR_PASS, "",
                     json_array_size(versions) > 1 ? "the groups of pods that Kubernetes has are read"
                                                   : "Kubernetes has no groups of pods here");
        json_decref(object);
}
