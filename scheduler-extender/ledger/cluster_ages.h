/* Cluster, ages: when each node and its agent were heard of, by their Leases or by the time of a file, and
 * what follows for the ledger. Part of scheduler-extender/ledger/cluster.c; nobody else includes this. */
#pragma once

#include "scheduler-extender/ledger/cluster_internal.h"

/* cluster_ages_update() - the Node object or the inventory of this name is new, changed or gone. */
void cluster_ages_update(struct cluster *c, const char *name);

/* cluster_ages_take_lease() - of a kubelet, or of an agent (STORE_AGENT_LEASE); NULL = it is gone. */
int cluster_ages_take_lease(struct cluster *c, const char *key, const json_t *object, struct err *err);

void cluster_ages_look(struct cluster *c); /* once a second: who is silent now? */
void cluster_ages_free(struct cluster *c);
