/* Reads a chain of layers and kinds of devices, and writes stages, or one layer's rows over all devices. */
#include "planner/splits/plan_split.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/text.h"
#include "planner/shards/plan_field.h"
#include "planner/shards/shards.h"
#include "planner/splits/pipeline_schedule.h"

#define BYTES_MAX  ((uint64_t) 1 << 53)
#define COUNT_MAX  4096
#define NUMBER_MAX 1e18

static const char *const schedules[] = { "1f1b", "gpipe", "inference", NULL };

void plan_split_input_free(struct plan_split_input *input)
{
        for (size_t c = 0; input->types != NULL && c < input->problem.class_count; c++)
                free(input->types[c]);
        for (size_t i = 0; input->layers != NULL && i < input->problem.layer_count; i++)
                free(input->layers[i]);
        free(input->types);
        free(input->layers);
        free(input->classes);
        free(input->nodes);
        free(input->inside_bytes_per_ms);
        free(input->rows);
        free(input->held);
        free(input->memory);
        free(input->activation);
        free(input->params);
        free(input->ms);
        memset(input, 0, sizeof(*input));
}

struct file_layer {
        char *name;
        uint64_t memory_bytes, params_bytes, activation_bytes, held_bytes,
                rows; /* params_bytes: what replicas exchange */
};

struct file_device {
        char *type, *node;
        struct chain_class class;
        double inside_bytes_per_ms;
};

struct file {
        struct file_layer *layers;
        struct file_device *devices;
        size_t layer_count, device_count;
        unsigned schedule, microbatches;
};

#define LAYER(member)  JSON_TABLE_AT(struct file_layer, member)
#define DEVICE(member) JSON_TABLE_AT(struct file_device, member)
#define FILE_(member)  JSON_TABLE_AT(struct file, member)

/* clang-format off */
static const struct json_table_row layer_rows[] = {
        { "name",             JSON_TABLE_STRING, LAYER(name), .min = 1, .required = true, .mend = "a name of its own" },
        { .name = "ms", .kind = JSON_TABLE_UNREAD }, /* by device type: below */
        { "memory_bytes",     JSON_TABLE_UINT, LAYER(memory_bytes), .max = BYTES_MAX },
        { "params_bytes",     JSON_TABLE_UINT, LAYER(params_bytes), .max = BYTES_MAX },
        { "activation_bytes", JSON_TABLE_UINT, LAYER(activation_bytes), .max = BYTES_MAX },
        { "rows",             JSON_TABLE_UINT, LAYER(rows), .min = 1, .max = BYTES_MAX },
        { .name = "multiply_adds", .kind = JSON_TABLE_UNREAD }, /* of a job's profile: job/spec/job_split.h */
        { "held_bytes",       JSON_TABLE_UINT, LAYER(held_bytes), .max = BYTES_MAX },
        { .name = NULL },
};
static const struct json_table layer_table = { .rows = layer_rows, .size_bytes = sizeof(struct file_layer), .strict = true };

static const struct json_table_row device_rows[] = {
        { "type",         JSON_TABLE_STRING, DEVICE(type), .min = 1, .required = true, .mend = "the kind of device" },
        { "count",        JSON_TABLE_UINT,   DEVICE(class.count), .max = COUNT_MAX },
        { "memory_bytes", JSON_TABLE_UINT,   DEVICE(class.memory_bytes), .max = BYTES_MAX },
        { "bytes_per_ms", JSON_TABLE_DOUBLE, DEVICE(class.bytes_per_ms), .least = 1e-30, .most = NUMBER_MAX, .required = true,
          .mend = "the speed of its link, above 0" },
        { "begin_ms",     JSON_TABLE_DOUBLE, DEVICE(class.begin_ms), .least = 0, .most = NUMBER_MAX },
        { "node",         JSON_TABLE_STRING, DEVICE(node), .min = 1 },
        { "inside_bytes_per_ms", JSON_TABLE_DOUBLE, DEVICE(inside_bytes_per_ms), .least = 1e-30, .most = NUMBER_MAX },
        { .name = NULL },
};
static const struct file_device device_initial = { .class = { .count = 1, .memory_bytes = BYTES_MAX } };
static const struct json_table device_table = { .rows = device_rows, .size_bytes = sizeof(struct file_device), .strict = true,
                                                .initial = &device_initial };

