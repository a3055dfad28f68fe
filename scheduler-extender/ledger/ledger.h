/* Ledger: which pod holds how many chips of which group on which node. The one truth that decisions rest on.
 *
 * Fed by lib/cluster from the store (inventories, Node objects, pods) and by the extender's own binds; read
 * by rules, score, gang, backfill and victims. Level-triggered: a node's accounts are recomputed from its
 * pods and leases whenever one of them changes, so nothing can drift. Pure but for the heap; no clock; one
 * owner. Costs: a lookup O(1), a change O(pods on the node). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"
#include "job/spec/job.h"
#include "scheduler-extender/decide/node_kinds.h"
#include "scheduler-extender/decide/node_match.h"
#include "scheduler-extender/decide/request.h"
#include "scheduler-extender/ledger/roster.h"
#include "scheduler-extender/ledger/symbols.h"

#define POD_PARTS_MAX      8 /* groups that one pod's chips may be recorded in */
#define LEDGER_JOB_BUCKETS 1024

struct ledger_group {
        uint32_t name, vendor, runtime, model, resource; /* symbols; model 0 = not known */
        uint32_t total;
        uint32_t usable; /* the inventory's `healthy` */
        uint32_t held;   /* by pods */
        uint32_t leased; /* by gangs that are not bound yet */
        double tflops;   /* per chip, bf16; 0 = not known */
        double tflops_fp16, tflops_fp32, measured_gflops;
        uint64_t memory_bytes; /* per chip; 0 = not known */
};

/* A device that may not be used now: what `remuda explain` can ask a person to mend. */
struct ledger_sick {
        char id[DEVICE_ID_BYTES];
        uint32_t group; /* symbol */
        uint8_t health; /* enum device_health */
};

/* What equal nodes have in common besides their groups. 0 or "" = unknown, which equals only unknown. */
struct ledger_hardware {
        uint32_t cores, max_mhz;
        uint64_t memory_bytes;
        uint32_t memory_type, network_kind; /* symbols */
        uint64_t network_mbps;              /* of the fastest interface */
};

struct ledger_program {
        uint32_t runtime; /* symbol */
        char sha256[65];
};

/* Its name's place, its age and its kind are in the ledger's roster, where requests find them. */
struct ledger_node {
        bool has_inventory, has_object;
        bool reserved;      /* pool "reserved" */
        uint8_t node_class; /* enum node_class */
        uint32_t group_count;
        struct ledger_group *groups;
        struct lease_slot *slots;
        struct backfill *backfills;
        struct ledger_pod *pods; /* bound here and not ended, in canonical order (created, then key) */

        uint32_t pool;                    /* symbol */
        struct request_item *allocatable; /* of the Node object, for when there is no inventory */
        uint32_t allocatable_count;
        uint32_t switch_domain; /* symbol of the operator's label; 0 = none */
        struct ledger_hardware hardware;
        struct node_traits traits; /* labels and taints of the Node object */
        struct ledger_program *programs;
        struct ledger_sick *sick;
        struct device_loss *losses; /* of the inventory: who holds devices that may not be used */
        uint32_t program_count, sick_count, loss_count;

        uint32_t index; /* in ledger.nodes and the roster; changes when nodes go */
        uint32_t name_bytes;
        char name[]; /* NUL-terminated */
};

struct pod_part {
        uint32_t group; /* symbol */
        uint32_t chips;
};

struct ledger_pod {
        struct ledger_node *node; /* NULL = pending */
        struct ledger_pod *next_on_node;
        struct ledger_pod *next_pending, *previous_pending; /* while node == NULL */
        struct ledger_job *job;                             /* NULL = of no job */
        struct ledger_pod *next_in_job;
        struct request request;
        struct pod_part parts[POD_PARTS_MAX]; /* recorded by our own bind; part_count 0 = bound by others */
        uint8_t part_count;
        bool assumed;          /* bound by us, not confirmed by the store yet */
        bool writing;          /* ... and the write is under way */
        bool deleting;         /* has a deletion timestamp: counts until it is gone */
        bool ended;            /* Succeeded or Failed: holds nothing */
        bool waited;           /* could not start once: keeps a reservation until it is bound
                                  (scheduler-extender/decide/backfill.h) */
        uint64_t evicted_usec; /* when borrowers were last evicted for it; 0 = never */
        char *evicted_node;    /* ... and where; owned */
        uint64_t created_usec, started_usec, ended_usec; /* CLOCK_REALTIME; 0 = not known */
        double weight;                                   /* recorded share; 0 = none */
        uint32_t batch_share;
        struct request_member *kinds; /* the members its gang lists; owned */
        uint8_t kind_count;
        const char *uid, *key, *name; /* key "namespace/name"; name points into key */
        char text[];
};

