/* Ledger tables: the two hash tables of a ledger, and creation and removal of their entries. Internal to
 * lib/core/ledger*.c. */
#pragma once

#include "scheduler-extender/ledger/ledger.h"

struct ledger_node *node_find_or_add(struct ledger *ledger, const char *name); /* NULL when out of memory */
void node_free(struct ledger *ledger, struct ledger_node *node);   /* takes it from no table of nodes */
void node_remove(struct ledger *ledger, struct ledger_node *node); /* also frees it */

struct ledger_pod *pod_find(const struct ledger *ledger, const char *namespace_, const char *name);
int pod_insert(struct ledger *ledger, struct ledger_pod *pod);  /* 0 or -ENOMEM */
void pod_remove(struct ledger *ledger, struct ledger_pod *pod); /* does not free it */

/* ledger_sick.c: which devices of the node may not be used, and who holds them. 0 or -ENOMEM. */
int sick_from_inventory(const struct inventory *inventory, struct ledger *ledger, struct ledger_node *node);

void job_drop_training(struct ledger_job *job); /* frees it */
