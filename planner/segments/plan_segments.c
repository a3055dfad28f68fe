/* Reads gradients and what a call costs, and writes which of them travel together. */
#include "planner/segments/plan_segments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_writer.h"
#include "planner/segments/segment_network.h"
#include "planner/shards/plan_field.h"

#define COST_MAX   ((size_t) 1 << 16)
#define LEVELS_MAX 16

static const char *const request_fields[] = {
        "tensors", "max_segments", "alpha_ms", "beta_ms_per_byte", "levels",
        "cost",    "name",         "comment",  "estimate",         NULL
};
static const char *const tensor_fields[] = { "name", "bytes", "ready_ms", NULL };
static const char *const level_fields[] = { "alpha_ms", "beta_ms_per_byte", NULL };

static int decode_tensor(const struct json_field *at, double before_ms, struct segment_tensor *ret,
                         char **ret_name, struct err *err)
{
        const char *name = NULL;
        int r = json_field_is_object(at, err);

        if (r == 0)
                r = json_field_only(at, tensor_fields, err);
        if (r == 0)
                r = plan_field_string(at, "name", "a name of its own", &name, err);
        if (r == 0)
                r = plan_field_uint64(at, "bytes", true, 0, SEGMENTS_MAX_BYTES, "the bytes of its gradient",
                                      &ret->bytes, err);
        if (r == 0)
                r = plan_field_double(at, "ready_ms", true, 0, "the ms at which its gradient is there",
                                      &ret->ready_ms, err);
        if (r < 0)
                return r;
        if (ret->ready_ms < before_ms) {
                struct json_field ready = json_field_get(at, "ready_ms");

                return json_field_error(
                        &ready, err,
                        "is %g, before the %g of the tensor above it; list tensors in the order in "
                        "which they become ready",
                        ret->ready_ms, before_ms);
        }
        *ret_name = strdup(name);
        return *ret_name == NULL ? err_set(err, -ENOMEM, "no memory for a name") : 0;
}

static int decode_tensors(const struct json_field *root, struct plan_segments_request *request,
                          struct err *err)
{
        struct json_field list;
        double before_ms = 0;
        size_t count;
        int r = plan_field_list(root, "tensors", SEGMENTS_MAX_TENSORS, "the gradients in backward order",
                                &list, err);

        if (r < 0)
                return r;
        count = json_field_count(&list);
        request->tensors = calloc(count, sizeof(*request->tensors));
        request->names = calloc(count, sizeof(*request->names));
        if (request->tensors == NULL || request->names == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu tensors", count);
        for (size_t i = 0; i < count; i++) {
                struct json_field at = json_field_at(&list, i);

                r = decode_tensor(&at, before_ms, &request->tensors[i], &request->names[i], err);
                if (r < 0)
                        return r;
                before_ms = request->tensors[i].ready_ms;
                request->tensor_count++;
        }
        return plan_field_unique(&list, (const char *const *) request->names, count, err);
}

static int decode_level(const struct json_field *at, struct segment_level *ret, struct err *err)
{
        int r = plan_field_double(at, "alpha_ms", true, 0, "the ms that every call costs", &ret->alpha_ms,
                                  err);

        if (r == 0)
                r = plan_field_double(at, "beta_ms_per_byte", true, 0, "the ms of one byte",
                                      &ret->beta_ms_per_byte, err);
        return r;
}

static int decode_levels(const struct json_field *root, struct plan_segments_request *request,
                         struct err *err)
{
        struct json_field list;
        int r = plan_field_list(root, "levels", LEVELS_MAX,
                                "a cost inside the group and one between the leaders", &list, err);

