/* Graph: a layer graph and the devices it is placed on, as the planners see them, and a placement. Types
 * alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRAPH_NODES_MAX   50000
#define GRAPH_EDGES_MAX   1000000
#define GRAPH_DEVICES_MAX 256
#define GRAPH_TYPES_MAX   16

struct graph_node {
        double accelerator_ms; /* on an accelerator of speed 1; < 0 = cannot run there */
        double cpu_ms;
        double memory_bytes;
        double output_ms; /* cost of moving its output */
        bool backward;
        size_t unit; /* nodes of one unit share a device: 0..unit_count-1 */
};

struct graph_edge {
        size_t source, target; /* node indices */
};

struct graph_type { /* equal accelerators */
        size_t count;
        double memory_bytes;
        double speed; /* > 0 */
};

struct graph_problem {
        const struct graph_node *nodes;
        size_t node_count, unit_count;
        const struct graph_edge *edges;
        size_t edge_count;
        const struct graph_type *types;
        size_t type_count; /* devices are numbered: accelerators by type, then the CPUs */
        size_t cpu_count;
        bool contiguous;
};

struct graph_search {
        uint64_t seed;
        uint64_t effort;              /* search steps; 0 = until `stop` says so */
        bool (*stop)(void *userdata); /* asked every thousand steps or so; NULL = never */
        void *userdata;
};

struct graph_plan {
        uint32_t *device; /* owned; of each node */
        double max_load_ms, lower_bound_ms;
        bool exact;     /* proven to be the least possible */
        uint64_t steps; /* search steps taken */
};

enum { GRAPH_NO_FIT = 1 }; /* proven or as far as was searched: *err says which */

/* graph_device_count() - accelerators of all types, and the CPUs. */
static inline size_t graph_device_count(const struct graph_problem *problem)
{
        size_t count = problem->cpu_count;

        for (size_t t = 0; t < problem->type_count; t++)
                count += problem->types[t].count;
        return count;
}
