/* What if: pods placed on a copy of the ledger with the code that places them for real. Nothing is written.
 *
 * Shared by the extender (POST /v1/whatif) and `remuda whatif`. The request is an object
 *   {"pods":[Pod, TrainingJob...], "addNodes":[Node or NodeAccelerators...], "removeNodes":["NAME"...],
 *    "withoutPods":["NAMESPACE/NAME"...]}
 * or simply a Pod, a TrainingJob or a List of them. The answer is
 *   {"placements":[{"pod","node"|null,"score","when"|null,"message","reasons":{WORD:N},"missing":[...]}],
 *    "placed","waiting"}
 * where `when` is "now", or the time from which it fits as far as the ends of pods are known, and `missing`
 * are remedies (scheduler-extender/explain/explain.h). Pods are placed in the order given, each counting for
 * the next. */
#pragma once

#include "scheduler-extender/ledger/cluster.h"

/* whatif() - Return: 0 and a new reference; -EBADMSG (the request is wrong, *err says where); -ENOMEM. */
int whatif(struct cluster *cluster, const json_t *body, uint64_t now_usec, json_t **ret, struct err *err);
