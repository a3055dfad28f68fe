/* Lease: which of several replicas may commit, by a Kubernetes Lease (leader election as client-go does it).
 *
 * A replica leads while it has renewed the Lease within `renew_sec`, which is shorter than the `duration_sec`
 * that the others wait before they take over: two never lead at once, as far as clocks run at the same speed.
 * Another one's claim is judged by when WE saw it change, never by the time written in it. A dead leader is
 * replaced after duration_sec plus one retry at most, one that stepped down at once. Asynchronous, on the
 * program's loop.
 *
 * Who leads may be tied to another Lease (`beside`): a replica whose clients are in its own pod is of use
 * only where they lead. It then gives its own claim back while the other Lease is held on another host. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/err.h"

struct lease;

#define LEASE_ADDRESS    "remuda.dev/address" /* an annotation of the Lease: "127.0.0.1:9520" */
#define LEASE_COLLECTION "/apis/coordination.k8s.io/v1/namespaces/%s/leases" /* of a namespace */

struct lease_options {
        const char *kubeconfig; /* as kubeconfig_load() */
        const char *namespace_; /* NULL = the pod's own, or the context's */
        const char *name;
        const char *identity;  /* unique per process: the pod's name */
        const char *beside;    /* a Lease of the same namespace, as client-go writes it; NULL = none */
        const char *host;      /* ours: the holder of `beside` is "HOST_..." where it is beside us */
        const char *address;   /* where the leader is asked: LEASE_ADDRESS says it; NULL = nowhere */
        unsigned duration_sec; /* 0 = 10 */
        unsigned renew_sec;    /* 0 = 6; less than duration_sec */
        unsigned retry_sec;    /* 0 = 1; less than renew_sec */
        /* is nothing under way that only the leader may do? A claim is not given back before. NULL = yes */
        bool (*idle)(void *userdata);
        void (*changed)(void *userdata, bool leading,
                        const char *holder); /* we lead or no longer do; from the loop */
        void (*trouble)(void *userdata, const char *sentence);
        void *userdata;
};

int lease_open(sd_event *loop, const struct lease_options *options, struct lease **ret, struct err *err);
void lease_close(
        struct lease *lease); /* no callbacks from here on; the claim runs out by itself. Accepts NULL */

/* lease_leading() - may we commit now? Asked before every commit: true only within renew_sec of the last
 * renewal, also when the loop was late. */
bool lease_leading(const struct lease *lease);

const char *lease_holder(const struct lease *lease); /* as last seen; "" = nobody, or not known. Borrowed */

/* lease_give_back() - at the program's end, so that another one need not wait: for a second at most, on a
 * loop of its own. The lease takes no further part. Accepts NULL. */
void lease_give_back(struct lease *lease);
