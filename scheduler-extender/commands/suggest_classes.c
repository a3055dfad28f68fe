/* A trace or the pods of a store become jobs, a split of the nodes is searched for them, and both are
 * printed. */
#include "scheduler-extender/commands/suggest_classes.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/read_file.h"
#include "planner/traces/class_split.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/replay/trace_csv.h"

static_assert((int) CLASS_SPLIT_ANY == (int) NODE_CLASS_ANY &&
                      (int) CLASS_SPLIT_SINGLE == (int) NODE_CLASS_SINGLE &&
                      (int) CLASS_SPLIT_MULTI == (int) NODE_CLASS_MULTI,
              "a node's class is handed over as it is");

/* What one resource's nodes and jobs are, before they are sorted. */
struct history {
        const char *resource;
        struct named_node {
                struct class_split_node node;
                const char *name;
        } * nodes;
        size_t node_count;
        struct class_split_job *jobs;
        size_t job_count;
};

static void history_free(struct history *h)
{
        free(h->nodes);
        free(h->jobs);
        *h = (struct history){ 0 };
}

static int history_make(struct history *h, size_t nodes, size_t jobs, struct err *err)
{
        h->nodes = calloc(nodes + 1, sizeof(*h->nodes));
        h->jobs = calloc(jobs + 1, sizeof(*h->jobs));
        if (h->nodes != NULL && h->jobs != NULL)
                return 0;
        return err_set(err, -ENOMEM, "no memory");
}

static int smaller(const void *a, const void *b)
{
        const struct named_node *x = a, *y = b;

        if (x->node.chips != y->node.chips)
                return x->node.chips < y->node.chips ? -1 : 1;
        return strcmp(x->name, y->name);
}

static int earlier(const void *a, const void *b)
{
        const struct class_split_job *x = a, *y = b;

        return (x->arrival_sec > y->arrival_sec) - (x->arrival_sec < y->arrival_sec);
}

/* Arrivals as close together as the load asks for. */
static void set_load(struct history *h, double load)
{
        double work = 0, chips = 0, span;

        for (size_t i = 0; i < h->job_count; i++)
                work += (double) h->jobs[i].milli / 1000 * (double) h->jobs[i].duration_sec;
        for (size_t i = 0; i < h->node_count; i++)
                chips += h->nodes[i].node.chips;
        if (h->job_count == 0 || !(load > 0) || !(chips > 0))
                return;
        span = (double) (h->jobs[h->job_count - 1].arrival_sec - h->jobs[0].arrival_sec);
        for (size_t i = h->job_count; span > 0 && i-- > 0;)
                h->jobs[i].arrival_sec =
                        (uint64_t) ((double) (h->jobs[i].arrival_sec - h->jobs[0].arrival_sec) / span * work /
                                    chips / load);
}

static json_t *names(const struct history *h, size_t begin, size_t end)
{
        json_t *list = json_array();

        for (size_t i = begin; i < end; i++)
                (void) json_array_append_new(list, json_string(h->nodes[i].name));
        return list;
}

static json_t *seconds(double value)
{
        return isfinite(value) ? json_real(value) : json_null();
}

static int split(struct history *h, double load, json_t *resources, struct err *err)
{
        CLEANUP(free_p) struct class_split_node *nodes = calloc(h->node_count + 1, sizeof(*nodes));
        struct class_split result;
        double gain;
        int r;

        if (nodes == NULL)
                return err_set(err, -ENOMEM, "no memory");
        qsort(h->nodes, h->node_count, sizeof(*h->nodes), smaller);
        qsort(h->jobs, h->job_count, sizeof(*h->jobs), earlier);
        set_load(h, load);
        for (size_t i = 0; i < h->node_count; i++)
                nodes[i] = h->nodes[i].node;
        r = class_split_find(nodes, h->node_count, h->jobs, h->job_count, &result);
        if (r < 0)
                return err_set(err, r, "no memory");
        gain = isfinite(result.present_wait_sec) && result.present_wait_sec > 0
                       ? 100 * (1 - result.wait_sec / result.present_wait_sec)
                       : 0;
        return json_array_append_new(
                resources,
                json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "resource", h->resource, "nodes",
                          (json_int_t) h->node_count, "jobs", (json_int_t) result.jobs, "impossible",
                          (json_int_t) result.impossible, "single", names(h, 0, result.single), "multi",
                          names(h, result.single, h->node_count), "waitSeconds", seconds(result.wait_sec),
                          "presentWaitSeconds", seconds(result.present_wait_sec), "gainPercent",
                          seconds(gain)));
}

static int finish(const char *source, json_t *resources, int r, json_t **ret, struct err *err)
{
        if (r == 0 && json_array_size(resources) == 0)
                r = err_set(
                        err, -ENODATA,
                        "no job of which a beginning and an end are known: there is nothing to learn from");
        if (r < 0) {
                json_decref(resources);
                return r;
        }
        *ret = json_pack("{s:b, s:s, s:o}", "simulated", 1, "source", source, "resources", resources);
        return *ret == NULL ? err_set(err, -ENOMEM, "no memory") : 0;
}

