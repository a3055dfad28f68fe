/* remuda doctor --cluster: are the policies there that bound what tokens may do, do the accounts have no more
 * rights than they are meant to, does somebody lead, are the namespaces of jobs admitted? Asked of the API
 * server, whose answers are the only ones that count. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "cli/doctor.h"
#include "cli/scheduler_profile.h"
#include "io/clock.h"
#include "io/loop.h"
#include "store/kubernetes/kube.h"
#include "store/leader.h"
#include "store/lease.h"

#define ASK_USEC        UINT64_C(10000000)
#define SILENT_USEC     UINT64_C(60000000)
#define JOBS_MAX        500
#define INVENTORIES_MAX 5000
#define ASK_AS          "ask as somebody who may create subjectaccessreviews"
#define INSTALL         "kubectl apply -k manifests/ as docs/how-to/install.md says"
#define FOLLOW          "an overlay says newTag of registry.k8s.io/kube-scheduler, as docs/how-to/install.md has it"
#define PEACE                                                                                                \
        "disable DefaultPreemption at plugins.postFilter of its profiles, as "                               \
        "manifests/scheduler/configmap.yaml does"

struct answer {
        bool done;
        int result;
        char sentence[300];
        json_t *json;
};

static void on_done(void *userdata, const struct http_call_result *result)
{
        struct answer *answer = userdata;

        answer->result = kube_result(result, answer->sentence, sizeof(answer->sentence));
        answer->json = answer->result < 0 ? NULL : json_loadb(result->body, result->body_bytes, 0, NULL);
        if (answer->result >= 0 && answer->json == NULL) {
                answer->result = -EBADMSG;
                (void) text_copy(answer->sentence, sizeof(answer->sentence),
                                 "the API server's answer is no JSON");
        }
        answer->done = true;
}

/* Return: what was answered, a new reference; NULL with its code and sentence in *answer. */
static json_t *ask(const struct doctor_patient *p, const char *path, const json_t *body,
                   struct answer *answer)
{
        const struct kube_request request = { .method = body == NULL ? "GET" : "POST",
                                              .path = path,
                                              .body = body,
                                              .timeout_usec = ASK_USEC,
                                              .done = on_done,
                                              .userdata = answer };

        *answer = (struct answer){ .result = -EIO, .sentence = "it could not be asked" };
        if (kube_call_start(p->kube, &request, NULL) < 0)
                return NULL;
        while (!answer->done && sd_event_run(p->loop, UINT64_MAX) >= 0)
                continue;
        return answer->json;
}

/* Something was not answered: it is not there, and that is a fault of the installation; or this account may
 * not see it, and nobody knows; or the API server is unwell. */
static void found_none(struct doctor_finding *f, const struct answer *answer, const char *what,
                       const char *name)
{
        if (answer->result == -ENOENT)
                doctor_found(f, DOCTOR_FAIL, INSTALL, "there is no %s%s: %s", what, name, answer->sentence);
        else if (answer->result == -EPERM || answer->result == -EACCES)
                doctor_found(f, DOCTOR_WARN, "ask as somebody who may see it", "%s%s cannot be read: %s",
                             what, name, answer->sentence);
        else
                doctor_found(f, DOCTOR_FAIL, "ask again; look at the API server if it stays so",
                             "%s%s cannot be read: %s", what, name, answer->sentence);
}

/* The account that a ClusterRoleBinding names: wherever it was installed. Return: is there one? Else that
 * is a finding. */
