/* Reads layer graphs (nodes, edges, colours, devices) and writes placements. */
#include "planner/splits/plan_graph.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/shards/plan_field.h"

#define BYTES_MAX 1e18

void plan_graph_request_free(struct plan_graph_request *request)
{
        for (size_t t = 0; request->type_names != NULL && t < request->problem.type_count; t++)
                free(request->type_names[t]);
        free(request->type_names);
        free(request->nodes);
        free(request->ids);
        free(request->edges);
        free(request->types);
        memset(request, 0, sizeof(*request));
}

/* true, false, 1 and 0 are all written for a flag. */
static int decode_flag(const struct json_field *in, const char *name, bool *ret, struct err *err)
{
        struct json_field at = json_field_get(in, name);
        int64_t number = 0;
        int r;

        if (json_is_boolean(at.value)) {
                *ret = json_is_true(at.value);
                return 0;
        }
        r = json_field_int64(in, name, 0, 1, &number, err);
        if (r == 0)
                *ret = number == 1;
        return r;
}

static int decode_node(const struct json_field *at, struct plan_graph_request *request, size_t i,
                       int64_t *colours, bool *has_colour, struct err *err)
{
        struct graph_node *node = &request->nodes[i];
        bool supported = true;
        int r = json_field_is_object(at, err);

        if (r == 0)
                r = json_field_int64(at, "id", INT64_MIN, INT64_MAX, &request->ids[i], err);
        if (r == JSON_FIELD_ABSENT)
                return json_field_error(at, err, "has no id; give each node a whole number of its own");
        if (r == 0)
                r = plan_field_double(at, "cpuLatency", true, 0, "its time on a CPU", &node->cpu_ms, err);
        if (r == 0)
                r = decode_flag(at, "supportedOnFpga", &supported, err);
        if (r >= 0)
                r = plan_field_double(at, "fpgaLatency", supported, 0, "its time on an accelerator",
                                      &node->accelerator_ms, err);
        if (r >= 0)
                r = plan_field_double(at, "size", false, 0, "its bytes of memory", &node->memory_bytes, err);
        if (r >= 0)
                r = decode_flag(at, "isBackwardNode", &node->backward, err);
        if (r < 0)
                return r;
        if (!supported)
                node->accelerator_ms = -1;
        r = json_field_int64(at, "colorClass", INT64_MIN, INT64_MAX, &colours[i], err);
        has_colour[i] = r == 0;
        return r < 0 ? r : 0;
}

struct key {
        int64_t value;
        size_t index;
};

static int compare_keys(const void *a, const void *b)
{
        const struct key *x = a, *y = b;

        if (x->value != y->value)
                return x->value < y->value ? -1 : 1;
        return x->index < y->index ? -1 : x->index > y->index;
}

/* Units: the nodes of a colour, or a node without one. Numbered in order of their first node. */
static int number_units(struct plan_graph_request *request, const int64_t *colours, const bool *has_colour,
                        struct err *err)
{
        size_t n = request->problem.node_count, keyed = 0;
        CLEANUP(free_p) struct key *keys = calloc(n + 1, sizeof(*keys));
        CLEANUP(free_p) size_t *first = calloc(n + 1, sizeof(*first));

        if (keys == NULL || first == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu nodes", n);
        for (size_t i = 0; i < n; i++) {
                first[i] = i;
                if (has_colour[i])
                        keys[keyed++] = (struct key){ colours[i], i };
        }
        if (keyed > 0)
                qsort(keys, keyed, sizeof(*keys), compare_keys);
        for (size_t k = 1; k < keyed; k++)
                if (keys[k].value == keys[k - 1].value)
                        first[keys[k].index] = first[keys[k - 1].index];
        for (size_t i = 0; i < n; i++)
                request->nodes[i].unit =
                        first[i] == i ? request->problem.unit_count++ : request->nodes[first[i]].unit;
        return 0;
}

/* The node of an id; @keys: sorted. */
static int find_node(const struct json_field *at, const char *name, const struct key *keys, size_t count,
                     size_t *ret, struct err *err)
{
        struct key *found, key = { 0, 0 };
        size_t low = 0, high = count;
        int r = json_field_int64(at, name, INT64_MIN, INT64_MAX, &key.value, err);

        if (r != 0)
                return r < 0 ? r : json_field_error(at, err, "has no %s; give the id of a node", name);
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (keys[middle].value < key.value)
                        low = middle + 1;
                else
                        high = middle;
        }
        found = low < count && keys[low].value == key.value ? (struct key *) &keys[low] : NULL;
        if (found == NULL)
                return json_field_error(at, err, "%s %lld is the id of no node", name, (long long) key.value);
        *ret = found->index;
        return 0;
}