struct lease_slot {
        struct ledger_job *job;
        struct ledger_node *node;
        struct lease_slot *next_on_node, *next_in_job;
        struct request request; /* of the member it is for */
};

struct ledger_job {
        struct ledger_pod *pods;
        struct lease_slot *slots;
        uint64_t lease_ends_usec; /* with slots != NULL */
        struct job *training;     /* the TrainingJob of that name, owned; NULL = there is none */
        bool training_borrowed;   /* of the ledger that this one is a copy of */
        uint32_t references;
        struct ledger_job *next;
        char key[]; /* "namespace/name" */
};

/* An older pod waits for these chips: see scheduler-extender/decide/backfill.h. */
struct backfill {
        const struct ledger_pod *pod;
        struct backfill *next;
        uint64_t start_usec; /* when it could start there; UINT64_MAX = not known */
        uint32_t spare;      /* chips that may be free at start_usec beyond what the older pod asks for */
};

struct ledger {
        struct symbols symbols;
        struct ledger_node **nodes;
        uint32_t node_count, node_capacity;
        struct roster roster;        /* names, ages and kinds of the nodes, by index */
        struct node_kinds kinds;     /* the different ones among them; brought up to date when asked for */
        bool kinds_stale;            /* some node's kind is to be found out */
        struct node_matches matches; /* what pending pods demand of a node's labels and taints */
        struct ledger_pod **pod_slots;
        uint32_t pod_count, pod_slot_count;
        struct ledger_pod *pending; /* the pods on no node, ended ones included, in no order */
        uint32_t pending_count;
        uint32_t backfill_total; /* reservations in force */
        struct ledger_job *jobs[LEDGER_JOB_BUCKETS];
        uint8_t *chip_resource; /* by symbol: 1 = chips (the rest of the extended resources is not ours) */
        uint32_t chip_resource_count;
        struct ledger_speed *speeds; /* of all SpeedTables, the one seen last at the end; owned */
        size_t speed_count;
        uint64_t departure_count; /* pods that gave chips back since the start */
        uint64_t generation;      /* grows with every change of a node, pod or lease */
        uint32_t slot_total;      /* lease slots in force */
};

/* What a Node object says of itself. Borrowed. */
struct node_facts {
        const char *name;
        struct request_item allocatable[GROUPS_MAX]; /* extended resources */
        size_t allocatable_count;
        const char *switch_domain; /* label remuda.dev/switch-domain; NULL = none */
        const char *traits;        /* lines of scheduler-extender/decide/node_match.h; NULL = none */
};

/* What a pod object says. Borrowed. */
struct pod_facts {
        const char *namespace_, *name, *uid;
        const char *node;       /* NULL or "" = not bound */
        const char *job;        /* label remuda.dev/job; NULL = none */
        const char *node_match; /* lines of scheduler-extender/decide/node_match.h; NULL = not known, or of no
                                   interest any more */
        struct request request;
        struct pod_part parts[POD_PARTS_MAX];
        uint8_t part_count;
        bool ended, deleting;
        uint64_t created_usec, started_usec, ended_usec;
        double weight;
        uint32_t batch_share;
        struct request_member kinds[REQUEST_KINDS_MAX];
        uint8_t kind_count;
};

struct ledger *ledger_new(void); /* NULL when out of memory */
void ledger_free(struct ledger *ledger);

/* ledger_copy() - the same cluster again, for "what if"; must not outlive the original. NULL when out of
 * memory. */
struct ledger *ledger_copy(const struct ledger *ledger);

struct ledger_node *ledger_find_node(const struct ledger *ledger, const char *name,
                                     size_t bytes); /* or NULL */
struct ledger_pod *ledger_find_pod(const struct ledger *ledger, const char *namespace_, const char *name);
struct ledger_job *ledger_find_job(const struct ledger *ledger, const char *namespace_, const char *name);

/* ledger_pod_lost() - has this pod a chip that may not be used any more? Its node's agent says who holds
 * which device; without that it is certain where the pod has more chips of a group than are usable there.
 * @device: the device's id, "" where it is not known. May be NULL. */
bool ledger_pod_lost(const struct ledger_pod *pod, char device[DEVICE_ID_BYTES]);

/* ledger_set_seen() - when the node was last heard of (CLOCK_REALTIME; 0 = its age is not judged;
 * LEDGER_NODE_REMOVED = it is no node of the cluster any more). */
