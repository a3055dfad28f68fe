/* Plan graph: the layer-graph input of `remuda plan split` -> struct graph_problem, and its placement ->
 * JSON.
 *
 * The form: {"maxFPGAs", "maxCPUs", "maxSizePerFPGA", "nodes": [{"id", "cpuLatency", "fpgaLatency", "size",
 * "supportedOnFpga", "isBackwardNode", "colorClass"}], "edges": [{"sourceId", "destId", "cost"}]}, and
 * optionally "types": [{"name", "count", "memory_bytes", "speed"}] in place of maxFPGAs and maxSizePerFPGA.
 * In memory only. */
#pragma once

#include <jansson.h>

#include "base/text.h"
#include "planner/splits/graph_split.h"

struct plan_graph_request {
        struct graph_problem problem;
        struct graph_node *nodes;
        int64_t *ids; /* of each node, as the file says */
        struct graph_edge *edges;
        struct graph_type *types;
        char **type_names; /* NULL = the accelerators have no names */
};

/* How the search went, for the answer. */
struct plan_graph_effort {
        uint64_t seed, effort, steps;
        unsigned searches;
        double planning_ms;
};

/* plan_graph_request_decode() - 0 and *ret (release with plan_graph_request_free()); -EBADMSG with the field;
 * -ENOMEM.
 */
int plan_graph_request_decode(const json_t *json, bool contiguous, struct plan_graph_request *ret,
                              struct err *err);
void plan_graph_request_free(struct plan_graph_request *request);

json_t *plan_graph_answer_json(const struct plan_graph_request *request, const struct graph_plan *plan,
                               const struct plan_graph_effort *effort); /* new reference, or NULL */
void plan_graph_answer_table(const struct plan_graph_request *request, const struct graph_plan *plan,
                             const struct plan_graph_effort *effort, struct text *out);
