/* remuda doctor --cluster: are the policies there that bound what tokens may do, do the accounts have no more
 * rights than they are meant to, does somebody lead, are the namespaces of jobs admitted? Asked of the API
 * server, whose answers are the only ones that count. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "cli/doctor.h"
#include "io/clock.h"
#include "io/loop.h"
#include "store/kubernetes/kube.h"

#define ASK_USEC       UINT64_C(10000000)
#define SILENT_USEC    UINT64_C(60000000)
#define NAMESPACES_MAX 64
#define ASK_AS         "ask as somebody who may create subjectaccessreviews"
#define INSTALL        "kubectl apply -k manifests/ as docs/how-to/install.md says"

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

        *answer = (struct answer){ .result = -1 };
        if (kube_call_start(p->kube, &request, NULL) < 0)
                return NULL;
        while (!answer->done && sd_event_run(p->loop, UINT64_MAX) >= 0)
                continue;
        return answer->json;
}

static const char *text_at(const json_t *object, const char *first, const char *second)
{
        const char *text = json_string_value(json_object_get(json_object_get(object, first), second));

        return text == NULL ? "" : text;
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
        json_decref(object);
        if (!found)
                doctor_found(f, DOCTOR_FAIL, INSTALL, "there is no ClusterRoleBinding %s", binding);
        return found;
}

struct right {
        const char *verb, *resource, *subresource;
};

/* Return: 1 = the account has it, 0 = it has not, -1 = nobody knows. */
static int has_right(const struct doctor_patient *p, const char *user, const char *namespace_,
                     const struct right *right)
{
        struct answer answer;
        json_t *body = json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s, s:s*, s:s*}}}", "apiVersion",
                                 "authorization.k8s.io/v1", "kind", "SubjectAccessReview", "spec", "user",
                                 user, "resourceAttributes", "verb", right->verb, "resource", right->resource,
                                 "subresource", right->subresource, "namespace", namespace_);
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
                doctor_found(f, DOCTOR_FAIL, INSTALL, "policy %s: %s", name, answer.sentence);
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
                                             "remuda-scheduler-writes", "remuda-controller-writes" };

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
                  { { "create", "pods", NULL },
                    { "patch", "pods", NULL },
                    { "create", "secrets", NULL },
                    { "get", "secrets", NULL } } },
                { "remuda-controller",
                  { { "create", "pods", NULL },
                    { "create", "pods", "binding" },
                    { "create", "secrets", NULL },
                    { "get", "secrets", NULL } } },
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

/* Somebody leads: the Lease has a holder, who renews it. */
static void check_leader(const struct doctor_patient *p, const char *binding, const char *lease,
                         struct doctor_finding *f)
{
        char namespace_[256], user[400], path[512];
        struct answer answer;
        uint64_t renewed = 0, now = clock_realtime_usec();
        const char *holder;
        json_t *object;

        if (!find_account(p, binding, f, namespace_, user))
                return;
        (void) text_format(path, sizeof(path), "/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s",
                           namespace_, lease);
        object = ask(p, path, NULL, &answer);
        holder = text_at(object, "spec", "holderIdentity");
        (void) timestamp_parse(text_at(object, "spec", "renewTime"), &renewed);
        if (object == NULL || holder[0] == '\0' || renewed == 0)
                doctor_found(f, DOCTOR_FAIL, "look at the log of the Deployment of that name",
                             "nobody leads: Lease %s/%s%s%s", namespace_, lease, object == NULL ? ": " : "",
                             answer.sentence);
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
        check_leader(p, "remuda-scheduler", "remuda-extender", f);
}

static void check_controller(const struct doctor_patient *p, struct doctor_finding *f)
{
        check_leader(p, "remuda-controller", "remuda-controller", f);
}

/* A job in a namespace that nobody admitted waits for ever. */
static void check_namespaces(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const struct right make_pods = { "create", "pods", NULL };
        const char *seen[NAMESPACES_MAX];
        char installed[256], user[400], remedy[300];
        struct answer answer;
        size_t count = 0, i;
        json_t *jobs = ask(p, "/apis/remuda.dev/v1alpha1/trainingjobs?limit=500", NULL, &answer), *job;

        if (jobs == NULL)
                doctor_found(f, DOCTOR_FAIL, INSTALL, "TrainingJobs cannot be listed: %s", answer.sentence);
        if (jobs == NULL || !find_account(p, "remuda-controller", f, installed, user)) {
                json_decref(jobs);
                return;
        }
        json_array_foreach(json_object_get(jobs, "items"), i, job)
        {
                const char *namespace_ = text_at(job, "metadata", "namespace");
                bool known = count == NAMESPACES_MAX;
                int has;

                for (size_t k = 0; k < count && !known; k++)
                        known = strcmp(seen[k], namespace_) == 0;
                if (known)
                        continue;
                seen[count++] = namespace_;
                (void) text_format(
                        remedy, sizeof(remedy),
                        "kubectl create rolebinding remuda-controller -n %.63s "
                        "--clusterrole=remuda-job-namespace --serviceaccount=%.63s:remuda-controller",
                        namespace_, installed);
                has = has_right(p, user, namespace_, &make_pods);
                if (has == 0)
                        doctor_found(f, DOCTOR_FAIL, remedy,
                                     "namespace %s has TrainingJobs and is not admitted", namespace_);
                else if (has < 0)
                        doctor_found(f, DOCTOR_WARN, ASK_AS,
                                     "the controller's rights in %s could not be asked", namespace_);
        }
        doctor_found(f, DOCTOR_PASS, "", "the %zu namespaces with TrainingJobs are admitted", count);
        json_decref(jobs);
}

/* clang-format off */
const struct doctor_check doctor_checks_cluster[] = {
        { "policies", false, check_policies },
        { "rights", false, check_rights },
        { "scheduler leads", false, check_scheduler },
        { "controller leads", false, check_controller },
        { "job namespaces", false, check_namespaces },
        { 0 },
};
/* clang-format on */
