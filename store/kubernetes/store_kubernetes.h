/* Store in Kubernetes, inside: what its life (store_kubernetes.c) and its writes (api_writes.c) share. Nobody
 * else includes this. */
#pragma once

#include "store/kubernetes/events.h"
#include "store/kubernetes/node_owner.h"
#include "store/kubernetes/operation.h"
#include "store/kubernetes/reflector.h"
#include "store/store_internal.h"

struct store_kubernetes {
        struct store store;
        struct kube_client *client;
        char *node;                   /* field selector, or NULL */
        struct reflector *reflectors; /* of the kinds that are wanted, in their order */
        size_t reflector_count;
        struct operation_list operations; /* writes under way */
        struct events events;
        struct node_owner owner; /* of what an agent writes */
        uint64_t beat_usec;      /* when the agent's Lease was renewed last; 0 = never */
        int beat_result;         /* of the last answer */
        bool beaten;             /* it was renewed once */
};