static bool find_account(const struct doctor_patient *p, const char *binding, struct doctor_finding *f,
                         char namespace_[256], char user[400])
{
        struct answer answer;
        char path[256];
        json_t *object, *subject;
        bool found;

        (void) text_format(path, sizeof(path), "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/%s",
                           binding);
        object = ask(p, path, NULL, &answer);
        subject = json_array_get(json_object_get(object, "subjects"), 0);
        found = json_is_string(json_object_get(subject, "namespace")) &&
                text_copy(namespace_, 256, json_string_value(json_object_get(subject, "namespace"))) &&
                text_format(user, 400, "system:serviceaccount:%s:%s", namespace_,
                            json_string_value(json_object_get(subject, "name")));
        if (object == NULL)
                found_none(f, &answer, "ClusterRoleBinding ", binding);
        else if (!found)
                doctor_found(f, DOCTOR_FAIL, INSTALL, "ClusterRoleBinding %s names no account of a namespace",
                             binding);
        json_decref(object);
        return found;
}

struct right {
        const char *verb, *resource, *subresource, *group; /* NULL: none; the core group */
};

/* Return: 1 = the account has it, 0 = it has not, -1 = nobody knows. */
static int has_right(const struct doctor_patient *p, const char *user, const char *namespace_,
                     const struct right *right)
{
        struct answer answer;
        json_t *body =
                json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s, s:s*, s:s*, s:s*}}}", "apiVersion",
                          "authorization.k8s.io/v1", "kind", "SubjectAccessReview", "spec", "user", user,
                          "resourceAttributes", "verb", right->verb, "resource", right->resource,
                          "subresource", right->subresource, "namespace", namespace_, "group", right->group);
        json_t *object = ask(p, "/apis/authorization.k8s.io/v1/subjectaccessreviews", body, &answer);
        int has = object == NULL
                          ? -1
                          : json_is_true(json_object_get(json_object_get(object, "status"), "allowed"));

        json_decref(body);
        json_decref(object);
        return has;
}

static void check_policy(const struct doctor_patient *p, const char *name, struct doctor_finding *f)
{
        static const char at[] = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
        CLEANUP(free_p) char *text = NULL;
        const char *actions;
        struct answer answer;
        json_t *policy, *binding;
        char path[256];

        (void) text_format(path, sizeof(path), "%sies/%s", at, name);
        policy = ask(p, path, NULL, &answer);
        (void) text_format(path, sizeof(path), "%sybindings/%s", at, name);
        binding = policy == NULL ? NULL : ask(p, path, NULL, &answer);
        actions = json_string_value(
                json_array_get(json_object_get(json_object_get(binding, "spec"), "validationActions"), 0));
        text = binding == NULL ? NULL : json_dumps(json_object_get(policy, "spec"), 0);
        if (binding == NULL)
                found_none(f, &answer, "policy ", name);
        else if (text != NULL && strstr(text, "system:serviceaccount:remuda") != NULL)
                doctor_found(f, DOCTOR_FAIL, INSTALL,
                             "policy %s names an account, and applies to nobody in another namespace", name);
        else if (strcmp(actions == NULL ? "" : actions, "Deny") != 0)
                doctor_found(f, DOCTOR_FAIL, INSTALL, "policy %s is bound without Deny: it only looks on",
                             name);
        json_decref(policy);
        json_decref(binding);
}

static void check_policies(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const char *const names[] = { "remuda-agent-own-node",   "remuda-agent-own-lease",
                                             "remuda-pod-records",      "remuda-job-status",
                                             "remuda-scheduler-writes", "remuda-controller-writes",
                                             "remuda-emergencies" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                check_policy(p, names[i], f);
        doctor_found(f, DOCTOR_PASS, "", "%zu admission policies are in force", ARRAY_SIZE(names));
}

/* What neither may do everywhere. */
static void check_rights(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const struct {
                const char *binding;
                struct right rights[4];
        } rows[] = {
                { "remuda-scheduler",
                  { { "create", "pods", NULL, NULL },
                    { "patch", "pods", NULL, NULL },
                    { "create", "secrets", NULL, NULL },
                    { "get", "secrets", NULL, NULL } } },
                { "remuda-controller",
                  { { "create", "pods", NULL, NULL },
                    { "create", "pods", "binding", NULL },
                    { "create", "secrets", NULL, NULL },
                    { "get", "secrets", NULL, NULL } } },
        };
        char namespace_[256], user[400];

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                if (!find_account(p, rows[i].binding, f, namespace_, user))
                        continue;
                for (size_t k = 0; k < ARRAY_SIZE(rows[i].rights); k++) {
                        const struct right *right = &rows[i].rights[k];
                        int has = has_right(p, user, NULL, right);

                        if (has < 0)
                                doctor_found(f, DOCTOR_WARN, ASK_AS, "the rights of %s could not be asked",
                                             user);
                        else if (has > 0)
                                doctor_found(f, DOCTOR_FAIL, "take the role away that gives it; " INSTALL,
                                             "%s may %s %s%s%s in every namespace", user, right->verb,
                                             right->resource, right->subresource == NULL ? "" : "/",
                                             right->subresource == NULL ? "" : right->subresource);
                }
        }
        doctor_found(f, DOCTOR_PASS, "", "scheduler and controller have no more rights than they need");
}

