/* Pod request: a pod's request with all that it rests on, before nodes are judged: its facts, its job, its
 * shares and its gang. Every verb begins with one. */
#pragma once

#include "scheduler-extender/decide/weighting.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/pod_request.h"

struct pod_request {
        struct ledger_pod_facts facts; /* borrows from the pod's JSON, or from the ledger's pod */
        struct request request;        /* chips only */
        struct rules_context context;
        struct ledger_job *job; /* referred to; released by pod_request_end() */
        char namespace_[256];
        uint32_t devices;    /* as the context has it */
        struct request held; /* the texts of it are, where the store does not know the pod; released likewise
                              */
        bool leased;         /* a lease was made for it */
        bool in_pass;        /* it is answered with one node: group_pass_choose() */
        struct weighting weighting; /* its rows are not cleared, nor is what follows */
        struct device_asks asks;    /* as the context has them */
};

/* pod_request_begin() - read the pod and work out what is the same for all nodes.
 * @keep_lease: a gang's plan stays in the ledger as a lease (filter alone)
 * Return: 0; -EBADMSG (the pod is wrong, *err says where); -ENOMEM. pod_request_end() in any case. */
int pod_request_begin(struct cluster *cluster, const json_t *pod, uint64_t now_usec, bool keep_lease,
                      struct pod_request *ret, struct err *err);

/* pod_request_begin_pod() - the same for a pod that the ledger knows. */
int pod_request_begin_pod(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec,
                          bool keep_lease, struct pod_request *ret, struct err *err);

/* pod_request_begin_trial() - ... whose gang the asker plans himself: it is neither planned nor leased. */
int pod_request_begin_trial(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec,
                            struct pod_request *ret);
void pod_request_end(struct cluster *cluster, struct pod_request *pod_request);

/* pod_request_is_gang() - would it need a lease that is not there yet? */
bool pod_request_is_gang(const struct pod_request *pod_request);