#define LEDGER_NODE_REMOVED UINT64_MAX
void ledger_set_seen(struct ledger *ledger, const struct ledger_node *node, uint64_t seen_usec);
uint64_t ledger_seen_usec(const struct ledger *ledger, const struct ledger_node *node);

/* ledger_touch() - something that rules read of the node has changed: its kind is found out again. The
 * functions below do it themselves; who adds a reservation calls it. */
void ledger_touch(struct ledger *ledger, const struct ledger_node *node);

/* Inventories and Node objects come and go independently; a node with neither is known to nobody, but keeps
 * its pods. 0 or -ENOMEM. */
int ledger_set_inventory(struct ledger *ledger, const struct inventory *inventory);
void ledger_drop_inventory(struct ledger *ledger, const char *node);
int ledger_set_node(struct ledger *ledger, const struct node_facts *facts);
void ledger_drop_node(struct ledger *ledger, const char *node);

/* ledger_set_pod() - the pod is new or changed. A bind of ours that the object does not show yet stands. A
 * pod of the same name with another uid replaces it. 0 or -ENOMEM. */
int ledger_set_pod(struct ledger *ledger, const struct pod_facts *facts);
void ledger_drop_pod(struct ledger *ledger, const char *namespace_, const char *name);

/* ledger_assume() - the pod is being bound to `node` by us, in these parts; one slot of its gang's lease is
 * given up. ledger_forget() takes it back (the slot is lost). 0 or -ENOMEM. */
int ledger_assume(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node,
                  const struct pod_part *parts, size_t part_count);
void ledger_forget(struct ledger *ledger, struct ledger_pod *pod);

/* ledger_detach(), ledger_attach() - take a bound pod off its node and put it back: for "what if it went". */
void ledger_detach(struct ledger *ledger, struct ledger_pod *pod);
void ledger_attach(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node);

/* Jobs live while a pod, a lease or a TrainingJob refers to them. ledger_hold_job() makes and refers. */
struct ledger_job *ledger_hold_job(struct ledger *ledger, const char *namespace_, const char *name);
void ledger_release_job(struct ledger *ledger, struct ledger_job *job);

/* ledger_set_training() - the TrainingJob of this name; `training` is taken over (malloc'd), NULL = it is
 * gone. 0 or -ENOMEM (then it was freed). */
int ledger_set_training(struct ledger *ledger, const char *namespace_, const char *name,
                        struct job *training);

/* Leases: slots are added one by one, and go all together. */
int ledger_add_slot(struct ledger *ledger, struct ledger_job *job, struct ledger_node *node,
                    const struct request *request);
void ledger_drop_lease(struct ledger *ledger, struct ledger_job *job);
void ledger_drop_slot(struct ledger *ledger, struct lease_slot *slot);

/* ledger_mark_chips() - `resource` counts as chips. ledger_is_chip() says whether it does. */
void ledger_mark_chips(struct ledger *ledger, const char *resource);
bool ledger_is_chip(const struct ledger *ledger, uint32_t resource);

/* ledger_chips_only() - leave only chips in the request; if it has none of ours, all extended resources are
 * taken as chips (a vendor we have not heard of). */
void ledger_chips_only(const struct ledger *ledger, struct request *request);

/* ledger_account() - recompute held and leased of a node into `groups` (a copy of the node's groups), leaving
 * out one pod and the slots of one job (NULL = leave out nothing). */
void ledger_account(const struct ledger_node *node, const struct ledger_pod *without_pod,
                    const struct ledger_job *without_job, struct ledger_group *groups);

/* pod_place() - choose groups for `request` among `groups`: the tightest one that has room, else spread over
 * the largest; chips beyond all room are put where they are least wrong. Adds to `held` or, for a lease,
 * `leased`. Return: the number of parts written (at most POD_PARTS_MAX are told). */
size_t pod_place(struct ledger_group *groups, size_t group_count, const struct request *request, bool lease,
                 struct pod_part *parts);

static inline bool ledger_node_known(const struct ledger_node *node)
{
        return node->has_inventory || node->has_object;
}

/* group_free() - usable chips that no pod holds; group_open() - and no gang leases. Never below 0. */
static inline uint32_t group_free(const struct ledger_group *group)
{
        return group->usable > group->held ? group->usable - group->held : 0;
}

static inline uint32_t group_open(const struct ledger_group *group)
{
        uint32_t taken = group->held + group->leased;

        return group->usable > taken ? group->usable - taken : 0;
}
