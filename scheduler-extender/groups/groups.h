/* Groups: gangs as Kubernetes writes them. A pod of spec.workloadRef (1.35) or spec.schedulingGroup (1.36) is
 * of a job of its own kind, "group/...", which no label can name; how many members it needs at least says an
 * object, a Workload or a PodGroup, and never the pod.
 *
 * A pod whose group is not there does not wait for us yet (as one with scheduling gates: kube-scheduler holds
 * it back itself); whoever asks is told GangIncomplete. Where the API server has no such objects, or does not
 * show them, it is a pod by itself. Everything is untrusted. In memory only. A look-up O(1), a change O(jobs
 * + the group's pods). */
#pragma once

#include <jansson.h>

#include "base/json/json_field.h"
#include "scheduler-extender/ledger/ledger_pods.h"

/* groups_decode() - the group of a pod, from its spec: facts.job, and what its object says. What a label says
 * of a job or a gang counts no more then. Return: 0; -EBADMSG: it is passed over, *err says where. */
int groups_decode(const struct json_field *spec, const struct ledger *ledger, struct ledger_pod_facts *facts,
                  struct err *err);

/* groups_take_*() - the object "namespace/name" is new or changed; NULL = gone. Return: 0, -EBADMSG, -ENOMEM.
 */
int groups_take_workload(struct ledger *ledger, const char *key, const json_t *object, struct err *err);
int groups_take_pod_group(struct ledger *ledger, const char *key, const json_t *object, struct err *err);

/* groups_serve() - are objects of the way (enum request_group) shown to us? If so, one that is not there is
 * missing. */
void groups_serve(struct ledger *ledger, unsigned way, bool served);
