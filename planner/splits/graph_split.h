/* Graph split: which nodes of a layer graph go to which device, so that the most loaded device has the least
 * to do.
 *
 * Load of an accelerator = the time of its nodes + the cost of every output that crosses its border, once per
 * output (outputs of its nodes used elsewhere, and outputs of others that its nodes use). Load of a CPU = the
 * time of its nodes; transfers are not charged to it. Nodes of one colour share a device. A placement is
 * contiguous if no path leaves the forward nodes of an accelerator and comes back to them, nor its backward
 * nodes.
 *
 * Methods, in this order until the time is up: branch and bound for small graphs (exact); dynamic programming
 * over the graph's downward closed sets (Tarnawski et al., NeurIPS 2020), complete where they are few and
 * over those of sampled topological orders where they are many; simulated annealing with moves and swaps. The
 * bound is proven: the work shared without remainder over every device at its speed, and the largest node
 * that must be somewhere.
 *
 * Pure: randomness comes from the seed, time from the caller's callback. Same seed and effort, same answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

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

/* graph_split() - Return: 0 and *ret (release with graph_plan_free()); GRAPH_NO_FIT; -EINVAL, -ENOMEM. */
int graph_split(const struct graph_problem *problem, const struct graph_search *search,
                struct graph_plan *ret, struct err *err);
void graph_plan_free(struct graph_plan *plan); /* accepts NULL */

/* graph_lower_bound_ms() - what no placement can be below. */
double graph_lower_bound_ms(const struct graph_problem *problem);

/* graph_loads() - load of every device for a given placement, straight from the definition.
 * @ret_load_ms: one a device. Return: the largest of the loads. */
double graph_loads(const struct graph_problem *problem, const uint32_t *device, double *ret_load_ms);

/* graph_is_legal() - colours together, memory within limits, nodes where they can run, contiguous where
 * asked. */
bool graph_is_legal(const struct graph_problem *problem, const uint32_t *device, struct err *err);

size_t graph_device_count(const struct graph_problem *problem);
