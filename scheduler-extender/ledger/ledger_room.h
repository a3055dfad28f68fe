/* Ledger, a node's room beside its chips: what its kubelet offers of CPU, memory, ephemeral storage and
 * places for pods, and what the pods and leases there ask of it. Kept with the node's accounts; read by
 * scheduler-extender/decide/node_room.h. Pure data. */
#pragma once

#include "scheduler-extender/decide/request.h"

struct ledger_room {
        struct request_needs offered; /* 0 = the Node object does not say */
        struct request_needs asked;
        int64_t pods_offered; /* likewise */
        uint32_t pods;
};

/* ledger_room_add() - `sign` 1: a pod that asks for this is there, too; -1: it is not any more. */
static inline void ledger_room_add(struct ledger_room *room, const struct request *request, int sign)
{
        const int64_t *need[] = { &request->needs.cpu_milli, &request->needs.memory_bytes,
                                  &request->needs.storage_bytes };
        int64_t *asked[] = { &room->asked.cpu_milli, &room->asked.memory_bytes, &room->asked.storage_bytes };

        for (size_t i = 0; i < 3; i++) /* of 65,536 pods that ask for all there can be the sum is anything */
                (void) __builtin_add_overflow(*asked[i], sign * *need[i], asked[i]);
        room->pods += (uint32_t) sign;
}
