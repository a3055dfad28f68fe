/* Claims, asked: what the claims of a pod still ask for (claims.h). Of a claim that is still to be made its
 * template tells, once it is read. */
#pragma once

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
