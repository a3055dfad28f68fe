/* The claims of a cluster: what the store tells of slices, claims and pods, turned into the ledger's devices.
 * Of its chips a DRA driver's are counted by the first resource of its vendor's that the node has. */
#pragma once

#include "scheduler-extender/claims/claims_asked.h"
#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/ledger/cluster.h"

/* cluster_claims_take_*() - as the store tells it; NULL = it is gone. Return: 0, -EBADMSG, -ENOMEM. */
int cluster_claims_take_slice(struct cluster *cluster, const char *key, const json_t *object,
                              struct err *err);
int cluster_claims_take_claim(struct cluster *cluster, const char *key, const json_t *object,
                              struct err *err);
int cluster_claims_take_template(struct cluster *cluster, const char *key, const json_t *object,
                                 struct err *err);
int cluster_claims_take_pod(struct cluster *cluster, const char *key, const json_t *object);

/* cluster_claims_take_inventory() - whether the node's devices are for planned claims (claims_planned.h);
 * after the ledger has taken it. NULL = it is gone. 0 or -ENOMEM. */
int cluster_claims_take_inventory(struct cluster *cluster, const char *node,
                                  const struct inventory *inventory);

bool cluster_claims_has(const json_t *pod); /* does it name any? */

/* cluster_claims_update() - the devices of a node that has come, or has other resources now. */
void cluster_claims_update(struct cluster *cluster, const char *name);

/* cluster_claims_asked() - devices that the claims of a pod ask for at least, and have not got;
 * cluster_claims_asked_by() - of one that the store knows.
 * @ret_asks: of them, what they ask for by classes of ours */
uint32_t cluster_claims_asked(const struct cluster *cluster, const char *namespace_, const json_t *pod,
                              struct device_asks *ret_asks);
uint32_t cluster_claims_asked_by(const struct cluster *cluster, const char *pod_key,
                                 struct device_asks *ret_asks);

/* cluster_claims_got() - claims_asked_got() of a pod that the store knows. */
bool cluster_claims_got(const struct cluster *cluster, const char *namespace_, const char *name,
                        struct text *ret);
const struct claims *cluster_claims(const struct cluster *cluster);

/* cluster_claims_pod_of() - the pod of the claim's namespace for which it is reserved, by name and uid:
 * another one may be called so by now. NULL = the ledger does not have it. @name: or NULL */
struct ledger_pod *cluster_claims_pod_of(const struct ledger *ledger, const char *claim_key, const char *name,
                                         const char *uid);

/* cluster_claims_try() - in a copy of a cluster: the pod of that request takes the devices that it asks for
 * there. */
void cluster_claims_try(struct cluster *cluster, struct ledger_node *node,
                        const struct rules_context *context);
