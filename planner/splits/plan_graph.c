/* Reads layer graphs (nodes, edges, colours, devices) and writes placements. */
#include "planner/splits/plan_graph.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
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
static int decode_flag(const struct json_field *at, void *field, struct err *err)
{
        int64_t number = 0;
        int r = 0;

        if (json_is_boolean(at->value))
                number = json_is_true(at->value);
        else
                r = json_field_as_int64(at, 0, 1, &number, err);
        *(bool *) field = number == 1;
        return r;
}

struct file_node {
        int64_t id, colour;
        bool supported;
        struct graph_node node;
};

struct file_edge {
        int64_t source, target;
        double cost_ms;
};

struct file_type {
        char *name;
        struct graph_type type;
};

struct file {
        struct file_node *nodes;
        struct file_edge *edges;
        struct file_type *types;
        size_t node_count, edge_count, type_count;
        size_t accelerators, cpus;
        double memory_bytes; /* of an accelerator, where there are no types */
};

#define NODE(member)  JSON_TABLE_AT(struct file_node, member)
#define EDGE(member)  JSON_TABLE_AT(struct file_edge, member)
#define TYPE(member)  JSON_TABLE_AT(struct file_type, member)
#define FILE_(member) JSON_TABLE_AT(struct file, member)

static int check_node(const struct json_field *at, void *object, struct err *err)
{
        struct file_node *own = object;
        struct json_field latency = json_field_get(at, "fpgaLatency");

        if (own->supported && latency.value == NULL)
                return json_field_error(&latency, err, "is missing; give its time on an accelerator");
        if (!own->supported)
                own->node.accelerator_ms = -1;
        own->node.output_ms = -1; /* not said yet */
        return 0;
}

/* clang-format off */
static const struct json_table_row node_rows[] = {
        { "id",              JSON_TABLE_INT,    NODE(id), .required = true, .mend = "each node a whole number of its own" },
        { "cpuLatency",      JSON_TABLE_DOUBLE, NODE(node.cpu_ms), .most = PLAN_TIME_MAX, .required = true,
          .mend = "its time on a CPU" },
        { "supportedOnFpga", JSON_TABLE_CUSTOM, NODE(supported), .decode = decode_flag },
        { "fpgaLatency",     JSON_TABLE_DOUBLE, NODE(node.accelerator_ms), .most = PLAN_TIME_MAX,
          .mend = "its time on an accelerator" },
        { "size",            JSON_TABLE_DOUBLE, NODE(node.memory_bytes), .most = PLAN_TIME_MAX, .mend = "its bytes of memory" },
        { "isBackwardNode",  JSON_TABLE_CUSTOM, NODE(node.backward), .decode = decode_flag },
        { "colorClass",      JSON_TABLE_INT,    NODE(colour) },
        { .name = NULL },
};
static const struct file_node node_initial = { .supported = true };
static const struct json_table node_table = { .rows = node_rows, .size_bytes = sizeof(struct file_node),
                                              .initial = &node_initial, .check = check_node };

static const struct json_table_row edge_rows[] = {
        { "sourceId", JSON_TABLE_INT,    EDGE(source), .required = true, .mend = "the id of a node" },
        { "destId",   JSON_TABLE_INT,    EDGE(target), .required = true, .mend = "the id of a node" },
        { "cost",     JSON_TABLE_DOUBLE, EDGE(cost_ms), .most = PLAN_TIME_MAX, .required = true,
          .mend = "the time to move the source's output" },
        { .name = NULL },
};
static const struct json_table edge_table = { .rows = edge_rows, .size_bytes = sizeof(struct file_edge) };

