/* Switches: the switches that nodes say they are under (label remuda.dev/switch-domain), as a gang whose
 * members are sought under one (scheduler-extender/decide/gang.h) asks for them. Pure. */
#pragma once

#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

/* switches_of() - the number of a node's switch, at most symbols.top of the ledger; 0 = it says none. */
uint32_t switches_of(const struct rules_context *ctx, const struct ledger_node *node);

/* switches_bound() - the one that members are under which are bound, as ledger_node.switch_domain; 0 = none
 * is, or they say none. O(pods of the job). switches_said() - does any node say one? O(nodes). */
uint32_t switches_bound(const struct ledger_job *job);
bool switches_said(const struct ledger *ledger);
