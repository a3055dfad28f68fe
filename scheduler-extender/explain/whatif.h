/* What if: pods placed on a copy of the ledger with the code that places them for real. Nothing is written.
 *
 * Shared by the extender (POST /v1/whatif) and `remuda whatif`. The request is an object
 *   {"pods":[Pod, TrainingJob...], "addNodes":[Node, NodeAccelerators or
 *   {"name":"NEW","like":"NODE"}: an empty copy...], "removeNodes":["NAME"...],
 *    "withoutPods":["NAMESPACE/NAME"...]}
 * or simply a Pod, a TrainingJob or a List of them. The answer is
 *   {"placements":[{"pod","node"|null,"score","when"|null,"message","reasons":{WORD:N},"missing":[...]}],
 *    "placed","waiting"}
 * where `when` is "now", or the time from which it fits as far as the ends of pods are known, `message` says
 * of one that waits which reasons how many nodes have (scheduler-extender/explain/tally.h), and `missing` are
 * remedies (scheduler-extender/explain/explain.h). Pods are placed in the order given, each counting for the
 * next. */
#pragma once

#include "scheduler-extender/ledger/cluster.h"

/* whatif() - Return: 0 and a new reference; -EBADMSG (the request is wrong, *err says where); -ENOENT (a node
 * to be like is not there); -ENOMEM. */
int whatif(struct cluster *cluster, const json_t *body, uint64_t now_usec, json_t **ret, struct err *err);

/* whatif_job() - the answer for a TrainingJob that the cluster knows, as if it came now, without the pods and
 * the lease that it may have. Return: as whatif(). */
int whatif_job(struct cluster *cluster, const char *namespace_, const char *name, uint64_t now_usec,
               json_t **ret, struct err *err);
