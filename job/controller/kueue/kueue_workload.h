/* Kueue workload: the Workload (kueue.x-k8s.io/v1beta1) by which a TrainingJob stands in a queue of Kueue:
 * what it asks for, and what Kueue says in it.
 *
 * A pod set for each entry of workers ("w0", "w1" ...), the servers ("s") and the manager ("manager"). Into
 * how many pods the chips of an entry fall is known when the job is planned, and it is not before it is
 * admitted; so a pod of a pod set is one chip, and what a template asks for beside chips is counted for each:
 * the most that it can become. In memory only. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "job/controller/job_pods.h"
#include "job/spec/job.h"
#include "scheduler-extender/ledger/ledger.h"

#define KUEUE_LABEL_JOB            "kueue.x-k8s.io/job-uid"
#define KUEUE_ANNOTATION_SUSPENDED "remuda.dev/suspended" /* of a Workload that we made inactive */
#define KUEUE_NAME_BYTES           254

/* What a Workload says; zero-initialised, what is not there is "", NULL or false. */
struct kueue_workload {
        char name[KUEUE_NAME_BYTES], uid[64], version[64], queue[KUEUE_NAME_BYTES];
        char cluster_queue[KUEUE_NAME_BYTES]; /* that admitted it */
        char job[JOB_NAME_BYTES], owner[64];  /* the TrainingJob that owns it, and its uid */
        bool inactive;                        /* spec.active is false */
        bool suspended;                       /* and it was we who said so */
        bool reserved, admitted, evicted, finished,
                ready;                 /* its conditions. Reserved: or it has an admission;
                                          evicted: and its quota is still reserved */
        char reason[64], message[400]; /* why it was evicted, or waits; cut to size */
        json_t *pod_sets, *assignments, *checks, *conditions; /* owned */
};

/* kueue_workload_decode() - a Workload whose owner is no TrainingJob, or whose name is not the one that its
 * job's has, has job "". kueue_workload_free() - what it owns. */
void kueue_workload_decode(const json_t *object, struct kueue_workload *ret);
void kueue_workload_free(struct kueue_workload *workload);

/* kueue_workload_name() - follows from the job, so that making it again is found out. */
void kueue_workload_name(const char *job, const char *uid, char name[KUEUE_NAME_BYTES]);

/* kueue_workload_pod_sets() - what the job asks for, admitted or not. Chips of a role have the name that they
 * have in @workload (NULL = there is none), while it may take some of that name; else the one that most of
 * those have that it may take, else its vendor's. A new reference; NULL and *err: a name that nobody can say.
 */
json_t *kueue_workload_pod_sets(const struct job *job, const struct ledger *ledger,
                                const struct kueue_workload *workload, struct err *err);

/* kueue_workload_new() - the object. @pod_sets: taken. @priority: the value of the job's priorityClassName. A
 * new reference; NULL = out of memory. */
json_t *kueue_workload_new(const struct job *job, const struct job_pods_owner *owner, const char *queue,
                           int64_t priority, json_t *pod_sets);

/* kueue_workload_asks() - are these its pod sets: their names, counts and requests? */
bool kueue_workload_asks(const struct kueue_workload *workload, const json_t *pod_sets);

/* kueue_workload_admit() - put onto the job what it was admitted with: the places of its roles (flavors and
 * updates of admission checks) and, where an entry has minChips, fewer chips. Again is no other.
 * @flavors: spec of each ResourceFlavor by name. Return: 0; -ENOENT (a flavor is not there), -EINVAL (two say
 * unlike things, or there are fewer chips than minChips) and *err; the job is as it was then. */
int kueue_workload_admit(const struct kueue_workload *workload, const json_t *flavors, struct job *job,
                         struct err *err);
