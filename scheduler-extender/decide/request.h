/* Request: what one pod asks of the scheduler, with names turned into symbols. Pure data.
 *
 * Everything here comes from people (labels, annotations, requests) and is untrusted: counts are bounded by
 * the decoder, unknown words have fallen back to their defaults. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "scheduler-extender/decide/placement.h"

#define REQUEST_ITEMS_MAX  16    /* different resources in one pod that are kept: chips before others */
#define REQUEST_MODELS_MAX 12    /* accepted models */
#define REQUEST_CHIPS_MAX  4096u /* of one resource in one pod */
#define REQUEST_GANG_MAX   4096u /* members of a gang */

#define REQUEST_KINDS_MAX 16 /* kinds of members that a gang may list */

/* How its scheduler treats the members of the group that Kubernetes has it in
 * (scheduler-extender/groups/groups.h). */
enum request_group {
        REQUEST_GROUP_NONE,
        REQUEST_GROUP_ALONE, /* each by itself, and it waits for the others before its bind */
        REQUEST_GROUP_CYCLE, /* one after the other, to be bound together or not at all */
};

struct request_item {
        uint32_t resource; /* symbol; 0 = a resource nobody has */
        uint32_t chips;    /* 1..REQUEST_CHIPS_MAX */
};

/* Members that a job lists: `members` pods of `chips` of `resource`. */
struct request_member {
        uint32_t resource, chips, members;
};

/* What a pod asks of its node beside extended resources; 0 = nothing. */
struct request_needs {
        int64_t cpu_milli, memory_bytes, storage_bytes; /* 0..REQUEST_NEED_MAX */
};

#define REQUEST_NEED_MAX (INT64_MAX / 65536) /* of one pod: sums over a node's pods fit */

struct request {
        struct request_item items[REQUEST_ITEMS_MAX]; /* extended resources, chips or not */
        uint32_t models[REQUEST_MODELS_MAX];          /* accepted models; 0 = a model nobody has */
        uint32_t match;      /* number in ledger.matches: nodes it may go onto; 0 = any */
        uint32_t demands;    /* number in ledger.neighbours: of the pods around it; 0 = none */
        uint32_t labels;     /* ... of what it says itself, in a gang's plan; 0 = it does not matter */
        uint8_t item_count;  /* no padding here: requests are ordered by their bytes */
        bool unreadable;     /* what it asks for cannot be read: on a node it counts as all there is */
        uint8_t model_count; /* 0 = any model */
        uint8_t placement;   /* enum placement */
        bool emergency;
        bool urgency_ignored; /* asked for by a label where that is not allowed */
        bool preemptible;
        bool same_group;
        bool equal_nodes;
        bool serves;           /* a server or the manager of its job: no share of the batch is its own */
        bool share_given;      /* its share is decided already: whoever made it planned the job */
        bool gated;            /* has scheduling gates: does not wait for us yet */
        bool absent;           /* a gang's member that is not there yet: planned, and not leased */
        bool deadline_kept;    /* the kubelet ends it at its deadline: not its owner's word alone */
        bool more;             /* not all is in items: on a node it counts as all of what is not in them */
        bool lone;             /* says that it is of a gang of chips, and is the only one of it there */
        bool ungrouped;        /* its group is not there: does not wait for us yet */
        uint8_t group : 7;     /* enum request_group */
        uint8_t by_claims : 1; /* its chips come by claims of its own, which hold them once they are
                                  allocated; item_count 0 = they are */
        uint8_t beside_count;  /* items behind item_count: no chips, kube-scheduler's to judge */
        bool lacking;       /* of a gang by labels that has not begun, and whose members are not all there */
        uint32_t gang_size; /* 0 or 1 = no gang */
        uint32_t network_mbps;              /* 0 = any */
        uint32_t batch;                     /* remuda.dev/batch: weighted shards of this batch; 0 = none */
        uint32_t deadline_sec;              /* it ends so long after its start; 0 = not known */
        uint64_t fixed_bytes, sample_bytes; /* memory of a chip: fixed + sample x its share; 0 = unknown */
        struct request_needs needs;
        uint64_t class_chips; /* the whole job's chips, which the class rule counts; one of a lone pod's */
};

/* request_chips() - chips in all. */
static inline uint32_t request_chips(const struct request *request)
{
        uint32_t chips = 0;

        for (size_t i = 0; i < request->item_count; i++)
                chips += request->items[i].chips;
        return chips;
}

/* request_asks_for() - for chips of this resource? */
static inline bool request_asks_for(const struct request *request, uint32_t resource)
{
        for (size_t i = 0; i < request->item_count; i++)
                if (request->items[i].resource == resource)
                        return true;
        return false;
}

/* request_is_held_back() - does whoever brings it here wait for something else first? */
static inline bool request_is_held_back(const struct request *request)
{
        return request->gated || request->ungrouped;
}

/* request_accepts() - is a chip of `model` (symbol, 0 = unknown) accepted? */
static inline bool request_accepts(const struct request *request, uint32_t model)
{
        for (size_t i = 0; i < request->model_count; i++)
                if (request->models[i] == model && model != 0)
                        return true;
        return request->model_count == 0;
}

/* request_same_models() - do both accept the same ones? */
static inline bool request_same_models(const struct request *a, const struct request *b)
{
        return a->model_count == b->model_count &&
               memcmp(a->models, b->models, a->model_count * sizeof(a->models[0])) == 0;
}

/* request_same_needs() - do both ask for the same beside chips? */
static inline bool request_same_needs(const struct request *a, const struct request *b)
{
        return memcmp(&a->needs, &b->needs, sizeof(a->needs)) == 0 && a->beside_count == b->beside_count &&
               memcmp(&a->items[a->item_count], &b->items[b->item_count],
                      a->beside_count * sizeof(a->items[0])) == 0;
}
