/* Claims, lost: a pod that was bound with a device which somebody else took before its containers could
 * begin.
 *
 * Where a node offers its chips by device plugin and by DRA at once, kube-scheduler may allocate a device to
 * a claim in the moment in which the kubelet gives the chip to another pod. The driver refuses to prepare
 * that claim, the node's slice leaves the device out, and the kubelet tries again for ever. Nobody's word is
 * taken for it but the scheduler's (the allocation), the agent's (the slice of its own node) and the
 * kubelet's (the pod has no sandbox): an event may be anybody's. A device that is sick may be left out, too;
 * a pod that has not begun loses nothing by being made anew elsewhere (one that nobody makes anew is gone,
 * and had never begun). Only claims that were made of a template for the pod count, since they go with it:
 * another would stay allocated, and its next pod would be there again.
 *
 * Likewise a pod whose claim for extended resources is gone: kube-scheduler makes such a claim, writes its
 * name into the pod's status, and takes the claim away where binding fails; a second attempt may bind the pod
 * by a device plugin, and leaves the name there. The kubelet then asks for that claim for ever (seen
 * with 1.36.3, as nodes went from DRA to the device plugin). Pure. */
#pragma once

#include "scheduler-extender/claims/claims.h"

#define CLAIMS_LOST_USEC UINT64_C(10000000) /* so long it has to be so, at every look */
#define CLAIMS_LOST_LOOK UINT64_C(3000000)  /* ... and no two looks are further apart */

/* claims_lost() - a device of our driver that a claim of the pod was allocated on the node, and that the
 * node's whole slices do not have; NULL = there is none, the pod has begun, or nothing is known of the node's
 * devices. Borrowed until a claim changes. */
const char *claims_lost(const struct claims *claims, const char *pod_key, const char *node);

/* claims_lost_gone() - the claim for extended resources that the status of a pod names and that is not there;
 * asked while all claims of its namespace are read, no word otherwise. NULL = there is none, or the pod has
 * begun.
 * claims_lost_gone_each() - each pod of which that is so. */
const char *claims_lost_gone(const struct claims *claims, const char *pod_key);
void claims_lost_gone_each(const struct claims *claims, void (*visit)(void *userdata, const char *pod_key),
                           void *userdata);

/* What was seen of a pod at the looks before; all 0 = nothing. CLOCK_MONOTONIC, or any other that goes on. */
struct claims_lost_watch {
        uint64_t since_usec, look_usec;
};

/* claims_lost_judge() - is it to go? It is asked once, and again if it is still there after as long.
 * @lost: claims_lost() has named a device now, or claims_lost_gone() a claim */
bool claims_lost_judge(struct claims_lost_watch *watch, bool lost, uint64_t now_usec);
