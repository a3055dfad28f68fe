/* Job pods: what a TrainingJob's controller writes to the API server: the Secret, the manager's pod of a
 * world, a pod for every device group.
 *
 *      manager  remuda-launch --manage $(POD_IP):7000 --plan ... runs mpirun over the groups
 *      group    remuda-launch --join-file ... waits for the manager that its annotation names, world after
 * world
 *
 * Names follow from the state alone (job/plan/job_state.h), so that what is made twice is found out. Every
 * object has the job as its owner. A program's image is the job's own or the configured one; its command line
 * is always that of a program table: the job's command, else the administrator's row. In memory only. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "job/plan/job_state.h"
#include "job/spec/program_table.h"

#define JOB_FINALIZER         "remuda.dev/job-controller"
#define JOB_ANNOTATION_CANCEL "remuda.dev/cancel"
#define JOB_ANNOTATION_MANAGER                                                                               \
        "remuda.dev/manager" /* of a group's pod: "N ADDRESS:PORT", N from 1; or "end" */
/* ... of a group's pod, while the manager waits: how often it was told again. The kubelet may miss a change
 * of a volume until its next look, in 60 to 90 s; at any other change of the pod it looks at once. */
#define JOB_ANNOTATION_TOLD "remuda.dev/manager-told"
#define JOB_ANNOTATION_PLAN "remuda.dev/plan" /* of a manager's pod: what remuda-launch --plan reads */
#define JOB_ANNOTATION_KEYS "remuda.dev/keys" /* of every pod: which Secret, and the job's CA */
/* Names in the certificates made for a job: the manager's two, by the second of which it is asked how the job
 * is, and that of all groups. */
#define JOB_TLS_NAME        "manager"
#define JOB_TLS_STATUS_NAME "status.remuda.dev"
#define JOB_TLS_GROUP_NAME  "group"
#define JOB_LABEL_ROLE      POD_LABEL_ROLE
#define JOB_LABEL_SUBTASK   "remuda.dev/subtask"
#define JOB_MANAGER_PORT    7000

/* What all of a cluster's job pods have in common. Borrowed. */
struct job_pods_options {
        const char *launcher_image;      /* that holds /usr/bin/remuda-launch, static: it runs in any image */
        const char *job_image;           /* where spec.programs names none; NULL or "" = none */
        const char *scheduler_name;      /* "remuda" */
        const char *const *pull_secrets; /* of each job's namespace, beside the job's own */
        size_t pull_secret_count;
        const struct program_table *programs; /* the administrator's; NULL = none */
        unsigned grace_sec;                   /* from SIGTERM to SIGKILL: time for a checkpoint */
        const char *log_format, *log_level; /* of the launchers; NULL, both = what they have by themselves */
};

/* The object that the pods belong to. Borrowed. */
struct job_pods_owner {
        const char *namespace_, *name, *uid;
};

struct tls_keys;

/* What only those may know who take part. Borrowed. */
struct job_pods_secrets {
        const char *token;           /* of the job's rendezvous */
        const struct tls_keys *keys; /* pair 0: the manager's, 1: the groups' */
};

/* job_pods_check() - can pods be made for this job? Return: 0; -EINVAL and *err (no image, no program for a
 * runtime), with field and remedy. */
int job_pods_check(const struct job *job, const struct job_state *state,
                   const struct job_pods_options *options, struct err *err);

/* All return a new reference; NULL = out of memory. @keys: of job_keys_write(). @status_token: whoever has it
 * may ask the manager how the job is, and nothing else; the controller finds it in the pod again. */
json_t *job_pods_secret(const struct job *job, const struct job_pods_owner *owner,
                        const struct job_pods_options *options, const char *name,
                        const struct job_pods_secrets *secrets);
json_t *job_pods_group(const struct job *job, const struct job_state *state, const struct job_group *group,
                       const struct job_pods_owner *owner, const struct job_pods_options *options,
                       const char *keys);
json_t *job_pods_manager(const struct job *job, const struct job_state *state,
                         const struct job_pods_owner *owner, const struct job_pods_options *options,
                         const char *keys, const char *status_token);

/* job_pods_metadata() - of an object of the job's: its labels, and the job as its owner. */
json_t *job_pods_metadata(const char *name, const struct job_pods_owner *owner, const char *role);