static const struct json_table_row file_rows[] = {
        { "layers",       JSON_TABLE_LIST,   FILE_(layers), .table = &layer_table, .count = offsetof(struct file, layer_count),
          .min = 1, .max = CHAIN_LAYERS_MAX, .required = true, .mend = "the layers to split" },
        { "devices",      JSON_TABLE_LIST,   FILE_(devices), .table = &device_table,
          .count = offsetof(struct file, device_count), .min = 1, .max = CHAIN_CLASSES_MAX, .required = true,
          .mend = "the devices to split over" },
        { "schedule",     JSON_TABLE_CHOICE, FILE_(schedule), .names = schedules },
        { "microbatches", JSON_TABLE_UINT,   FILE_(microbatches), .min = 1, .max = 1 << 30 },
        { .name = "name", .kind = JSON_TABLE_UNREAD },
        { .name = "comment", .kind = JSON_TABLE_UNREAD },
        { .name = "estimate", .kind = JSON_TABLE_UNREAD },
        { .name = "samples", .kind = JSON_TABLE_UNREAD }, /* of a microbatch, whose times are given */
        { .name = NULL },
};
static const struct json_table file_table = { .rows = file_rows, .size_bytes = sizeof(struct file), .strict = true };
/* clang-format on */

static int take_ms(const struct json_field *at, struct plan_split_input *input, size_t layer, struct err *err)
{
        struct json_field ms;
        const char *type;
        json_t *value;
        int r = json_field_object(at, "ms", &ms, err);

        if (r != 0)
                return r < 0 ? r : json_field_error(at, err, "has no ms: time by device type");
        json_object_foreach((json_t *) ms.value, type, value)
        {
                size_t c = 0;

                for (; c < input->problem.class_count; c++) {
                        assert(input->types[c] != NULL);
                        if (strcmp(input->types[c], type) == 0)
                                break;
                }
                if (c == input->problem.class_count)
                        return json_field_error(
                                &ms, err,
                                "'%s' is no declared device type; declare it in devices (count 0 is "
                                "allowed)",
                                type);
                r = json_field_double(&ms, type, 0, NUMBER_MAX,
                                      &input->ms[c * input->problem.layer_count + layer], err);
                if (r < 0)
                        return r;
                if (r == JSON_FIELD_ABSENT)
                        return json_field_error(&ms, err, "'%s' is null; leave the type out instead", type);
        }
        return 0;
}

