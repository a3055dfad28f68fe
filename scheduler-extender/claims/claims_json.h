/* Claims JSON: ResourceSlice, ResourceClaim and the claims of a Pod (resource.k8s.io/v1) -> facts for
 * claims.h. Facts borrow their strings from the JSON object. In memory only. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "scheduler-extender/claims/claims.h"

/* What a pod asks for, one of it, so that kube-scheduler asks us about it although it has no chips but by
 * claims: of `managedResources`, and on no node. */
#define POD_RESOURCE_CLAIM "remuda.dev/claim"

/* claims_json_slice(), claims_json_claim() - @ret is cleared first. Of the claim's requests one that cannot
 * be read asks for nothing. Return: 0; -EBADMSG: it is wrong, "spec.devices[3].name: ...". */
int claims_json_slice(const json_t *object, struct claims_slice_facts *ret, struct err *err);
int claims_json_claim(const json_t *object, struct claims_claim_facts *ret, struct err *err);

/* claims_json_template() - likewise of what its claims ask for. */
int claims_json_template(const json_t *object, struct claims_claim_facts *ret, struct err *err);

/* claims_json_pod() - what cannot be read is not there. */
void claims_json_pod(const json_t *pod, struct claims_pod_facts *ret);
