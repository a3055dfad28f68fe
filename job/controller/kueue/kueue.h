/* Kueue: a TrainingJob that names a queue (label kueue.x-k8s.io/queue-name) and its Workload.
 *
 * The job is held, as spec.suspend holds it (suspend.h), until Kueue has admitted its Workload, and again
 * when that is evicted: its groups have their time for a checkpoint, and when the last pod is gone the quota
 * is given back. Level-triggered like all of the controller: what a Workload says is looked at again each
 * time, and what is missing in it is written. Without --kueue on none of this is read, and nothing is held.
 */
#pragma once

#include "job/controller/record.h"
#include "store/store.h"

/* What is known of all queues; one owner, the controller. Zero-initialised. */
struct kueue {
        struct name_map workloads; /* of TrainingJobs, by "namespace/name" */
        json_t *flavors;           /* spec by name; NULL = none */
        bool workloads_synced, flavors_synced;
};

void kueue_free(struct kueue *kueue);

/* kueue_observe_workload(), kueue_observe_flavor() - as observe.h has others. */
void kueue_observe_workload(struct controller *c, const char *key, const json_t *object);
void kueue_observe_flavor(struct controller *c, const char *key, const json_t *object);

/* kueue_look() - does its queue hold it, and why? Puts onto the job what it was admitted with. */
void kueue_look(struct record *record);

/* kueue_may_plan() - asked just before it is planned: is what was admitted what it asks for, by the nodes as
 * they are now? */
bool kueue_may_plan(struct record *record);

/* kueue_step() - write what is missing in the Workload of a job that has not ended; one write at a time.
 * kueue_end() - of one that has. kueue_written() - what became of a write. */
void kueue_step(struct record *record);
void kueue_end(struct record *record);
void kueue_written(struct record *record, int result, const char *sentence);
