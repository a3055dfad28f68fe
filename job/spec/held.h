/* Held: the words by which a TrainingJob's status says who keeps it from going on. Its controller writes them
 * (job/controller/suspend.h, job/controller/kueue/kueue.h), the next one and `remuda explain` read them. */
#pragma once

#define HELD_SUSPENDED "Suspended"  /* spec.suspend */
#define HELD_LEAVING   "Suspending" /* whoever holds it: its pods have their last moments */

/* by its queue */
#define HELD_WAITS         "WaitingForQueue"
#define HELD_INACTIVE      "WorkloadInactive"
#define HELD_EVICTED       "EvictedByQueue"
#define HELD_FINISHED      "WorkloadFinished"
#define HELD_REFUSED       "WorkloadRefused"
#define HELD_UNUSABLE      "AdmissionUnusable"
#define HELD_KUEUE_MISSING "KueueMissing"
