/* Cluster, inside: shared by cluster.c (objects, life) and pod_request.c (requests). Nobody else includes
 * this.
 */
#pragma once

#include "scheduler-extender/claims/claims.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/ledger/name_numbers.h"

struct cluster {
        struct cluster_options options;
        struct ledger *ledger;
        struct store *store;
        bool is_directory;
        unsigned synced;              /* bit set of enum store_kind */
        unsigned watched, refreshing; /* likewise */
        struct liveness_signs agents; /* of agents: the Leases that they renew */
        struct liveness_signs signs;  /* of nodes: their Leases, or the times of their files */
        struct name_numbers classes, default_classes; /* PriorityClasses: cluster_classes.h */
        struct name_numbers speed_troubles; /* of each SpeedTable a hash of what was last said of it */
        struct name_numbers offer_troubles; /* of each node, likewise */
        struct name_numbers unreadable[STORE_KIND_COUNT]; /* of each object that cannot be read, likewise */
        struct claims *claims; /* of DRA: scheduler-extender/claims/cluster_claims.h */
        struct claims
                *tried; /* of a copy: its own pods; its claims are the original's, and stay as they are */
        uint64_t names_usec; /* when unused names were given back last */
        sd_event *loop;
        struct ledger_program programs[PROGRAM_TABLE_MAX]; /* the program table, with symbols */
        size_t program_count;
};