/* May the scheduler's account read the groups of pods that this API server has? */
static void check_group_version(const struct doctor_patient *p, const char *version, struct doctor_finding *f)
{
        static const struct {
                const char *version;
                struct right right;
        } known[] = {
                { "v1alpha1", { "list", "workloads", NULL, "scheduling.k8s.io" } },
                { "v1alpha2", { "list", "podgroups", NULL, "scheduling.k8s.io" } },
        };
        char namespace_[256], user[400];

        for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
                const struct right *right = &known[i].right;

                if (strcmp(version, known[i].version) != 0)
                        continue;
                if (find_account(p, "remuda-scheduler", f, namespace_, user) &&
                    has_right(p, user, NULL, right) <= 0)
                        doctor_found(f, DOCTOR_FAIL, INSTALL,
                                     "%s may not %s %s: pods of such groups go each by itself", user,
                                     right->verb, right->resource);
                return;
        }
        doctor_found(f, DOCTOR_WARN, "serve v1alpha1 (1.35) or v1alpha2 (1.36) as well",
                     "groups of pods of scheduling.k8s.io/%s are not read: their pods go each by itself",
                     version);
}

static void check_groups(const struct doctor_patient *p, struct doctor_finding *f)
{
        struct answer answer;
        json_t *object = ask(p, "/apis/scheduling.k8s.io", NULL, &answer), *versions, *version;
        size_t i;

        if (object == NULL)
                found_none(f, &answer, "API group ", "scheduling.k8s.io");
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

/* Somebody leads: the Lease has a holder, who renews it. */
static void check_leader(const struct doctor_patient *p, const char *binding, const char *lease,
                         struct doctor_finding *f)
{
        char namespace_[256], user[400], path[512], name[300];
        struct answer answer;
        uint64_t renewed = 0, now = clock_realtime_usec();
        const char *holder;
        json_t *object;

        if (!find_account(p, binding, f, namespace_, user))
                return;
        (void) text_format(path, sizeof(path), LEASE_COLLECTION "/%s", namespace_, lease);
        object = ask(p, path, NULL, &answer);
        holder = json_read_word(json_object_get(object, "spec"), "holderIdentity");
        (void) timestamp_parse(json_read_word(json_object_get(object, "spec"), "renewTime"), &renewed);
        (void) text_format(name, sizeof(name), "%s/%s", namespace_, lease);
        if (object == NULL && answer.result != -ENOENT)
                found_none(f, &answer, "Lease ", name);
        else if (holder[0] == '\0' || renewed == 0)
                doctor_found(f, DOCTOR_FAIL, "look at the log of the Deployment of that name",
                             "nobody leads: Lease %s%s%s", name, object == NULL ? ": " : "", answer.sentence);
        else if (renewed + SILENT_USEC < now)
                doctor_found(f, DOCTOR_WARN, "look at its log; the clock of this machine may be wrong",
                             "%s leads by Lease %s/%s, and was silent for %llu s", holder, namespace_, lease,
                             (unsigned long long) ((now - renewed) / 1000000));
        else
                doctor_found(f, DOCTOR_PASS, "", "%s leads", holder);
        json_decref(object);
}

static void check_scheduler(const struct doctor_patient *p, struct doctor_finding *f)
{
        check_leader(p, "remuda-scheduler", LEADER_EXTENDER, f);
}

/* scheduler.yaml of the ConfigMap that the manifests have. Return: its owner, a new reference, and the text
 * in it; NULL is a finding. */
static json_t *read_profile(const struct doctor_patient *p, struct doctor_finding *f, const char **ret_text)
{
        char namespace_[256], user[400], path[512], name[300];
        struct answer answer;
        json_t *object;

        if (!find_account(p, "remuda-scheduler", f, namespace_, user))
                return NULL;
        (void) text_format(path, sizeof(path), "/api/v1/namespaces/%s/configmaps/remuda-scheduler",
                           namespace_);
        object = ask(p, path, NULL, &answer);
        *ret_text = json_string_value(json_object_get(json_object_get(object, "data"), "scheduler.yaml"));
        if (*ret_text != NULL)
                return object;
        (void) text_format(name, sizeof(name), "%s/remuda-scheduler", namespace_);
        if (object == NULL && answer.result != -ENOENT)
                found_none(f, &answer, "ConfigMap ", name);
        else
                doctor_found(f, DOCTOR_WARN, "compare it with manifests/scheduler/configmap.yaml",
                             "kube-scheduler's configuration is not scheduler.yaml of ConfigMap %s%s%s", name,
                             object == NULL ? ": " : "", answer.sentence);
        json_decref(object);
        return NULL;
}

/* Who makes room for an emergency: the extender, or kube-scheduler, too, that knows no pools. */
static void check_preemption(const struct doctor_patient *p, struct doctor_finding *f)
{
        struct scheduler_profile profile = { 0 };
        struct err err = { 0 };
        const char *text;
        json_t *object = read_profile(p, f, &text);

        if (object == NULL)
                return;
        if (scheduler_profile_read(text, &profile, &err) < 0)
                doctor_found(f, DOCTOR_FAIL, INSTALL, "kube-scheduler's configuration: %s", err.msg);
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
        struct answer answer;
        json_t *nodes, *node, *group, *told;
        size_t i, k;

        (void) text_format(path, sizeof(path), "/apis/remuda.dev/v1alpha1/nodeaccelerators?limit=%d",
                           INVENTORIES_MAX);
        nodes = ask(p, path, NULL, &answer);
        if (nodes == NULL) {
                found_none(f, &answer, "kind of objects ", "nodeaccelerators");
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
static void check_managed(const struct doctor_patient *p, struct doctor_finding *f)
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
static void check_version(const struct doctor_patient *p, struct doctor_finding *f)
{
        char namespace_[256], user[400], path[512], name[300];
        struct answer of_server, of_deployment;
        json_t *deployment, *server;

        if (!find_account(p, "remuda-scheduler", f, namespace_, user))
                return;
        (void) text_format(path, sizeof(path), "/apis/apps/v1/namespaces/%s/deployments/remuda-scheduler",
                           namespace_);
        (void) text_format(name, sizeof(name), "%s/remuda-scheduler", namespace_);
        server = ask(p, "/version", NULL, &of_server);
        deployment = ask(p, path, NULL, &of_deployment);
        if (server == NULL)
                found_none(f, &of_server, "the API server's /version", "");
        else if (deployment == NULL && of_deployment.result != -ENOENT)
                found_none(f, &of_deployment, "Deployment ", name);
        else
                compare_versions(scheduler_image(deployment), json_read_word(server, "gitVersion"), f);
        json_decref(server);
        json_decref(deployment);
}

static void check_controller(const struct doctor_patient *p, struct doctor_finding *f)
{
        check_leader(p, "remuda-controller", LEADER_CONTROLLER, f);
}

/* Is the controller held to some namespaces (manifests/controller-namespaces)? Then there is no ClusterRole
 * by which others are admitted. */
static bool is_held_to_some(const struct doctor_patient *p)
{
        struct answer answer;
        json_t *role =
                ask(p, "/apis/rbac.authorization.k8s.io/v1/clusterroles/remuda-job-namespace", NULL, &answer);

        json_decref(role);
        return role == NULL && answer.result == -ENOENT;
}

static void found_not_admitted(struct doctor_finding *f, const char *namespace_, const char *installed,
                               bool held)
{
        char remedy[300];

        if (held) {
                (void) text_format(remedy, sizeof(remedy),
                                   "name it in --namespaces, and kubectl apply -n %.63s -f "
                                   "manifests/controller-namespaces/role.yaml; with helm, jobs.namespaces",
                                   namespace_);
                doctor_found(
                        f, DOCTOR_WARN, remedy,
                        "namespace %s has TrainingJobs and is none of those of the controller: they wait",
                        namespace_);
                return;
        }
        (void) text_format(remedy, sizeof(remedy),
                           "kubectl create rolebinding remuda-controller -n %.63s "
                           "--clusterrole=remuda-job-namespace --serviceaccount=%.63s:remuda-controller",
                           namespace_, installed);
        doctor_found(f, DOCTOR_FAIL, remedy, "namespace %s has TrainingJobs and is not admitted", namespace_);
}

/* A job in a namespace that nobody admitted waits for ever. */
static void check_namespaces(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const struct right make_pods = { "create", "pods", NULL, NULL };
        const char *seen[JOBS_MAX];
        char installed[256], user[400], path[80];
        struct answer answer;
        size_t count = 0, i;
        json_t *jobs, *job;

        (void) text_format(path, sizeof(path), "/apis/remuda.dev/v1alpha1/trainingjobs?limit=%d", JOBS_MAX);
        jobs = ask(p, path, NULL, &answer);
        if (jobs == NULL)
                found_none(f, &answer, "list of TrainingJobs", "");
        if (jobs == NULL || !find_account(p, "remuda-controller", f, installed, user)) {
                json_decref(jobs);
                return;
        }
        json_array_foreach(json_object_get(jobs, "items"), i, job)
        {
                const char *namespace_ = json_read_word(json_object_get(job, "metadata"), "namespace");
                bool known = count == JOBS_MAX; /* more than were asked for */
                int has;

                for (size_t k = 0; k < count && !known; k++)
                        known = strcmp(seen[k], namespace_) == 0;
                if (known)
                        continue;
                seen[count++] = namespace_;
                has = has_right(p, user, namespace_, &make_pods);
                if (has == 0)
                        found_not_admitted(f, namespace_, installed, is_held_to_some(p));
                else if (has < 0)
                        doctor_found(f, DOCTOR_WARN, ASK_AS,
                                     "the controller's rights in %s could not be asked", namespace_);
        }
        if (json_read_word(json_object_get(jobs, "metadata"), "continue")[0] != '\0')
                doctor_found(f, DOCTOR_WARN, "kubectl get trainingjobs -A names the namespaces of the others",
                             "there are more than %d TrainingJobs, and only their namespaces were looked at",
                             JOBS_MAX);
        doctor_found(f, DOCTOR_PASS, "", "the %zu namespaces with TrainingJobs are admitted", count);
        json_decref(jobs);
}

/* clang-format off */
const struct doctor_check doctor_checks_cluster[] = {
        { "policies", false, check_policies },
        { "rights", false, check_rights },
        { "scheduler leads", false, check_scheduler },
        { "preemption", false, check_preemption },
        { "managed resources", false, check_managed },
        { "scheduler version", false, check_version },
        { "pod groups", false, check_groups },
        { "controller leads", false, check_controller },
        { "job namespaces", false, check_namespaces },
        { 0 },
};
/* clang-format on */
