/* Reads gradients and what a call costs, and writes which of them travel together. */
#include "planner/segments/plan_segments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/json/json_writer.h"
#include "planner/segments/segment_network.h"
#include "planner/shards/plan_field.h"

#define COST_MAX   ((size_t) 1 << 16)
#define LEVELS_MAX 16

/* A file, with the cost of a call as it may stand at the top. */
struct file {
        struct plan_segments_request request;
        struct segment_level line;
};

#define FILE_(member)  JSON_TABLE_AT(struct file, member)
#define TENSOR(member) JSON_TABLE_AT(struct segment_tensor, member)
#define LEVEL(member)  JSON_TABLE_AT(struct segment_level, member)
#define COUNT(member)  .count = offsetof(struct file, request.member)
#define ALPHA_MEND     "the ms that every call costs"
#define BETA_MEND      "the ms of one byte"
#define POINT_MEND     "points [bytes, ms], bytes rising"

static int decode_point(const struct json_field *at, void *field, struct err *err)
{
        struct segment_point *point = field;

        return plan_field_pair(at, SEGMENTS_MAX_BYTES, POINT_MEND, &point->bytes, &point->ms, err);
}

static int check_file(const struct json_field *at, void *object, struct err *err);

/* clang-format off */
static const struct json_table_row tensor_rows[] = {
        { "name",     JSON_TABLE_STRING, TENSOR(name), .min = 1, .required = true, .mend = "a name of its own" },
        { "bytes",    JSON_TABLE_UINT,   TENSOR(bytes), .max = SEGMENTS_MAX_BYTES, .required = true,
          .mend = "the bytes of its gradient" },
        { "ready_ms", JSON_TABLE_DOUBLE, TENSOR(ready_ms), .most = PLAN_TIME_MAX, .required = true,
          .mend = "the ms at which its gradient is there" },
        { .name = NULL },
};
static const struct json_table tensor_table = { .rows = tensor_rows, .size_bytes = sizeof(struct segment_tensor),
                                                .strict = true };

static const struct json_table_row level_rows[] = {
        { "alpha_ms",         JSON_TABLE_DOUBLE, LEVEL(alpha_ms), .most = PLAN_TIME_MAX, .required = true,
          .mend = ALPHA_MEND },
        { "beta_ms_per_byte", JSON_TABLE_DOUBLE, LEVEL(beta_ms_per_byte), .most = PLAN_TIME_MAX, .required = true,
          .mend = BETA_MEND },
        { .name = NULL },
};
static const struct json_table level_table = { .rows = level_rows, .size_bytes = sizeof(struct segment_level),
                                               .strict = true };
static const struct json_table_row point = { .kind = JSON_TABLE_CUSTOM, .size_bytes = sizeof(struct segment_point),
                                             .decode = decode_point };

static const struct json_table_row file_rows[] = {
        { "tensors",      JSON_TABLE_LIST, FILE_(request.tensors), .table = &tensor_table, COUNT(tensor_count), .min = 1,
          .max = SEGMENTS_MAX_TENSORS, .required = true, .mend = "the gradients in backward order" },
        { "max_segments", JSON_TABLE_UINT, FILE_(request.max_segments), .min = 1, .max = SEGMENTS_MAX_TENSORS,
          .mend = "the most segments that may be used" },
        { "alpha_ms",         JSON_TABLE_DOUBLE, FILE_(line.alpha_ms), .most = PLAN_TIME_MAX, .mend = ALPHA_MEND },
        { "beta_ms_per_byte", JSON_TABLE_DOUBLE, FILE_(line.beta_ms_per_byte), .most = PLAN_TIME_MAX, .mend = BETA_MEND },
        { "levels", JSON_TABLE_LIST, FILE_(request.levels), .table = &level_table, COUNT(level_count), .min = 1,
          .max = LEVELS_MAX, .mend = "a cost inside the group and one between the leaders" },
        { "cost",   JSON_TABLE_LIST, FILE_(request.points), .element = &point, COUNT(point_count), .min = 1,
          .max = COST_MAX, .mend = POINT_MEND },
        { .name = "name", .kind = JSON_TABLE_UNREAD },
        { .name = "comment", .kind = JSON_TABLE_UNREAD },
        { .name = "estimate", .kind = JSON_TABLE_UNREAD },
        { .name = NULL },
};
static const struct json_table file_table = { .rows = file_rows, .size_bytes = sizeof(struct file), .strict = true,
                                              .check = check_file };
/* clang-format on */

static int check_tensors(const struct json_field *root, const struct plan_segments_request *request,
                         struct err *err)
{
        struct json_field list = json_field_get(root, "tensors");

