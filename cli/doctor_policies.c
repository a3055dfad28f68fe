/* remuda doctor --cluster: are the policies there that bound what tokens may do, do the accounts have no more
 * rights than they are meant to? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/doctor_cluster.h"

static void check_policy(const struct doctor_patient *p, const char *name, struct doctor_finding *f)
{
        static const char at[] = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
        CLEANUP(free_p) char *text = NULL;
        const char *actions;
        struct doctor_cluster_answer answer;
        json_t *policy, *binding;
        char path[256];

        (void) text_format(path, sizeof(path), "%sies/%s", at, name);
        policy = doctor_cluster_ask(p, path, NULL, &answer);
        (void) text_format(path, sizeof(path), "%sybindings/%s", at, name);
        binding = policy == NULL ? NULL : doctor_cluster_ask(p, path, NULL, &answer);
        actions = json_string_value(
                json_array_get(json_object_get(json_object_get(binding, "spec"), "validationActions"), 0));
        text = binding == NULL ? NULL : json_dumps(json_object_get(policy, "spec"), 0);
        if (binding == NULL)
                doctor_cluster_found_none(f, &answer, "policy ", name);
        else if (text != NULL && strstr(text, "system:serviceaccount:remuda") != NULL)
                doctor_found(f, DOCTOR_FAIL, DOCTOR_CLUSTER_INSTALL,
                             "policy %s names an account, and applies to nobody in another namespace", name);
        else if (strcmp(actions == NULL ? "" : actions, "Deny") != 0)
                doctor_found(f, DOCTOR_FAIL, DOCTOR_CLUSTER_INSTALL,
                             "policy %s is bound without Deny: it only looks on", name);
        json_decref(policy);
        json_decref(binding);
}

void doctor_cluster_policies(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const char *const names[] = { "remuda-agent-own-node",   "remuda-agent-own-lease",
                                             "remuda-pod-records",      "remuda-job-status",
                                             "remuda-scheduler-writes", "remuda-controller-writes",
                                             "remuda-emergencies" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                check_policy(p, names[i], f);
        doctor_found(f, DOCTOR_PASS, "", "%zu admission policies are in force", ARRAY_SIZE(names));
}

/* Of manifests/dra, which a cluster may do without: whoever writes slices is held to those of its own node,
 * and may do what the driver does. */
void doctor_cluster_slices(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const struct doctor_cluster_right rights[] = {
                { "create", "resourceslices", NULL, "resource.k8s.io" },
                { "delete", "resourceslices", NULL, "resource.k8s.io" },
                { "get", "resourceclaims", NULL, "resource.k8s.io" },
        };
        char namespace_[256], user[400];
        struct doctor_cluster_answer answer;
        json_t *binding = doctor_cluster_ask(
                p, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/remuda-agent-dra", NULL, &answer);

        json_decref(binding);
        if (binding == NULL && answer.result == -ENOENT) {
                doctor_found(f, DOCTOR_SKIP, "",
                             "no devices are offered by claims: there is no manifests/dra");
                return;
        }
        if (!doctor_cluster_find_account(p, "remuda-agent-dra", f, namespace_, user))
                return;
        check_policy(p, "remuda-agent-own-slices", f);
        for (size_t i = 0; i < ARRAY_SIZE(rights); i++) {
                int has = doctor_cluster_has_right(p, user, NULL, &rights[i]);

                if (has < 0)
                        doctor_found(f, DOCTOR_WARN, DOCTOR_CLUSTER_ASK_AS,
                                     "the rights of %s could not be asked", user);
                else if (has == 0)
                        doctor_found(f, DOCTOR_FAIL, "kubectl apply -k with manifests/dra as a component",
                                     "%s may not %s %s: nothing is offered by claims", user, rights[i].verb,
                                     rights[i].resource);
        }
        binding = doctor_cluster_ask(p, "/apis/resource.k8s.io/v1/deviceclasses/remuda-cuda", NULL, &answer);
        if (binding == NULL)
                doctor_cluster_found_none(f, &answer, "resource.k8s.io/v1 DeviceClass ", "remuda-cuda");
        json_decref(binding);
        doctor_found(f, DOCTOR_PASS, "",
                     "agents may write the slices of their own nodes, and classes are there");
}

/* What neither may do everywhere. */
void doctor_cluster_rights(const struct doctor_patient *p, struct doctor_finding *f)
{
        static const struct {
                const char *binding;
                struct doctor_cluster_right rights[4];
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
                if (!doctor_cluster_find_account(p, rows[i].binding, f, namespace_, user))
                        continue;
                for (size_t k = 0; k < ARRAY_SIZE(rows[i].rights); k++) {
                        const struct doctor_cluster_right *right = &rows[i].rights[k];
                        int has = doctor_cluster_has_right(p, user, NULL, right);

                        if (has < 0)
                                doctor_found(f, DOCTOR_WARN, DOCTOR_CLUSTER_ASK_AS,
                                             "the rights of %s could not be asked", user);
                        else if (has > 0)
                                doctor_found(f, DOCTOR_FAIL,
                                             "take the role away that gives it; " DOCTOR_CLUSTER_INSTALL,
                                             "%s may %s %s%s%s in every namespace", user, right->verb,
                                             right->resource, right->subresource == NULL ? "" : "/",
                                             right->subresource == NULL ? "" : right->subresource);
                }
        }
        doctor_found(f, DOCTOR_PASS, "", "scheduler and controller have no more rights than they need");
}