static int decode_edge(const struct json_field *at, struct plan_graph_request *request, size_t e,
                       const struct key *keys, struct err *err)
{
        struct graph_edge *edge = &request->edges[e];
        size_t n = request->problem.node_count;
        double cost = 0, *known;
        int r = json_field_is_object(at, err);

        if (r == 0)
                r = find_node(at, "sourceId", keys, n, &edge->source, err);
        if (r == 0)
                r = find_node(at, "destId", keys, n, &edge->target, err);
        if (r == 0)
                r = plan_field_double(at, "cost", true, 0, "the time to move the source's output", &cost,
                                      err);
        if (r < 0)
                return r;
        known = &request->nodes[edge->source].output_ms;
        if (*known >= 0 && fabs(*known - cost) > 1e-9 * fmax(*known, cost))
                return json_field_error(
                        at, err,
                        "cost %g differs from %g of another edge out of the same node; a node has one "
                        "output, which costs the same wherever it goes",
                        cost, *known);
        *known = cost;
        return 0;
}

static int decode_edges(const struct json_field *root, struct plan_graph_request *request, struct err *err)
{
        size_t n = request->problem.node_count;
        CLEANUP(free_p) struct key *keys = calloc(n + 1, sizeof(*keys));
        struct json_field edges = { 0 };
        int r = json_field_array(root, "edges", GRAPH_EDGES_MAX, &edges, err);

        if (r < 0)
                return r;
        request->problem.edge_count = json_field_count(&edges);
        request->edges = calloc(request->problem.edge_count + 1, sizeof(*request->edges));
        request->problem.edges = request->edges;
        if (keys == NULL || request->edges == NULL)
                return err_set(err, -ENOMEM, "no memory for the edges");
        for (size_t i = 0; i < n; i++) {
                keys[i] = (struct key){ request->ids[i], i };
                request->nodes[i].output_ms = -1; /* not said yet */
        }
        qsort(keys, n, sizeof(*keys), compare_keys);
        for (size_t i = 1; i < n; i++)
                if (keys[i].value == keys[i - 1].value)
                        return err_set(err, -EBADMSG,
                                       "nodes[%zu].id: %lld is also the id of nodes[%zu]; ids must differ",
                                       keys[i].index, (long long) keys[i].value, keys[i - 1].index);
        for (size_t e = 0; r >= 0 && e < request->problem.edge_count; e++) {
                struct json_field at = json_field_at(&edges, e);

                r = decode_edge(&at, request, e, keys, err);
        }
        for (size_t i = 0; i < n; i++)
                request->nodes[i].output_ms = fmax(request->nodes[i].output_ms, 0);
        return r < 0 ? r : 0;
}