static void take_trace(struct history *h, const struct trace_csv_nodes *nodes,
                       const struct trace_csv_pods *pods)
{
        h->resource = "chips";
        for (size_t i = 0; i < nodes->count; i++)
                if (nodes->nodes[i].chips > 0)
                        h->nodes[h->node_count++] =
                                (struct named_node){ { nodes->nodes[i].chips, NODE_CLASS_ANY },
                                                     nodes->names[i] };
        for (size_t i = 0; i < pods->count; i++) {
                const struct replay_pod *pod = &pods->pods[i];

                if (pod->request.chips > 0 && pod->deleted_sec > pod->created_sec)
                        h->jobs[h->job_count++] = (struct class_split_job){
                                .arrival_sec = pod->created_sec,
                                .duration_sec = pod->deleted_sec - pod->created_sec,
                                .milli = pod->request.chips *
                                         (pod->request.milli > 0 ? pod->request.milli : 1000),
                                .multi = pod->request.chips > 1
                        };
        }
}

int suggest_classes_of_trace(const char *nodes_path, const char *pods_path, double load, json_t **ret,
                             struct err *err)
{
        CLEANUP(free_p) struct trace_csv_models *models = calloc(1, sizeof(*models));
        CLEANUP(free_p) char *node_text = NULL, *pod_text = NULL;
        struct trace_csv_nodes nodes = { 0 };
        struct trace_csv_pods pods = { 0 };
        struct history history = { 0 };
        json_t *resources = json_array();
        size_t node_bytes = 0, pod_bytes = 0;
        int r = models == NULL ? err_set(err, -ENOMEM, "no memory")
                               : read_file(nodes_path, READ_FILE_MAX_BYTES, &node_text, &node_bytes, err);

        if (r == 0)
                r = read_file(pods_path, READ_FILE_MAX_BYTES, &pod_text, &pod_bytes, err);
        if (r == 0 && (r = trace_csv_nodes_decode(node_text, node_bytes, models, &nodes, err)) < 0)
                (void) err_wrap(err, r, "--nodes '%s'", nodes_path);
        if (r == 0 && (r = trace_csv_pods_decode(pod_text, pod_bytes, models, &pods, err)) < 0)
                (void) err_wrap(err, r, "--pods '%s'", pods_path);
        if (r == 0)
                r = history_make(&history, nodes.count, pods.count, err);
        if (r == 0) {
                take_trace(&history, &nodes, &pods);
                if (history.job_count > 0 && history.node_count > 0)
                        r = split(&history, load, resources, err);
        }
        r = finish("trace", resources, r, ret, err);
        history_free(&history);
        trace_csv_nodes_free(&nodes);
        trace_csv_pods_free(&pods);
        return r;
}

static uint32_t chips_of(const struct ledger_node *node, uint32_t resource)
{
        uint32_t chips = 0;

        for (uint32_t g = 0; g < node->group_count; g++)
                chips += node->groups[g].resource == resource ? node->groups[g].usable : 0;
        return chips;
}

static uint64_t chips_asked(const struct ledger_pod *pod, uint32_t resource)
{
        uint64_t chips = 0;

        for (size_t i = 0; i < pod->request.item_count; i++)
                chips += pod->request.items[i].resource == resource ? pod->request.items[i].chips : 0;
        return chips;
}

/* Emergencies and the reserve are no matter of classes. A pod that still runs has run for as long as it has.
 */
static void take_ledger(struct history *h, const struct ledger *ledger, uint32_t resource, uint64_t now_usec)
{
        h->resource = symbols_name(&ledger->symbols, resource);
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                uint32_t chips = chips_of(ledger->nodes[i], resource);

                if (chips > 0 && !ledger->nodes[i]->reserved)
                        h->nodes[h->node_count++] =
                                (struct named_node){ { chips, ledger->nodes[i]->node_class },
                                                     ledger->nodes[i]->name };
        }
        for (uint32_t i = 0; i < ledger->pod_slot_count; i++) {
                const struct ledger_pod *pod = ledger->pod_slots[i];
                uint64_t chips = pod == NULL ? 0 : chips_asked(pod, resource), end;

                if (chips == 0 || pod->request.emergency || pod->created_usec == 0 || pod->started_usec == 0)
                        continue;
                end = pod->ended_usec > 0 ? pod->ended_usec : pod->ended ? 0 : now_usec;
                if (end > pod->started_usec)
                        h->jobs[h->job_count++] =
                                (struct class_split_job){ .arrival_sec = pod->created_usec / 1000000,
                                                          .duration_sec =
                                                                  (end - pod->started_usec) / 1000000 + 1,
                                                          .milli = (uint32_t) chips * 1000,
                                                          .multi = pod->request.class_chips > 1 };
        }
}

int suggest_classes_of_ledger(const struct ledger *ledger, uint64_t now_usec, double load, json_t **ret,
                              struct err *err)
{
        json_t *resources = json_array();
        int r = 0;

        for (uint32_t resource = 1; resource <= ledger->symbols.count && r == 0; resource++) {
                struct history history = { 0 };

                if (!ledger_chips_has(ledger, resource))
                        continue;
                r = history_make(&history, ledger->node_count, ledger->pod_count, err);
                if (r == 0)
                        take_ledger(&history, ledger, resource, now_usec);
                if (r == 0 && history.node_count > 0 && history.job_count > 0)
                        r = split(&history, load, resources, err);
                history_free(&history);
        }
        return finish("store", resources, r, ret, err);
}
