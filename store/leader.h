/* Leader: which of several replicas may commit, and when the store was last read anew, without which a new
 * leader commits nothing.
 *
 * kubernetes: by a Lease (store/lease.h). dir: by a lock on a file in the directory, which the kernel gives
 * up with the process. A leader may be NULL: alone by order, it leads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"

struct leader;

/* What each program leads by. */
#define LEADER_EXTENDER   "remuda-extender"
#define LEADER_CONTROLLER "remuda-controller"

struct leader_options {
        const char *store, *kubeconfig;
        const char *name;       /* of the Lease, and of the lock */
        const char *namespace_; /* of the Lease; NULL = the pod's own */
        const char *identity;   /* of this replica; NULL = HOST_ADDRESS */
        const char *beside;     /* Lease of the kube-scheduler to lead beside; NULL = none */
        unsigned lease_sec;
        bool (*ready)(void *userdata);   /* is all read that decisions need? */
        void (*refresh)(void *userdata); /* read the store anew, then leader_refreshed() */
        bool (*idle)(void *userdata);    /* is no commit under way? */
        void (*log)(void *userdata, int priority, const char *event, const char *text);
        void *userdata;
};

/* leader_open() - before the store is opened; leader_campaign() - once the address is known.
 * leader_commit_usec() - a commit that began while leading ends within, as struct store_options has it. */
int leader_open(sd_event *loop, const struct leader_options *options, struct leader **ret, struct err *err);
int leader_campaign(struct leader *leader, const char *address, struct err *err);
void leader_close(struct leader *leader);

/* leader_resign() - before the store is closed: nothing is committed from now on, and who comes next need not
 * wait, unless a commit is under way. leader_close() comes after it: answers to what was being written ask
 * who leads. */
void leader_resign(struct leader *leader);
uint64_t leader_commit_usec(unsigned lease_sec);

/* leader_refuses() - why this replica may not commit now, or NULL; borrowed until the next call.
 * leader_look() - once a second; leader_refreshed() - the store was read anew. */
const char *leader_refuses(struct leader *leader);
void leader_look(struct leader *leader);
void leader_refreshed(struct leader *leader);

/* leader_leads() - may this replica commit now? Asked before every commit; true only after it has read
 * the store anew since it began to lead. leader_watch() - `changed` is called from the loop whenever
 * that changes, and at once if it leads; at most LEADER_WATCHES_MAX. 0 or -E2BIG. */
#define LEADER_WATCHES_MAX 4
bool leader_leads(const struct leader *leader);
int leader_watch(struct leader *leader, void (*changed)(void *userdata, bool leading), void *userdata);