        for (size_t i = 1; i < request->tensor_count; i++) {
                struct json_field at = json_field_at(&list, i), ready = json_field_get(&at, "ready_ms");
                double own = request->tensors[i].ready_ms, before = request->tensors[i - 1].ready_ms;

                if (own < before)
                        return json_field_error(
                                &ready, err,
                                "is %g, before the %g of the tensor above it; list tensors in the order in "
                                "which they become ready",
                                own, before);
        }
        return plan_field_unique(&list, &request->tensors->name, sizeof(*request->tensors),
                                 request->tensor_count, err);
}

/* One way to say the cost; that of the top becomes the only level. */
static int check_cost(const struct json_field *root, struct file *file, struct err *err)
{
        struct plan_segments_request *request = &file->request;
        struct json_field alpha = json_field_get(root, "alpha_ms");
        struct json_field beta = json_field_get(root, "beta_ms_per_byte");
        bool line = alpha.value != NULL || beta.value != NULL;

        if (line + (request->levels != NULL) + (request->points != NULL) > 1)
                return err_set(err, -EBADMSG,
                               "alpha_ms, levels, cost: say the same thing in several ways; give one");
        if (request->levels != NULL || request->points != NULL)
                return 0;
        if (alpha.value == NULL)
                return json_field_error(&alpha, err, "is missing; give " ALPHA_MEND);
        if (beta.value == NULL)
                return json_field_error(&beta, err, "is missing; give " BETA_MEND);
        request->levels = calloc(1, sizeof(*request->levels));
        if (request->levels == NULL)
                return err_set(err, -ENOMEM, "no memory for levels");
        request->levels[request->level_count++] = file->line;
        return 0;
}

static int check_file(const struct json_field *at, void *object, struct err *err)
{
        struct file *file = object;
        const struct segment_point *points = file->request.points;
        struct json_field list = json_field_get(at, "cost");
        int r = check_tensors(at, &file->request, err);

        if (r == 0)
                r = check_cost(at, file, err);
        for (size_t i = 1; r == 0 && i < file->request.point_count; i++)
                if (points[i].bytes <= points[i - 1].bytes) {
                        struct json_field wrong = json_field_at(&list, i);

                        return json_field_error(
                                &wrong, err, "must have more bytes than the point before; give " POINT_MEND);
                }
        return r;
}

int plan_segments_request_decode(const json_t *json, struct plan_segments_request *ret, struct err *err)
{
        struct file file = { .request.max_segments = SEGMENTS_DEFAULT_MAX };
        int r = json_table_decode(&file_table, json, &file, err);

        if (r == 0)
                *ret = file.request;
        return r;
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
                free(request->tensors[i].name);
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
        json_writer_open(json, "segments", '[');
        for (size_t i = 0; i < plan->segment_count; i++) {
                const struct segment *segment = &plan->segments[i];

                json_writer_open(json, NULL, '{');
                json_writer_uint64(json, "first", segment->first);
                json_writer_uint64(json, "last", segment->last);
                json_writer_uint64(json, "bytes", segment->bytes);
                json_writer_double(json, "start_ms", segment->start_ms);
                json_writer_double(json, "end_ms", segment->end_ms);
                json_writer_close(json, '}');
        }
        json_writer_close(json, ']');
}

/* The cost that --network stood for, so that the reader can check it. */
static void write_network(struct json_writer *json, const struct plan_segments_request *request)
{
        if (!request->has_network)
                return;
        json_writer_open(json, "network", '{');
        json_writer_double(json, "alpha_ms", request->levels[0].alpha_ms);
        json_writer_double(json, "beta_ms_per_byte", request->levels[0].beta_ms_per_byte);
        json_writer_bool(json, "estimate", request->estimate);
        json_writer_close(json, '}');
}

void plan_segments_answer_json(const struct plan_segments_request *request, const struct segments_plan *plan,
                               struct text *out)
{
        struct json_writer json = { .text = out };

        json_writer_open(&json, NULL, '{');
        json_writer_double(&json, "exposed_ms", plan->exposed_ms);
        json_writer_double(&json, "end_ms", plan->end_ms);
        write_segments(&json, plan);
        json_writer_open(&json, "baselines", '{');
        for (size_t i = 0; i < SEGMENTS_BASELINE_COUNT; i++)
                json_writer_double(&json, segment_baseline_name((enum segment_baseline) i),
                                   plan->baseline_exposed_ms[i]);
        json_writer_close(&json, '}');
        if (plan->segment_count > SEGMENTS_HCCL_MAX) {
                json_writer_null(&json, "hccl_indices");
        } else {
                json_writer_open(&json, "hccl_indices", '[');
                for (size_t i = 0; i < plan->segment_count; i++)
                        json_writer_uint64(&json, NULL, plan->segments[i].last);
                json_writer_close(&json, ']');
        }
        write_network(&json, request);
        json_writer_close(&json, '}');
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
                            request->tensors[segment->first].name, request->tensors[segment->last].name,
                            segment->bytes, segment->start_ms, segment->end_ms);
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
