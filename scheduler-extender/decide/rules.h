/* Rules: does this node take this pod, and if not, the one reason why.
 *
 * Order: NodeUnknown and InventoryStale first; then, in the order of enum reason, the first unresolvable rule
 * that is broken; only if there is none, the first failed one. Pure: the clock is an argument. What is the
 * same for all nodes of a request (does the gang fit, which configuration must equal nodes have...) is worked
 * out once, by rules_prepare(); judging a node is then O(groups). */
#pragma once

#include "scheduler-extender/claims/device_asks.h"
#include "scheduler-extender/decide/overflow.h"
#include "scheduler-extender/decide/reason.h"
#include "scheduler-extender/ledger/ledger_pods.h"

struct weighting; /* scheduler-extender/decide/weighting.h */

/* What the programs take where nobody says otherwise. */
#define RULES_LEASE_SECONDS       60
#define RULES_LEASE_SHARE_PERCENT 50
#define RULES_HOLD_SECONDS        600

struct rules {
        uint64_t stale_after_usec; /* the grace of scheduler-extender/ledger/liveness.h; 0 = never */
        bool lend_reserve;
        enum ledger_pods_takes takes; /* whose chips emergencies may take back */
        enum overflow overflow;
        uint32_t overflow_percent; /* 0..100 */
        enum placement placement;  /* where a pod names none; never PLACEMENT_DEFAULT */
        uint64_t lease_usec;
        uint64_t grace_usec;          /* that pods get which are evicted */
        uint32_t lease_share_percent; /* share/namespace_share.h; 0 = no limit */
        uint64_t
                hold_usec; /* for so long chips are held for one that waits, then not for as long; 0 = ever */
};

/* A pod's request to the scheduler. Borrowed members live as long as the request is used. */
struct rules_context {
        const struct ledger *ledger;
        const struct rules *rules;
        const struct request *request;  /* chips only */
        const struct ledger_job *job;   /* NULL = of no job, or a job that nobody else speaks of yet */
        const struct ledger_pod *self;  /* NULL = the store does not know the pod yet */
        const char *namespace_;         /* of the pod; NULL = nobody's: its word is taken */
        uint64_t created_usec;          /* of the pod; 0 = not known (as young as can be) */
        uint64_t now_usec;              /* clock_steady_usec(): leases, holds and pauses end by it */
        uint32_t devices;               /* that its claims ask for at least and have not got yet */
        const struct device_asks *asks; /* of them, those by classes that say whose chips; NULL = none */
        bool planning;                  /* a gang is being planned: its own slots count as taken */
        bool unfiltered; /* no scheduler has chosen the nodes: the pod's selector, affinity, tolerations,
                            requests and neighbours are judged, too */
        bool neighbours_judged; /* ... but for neighbours, which the asker has judged */

        uint32_t within; /* ... of a gang that has to be together: the domain (neighbour_view.h); 0 = any */
        uint32_t under;  /* ... of a gang while it is sought under one switch: ledger_node.switch_domain */

        /* worked out by rules_prepare() and gang_prepare() */
        bool gang_blocked;                  /* its gang does not fit */
        bool gang_paused;                   /* its namespace may lease nothing for it now (gang_share.h) */
        const struct ledger_node *equal_to; /* its job's nodes must be like this one; NULL = no such demand */
        struct overflow_room overflow;
        const struct weighting *weighting; /* NULL = no weighted shards */
};

/* What a node has for a request's pod, added up over the accepted groups of one item. */
struct rules_room {
        uint32_t any_total;               /* chips of the resource, whatever the model */
        uint32_t total, usable;           /* of accepted models */
        uint32_t free, open;              /* no pod holds them; and no gang leases them */
        uint32_t group_total, group_open; /* largest single group */
        uint32_t held;
};

void rules_prepare(struct rules_context *ctx);
void rules_prepare_in(struct rules_context *ctx,
                      const struct overflow_room *room); /* that is known: O(pods) */

/* rules_judge() - REASON_NONE, or the one reason why not. `node` NULL = the name is unknown. */
enum reason rules_judge(const struct rules_context *ctx, const struct ledger_node *node);

/* rules_incomplete() - does the pod lack fellows for the node, whatever room there is? */
bool rules_incomplete(const struct rules_context *ctx, const struct ledger_node *node);

/* rules_devices() - of rules_judge() what is about the devices that the pod's claims ask for. */
enum reason rules_devices(const struct rules_context *ctx, const struct ledger_node *node);

/* rules_on() - the context as it is on one node: what the pod's claims ask for is then a part of its request.
 * @room: what it borrows from. Return: it, or `ctx` itself where no such claims are, or nobody knows the
 * chips of the node. */
struct rules_on {
        struct rules_context context;
        struct request request;
};
const struct rules_context *rules_on(const struct rules_context *ctx, const struct ledger_node *node,
                                     struct rules_on *room);

/* rules_judge_known() - of rules_judge() for a pod that asks for chips everything but the node's age and
 * devices, for a node whose name is known. */
enum reason rules_judge_known(const struct rules_context *ctx, const struct ledger_node *node);

/* rules_unfiltered() - the verdict on a node that is known, but for whether the pod's selector, affinity,
 * tolerations, requests and neighbours let it go there where no scheduler has judged that (`unfiltered`):
 * with it. */
enum reason rules_unfiltered(const struct rules_context *ctx, const struct ledger_node *node,
                             enum reason reason);

/* rules_room() - the room for item `i` of the request; what the pod itself holds there, and what its own gang
 * leases, counts as open. */
void rules_room(const struct rules_context *ctx, const struct ledger_node *node, size_t i,
                struct rules_room *room);

/* rules_left() - chips of a resource that may be taken there before the hold of an older pod is touched, what
 * the request's own job leases included; UINT64_MAX = none is held. */
uint64_t rules_left(const struct rules_context *ctx, const struct ledger_node *node, uint32_t resource);

/* rules_holder() - the older pod for whom chips that the request needs are held there; NULL = it may have
 * them. */
const struct ledger_pod *rules_holder(const struct rules_context *ctx, const struct ledger_node *node);

/* RULES_SCRATCH() - room for the groups of one node, not cleared: that would cost more than a verdict. */
#define RULES_SCRATCH(name) struct ledger_group name[GROUPS_MAX] __attribute__((uninitialized))

/* rules_groups() - the node's groups with their accounts as the request's pod sees them: node->groups
 * itself, or `scratch` (GROUPS_MAX entries) filled in. */
struct ledger_group *rules_groups(const struct rules_context *ctx, const struct ledger_node *node,
                                  struct ledger_group *scratch);

/* rules_network_too_slow() - is its fastest network slower than asked for? One that says nothing does 0. */
bool rules_network_too_slow(const struct request *request, const struct ledger_node *node);

/* rules_difference() - the first field in which two nodes' configurations differ, a word for a
 * person; NULL = they are equal. */
const char *rules_difference(const struct ledger_node *a, const struct ledger_node *b);
