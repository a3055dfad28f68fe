/* Templates of claims, and pods that name them. */
#include "job/controller/claims/job_claim.h"

#include <errno.h>
#include <string.h>

#include "agent/vendor/device_class.h"
#include "base/hash.h"
#include "base/text.h"
#include "scheduler-extender/claims/claims_json.h"
#include "scheduler-extender/decide/assignment.h"
#include "scheduler-extender/wire/pod_json.h"

#define REQUEST "chips" /* of the claim; and the claim, as its pod calls it */

const char *job_claim_class(const struct job *job, const struct job_group *group)
{
        const struct job_role *role = assignment_role(job, group->server, group->entry);

        return role == NULL || role->device_class[0] == '\0' ? NULL : role->device_class;
}

int job_claim_check(const struct job *job, const struct job_group *group, struct err *err)
{
        if (job_claim_class(job, group) == NULL || group->chips <= JOB_CLAIM_CHIPS_MAX)
                return 0;
        return err_set(
                err, -EINVAL,
                "deviceClass of subtask %s: a claim has at most %d devices, and the plan has %u chips of "
                "group %s for it; leave deviceClass out, or ask for fewer chips",
                group->name, JOB_CLAIM_CHIPS_MAX, group->chips, group->group);
}

int job_claim_offered(const struct job *job, const struct ledger *ledger, bool served, struct err *err)
{
        const struct job_role *asks =
                job->servers.device_class[0] != '\0' && job_server_chips(job) > 0 ? &job->servers : NULL;

        for (size_t i = 0; i < job->worker_count && asks == NULL; i++)
                asks = job->workers[i].device_class[0] != '\0' ? &job->workers[i] : NULL;
        if (asks == NULL || ledger->has_slices)
                return 0;
        if (!served)
                return err_set(
                        err, -EAGAIN,
                        "deviceClass '%.40s': there is no ResourceSlice of resource.k8s.io/v1 to read "
                        "(Kubernetes 1.34 and later; v1beta1 of 1.32 and 1.33 is not read): update the "
                        "cluster, let remuda-controller read them, or leave deviceClass out",
                        asks->device_class);
        return err_set(err, -EAGAIN,
                       "deviceClass '%.100s': no DRA driver offers devices in this cluster (there is no "
                       "ResourceSlice); install one (remuda-agent --dra on), or leave deviceClass out",
                       asks->device_class);
}

void job_claim_name(const struct job *job, const struct job_group *group, const struct job_pods_owner *owner,
                    char ret[JOB_CLAIM_NAME_BYTES])
{
        uint64_t hash = hash_text(owner->uid, group->chips);

        hash = hash_text(job_claim_class(job, group), hash);
        hash = hash_text(group->group, hash);
        (void) text_format(ret, JOB_CLAIM_NAME_BYTES, "%.63s-%016llx", owner->name,
                           (unsigned long long) hash);
}

/* The devices of one group, the planned one. */
static void narrow(const struct job_group *group, json_t *devices)
{
        json_t *exactly = json_object_get(json_array_get(json_object_get(devices, "requests"), 0), "exactly");
        char expression[256];

        if (group->group[0] == '\0' || strpbrk(group->group, "\"\\") != NULL)
                return; /* no agent names one so */
        (void) text_format(expression, sizeof(expression),
                           "device.driver == \"" DRA_NAME_DRIVER "\" && device.attributes[\"" DRA_NAME_DRIVER
                           "\"].group == \"%s\"",
                           group->group);
        (void) json_object_set_new(exactly, "selectors",
                                   json_pack("[{s:{s:s}}]", "cel", "expression", expression));
        if (group->chips > 1) /* what remuda-extender reads, which knows no expressions */
                (void) json_object_set_new(devices, "constraints",
                                           json_pack("[{s:[s], s:s}]", "requests", REQUEST, "matchAttribute",
                                                     DRA_NAME_DRIVER "/group"));
}

json_t *job_claim_template(const struct job *job, const struct job_group *group,
                           const struct job_pods_owner *owner)
{
        const char *class = job_claim_class(job, group);
        char name[JOB_CLAIM_NAME_BYTES];
        json_t *devices = json_pack("{s:[{s:s, s:{s:s, s:s, s:i}}]}", "requests", "name", REQUEST, "exactly",
                                    "deviceClassName", class, "allocationMode", "ExactCount", "count",
                                    (int) group->chips);

        job_claim_name(job, group, owner, name);
        if (devices != NULL && device_class_is_ours(class))
                narrow(group, devices);
        return json_pack("{s:s, s:s, s:o, s:{s:{s:{s:s, s:s}}, s:{s:o}}}", "apiVersion", "resource.k8s.io/v1",
                         "kind", "ResourceClaimTemplate", "metadata", job_pods_metadata(name, owner, "claim"),
                         "spec", "metadata", "labels", "app.kubernetes.io/managed-by", "remuda",
                         POD_LABEL_JOB, owner->name, "spec", "devices", devices);
}

/* Its claim says where it goes, and has its chips: nobody is asked about it but kube-scheduler, whichever
 * that is. */
static void ask_planned(const struct job_group *group, const struct job_pods_owner *owner, json_t *spec,
                        json_t *resources)
{
        char name[JOB_POD_NAME_BYTES];

        job_group_pod_name(owner->name, group, name);
        (void) json_object_set_new(resources, "claims", json_pack("[{s:s}]", "name", REQUEST));
        (void) json_object_set_new(spec, "resourceClaims",
                                   json_pack("[{s:s, s:s}]", "name", REQUEST, "resourceClaimName", name));
}

/* By POD_RESOURCE_CLAIM kube-scheduler asks us about the pod, as it does about those that ask by resource. */
void job_claim_ask(const struct job *job, const struct job_group *group, const struct job_pods_owner *owner,
                   json_t *pod)
{
        json_t *spec = json_object_get(pod, "spec");
        json_t *resources =
                json_object_get(json_array_get(json_object_get(spec, "containers"), 0), "resources");
        json_t *limits = json_object_get(resources, "limits");
        char name[JOB_CLAIM_NAME_BYTES];

        if (job_claim_class(job, group) == NULL)
                return;
        (void) json_object_del(limits, group->resource);
        if (group->planned) {
                ask_planned(group, owner, spec, resources);
                return;
        }
        job_claim_name(job, group, owner, name);
        (void) json_object_set_new(limits, POD_RESOURCE_CLAIM, json_string("1"));
        (void) json_object_set_new(resources, "claims", json_pack("[{s:s}]", "name", REQUEST));
        (void) json_object_set_new(
                spec, "resourceClaims",
                json_pack("[{s:s, s:s}]", "name", REQUEST, "resourceClaimTemplateName", name));
}
