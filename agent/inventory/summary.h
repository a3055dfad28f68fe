/* Summary: an inventory in a line of a table and two conditions, for people who have many nodes.
 *
 * Chips are accelerators that are in a group; CPU groups are none. Pure. */
#pragma once

#include "agent/inventory/inventory.h"

struct summary {
        unsigned chips, healthy, free; /* free: as far as the agent knows */
        char models[256];              /* "8 H100-SXM5-80GB, 2 L40S", in the order of the groups; "" = none */
};

void summary_make(const struct inventory *inventory, struct summary *ret);

#define SUMMARY_LEAVES "AgentLeaves" /* the reason of Ready while no agent serves: it has ended */

enum { SUMMARY_READY, SUMMARY_DEGRADED, SUMMARY_CONDITIONS };

struct summary_condition {
        const char *type;   /* "Ready": a chip can be used, or there is none. "Degraded": a device, also a CPU
                               group, is not well */
        const char *status; /* "True" or "False" */
        const char *reason; /* one word */
        char message[256];  /* the sentence to it: which devices, the first of them */
        uint64_t since_usec; /* CLOCK_REALTIME: since when, as the devices tell; 0 = not known */
};

/* summary_leave() - Ready is False from now on: its agent ends. */
void summary_leave(struct summary_condition conditions[SUMMARY_CONDITIONS], uint64_t now_usec);

/* summary_judge() - both conditions; one whose status is as before keeps its time.
 * @conditions: as they were the last time, zeroed before the first; become those of now */
void summary_judge(const struct inventory *inventory,
                   struct summary_condition conditions[SUMMARY_CONDITIONS]);
