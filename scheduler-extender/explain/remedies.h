/* Remedies: what would let a waiting pod start, each one tried on the ledger before it is offered. */
#pragma once

#include "scheduler-extender/ledger/pod_request.h"

/* remedies_find() - an array of {"action","detail","message"}, smallest change first. */
json_t *remedies_find(struct cluster *cluster, struct pod_request *pod_request);