static const struct json_table_row type_rows[] = {
        { "name",         JSON_TABLE_STRING, TYPE(name), .min = 1, .required = true, .mend = "a name for the kind of device" },
        { "count",        JSON_TABLE_UINT,   TYPE(type.count), .max = GRAPH_DEVICES_MAX },
        { "memory_bytes", JSON_TABLE_DOUBLE, TYPE(type.memory_bytes), .most = PLAN_TIME_MAX, .mend = "bytes" },
        { "speed",        JSON_TABLE_DOUBLE, TYPE(type.speed), .least = 1e-30, .most = PLAN_TIME_MAX,
          .mend = "how many times faster than fpgaLatency says" },
        { .name = NULL },
};
static const struct file_type type_initial = { .type = { .count = 1, .memory_bytes = BYTES_MAX, .speed = 1 } };
static const struct json_table type_table = { .rows = type_rows, .size_bytes = sizeof(struct file_type),
                                              .initial = &type_initial };

static const struct json_table_row file_rows[] = {
        { "types",          JSON_TABLE_LIST,   FILE_(types), .table = &type_table, .count = offsetof(struct file, type_count),
          .max = GRAPH_TYPES_MAX },
        { "maxFPGAs",       JSON_TABLE_UINT,   FILE_(accelerators), .max = GRAPH_DEVICES_MAX },
        { "maxSizePerFPGA", JSON_TABLE_DOUBLE, FILE_(memory_bytes), .most = PLAN_TIME_MAX, .mend = "bytes" },
        { "maxCPUs",        JSON_TABLE_UINT,   FILE_(cpus), .max = GRAPH_DEVICES_MAX },
        { "nodes",          JSON_TABLE_LIST,   FILE_(nodes), .table = &node_table, .count = offsetof(struct file, node_count),
          .min = 1, .max = GRAPH_NODES_MAX, .required = true, .mend = "at least one node" },
        { "edges",          JSON_TABLE_LIST,   FILE_(edges), .table = &edge_table, .count = offsetof(struct file, edge_count),
          .max = GRAPH_EDGES_MAX },
        { .name = NULL },
};
static const struct json_table file_table = { .rows = file_rows, .size_bytes = sizeof(struct file) };
/* clang-format on */

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
static int number_units(struct plan_graph_request *request, const struct json_field *nodes,
                        const struct file *file, struct err *err)
{
        size_t n = request->problem.node_count, keyed = 0;
        CLEANUP(free_p) struct key *keys = calloc(n + 1, sizeof(*keys));
        CLEANUP(free_p) size_t *first = calloc(n + 1, sizeof(*first));
        struct json_field at;

        if (keys == NULL || first == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu nodes", n);
        for (size_t i = 0; i < n; i++) {
                first[i] = i;
                at = json_field_at(nodes, i);
                if (json_field_get(&at, "colorClass").value != NULL)
                        keys[keyed++] = (struct key){ file->nodes[i].colour, i };
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
static int find_node(const struct json_field *at, const char *name, int64_t id, const struct key *keys,
                     size_t count, size_t *ret, struct err *err)
{
        size_t low = 0, high = count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (keys[middle].value < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == count || keys[low].value != id)
                return json_field_error(at, err, "%s %lld is the id of no node", name, (long long) id);
        *ret = keys[low].index;
        return 0;
}

static int take_edge(const struct json_field *at, const struct file_edge *own,
                     struct plan_graph_request *request, size_t e, const struct key *keys, struct err *err)
{
        struct graph_edge *edge = &request->edges[e];
        size_t n = request->problem.node_count;
        double cost = own->cost_ms, *known;
        int r = find_node(at, "sourceId", own->source, keys, n, &edge->source, err);

        if (r == 0)
                r = find_node(at, "destId", own->target, keys, n, &edge->target, err);
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

static int take_edges(const struct json_field *root, const struct file *file,
                      struct plan_graph_request *request, struct err *err)
{
        size_t n = request->problem.node_count;
        CLEANUP(free_p) struct key *keys = calloc(n + 1, sizeof(*keys));
        struct json_field edges = json_field_get(root, "edges");
        int r = 0;

        request->edges = calloc(file->edge_count + 1, sizeof(*request->edges));
        request->problem.edges = request->edges;
        request->problem.edge_count = file->edge_count;
        if (keys == NULL || request->edges == NULL)
                return err_set(err, -ENOMEM, "no memory for the edges");
        for (size_t i = 0; i < n; i++)
                keys[i] = (struct key){ request->ids[i], i };
        qsort(keys, n, sizeof(*keys), compare_keys);
        for (size_t i = 1; i < n; i++)
                if (keys[i].value == keys[i - 1].value)
                        return err_set(err, -EBADMSG,
                                       "nodes[%zu].id: %lld is also the id of nodes[%zu]; ids must differ",
                                       keys[i].index, (long long) keys[i].value, keys[i - 1].index);
        for (size_t e = 0; r == 0 && e < file->edge_count; e++) {
                struct json_field at = json_field_at(&edges, e);

                r = take_edge(&at, &file->edges[e], request, e, keys, err);
        }
        for (size_t i = 0; i < n; i++)
                request->nodes[i].output_ms = fmax(request->nodes[i].output_ms, 0);
        return r;
}

static int take_nodes(const struct json_field *root, const struct file *file,
                      struct plan_graph_request *request, struct err *err)
{
        struct json_field nodes = json_field_get(root, "nodes");
        size_t n = file->node_count;

        request->nodes = calloc(n, sizeof(*request->nodes));
        request->ids = calloc(n, sizeof(*request->ids));
        if (request->nodes == NULL || request->ids == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu nodes", n);
        for (size_t i = 0; i < n; i++) {
                request->nodes[i] = file->nodes[i].node;
                request->ids[i] = file->nodes[i].id;
        }
        request->problem.nodes = request->nodes;
        request->problem.node_count = n;
        return number_units(request, &nodes, file, err);
}

/* The types, or one without a name for maxFPGAs. */
static int take_devices(const struct json_field *root, struct file *file, struct plan_graph_request *request,
                        struct err *err)
{
        struct json_field types = json_field_get(root, "types");
        size_t count = file->types != NULL ? file->type_count : 1;

        if (file->types == NULL && json_field_get(root, "maxFPGAs").value == NULL)
                return json_field_error(root, err, "maxFPGAs (or types) must be given");
        request->types = calloc(count + 1, sizeof(*request->types));
        request->type_names = file->types != NULL ? calloc(count + 1, sizeof(*request->type_names)) : NULL;
        if (request->types == NULL || (file->types != NULL && request->type_names == NULL))
                return err_set(err, -ENOMEM, "no memory for %zu types", count);
        request->types[0] = (struct graph_type){ .count = file->accelerators,
                                                 .memory_bytes = file->memory_bytes,
                                                 .speed = 1 };
        request->problem.type_count = count;
        request->problem.types = request->types;
        request->problem.cpu_count = file->cpus;
        for (size_t t = 0; t < file->type_count; t++) {
                struct json_field at = json_field_at(&types, t);

                assert(request->type_names != NULL); /* a count without types is 0 */
                for (size_t other = 0; other < t; other++)
                        if (strcmp(request->type_names[other], file->types[t].name) == 0)
                                return json_field_error(&at, err,
                                                        "name '%s' is declared before; add to its count",
                                                        file->types[t].name);
                request->types[t] = file->types[t].type;
                request->type_names[t] = TAKE(file->types[t].name);
        }
        if (graph_device_count(&request->problem) > GRAPH_DEVICES_MAX)
                return json_field_error(root, err, "%zu devices are more than %d",
                                        graph_device_count(&request->problem), GRAPH_DEVICES_MAX);
        return 0;
}

int plan_graph_request_decode(const json_t *json, bool contiguous, struct plan_graph_request *ret,
                              struct err *err)
{
        struct json_field root = json_field_root(json);
        struct plan_graph_request request = { .problem.contiguous = contiguous };
        struct file file = { .memory_bytes = BYTES_MAX };
        int r = json_table_decode(&file_table, json, &file, err);

        if (r < 0)
                return r;
        r = take_devices(&root, &file, &request, err);
        if (r == 0)
                r = take_nodes(&root, &file, &request, err);
        if (r == 0)
                r = take_edges(&root, &file, &request, err);
        json_table_free(&file_table, &file);
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
