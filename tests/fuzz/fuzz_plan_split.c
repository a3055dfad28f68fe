/* Any bytes as a chain or a graph: never a crash, and a plan only if it keeps the rules. */
#include <stdint.h>

#include "base/cleanup.h"
#include "planner/splits/graph_state.h"
#include "planner/splits/plan_graph.h"
#include "planner/splits/plan_split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void chain(const json_t *json)
{
        struct plan_split_input input;
        struct chain_plan plan = { 0 };
        struct err err = { 0 };
        double period, latency;

        if (plan_split_input_decode(json, &input, &err) < 0)
                return;
        if (input.problem.layer_count <= 64 && chain_split(&input.problem, &plan, &err) == 0 &&
            (chain_evaluate(&input.problem, plan.stages, plan.stage_count, &period, &latency, &err) != 0 ||
             plan.stages[0].first != 0 ||
             plan.stages[plan.stage_count - 1].last + 1 != input.problem.layer_count))
                __builtin_trap();
        chain_plan_free(&plan);
        plan_split_input_free(&input);
}

/* Colours together, memory within limits, nodes where they can run, contiguous where asked. */
static bool is_legal(const struct graph_problem *problem, const uint32_t *device, struct err *err)
{
        struct graph_state s = { 0 };
        CLEANUP(free_p) uint32_t *unit_device = calloc(problem->unit_count + 1, sizeof(*unit_device));
        bool legal = unit_device != NULL && graph_state_init(&s, problem) == 0;

        for (size_t u = 0; legal && u < problem->unit_count; u++)
                unit_device[u] = GRAPH_NOWHERE;
        for (size_t v = 0; legal && v < problem->node_count; v++) {
                uint32_t *of_unit = &unit_device[problem->nodes[v].unit];

                if (device[v] >= s.devices || (*of_unit != GRAPH_NOWHERE && *of_unit != device[v]))
                        legal = err_set(err, -1, "node %zu is on no device, or apart from its colour", v) ==
                                0;
                *of_unit = device[v];
        }
        for (size_t u = 0; legal && u < problem->unit_count; u++) {
                if (unit_device[u] == GRAPH_NOWHERE)
                        continue;
                if (!graph_state_can_place(&s, u, unit_device[u]))
                        legal = err_set(err, -1, "device %u cannot take unit %zu", unit_device[u], u) == 0;
                else
                        graph_state_place(&s, u, unit_device[u]);
        }
        if (legal && problem->contiguous && !graph_state_is_contiguous(problem, unit_device, s.accelerators))
                legal = err_set(err, -1, "the placement is not contiguous") == 0;
        graph_state_free(&s);
        return legal;
}

static void graph(const json_t *json, bool contiguous)
{
        struct plan_graph_request request;
        struct graph_plan plan = { 0 };
        struct graph_search search = { .seed = 1, .effort = 2000 };
        struct err err = { 0 };

        if (plan_graph_request_decode(json, contiguous, &request, &err) < 0)
                return;
        if (request.problem.node_count <= 200 && graph_split(&request.problem, &search, &plan, &err) == 0 &&
            (!is_legal(&request.problem, plan.device, &err) ||
             plan.lower_bound_ms > plan.max_load_ms * (1 + 1e-9)))
                __builtin_trap();
        graph_split_plan_free(&plan);
        plan_graph_request_free(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *json = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL);

        if (json == NULL)
                return 0;
        chain(json);
        graph(json, false);
        graph(json, true);
        json_decref(json);
        return 0;
}
