/* Doctor cluster: asking an API server, whose answers are the only ones that count. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/doctor_cluster.h"
#include "io/loop.h"
#include "store/kubernetes/kube.h"

#define ASK_USEC UINT64_C(10000000)

static void on_done(void *userdata, const struct http_call_result *result)
{
        struct doctor_cluster_answer *answer = userdata;

        answer->result = kube_result(result, answer->sentence, sizeof(answer->sentence));
        answer->json = answer->result < 0 ? NULL : json_loadb(result->body, result->body_bytes, 0, NULL);
        if (answer->result >= 0 && answer->json == NULL) {
                answer->result = -EBADMSG;
                (void) text_copy(answer->sentence, sizeof(answer->sentence),
                                 "the API server's answer is no JSON");
        }
        answer->done = true;
}

json_t *doctor_cluster_ask(const struct doctor_patient *p, const char *path, const json_t *body,
                           struct doctor_cluster_answer *answer)
{
        const struct kube_request request = { .method = body == NULL ? "GET" : "POST",
                                              .path = path,
                                              .body = body,
                                              .timeout_usec = ASK_USEC,
                                              .done = on_done,
                                              .userdata = answer };

        *answer = (struct doctor_cluster_answer){ .result = -EIO, .sentence = "it could not be asked" };
        if (kube_call_start(p->kube, &request, NULL) < 0)
                return NULL;
        while (!answer->done && sd_event_run(p->loop, UINT64_MAX) >= 0)
                continue;
        return answer->json;
}

void doctor_cluster_found_none(struct doctor_finding *f, const struct doctor_cluster_answer *answer,
                               const char *what, const char *name)
{
        if (answer->result == -ENOENT)
                doctor_found(f, DOCTOR_FAIL, DOCTOR_CLUSTER_INSTALL, "there is no %s%s: %s", what, name,
                             answer->sentence);
        else if (answer->result == -EPERM || answer->result == -EACCES)
                doctor_found(f, DOCTOR_WARN, "ask as somebody who may see it", "%s%s cannot be read: %s",
                             what, name, answer->sentence);
        else
                doctor_found(f, DOCTOR_FAIL, "ask again; look at the API server if it stays so",
                             "%s%s cannot be read: %s", what, name, answer->sentence);
}

bool doctor_cluster_find_account(const struct doctor_patient *p, const char *binding,
                                 struct doctor_finding *f, char namespace_[256], char user[400])
{
        struct doctor_cluster_answer answer;
        char path[256];
        json_t *object, *subject;
        bool found;

        (void) text_format(path, sizeof(path), "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/%s",
                           binding);
        object = doctor_cluster_ask(p, path, NULL, &answer);
        subject = json_array_get(json_object_get(object, "subjects"), 0);
        found = json_is_string(json_object_get(subject, "namespace")) &&
                text_copy(namespace_, 256, json_string_value(json_object_get(subject, "namespace"))) &&
                text_format(user, 400, "system:serviceaccount:%s:%s", namespace_,
                            json_string_value(json_object_get(subject, "name")));
        if (object == NULL)
                doctor_cluster_found_none(f, &answer, "ClusterRoleBinding ", binding);
        else if (!found)
                doctor_found(f, DOCTOR_FAIL, DOCTOR_CLUSTER_INSTALL,
                             "ClusterRoleBinding %s names no account of a namespace", binding);
        json_decref(object);
        return found;
}

int doctor_cluster_has_right(const struct doctor_patient *p, const char *user, const char *namespace_,
                             const struct doctor_cluster_right *right)
{
        struct doctor_cluster_answer answer;
        json_t *body =
                json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s, s:s*, s:s*, s:s*}}}", "apiVersion",
                          "authorization.k8s.io/v1", "kind", "SubjectAccessReview", "spec", "user", user,
                          "resourceAttributes", "verb", right->verb, "resource", right->resource,
                          "subresource", right->subresource, "namespace", namespace_, "group", right->group);
        json_t *object =
                doctor_cluster_ask(p, "/apis/authorization.k8s.io/v1/subjectaccessreviews", body, &answer);
        int has = object == NULL
                          ? -1
                          : json_is_true(json_object_get(json_object_get(object, "status"), "allowed"));

        json_decref(body);
        json_decref(object);
        return has;
}
