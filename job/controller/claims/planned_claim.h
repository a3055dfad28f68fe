/* Planned claim: a ResourceClaim that the controller makes for one pod of a TrainingJob and allocates by
 * itself, of devices that no slice has (scheduler-extender/claims/claims_planned.h).
 *
 *      status of the job -> claim -> its allocation -> pod, which names it -> kube-scheduler reserves it
 *
 * It is called like its pod, asks for DEVICE_CLASS_PLANNED, of which kube-scheduler finds no device anywhere,
 * and belongs to the job. It has Kubernetes' own finalizer from the start: so it outlives its deletion as
 * long as a pod uses it. Kubernetes takes the allocation away when its pod has ended, and the finalizer with
 * it; what is left is made anew for a pod that is made again. Pure but for the heap. */
#pragma once

#include <jansson.h>

#include "job/controller/job_pods.h"

#define PLANNED_CLAIM_FINALIZER "resource.kubernetes.io/delete-protection"

/* As its object is seen. */
struct planned_claim {
        bool there, deleting, allocated, finalized;
        char uid[64], version[64];
        char job[JOB_NAME_BYTES], owner[64]; /* the TrainingJob that it belongs to, and its uid; "" = none */
        char node[OBJECT_NAME_DNS_BYTES];    /* of its allocation */
        uint32_t chips;                      /* that it asks for; 0 = not as ours do */
};

/* planned_claim_decode() - Return: is it one of a TrainingJob's? Else *ret is of one that is not there. */
bool planned_claim_decode(const json_t *object, struct planned_claim *ret);

enum planned_claim_step {
        PLANNED_CLAIM_READY, /* nothing is to be done: its pod may be made, or has ended */
        PLANNED_CLAIM_WAIT,  /* it is on its way out */
        PLANNED_CLAIM_CREATE,
        PLANNED_CLAIM_DELETE, /* it is of no use: another is made when it is gone */
        PLANNED_CLAIM_ALLOCATE,
        PLANNED_CLAIM_TAKEN /* somebody else's has its name */
};

/* planned_claim_step() - what is next for the claim of a group that has a place.
 * @uid: of the job; @pod_ended: its pod will use no chip any more */
enum planned_claim_step planned_claim_step(const struct planned_claim *claim, const struct job_group *group,
                                           const char *uid, bool pod_ended);

/* planned_claim_object(), planned_claim_allocation() - what is made, and the patch of the one that was seen,
 * which holds for that version alone: @devices of the group's node; @now_usec: CLOCK_REALTIME. From
 * Kubernetes 1.36 on kube-scheduler writes a time into an allocation that has none, as it reserves the claim,
 * which the API server refuses: an allocation stays as it is. A new reference; NULL = no memory. */
json_t *planned_claim_object(const struct job_group *group, const struct job_pods_owner *owner);
json_t *planned_claim_allocation(const struct planned_claim *claim, const char *node,
                                 const char *const *devices, size_t count, uint64_t now_usec);

/* planned_claim_yields() - two claims have one device, as may be when a leader ended in the middle of a write
 * or a node changed its `offer`: is it ours that goes? Of two whose pods have not started exactly one does.
 * @started, @rival_started: has the pod? Then the driver has given it the chip, and refuses the other.
 * @rival_key: NULL = it is no planned one, which nobody plans anew */
bool planned_claim_yields(const char *key, bool started, const char *rival_key, bool rival_started);