static int allocate(struct plan_split_input *input, struct err *err)
{
        size_t n = input->problem.layer_count, classes = input->problem.class_count;

        input->classes = calloc(classes, sizeof(*input->classes));
        input->types = calloc(classes, sizeof(*input->types));
        input->nodes = calloc(classes, sizeof(*input->nodes));
        input->inside_bytes_per_ms = calloc(classes, sizeof(*input->inside_bytes_per_ms));
        input->layers = calloc(n, sizeof(*input->layers));
        input->rows = calloc(n, sizeof(*input->rows));
        input->memory = calloc(n, sizeof(*input->memory));
        input->activation = calloc(n, sizeof(*input->activation));
        input->params = calloc(n, sizeof(*input->params));
        input->held = calloc(n, sizeof(*input->held));
        input->ms = calloc(n * classes, sizeof(*input->ms));
        if (input->classes == NULL || input->types == NULL || input->layers == NULL || input->rows == NULL ||
            input->memory == NULL || input->activation == NULL || input->params == NULL ||
            input->ms == NULL || input->held == NULL || input->nodes == NULL ||
            input->inside_bytes_per_ms == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu layers", n);
        for (size_t v = 0; v < n * classes; v++)
                input->ms[v] = -1; /* may not go there, unless ms says otherwise */
        return 0;
}

static const char *node_name(const struct file *file, size_t device)
{
        const struct file_device *d = &file->devices[device];

        return d->node != NULL ? d->node : d->type;
}

/* Devices of one type are on a node of their own, unless the file names it. Return: the first device on it.
 */
static unsigned node_of(const struct file *file, size_t device)
{
        size_t first = 0;

        while (strcmp(node_name(file, first), node_name(file, device)) != 0)
                first++;
        return (unsigned) first;
}

static int take_devices(const struct json_field *root, struct file *file, struct plan_split_input *input,
                        struct err *err)
{
        struct json_field devices = json_field_get(root, "devices");

        for (size_t c = 0; c < file->device_count; c++) {
                struct json_field at = json_field_at(&devices, c);

                for (size_t other = 0; other < c; other++)
                        if (strcmp(file->devices[other].type, file->devices[c].type) == 0)
                                return json_field_error(&at, err,
                                                        "type '%s' is declared before; add to its count",
                                                        file->devices[c].type);
                input->inside_bytes_per_ms[c] = file->devices[c].inside_bytes_per_ms;
                input->nodes[c] = node_of(file, c);
                if (input->inside_bytes_per_ms[c] <= 0 && file->devices[c].node != NULL)
                        return json_field_error(
                                &at, err,
                                "node: nothing follows from it without inside_bytes_per_ms, the "
                                "speed of the link inside the node; add that, or leave node out");
                input->classes[c] = file->devices[c].class;
                input->classes[c].ms = input->ms + c * input->problem.layer_count;
        }
        for (size_t c = 0; c < file->device_count; c++)
                input->types[c] = TAKE(file->devices[c].type);
        return 0;
}

/* What a layer keeps of a microbatch: its output alone where that is not said, or where no backward pass
 * wants the rest. */
static uint64_t held_of(const struct file *file, const struct file_layer *layer)
{
        bool said = layer->held_bytes > 0 && file->schedule != CHAIN_INFERENCE;

        return said ? layer->held_bytes : layer->activation_bytes;
}

static int take_layers(const struct json_field *root, struct file *file, struct plan_split_input *input,
                       struct err *err)
{
        struct json_field layers = json_field_get(root, "layers");
        int r = 0;

        for (size_t i = 0; r == 0 && i < file->layer_count; i++) {
                struct json_field at = json_field_at(&layers, i);

                input->layers[i] = TAKE(file->layers[i].name);
                input->memory[i] = file->layers[i].memory_bytes;
                input->activation[i] = file->layers[i].activation_bytes;
                input->params[i] = file->layers[i].params_bytes;
                input->held[i] = held_of(file, &file->layers[i]);
                input->rows[i] = file->layers[i].rows;
                r = take_ms(&at, input, i, err);
        }
        return r == 0 ? plan_field_unique(&layers, input->layers, sizeof(*input->layers), file->layer_count,
                                          err)
                      : r;
}

int plan_split_input_decode(const json_t *object, struct plan_split_input *ret, struct err *err)
{
        struct json_field root = json_field_root(object);
        struct plan_split_input input = { .types = NULL };
        struct file file = { .microbatches = 1 };
        int r = json_table_decode(&file_table, object, &file, err);

        if (r < 0)
                return r;
        input.problem = (struct chain_problem){ .layer_count = file.layer_count,
                                                .class_count = file.device_count,
                                                .schedule = (enum chain_schedule) file.schedule,
                                                .microbatches = file.microbatches };
        r = allocate(&input, err);
        if (r == 0)
                r = take_devices(&root, &file, &input, err);
        if (r == 0)
                r = take_layers(&root, &file, &input, err);
        input.problem.classes = input.classes;
        input.problem.memory_bytes = input.memory;
        input.problem.activation_bytes = input.activation;
        input.problem.held_bytes = input.held;
        json_table_free(&file_table, &file);
        if (r < 0)
                plan_split_input_free(&input);
        else
                *ret = input;
        return r;
}

static json_t *number_or_null(double value)
{
        return value < 0 ? json_null() : json_real(value);
}

/* A stage's part of an answer. */
static json_t *stages_json(const struct plan_split_input *input, const struct chain_plan *plan)
{
        json_t *stages = json_array();

        for (size_t k = 0; k < plan->stage_count; k++) {
                const struct chain_stage *s = &plan->stages[k];

                json_array_append_new(stages,
                                      json_pack("{s:s, s:I, s:I, s:f, s:I}", "type",
                                                input->types[s->class_index], "first", (json_int_t) s->first,
                                                "last", (json_int_t) s->last, "load_ms", s->load_ms,
                                                "memory_bytes", (json_int_t) s->memory_bytes));
        }
        return stages;
}

/* A step of all microbatches: as its passes go, where forward and backward ones take turns. */
static double foretold_ms(const struct plan_split_input *input, const struct chain_plan *plan)
{
        double load_ms[CHAIN_LAYERS_MAX];

        if (input->problem.schedule != CHAIN_1F1B)
                return pipeline_schedule_most_ms(plan->latency_ms, plan->period_ms,
                                                 input->problem.microbatches);
        for (size_t k = 0; k < plan->stage_count; k++)
                load_ms[k] = plan->stages[k].load_ms;
        return pipeline_schedule_ms(load_ms, plan->stage_count, input->problem.microbatches);
}

json_t *plan_split_encode(const struct plan_split_input *input, const struct chain_plan *plan,
                          double planning_ms)
{
        json_t *stages = stages_json(input, plan);

        return json_pack("{s:f, s:f, s:f, s:o, s:f, s:f, s:f, s:b, s:o, s:o, s:f}", "period_ms",
                         plan->period_ms, "latency_ms", plan->latency_ms, "foretold_ms",
                         foretold_ms(input, plan), "stages", stages, "max_load", plan->period_ms,
                         "lower_bound", plan->lower_bound_ms, "gap",
                         plan->lower_bound_ms > 0 ? plan->period_ms / plan->lower_bound_ms - 1 : 0.0, "exact",
                         (int) plan->exact, "equal_layers_ms",
                         number_or_null(chain_equal_layers_ms(&input->problem)), "proportional_ms",
                         number_or_null(chain_proportional_ms(&input->problem)), "planning_ms", planning_ms);
}

static void append_baseline(struct text *out, const char *name, double ms)
{
        if (ms < 0)
                text_printf(out, "; %s impossible", name);
        else
                text_printf(out, "; %s %.3f ms", name, ms);
}

void plan_split_table(const struct plan_split_input *input, const struct chain_plan *plan, double planning_ms,
                      struct text *out)
{
        text_printf(out, "%-7s%-20s%-24s%-24s%12s%16s\n", "STAGE", "DEVICE", "FIRST", "LAST", "LOAD MS",
                    "MEMORY MIB");
        for (size_t k = 0; k < plan->stage_count; k++) {
                const struct chain_stage *s = &plan->stages[k];

                text_printf(out, "%-7zu%-20s%-24s%-24s%12.3f%16.1f\n", k, input->types[s->class_index],
                            input->layers[s->first], input->layers[s->last], s->load_ms,
                            (double) s->memory_bytes / 1048576);
        }
        text_printf(out, "\nperiod %.3f ms (exact), latency %.3f ms", plan->period_ms, plan->latency_ms);
        if (input->problem.microbatches > 1)
                text_printf(out, ", a step of %u %.3f ms", input->problem.microbatches,
                            foretold_ms(input, plan));
        append_baseline(out, "equal layers", chain_equal_layers_ms(&input->problem));
        append_baseline(out, "in proportion", chain_proportional_ms(&input->problem));
        text_printf(out, "; planned in %.1f ms\n", planning_ms);
}

/* One worker a device: its speed in rows, and how many rows its memory holds. */
static size_t row_workers(const struct plan_split_input *input, size_t layer, struct shard_worker *workers,
                          size_t *classes)
{
        size_t count = 0;
        uint64_t rows = input->rows[layer];

        for (size_t c = 0; c < input->problem.class_count; c++) {
                const struct chain_class *class = &input->classes[c];
                double bytes = (double) input->memory[layer] + (double) input->held[layer];
                double fit = bytes > 0 ? floor((double) class->memory_bytes / bytes * (double) rows)
                                       : (double) rows;

                if (class->ms[layer] < 0 || fit < 1)
                        continue;
                for (unsigned u = 0; u < class->count; u++) {
                        classes[count] = c;
                        workers[count++] = (struct shard_worker){ .model = SHARD_AFFINE,
                                                                  .beta_ms = class->ms[layer] / (double) rows,
                                                                  .has_max = fit < (double) rows,
                                                                  .max = (uint64_t) fit };
                }
        }
        return count;
}

int plan_split_rows(const struct plan_split_input *input, const char *layer, json_t **ret, struct err *err)
{
        size_t i = 0, devices = 1, count;
        CLEANUP(free_p) struct shard_worker *workers = NULL;
        CLEANUP(free_p) struct shard *shards = NULL;
        CLEANUP(free_p) size_t *classes = NULL;
        struct shards_plan plan;
        uint64_t begin = 0;
        json_t *list;
        int r;

        while (i < input->problem.layer_count && strcmp(input->layers[i], layer) != 0)
                i++;
        if (i == input->problem.layer_count)
                return err_set(err, -ENOENT, "no layer is named '%s'", layer);
        if (input->rows[i] == 0)
                return err_set(err, -EINVAL, "layers[%zu]: has no rows; say how many its weights have", i);
        for (size_t c = 0; c < input->problem.class_count; c++)
                devices += input->classes[c].count;
        workers = calloc(devices, sizeof(*workers));
        shards = calloc(devices, sizeof(*shards));
        classes = calloc(devices, sizeof(*classes));
        if (workers == NULL || shards == NULL || classes == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu devices", devices);
        count = row_workers(input, i, workers, classes);
        if (count == 0)
                return err_set(err, -ERANGE, "layers[%zu]: no device can hold even one row", i);
        r = shards_plan(workers, count, input->rows[i], shards, &plan, err);
        if (r < 0)
                return err_wrap(err, r, "layers[%zu].rows", i);

        list = json_array();
        for (size_t w = 0; w < count; w++) {
                uint64_t end = begin + shards[w].batch;

                json_array_append_new(
                        list, json_pack("{s:s, s:I, s:I, s:I, s:f}", "type", input->types[classes[w]], "rows",
                                        (json_int_t) shards[w].batch, "begin", (json_int_t) begin, "end",
                                        (json_int_t) end, "ms", shards[w].step_ms));
                begin = end;
        }
        *ret = json_pack("{s:s, s:I, s:f, s:f, s:o}", "layer", layer, "rows", (json_int_t) input->rows[i],
                         "step_ms", plan.step_ms, "ideal_ms", plan.ideal_ms, "devices", list);
        return *ret == NULL ? err_set(err, -ENOMEM, "no memory for the answer") : 0;
}
