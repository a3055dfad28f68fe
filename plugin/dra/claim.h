/* Claim: what of a ResourceClaim's allocation is this node's to prepare, or why it cannot be. Pure but for
 * the heap. */
#pragma once

#include <jansson.h>

#include "agent/inventory/inventory.h"
#include "base/err.h"
#include "plugin/dra/dra_name.h"
#include "plugin/dra/dra_state.h"

struct claim_node {
        const char *name; /* of the node, and so of its pool */
        const struct inventory *inventory;
        const struct dra_name *names; /* of its devices */
};

/* claim_read() - the devices of our driver that `object` was allocated.
 * @uid: the kubelet's; another one's claim under the same name is not meant
 * Return: 0, and dra_state_claim_free() is due; -EBADMSG and the cause: another uid, not allocated, nothing
 * of ours, a device that is another node's or unknown or must not be used and whose taint the claim does not
 * tolerate, parameters for us; -ENOMEM. */
int claim_read(const json_t *object, const char *uid, const struct claim_node *node,
               struct dra_state_claim *ret, struct err *err);
