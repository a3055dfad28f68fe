/* Claims, asked: what the claims of a pod still ask for (claims.h). Of a claim that is still to be made its
 * template tells, once it is read. */
#pragma once

#include "base/text.h"
#include "scheduler-extender/claims/claims.h"

/* claims_asked() - devices that the claims of a pod still ask for, at least: without those that are allocated
 * or not there yet. claims_asked_by() - of the pod of that key. */
uint32_t claims_asked(const struct claims *claims, const char *namespace_,
                      const struct claims_pod_facts *facts);
uint32_t claims_asked_by(const struct claims *claims, const char *pod_key);

/* claims_asked_classes(), claims_asked_classes_by() - of these devices those that are asked for by classes of
 * ours.
 * @ret: CLAIMS_ASKS_MAX of them; borrowed until a claim changes. Return: how many */
size_t claims_asked_classes(const struct claims *claims, const char *namespace_,
                            const struct claims_pod_facts *facts, struct claims_ask *ret);
size_t claims_asked_classes_by(const struct claims *claims, const char *pod_key, struct claims_ask *ret);

/* claims_asked_got() - the names of the devices that the pod's claims were allocated, "gpu-0,gpu-1".
 * @ret: they are added to it. Return: has the pod claims, and is each of them allocated? */
bool claims_asked_got(const struct claims *claims, const char *pod_key, struct text *ret);

/* claims_asked_own(), claims_asked_own_by() - are all claims of the pod its own: made, or to be made, of
 * templates? One that several pods may name is nobody's. */
bool claims_asked_own(const struct claims_pod_facts *facts);
bool claims_asked_own_by(const struct claims *claims, const char *pod_key);
