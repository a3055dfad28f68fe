/* Doctor cluster: what the checks of `remuda doctor --cluster` ask an API server by, and the checks. Each
 * waits for its answers. */
#pragma once

#include <jansson.h>

#include "cli/doctor.h"

#define DOCTOR_CLUSTER_ASK_AS  "ask as somebody who may create subjectaccessreviews"
#define DOCTOR_CLUSTER_INSTALL "kubectl apply -k manifests/ as docs/how-to/install.md says"

struct doctor_cluster_answer {
        bool done;
        int result;
        char sentence[300];
        json_t *json;
};

/* doctor_cluster_ask() - GET, or POST of a body. Return: what was answered, a new reference; NULL with its
 * code and sentence in *answer. */
json_t *doctor_cluster_ask(const struct doctor_patient *p, const char *path, const json_t *body,
                           struct doctor_cluster_answer *answer);

/* doctor_cluster_found_none() - something was not answered: it is not there, and that is a fault of the
 * installation; or this account may not see it, and nobody knows; or the API server is unwell. */
void doctor_cluster_found_none(struct doctor_finding *f, const struct doctor_cluster_answer *answer,
                               const char *what, const char *name);

/* doctor_cluster_find_account() - that a ClusterRoleBinding names: wherever it was installed. Return: is
 * there one? Else that is a finding. */
bool doctor_cluster_find_account(const struct doctor_patient *p, const char *binding,
                                 struct doctor_finding *f, char namespace_[256], char user[400]);

struct doctor_cluster_right {
        const char *verb, *resource, *subresource, *group; /* NULL: none; the core group */
};

/* doctor_cluster_has_right() - Return: 1 = the account has it, 0 = it has not, -1 = nobody knows. */
int doctor_cluster_has_right(const struct doctor_patient *p, const char *user, const char *namespace_,
                             const struct doctor_cluster_right *right);

/* doctor_cluster_policies.c: what bounds the accounts. */
void doctor_cluster_policies(const struct doctor_patient *p, struct doctor_finding *f);
void doctor_cluster_slices(const struct doctor_patient *p, struct doctor_finding *f);
void doctor_cluster_rights(const struct doctor_patient *p, struct doctor_finding *f);

/* doctor_scheduler.c: how kube-scheduler is set up beside the extender. */
void doctor_cluster_preemption(const struct doctor_patient *p, struct doctor_finding *f);
void doctor_cluster_managed(const struct doctor_patient *p, struct doctor_finding *f);
void doctor_cluster_version(const struct doctor_patient *p, struct doctor_finding *f);
void doctor_cluster_groups(const struct doctor_patient *p, struct doctor_finding *f);
