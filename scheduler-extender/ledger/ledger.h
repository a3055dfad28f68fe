/* Ledger: which pod holds how many chips of which group on which node. The one truth that decisions rest on.
 *
 * Fed by ledger/cluster.h from the store (inventories, Node objects, pods) and by the extender's own binds;
 * read by rules, score, gang, backfill and victims. A node's accounts are recomputed from its pods and leases
 * whenever one of them changes. Pure but for the heap; no clock; one owner. A change costs O(pods there). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/inventory.h"
#include "planner/speeds/chip_speed.h"
#include "scheduler-extender/decide/node_kinds.h"
#include "scheduler-extender/decide/node_match.h"
#include "scheduler-extender/ledger/ledger_devices.h"
#include "scheduler-extender/ledger/ledger_room.h"
#include "scheduler-extender/ledger/ledger_trust.h"
#include "scheduler-extender/ledger/liveness.h"
#include "scheduler-extender/ledger/name_numbers.h"
#include "scheduler-extender/ledger/roster.h"
#include "scheduler-extender/ledger/symbols.h"
#include "scheduler-extender/neighbours/neighbours.h"

#define LEDGER_JOB_BUCKETS 1024

struct ledger_pod; /* ledger/ledger_pods.h */
struct ledger_job; /* this and the next: ledger/ledger_jobs.h */
struct ledger_job_slot;
struct ledger_sick; /* ledger/ledger_sick.h */

struct ledger_group {
        uint32_t name, vendor, runtime, model, resource; /* symbols; model 0 = not known */
        uint32_t total;
        uint32_t healthy;                  /* as the inventory says */
        uint32_t usable;                   /* of them: scheduler-extender/ledger/ledger_trust.h */
        bool shared;                       /* by its inventory: counted in shares, as ids are offered */
        uint32_t held;                     /* by pods */
        uint32_t leased;                   /* by gangs that are not bound yet */
        uint64_t memory_bytes;             /* per chip; 0 = not known */
        struct chip_speed_figures figures; /* per chip */
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
        char speed_name[65]; /* with its arguments, as the SpeedTable knows it; "" = sha256 */
};

/* Its name's place, its age and its kind are in the ledger's roster, where requests find them. */
struct ledger_node {
        bool has_inventory, has_object;
        bool reserved;       /* pool "reserved" */
        bool out_of_service; /* its taint: somebody has seen to it that nothing runs there */
        uint8_t node_class;  /* enum node_class */
        uint16_t brought;    /* names that were new with it: it may fill the table no further */
        struct ledger_group *groups;
        struct ledger_job_slot *slots;
        struct ledger_backfill *backfills;
        struct ledger_pod *pods;      /* bound here and not ended, in canonical order (created, then key) */
        uint32_t ending;              /* of them: those that say when they end */
        uint32_t pool, switch_domain; /* symbols; the second of the operator's label, 0 = none */
        struct ledger_trust_offer *allocatable; /* of the Node object */
        struct ledger_trust trust;
        struct ledger_hardware hardware;
        struct ledger_room room;
        struct ledger_devices *devices;  /* NULL = no DRA driver offers or offered any */
        struct node_match_traits traits; /* labels and taints of the Node object */
        struct ledger_program *programs;
        struct ledger_sick *sick;
        struct inventory_loss *losses; /* of the inventory: who holds devices that may not be used */
        uint32_t group_count, allocatable_count, program_count, sick_count, loss_count;
        uint64_t accounted;         /* the ledger's generation after its account was last worked out */
        uint32_t index, name_bytes; /* index: in ledger.nodes and the roster; changes when nodes go */
        char name[];                /* NUL-terminated */
};

/* An older pod waits for these chips: see scheduler-extender/decide/backfill.h. */
struct ledger_backfill {
        const struct ledger_pod *pod;
        struct ledger_backfill *next;
        uint64_t start_usec; /* when it could start there; UINT64_MAX = not known */
        uint32_t resource;   /* of these chips: symbol */
        uint32_t spare;      /* chips that may be free at start_usec beyond what the older pod asks for */
        bool beyond_share;   /* it keeps pods of its own namespace alone waiting (share/namespace_share.h) */
};

struct ledger {
        struct symbols symbols;
        struct ledger_node **nodes;
        uint32_t node_count, node_capacity;
        struct roster roster;     /* names, ages and kinds of the nodes, by index */
        struct liveness liveness; /* which ages are too old */
        struct node_kinds kinds;  /* the different ones among them; brought up to date when asked for */
        bool kinds_stale;         /* some node's kind is to be found out */
        struct node_match_table matches;    /* what pending pods demand of a node's labels and taints */
        struct neighbours_table neighbours; /* what pods say of themselves and demand of those around them */
        struct ledger_pod **pod_slots;
        uint32_t pod_count, pod_slot_count;
        struct ledger_pod *pending; /* the pods on no node, ended ones included, in no order */
        uint32_t pending_count, backfill_total, slot_total; /* pods; holds and lease slots in force */
        bool has_slices, plans_claims; /* of DRA drivers, anywhere; chips that none has are planned */
        uint32_t loose_devices;        /* of DRA drivers, that are not one node's */
        struct ledger_job *jobs[LEDGER_JOB_BUCKETS];
        struct name_map planned;   /* pods of plans, by "namespace/name": ledger_jobs.h */
        struct speed_table speeds; /* the rows of all SpeedTables; owned */
        struct name_numbers gang_pauses, gang_pause_ends, gang_left; /* by namespace: decide/gang_share.h */
        uint64_t gang_resumed_usec;
        struct name_numbers claimed_places; /* pods of plans whose planned claims have chips: of which node */
        struct name_numbers group_sizes;    /* members that groups need: scheduler-extender/groups/groups.h */
        uint8_t groups_served;              /* bit set of enum request_group: their objects are shown to us */
        uint64_t departure_count;           /* pods and gangs that gave chips back since the start */
        uint64_t arrival_count; /* members since then that came second, or made their gang complete */
        uint64_t generation;    /* grows with every change of a node, pod or lease */
        uint64_t searched;      /* nodes that gang_search() has judged */
};

/* ledger_set_seen() - last heard of (CLOCK_MONOTONIC); 0: not judged, LIVENESS_REMOVED: no node any more */
void ledger_set_seen(struct ledger *ledger, const struct ledger_node *node, uint64_t seen_usec);
uint64_t ledger_seen_usec(const struct ledger *ledger, const struct ledger_node *node);

/* ledger_touch() - something that rules read of the node has changed: its kind is found out again. The
 * functions below do it themselves; who adds a reservation calls it. */
void ledger_touch(struct ledger *ledger, const struct ledger_node *node);

static inline bool ledger_node_known(const struct ledger_node *node)
{
        return node->has_inventory || node->has_object;
}

/* ledger_group_free() - usable chips that no pod holds, ledger_group_open() - and no gang leases; >= 0 */
static inline uint32_t ledger_group_free(const struct ledger_group *group)
{
        return group->usable > group->held ? group->usable - group->held : 0;
}

static inline uint32_t ledger_group_open(const struct ledger_group *group)
{
        uint32_t taken = group->held + group->leased;

        return group->usable > taken ? group->usable - taken : 0;
}
