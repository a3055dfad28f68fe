/* Ledger, trust: how much of what an agent told of its node is believed.
 *
 * An inventory is of a boot of a machine. It says nothing of the node when the kubelet names another boot ID,
 * when it is owned by a Node of another uid, when a Node object of another uid has got the name and the agent
 * has not spoken since, when the agent, which renews a Lease of its own, has been silent for longer than that
 * Lease lasts (counted as in scheduler-extender/ledger/liveness.h), when it has said that it ends, so that
 * nobody serves the device plugin and the kubelet would refuse who comes, or when the Node object was never
 * readable, so that nobody knows whom it admits. Then no chip there is usable, until it is told anew; pods
 * that hold chips keep them, and nothing is sick for it: to doubt is no proof.
 *
 * Of an inventory that is believed, so many chips of a resource are usable as the kubelet offers too
 * (status.allocatable, in the same ids as the groups count: shares where devices are shared; where another
 * device plugin shares them and labels the node RESOURCE.replicas, its ids are divided by that). Which ones
 * it withholds is not told: they are taken from the last groups. A device plugin may withhold a chip because
 * a claim has it: chips that claims hold are added to what is offered, and count as held. A resource that the
 * Node object does not name, or names with 0, as a kubelet does whose device plugin has gone, is offered by
 * nobody's device plugin; as many chips of it are usable as the slices of its DRA driver have, and where
 * there are none it counts as told. Pure; O(groups x resources) a node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ledger;
struct ledger_node;

/* What a Node object offers of a resource. */
struct ledger_trust_offer {
        uint32_t resource; /* symbol */
        uint32_t chips;    /* in the ids that pods ask for */
        uint32_t replicas; /* ids of one chip, by the label of a device plugin that is not ours; 0 = none */
};

enum ledger_trust_doubt {
        LEDGER_BELIEVED,
        LEDGER_OTHER_BOOT,
        LEDGER_OTHER_NODE,
        LEDGER_AGENT_SILENT,
        LEDGER_NODE_UNREADABLE,
        LEDGER_AGENT_LEAVES,
        LEDGER_DOUBTS
};

extern const char *const ledger_trust_words[LEDGER_DOUBTS]; /* "boot" ...: labels of a metric */

/* Of one node; all zero = nothing of it is known. Hashes are of texts, 0 = not told. */
struct ledger_trust {
        uint64_t node_uid_hash, node_boot_hash, inventory_boot_hash;
        uint64_t owner_uid_hash; /* of the Node that the inventory is owned by; 0 = by none */
        uint64_t remade_usec;    /* when the Node was seen to have another uid; 0 = never */
        uint64_t agent_seen_usec,
                agent_limit_usec; /* the agent's Lease: seen to change; how long it lasts. 0 = none */
        uint8_t doubt;            /* enum ledger_trust_doubt */
        uint32_t left_out;        /* resources of the Node object that there was no room for */
        bool leaves;              /* its agent said that it ends, and none that it is there */
        bool node_unreadable;     /* there is a Node object, and none was readable yet */
};

/* ledger_trust_set_uid() - the Node object has this uid. */
void ledger_trust_set_uid(struct ledger_trust *trust, uint64_t uid_hash, uint64_t now_usec);

/* ledger_trust_judge() - is the inventory believed now? @listening_since_usec: of the Leases, without a
 * break. Return: has the answer changed? */
bool ledger_trust_judge(struct ledger_node *node, uint64_t listening_since_usec, uint64_t now_usec);

/* ledger_trust_names() - does the Node object name the resource, be it with 0? */
bool ledger_trust_names(const struct ledger_node *node, uint32_t resource);

/* ledger_trust_by_claims() - is what the Node object names with 0 offered by claims? kube-scheduler makes
 * claims for pods that ask for it by name there (Kubernetes 1.36). @offer: of the resource; may be NULL */
struct ledger_devices_offer;
bool ledger_trust_by_claims(const struct ledger_trust_offer *allocatable,
                            const struct ledger_devices_offer *offer);

/* ledger_trust_beyond() - the sentence for an offer of more chips than the inventory tells of: they are
 * shared, and nobody says by how many, or the agent does not know them; or of so many resources that some
 * are not kept. "" = there is none. */
#define LEDGER_TRUST_SENTENCE_BYTES 400
void ledger_trust_beyond(const struct ledger *ledger, const struct ledger_node *node, char *ret_sentence);

/* ledger_trust_apply() - the groups' `usable` from their `healthy`. */
void ledger_trust_apply(struct ledger_node *node);
