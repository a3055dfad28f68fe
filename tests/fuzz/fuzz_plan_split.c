/* Any bytes as a chain or a graph: never a crash, and a plan only if it keeps the rules. */
#include <stdint.h>
#include <string.h>

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

static void graph(const json_t *json, bool contiguous)
{
        struct plan_graph_request request;
        struct graph_plan plan = { 0 };
        struct graph_search search = { .seed = 1, .effort = 2000 };
        struct err err = { 0 };

        if (plan_graph_request_decode(json, contiguous, &request, &err) < 0)
                return;
        if (request.problem.node_count <= 200 && graph_split(&request.problem, &search, &plan, &err) == 0 &&
            (!graph_split_is_legal(&request.problem, plan.device, &err) ||
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
