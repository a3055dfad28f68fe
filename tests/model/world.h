/* World: what an API server in memory has: the truth of who holds what, a plain ledger, kept apart from the
 * extender's and written from what the API server did alone. How it is told to the extenders: views.h. */
#pragma once

#include <jansson.h>

#include "tests/model/chance.h"
#include "tests/model/stand_ins.h"

#define WORLD_PODS  40
#define WORLD_NODES 6
#define WORLD_CHIPS 8                       /* of a node, in two groups */
#define WORLD_GPU   "nvidia.com/mig-1g.5gb" /* chips by the word of inventories alone */

struct world_pod {
        bool exists, ended, deleting;
        bool right; /* an emergency, by its class or where the label counts, when it was bound */
        char name[16];
        const char *namespace_;
        unsigned uid;
        int node; /* -1 = on none */
        unsigned chips;
        unsigned others, of_each; /* resources that it names before its chips */
        uint64_t created_usec;
        json_t *labels, *annotations;
};

/* What a replica was told of a pod, or was answered. */
struct world_word {
        unsigned uid; /* 0 = nothing */
        int node;
        unsigned chips;
        bool over; /* gone, or ended: the proof by which an account may shrink */
};

struct world {
        struct chance *chance;
        struct world_pod pods[WORLD_PODS];
        struct world_word told[STAND_INS_REPLICAS][WORLD_PODS];
        struct world_word answered[STAND_INS_REPLICAS][WORLD_PODS]; /* binds that were said to be done */
        unsigned uids;
        unsigned usable[WORLD_NODES];
        unsigned names[WORLD_NODES]; /* its second group is called by another one each time; 0 = as the first
                                      */
        unsigned told_names[STAND_INS_REPLICAS][WORLD_NODES], renames;
        bool faults;
        int doomed;            /* a replica that is about to be killed; -1 = none */
        unsigned doomed_after; /* so many of its writes still leave it */
        bool struck;           /* none does any more */
        const char *wrong;     /* a promise was broken: what */
        char detail[200];
        uint64_t binds, evictions, events;
};

extern struct world world;

const char *world_node_name(int node); /* the last one is reserved */
unsigned world_held(int node);         /* by the truth */
void world_reset(struct chance *chance);

/* world_group_names() - of a group: what its name begins with, and its model. */
#define WORLD_NAME_BYTES 24
void world_group_names(unsigned names, char *name, char *model);

/* As the API server writes them; a new reference. */
json_t *world_pod_json(const struct world_pod *pod);
json_t *world_node_json(int node);
json_t *world_inventory_json(int node);

/* world_trace() - a line on standard error, with MODEL_TRACE in the environment. */
void world_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void world_break(const char *what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One of an array, by chance. */
#define WORLD_PICK(list) (list)[chance_below(world.chance, sizeof(list) / sizeof((list)[0]))]