        if (r < 0)
                return r;
        request->levels = calloc(json_field_count(&list), sizeof(*request->levels));
        if (request->levels == NULL)
                return err_set(err, -ENOMEM, "no memory for levels");
        request->level_count = json_field_count(&list);
        for (size_t i = 0; i < request->level_count; i++) {
                struct json_field at = json_field_at(&list, i);

                r = json_field_is_object(&at, err);
                if (r == 0)
                        r = json_field_only(&at, level_fields, err);
                if (r == 0)
                        r = decode_level(&at, &request->levels[i], err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_points(const struct json_field *root, struct plan_segments_request *request,
                         struct err *err)
{
        const char *mend = "points [bytes, ms], bytes rising";
        struct json_field list;
        int r = plan_field_list(root, "cost", COST_MAX, mend, &list, err);

        if (r < 0)
                return r;
        request->points = calloc(json_field_count(&list), sizeof(*request->points));
        if (request->points == NULL)
                return err_set(err, -ENOMEM, "no memory for a table of costs");
        request->point_count = json_field_count(&list);
        for (size_t i = 0; i < request->point_count; i++) {
                struct json_field at = json_field_at(&list, i);
                struct segment_point *point = &request->points[i];

                r = plan_field_pair(&at, SEGMENTS_MAX_BYTES, mend, &point->bytes, &point->ms, err);
                if (r < 0)
                        return r;
                if (i > 0 && point->bytes <= point[-1].bytes)
                        return json_field_error(&at, err,
                                                "must have more bytes than the point before; give %s", mend);
        }
        return 0;
}

static int decode_cost(const struct json_field *root, struct plan_segments_request *request, struct err *err)
{
        bool line = json_object_get(root->value, "alpha_ms") != NULL ||
                    json_object_get(root->value, "beta_ms_per_byte") != NULL;
        bool levels = json_object_get(root->value, "levels") != NULL;
        bool cost = json_object_get(root->value, "cost") != NULL;

        if (line + levels + cost > 1)
                return err_set(err, -EBADMSG,
                               "alpha_ms, levels, cost: say the same thing in several ways; give one");
        if (levels)
                return decode_levels(root, request, err);
        if (cost)
                return decode_points(root, request, err);
        request->levels = calloc(1, sizeof(*request->levels));
        if (request->levels == NULL)
                return err_set(err, -ENOMEM, "no memory for levels");
        request->level_count = 1;
        return decode_level(root, request->levels, err);
}

static int decode(const struct json_field *root, struct plan_segments_request *request, struct err *err)
{
        uint64_t max_segments = SEGMENTS_DEFAULT_MAX;
        int r = json_field_is_object(root, err);

        if (r == 0)
                r = json_field_only(root, request_fields, err);
        if (r == 0)
                r = plan_field_uint64(root, "max_segments", false, 1, SEGMENTS_MAX_TENSORS,
                                      "the most segments that may be used", &max_segments, err);
        if (r >= 0)
                r = decode_tensors(root, request, err);
        if (r >= 0)
                r = decode_cost(root, request, err);
        request->max_segments = (size_t) max_segments;
        return r;
}

int plan_segments_request_decode(const json_t *json, struct plan_segments_request *ret, struct err *err)
{
        struct json_field root = json_field_root(json);
        struct plan_segments_request request = { 0 };
        int r = decode(&root, &request, err);

        if (r < 0) {
                plan_segments_request_free(&request);
                return r;
        }
        *ret = request;
        return 0;
}

int plan_segments_request_set_network(struct plan_segments_request *request, const char *network,
                                      struct err *err)
{
        free(request->levels);
        request->levels = calloc(1, sizeof(*request->levels));
        if (request->levels == NULL)
                return err_set(err, -ENOMEM, "no memory for a network");
        request->level_count = 1;
        request->has_network = true;
        return segment_network_find(network, request->levels, &request->estimate, err);
}

void plan_segments_request_free(struct plan_segments_request *request)
{
        for (size_t i = 0; i < request->tensor_count; i++)
                free(request->names[i]);
        free(request->names);
        free(request->tensors);
        free(request->levels);
        free(request->points);
        *request = (struct plan_segments_request){ 0 };
}

int plan_segments_request_answer(const struct plan_segments_request *request, struct segments_plan *ret,
                                 struct err *err)
{
        struct segment_cost cost = { .levels = request->levels,
                                     .level_count = request->level_count,
                                     .points = request->points,
                                     .point_count = request->point_count };

        return segments_plan(request->tensors, request->tensor_count, &cost, request->max_segments, ret, err);
}

static void write_segments(struct json_writer *json, const struct segments_plan *plan)
{
        json_write_open(json, "segments", '[');
        for (size_t i = 0; i < plan->segment_count; i++) {
                const struct segment *segment = &plan->segments[i];

                json_write_open(json, NULL, '{');
                json_write_uint64(json, "first", segment->first);
                json_write_uint64(json, "last", segment->last);
                json_write_uint64(json, "bytes", segment->bytes);
                json_write_double(json, "start_ms", segment->start_ms);
                json_write_double(json, "end_ms", segment->end_ms);
                json_write_close(json, '}');
        }
        json_write_close(json, ']');
}

/* The cost that --network stood for, so that the reader can check it. */
static void write_network(struct json_writer *json, const struct plan_segments_request *request)
{
        if (!request->has_network)
                return;
        json_write_open(json, "network", '{');
        json_write_double(json, "alpha_ms", request->levels[0].alpha_ms);
        json_write_double(json, "beta_ms_per_byte", request->levels[0].beta_ms_per_byte);
        json_write_bool(json, "estimate", request->estimate);
        json_write_close(json, '}');
}

void plan_segments_answer_json(const struct plan_segments_request *request, const struct segments_plan *plan,
                               struct text *out)
{
        struct json_writer json = { .text = out };

        json_write_open(&json, NULL, '{');
        json_write_double(&json, "exposed_ms", plan->exposed_ms);
        json_write_double(&json, "end_ms", plan->end_ms);
        write_segments(&json, plan);
        json_write_open(&json, "baselines", '{');
        for (size_t i = 0; i < SEGMENTS_BASELINE_COUNT; i++)
                json_write_double(&json, segment_baseline_name((enum segment_baseline) i),
                                  plan->baseline_exposed_ms[i]);
        json_write_close(&json, '}');
        if (plan->segment_count > HCCL_MAX_SEGMENTS) {
                json_write_null(&json, "hccl_indices");
        } else {
                json_write_open(&json, "hccl_indices", '[');
                for (size_t i = 0; i < plan->segment_count; i++)
                        json_write_uint64(&json, NULL, plan->segments[i].last);
                json_write_close(&json, ']');
        }
        write_network(&json, request);
        json_write_close(&json, '}');
}

void plan_segments_answer_table(const struct plan_segments_request *request, const struct segments_plan *plan,
                                struct text *out)
{
        text_printf(out, "%-10s %-30s %14s %12s %12s\n", "tensors", "", "bytes", "start ms", "end ms");
        for (size_t i = 0; i < plan->segment_count; i++) {
                const struct segment *segment = &plan->segments[i];
                char range[48];

                (void) text_format(range, sizeof(range), "%zu..%zu", segment->first, segment->last);
                text_printf(out, "%-10s %.14s .. %-12.12s %14" PRIu64 " %12.4f %12.4f\n", range,
                            request->names[segment->first], request->names[segment->last], segment->bytes,
                            segment->start_ms, segment->end_ms);
        }
        text_printf(out, "\nexposed %.6g ms (the end at %.6g ms less the last gradient's time)\n",
                    plan->exposed_ms, plan->end_ms);
        for (size_t i = 0; i < SEGMENTS_BASELINE_COUNT; i++)
                text_printf(out, "%-12s %12.4f ms exposed, %zu segment%s\n",
                            segment_baseline_name((enum segment_baseline) i), plan->baseline_exposed_ms[i],
                            plan->baseline_segments[i], plan->baseline_segments[i] == 1 ? "" : "s");
        if (request->has_network)
                text_printf(out, "network: %.6g ms a call, %.6g ms a byte%s\n", request->levels[0].alpha_ms,
                            request->levels[0].beta_ms_per_byte,
                            request->estimate ? " (an estimate: measured for other numbers of ranks)" : "");
}
