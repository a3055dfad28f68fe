/* Claim: what of a ResourceClaim's allocation is this node's to prepare, or why it cannot be. Pure but for
 * the heap. */
#pragma once

#include <jansson.h>

#include "agent/inventory/dra_name.h"
#include "agent/inventory/inventory.h"
#include "base/err.h"
#include "plugin/dra/account/dra_state.h"
#include "plugin/dra/bundles.h"

struct claim_node {
        const char *name; /* of the node, and so of its pool */
        const struct inventory *inventory;
        const struct dra_name *names; /* of its devices */
        const struct bundles *bundles;
};

/* claim_read() - the devices of our driver that `object` was allocated; of a bundle all of its devices, each
 * under the bundle's name.
 * @uid: the kubelet's; another one's claim under the same name is not meant
 * Return: 0, and dra_state_claim_free() is due; -EBADMSG and the cause: another uid, not allocated, nothing
 * of ours, a device that is another node's or unknown or must not be used and whose taint the claim does not
 * tolerate, a share of one that is not shared or of an amount that cannot be read, parameters for us;
 * -ENOMEM. */
int claim_read(const json_t *object, const char *uid, const struct claim_node *node,
               struct dra_state_claim *ret, struct err *err);

/* claim_stands() - is `object` the claim of the account, allocated the same devices of this node's pool, and
 * reserved for somebody? Where it is not, nobody is to start a container with what the account says. */
bool claim_stands(const json_t *object, const struct dra_state_claim *claim, const char *node);
