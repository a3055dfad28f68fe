/* Ledger, trust: how much of what an agent told of its node is believed.
 *
 * An inventory is of a boot of a machine. It says nothing of the node when the kubelet names another boot ID,
 * when a Node object of another uid has the name and the agent has not spoken since, or when the agent, which
 * renews a Lease of its own, has been silent for longer than that Lease lasts (counted as in
 * scheduler-extender/ledger/liveness.h), or when the Node object was never readable, so that nobody knows
 * whom it admits. Then no chip there is usable, until it is told anew; pods that hold
 * chips keep them, and nothing is sick for it: to doubt is no proof.
 *
 * Of an inventory that is believed, so many chips of a resource are usable as the kubelet offers too
 * (status.allocatable, in the same ids as the groups count: shares where devices are shared). Which ones it
 * withholds is not told: they are taken from the last groups. A resource that the Node object does not name
 * is offered by nobody's device plugin, and counts as told. Pure; O(groups x resources) a node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ledger;
struct ledger_node;

enum ledger_trust_doubt {
        LEDGER_BELIEVED,
        LEDGER_OTHER_BOOT,
        LEDGER_OTHER_NODE,
        LEDGER_AGENT_SILENT,
        LEDGER_NODE_UNREADABLE,
        LEDGER_DOUBTS
};

extern const char *const ledger_trust_words[LEDGER_DOUBTS]; /* "boot" ...: labels of a metric */

/* Of one node; all zero = nothing of it is known. Hashes are of texts, 0 = not told. */
struct ledger_trust {
        uint64_t node_uid_hash, node_boot_hash, inventory_boot_hash;
        uint64_t remade_usec; /* when the Node was seen to have another uid; 0 = never */
        uint64_t agent_seen_usec,
                agent_limit_usec; /* the agent's Lease: seen to change; how long it lasts. 0 = none */
        uint8_t doubt;            /* enum ledger_trust_doubt */
        bool node_unreadable;     /* there is a Node object, and none was readable yet */
};

/* ledger_trust_set_uid() - the Node object has this uid. */
void ledger_trust_set_uid(struct ledger_trust *trust, uint64_t uid_hash, uint64_t now_usec);

/* ledger_trust_judge() - is the inventory believed now? @listening_since_usec: of the Leases, without a
 * break. Return: has the answer changed? */
bool ledger_trust_judge(struct ledger_node *node, uint64_t listening_since_usec, uint64_t now_usec);

/* ledger_trust_apply() - the groups' `usable` from their `healthy`. */
void ledger_trust_apply(struct ledger_node *node);
