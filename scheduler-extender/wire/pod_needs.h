/* Pod needs: what Pod and Node objects say of CPU, memory, ephemeral storage and the number of pods ->
 * scheduler-extender/decide/ node_room.h.
 *
 * Counted as kube-scheduler counts a pod's requests: containers and sidecars together, or the hungriest init
 * container with the sidecars begun before it, whichever is more; the pod's own requests in their place where
 * it has any; its overhead beside that. A limit counts where there is no request. kube-scheduler has the last
 * word, so nothing is refused here: what cannot be read is not asked for, or not said. In memory only. */
#pragma once

#include "base/json/json_field.h"
#include "scheduler-extender/ledger/ledger.h"

/* pod_needs_decode() - @spec: the pod's. */
struct request_needs pod_needs_decode(const struct json_field *spec);

/* pod_needs_offered() - what a node's `allocatable` says; 0 where it says nothing. */
struct ledger_room pod_needs_offered(const struct json_field *allocatable);
