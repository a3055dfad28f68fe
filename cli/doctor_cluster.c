/* remuda doctor --cluster: does somebody lead, are the namespaces of jobs admitted; and the table of all. */
#include "cli/doctor_cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "cli/doctor/cluster_slices.h"
#include "io/clock.h"
#include "store/leader.h"
#include "store/lease.h"

#define SILENT_USEC UINT64_C(60000000)
#define JOBS_MAX    500

/* Somebody leads: the Lease has a holder, who renews it. */
static void check_leader(const struct doctor_patient *p, const char *binding, const char *lease,
                         struct doctor_finding *f)
{
        char namespace_[256], user[400], path[512], name[300];
        struct doctor_cluster_answer answer;
        uint64_t renewed = 0, now = clock_realtime_usec();
        const char *holder;
        json_t *object;

        if (!doctor_cluster_find_account(p, binding, f, namespace_, user))
                return;
        (void) text_format(path, sizeof(path), LEASE_COLLECTION "/%s", namespace_, lease);
        object = doctor_cluster_ask(p, path, NULL, &answer);
        holder = json_read_word(json_object_get(object, "spec"), "holderIdentity");
        (void) timestamp_parse(json_read_word(json_object_get(object, "spec"), "renewTime"), &renewed);
        (void) text_format(name, sizeof(name), "%s/%s", namespace_, lease);
        if (object == NULL && answer.result != -ENOENT)
                doctor_cluster_found_none(f, &answer, "Lease ", name);
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

static void check_controller(const struct doctor_patient *p, struct doctor_finding *f)
{
        check_leader(p, "remuda-controller", LEADER_CONTROLLER, f);
}

/* Is the controller held to some namespaces (manifests/controller-namespaces)? Then there is no ClusterRole
 * by which others are admitted. */
static bool is_held_to_some(const struct doctor_patient *p)
{
        struct doctor_cluster_answer answer;
        json_t *role = doctor_cluster_ask(
                p, "/apis/rbac.authorization.k8s.io/v1/clusterroles/remuda-job-namespace", NULL, &answer);

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
        static const struct doctor_cluster_right make_pods = { "create", "pods", NULL, NULL };
        const char *seen[JOBS_MAX];
        char installed[256], user[400], path[80];
        struct doctor_cluster_answer answer;
        size_t count = 0, i;
        json_t *jobs, *job;

        (void) text_format(path, sizeof(path), "/apis/remuda.dev/v1alpha1/trainingjobs?limit=%d", JOBS_MAX);
        jobs = doctor_cluster_ask(p, path, NULL, &answer);
        if (jobs == NULL)
                doctor_cluster_found_none(f, &answer, "list of TrainingJobs", "");
        if (jobs == NULL || !doctor_cluster_find_account(p, "remuda-controller", f, installed, user)) {
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
                has = doctor_cluster_has_right(p, user, namespace_, &make_pods);
                if (has == 0)
                        found_not_admitted(f, namespace_, installed, is_held_to_some(p));
                else if (has < 0)
                        doctor_found(f, DOCTOR_WARN, DOCTOR_CLUSTER_ASK_AS,
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
        { "policies", false, doctor_cluster_policies },
        { "rights", false, doctor_cluster_rights },
        { "claims", false, doctor_cluster_slices },
        { "slices", false, cluster_slices_check },
        { "scheduler leads", false, check_scheduler },
        { "preemption", false, doctor_cluster_preemption },
        { "managed resources", false, doctor_cluster_managed },
        { "scheduler version", false, doctor_cluster_version },
        { "pod groups", false, doctor_cluster_groups },
        { "controller leads", false, check_controller },
        { "job namespaces", false, check_namespaces },
        { 0 },
};
/* clang-format on */
