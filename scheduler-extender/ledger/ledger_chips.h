/* Ledger, its resources: which of the extended resources that pods ask for and nodes offer are chips. */
#pragma once

#include "scheduler-extender/ledger/ledger.h"

/* ledger_chips_note() - what is known of a resource: it counts as chips; or a node with an inventory
 * offers it and has it not among its chips. It is known as long as its name is used. ledger_chips_mark() -
 * the former, by name and for good; ledger_chips_mark_usual() - of all that vendors' plugins are known to
 * offer. */
enum { LEDGER_CHIPS = 1, LEDGER_CHIPS_BESIDE = 2 };
void ledger_chips_note(struct ledger *ledger, uint32_t resource, uint8_t what);
void ledger_chips_mark(struct ledger *ledger, const char *resource);
void ledger_chips_mark_usual(struct ledger *ledger);
bool ledger_chips_has(const struct ledger *ledger, uint32_t resource);

/* ledger_chips_rank() - where not all resources can be kept, those of the higher rank are. */
enum { LEDGER_CHIPS_NONE, LEDGER_CHIPS_PERHAPS, LEDGER_CHIPS_SURE };
unsigned ledger_chips_rank(const struct ledger *ledger, uint32_t resource);

/* ledger_chips_only() - leave only chips among the request's items, what is none beside them. If it has none
 * of ours, what is no node's beside its chips is taken as chips (of a vendor we have not heard of). NICs, or
 * the memory of shared devices, are kube-scheduler's to judge. */
void ledger_chips_only(const struct ledger *ledger, struct request *request);

/* ledger_chips_asked() - how many chips does the request ask for, without what is beside them? */
uint32_t ledger_chips_asked(const struct ledger *ledger, const struct request *request);