static int decode_nodes(const struct json_field *root, struct plan_graph_request *request, struct err *err)
{
        CLEANUP(free_p) int64_t *colours = NULL;
        CLEANUP(free_p) bool *has_colour = NULL;
        struct json_field nodes = { 0 };
        size_t n;
        int r = plan_field_list(root, "nodes", GRAPH_NODES_MAX, "at least one node", &nodes, err);

        if (r < 0)
                return r;
        n = json_field_count(&nodes);
        colours = calloc(n, sizeof(*colours));
        has_colour = calloc(n, sizeof(*has_colour));
        request->nodes = calloc(n, sizeof(*request->nodes));
        request->ids = calloc(n, sizeof(*request->ids));
        if (colours == NULL || has_colour == NULL || request->nodes == NULL || request->ids == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu nodes", n);
        request->problem.nodes = request->nodes;
        request->problem.node_count = n;
        for (size_t i = 0; i < n; i++) {
                struct json_field at = json_field_at(&nodes, i);

                r = decode_node(&at, request, i, colours, has_colour, err);
                if (r < 0)
                        return r;
        }
        return number_units(request, colours, has_colour, err);
}

static int decode_type(const struct json_field *at, struct plan_graph_request *request, size_t t,
                       struct err *err)
{
        struct graph_type *type = &request->types[t];
        const char *name = NULL;
        int r = json_field_is_object(at, err);

        *type = (struct graph_type){ .count = 1, .memory_bytes = BYTES_MAX, .speed = 1 };
        if (r == 0)
                r = plan_field_string(at, "name", "a name for the kind of device", &name, err);
        if (r == 0)
                r = json_field_size(at, "count", 0, GRAPH_DEVICES_MAX, &type->count, err);
        if (r >= 0)
                r = plan_field_double(at, "memory_bytes", false, 0, "bytes", &type->memory_bytes, err);
        if (r >= 0)
                r = plan_field_double(at, "speed", false, 1e-30,
                                      "how many times faster than fpgaLatency says", &type->speed, err);
        if (r < 0)
                return r;
        request->type_names[t] = strdup(name);
        if (request->type_names[t] == NULL)
                return err_set(err, -ENOMEM, "no memory for a name");
        for (size_t other = 0; other < t; other++)
                if (strcmp(request->type_names[other], name) == 0)
                        return json_field_error(at, err, "name '%s' is declared before; add to its count",
                                                name);
        return 0;
}

static int decode_types(const struct json_field *types, struct plan_graph_request *request, struct err *err)
{
        size_t count = json_field_count(types);
        int r = 0;

        request->types = calloc(count + 1, sizeof(*request->types));
        request->type_names = calloc(count + 1, sizeof(*request->type_names));
        if (request->types == NULL || request->type_names == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu types", count);
        request->problem.type_count = count;
        for (size_t t = 0; r == 0 && t < count; t++) {
                struct json_field at = json_field_at(types, t);

                r = decode_type(&at, request, t, err);
        }
        return r;
}

static int decode_devices(const struct json_field *root, struct plan_graph_request *request, struct err *err)
{
        struct json_field types;
        int r = json_field_array(root, "types", GRAPH_TYPES_MAX, &types, err);

        if (r == 0)
                r = decode_types(&types, request, err);
        else if (r == JSON_FIELD_ABSENT) {
                request->types = calloc(1, sizeof(*request->types));
                if (request->types == NULL)
                        return err_set(err, -ENOMEM, "no memory for the devices");
                request->types[0] = (struct graph_type){ .memory_bytes = BYTES_MAX, .speed = 1 };
                request->problem.type_count = 1;
                r = json_field_size(root, "maxFPGAs", 0, GRAPH_DEVICES_MAX, &request->types[0].count, err);
                if (r == JSON_FIELD_ABSENT)
                        return json_field_error(root, err, "maxFPGAs (or types) must be given");
                if (r == 0)
                        r = plan_field_double(root, "maxSizePerFPGA", false, 0, "bytes",
                                              &request->types[0].memory_bytes, err);
        }
        if (r >= 0)
                r = json_field_size(root, "maxCPUs", 0, GRAPH_DEVICES_MAX, &request->problem.cpu_count, err);
        request->problem.types = request->types;
        if (r >= 0 && graph_device_count(&request->problem) > GRAPH_DEVICES_MAX)
                return json_field_error(root, err, "%zu devices are more than %d",
                                        graph_device_count(&request->problem), GRAPH_DEVICES_MAX);
        return r < 0 ? r : 0;
}

int plan_graph_request_decode(const json_t *json, bool contiguous, struct plan_graph_request *ret,
                              struct err *err)
{
        struct json_field root = json_field_root(json);
        struct plan_graph_request request = { .problem.contiguous = contiguous };
        int r = json_field_is_object(&root, err);

        if (r == 0)
                r = decode_devices(&root, &request, err);
        if (r == 0)
                r = decode_nodes(&root, &request, err);
        if (r == 0)
                r = decode_edges(&root, &request, err);
        if (r < 0)
                plan_graph_request_free(&request);
        else
                *ret = request;
        return r;
}

static json_t *loads_json(const struct plan_graph_request *request, const struct graph_plan *plan)
{
        size_t devices = graph_device_count(&request->problem);
        CLEANUP(free_p) double *loads = calloc(devices + 1, sizeof(*loads));
        json_t *list = json_array();

        if (loads == NULL || graph_split_loads(&request->problem, plan->device, loads) < 0) {
                json_decref(list);
                return NULL;
        }
        for (size_t d = 0; d < devices; d++)
                json_array_append_new(list, json_real(loads[d]));
        return list;
}

json_t *plan_graph_answer_json(const struct plan_graph_request *request, const struct graph_plan *plan,
                               const struct plan_graph_effort *effort)
{
        json_t *assignment = json_object();

        for (size_t i = 0; i < request->problem.node_count; i++) {
                char id[32];

                (void) text_format(id, sizeof(id), "%lld", (long long) request->ids[i]);
                json_object_set_new(assignment, id, json_integer((json_int_t) plan->device[i]));
        }
        return json_pack("{s:o, s:f, s:f, s:f, s:f, s:b, s:b, s:o, s:I, s:I, s:I, s:f}", "assignment",
                         assignment, "period_ms", plan->max_load_ms, "max_load", plan->max_load_ms,
                         "lower_bound", plan->lower_bound_ms, "gap",
                         plan->lower_bound_ms > 0 ? plan->max_load_ms / plan->lower_bound_ms - 1 : 0.0,
                         "exact", (int) plan->exact, "contiguous", (int) request->problem.contiguous, "loads",
                         loads_json(request, plan), "seed", (json_int_t) effort->seed, "effort",
                         (json_int_t) effort->effort, "steps", (json_int_t) effort->steps, "planning_ms",
                         effort->planning_ms);
}

void plan_graph_answer_table(const struct plan_graph_request *request, const struct graph_plan *plan,
                             const struct plan_graph_effort *effort, struct text *out)
{
        const struct graph_problem *p = &request->problem;
        size_t devices = graph_device_count(p), d = 0;
        CLEANUP(free_p) double *loads = calloc(devices + 1, sizeof(*loads));
        CLEANUP(free_p) size_t *nodes = calloc(devices + 1, sizeof(*nodes));

        if (loads == NULL || nodes == NULL || graph_split_loads(p, plan->device, loads) < 0) {
                out->failed = true;
                return;
        }
        for (size_t i = 0; i < p->node_count; i++)
                nodes[plan->device[i]]++;
        text_printf(out, "%-8s%-18s%10s%14s\n", "DEVICE", "KIND", "NODES", "LOAD MS");
        for (size_t t = 0; t < p->type_count; t++)
                for (size_t k = 0; k < p->types[t].count; k++, d++)
                        text_printf(out, "%-8zu%-18s%10zu%14.3f\n", d,
                                    request->type_names != NULL ? request->type_names[t] : "accelerator",
                                    nodes[d], loads[d]);
        for (; d < devices; d++)
                text_printf(out, "%-8zu%-18s%10zu%14.3f\n", d, "cpu", nodes[d], loads[d]);
        text_printf(out,
                    "\nlargest load %.3f ms; no placement is below %.3f ms (%s, gap %.2f %%); planned in "
                    "%.0f ms\n",
                    plan->max_load_ms, plan->lower_bound_ms,
                    plan->exact ? "exact" : "not proven to be the least",
                    plan->lower_bound_ms > 0 ? 100 * (plan->max_load_ms / plan->lower_bound_ms - 1) : 0.0,
                    effort->planning_ms);
}
