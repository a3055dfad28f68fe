/* What-if, its cluster: as it could be, by "withoutPods", "removeNodes" and "addNodes" of the request
 * (scheduler-extender/explain/whatif.h). */
#pragma once

#include "scheduler-extender/ledger/cluster.h"

/* whatif_change() - @cluster is a fork; @max: of each list. Return: 0; -EBADMSG, -ENOENT, -ENOMEM with *err.
 */
int whatif_change(struct cluster *cluster, const json_t *body, size_t max, struct err *err);
