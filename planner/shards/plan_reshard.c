/* Reads a plan in force and what was measured since, and writes the plan for the rest of the epoch. */
#include "planner/shards/plan_reshard.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/json/json_table.h"
#include "base/json/json_writer.h"
#include "planner/shards/plan_field.h"
#include "planner/shards/plan_shards.h"

#define RANGES_MAX  ((size_t) 1 << 20)
#define WORKERS_MAX ((size_t) 1 << 14) /* each name is looked up among all */

/* A worker of the plan in force. */
struct file_worker {
        const char *name;
        uint64_t batch, begin, end;
        struct sample_ranges ranges, used;
};

struct file_measured {
        const char *name;
        bool gone;
};

struct file {
        struct file_plan {
                uint64_t batch, position; /* position: where it began */
                struct file_worker *workers;
                size_t worker_count;
        } plan;
        uint64_t position;
        double cost_ms;
        struct file_measured *measured;
        size_t measured_count;
};

/* What was measured of a worker that goes on as it is. */
struct file_step {
        double step_ms;
        struct shard_worker model; /* its limits */
};

#define WORKER(member)   JSON_TABLE_AT(struct file_worker, member)
#define MEASURED(member) JSON_TABLE_AT(struct file_measured, member)
#define PLAN(member)     JSON_TABLE_AT(struct file_plan, member)
#define FILE_(member)    JSON_TABLE_AT(struct file, member)
#define STEP(member)     JSON_TABLE_AT(struct file_step, member)
#define LIMIT_MAX        ((int64_t) 1 << 53)
#define PLAN_MEND        "the plan as it was answered"
#define EPOCH_MEND       "the plan of an \"epoch\""

static int decode_range(const struct json_field *at, void *field, struct err *err)
{
        struct sample_range *range = field;
        double end = 0;
        int r = plan_field_pair(at, SHARDS_MAX_BATCH, "[begin, end] of samples", &range->begin, &end, err);

        if (r < 0)
                return r;
        range->end = (uint64_t) end;
        if (end > (double) SHARDS_MAX_BATCH || end != (double) range->end || range->end < range->begin)
                return json_field_error(at, err,
                                        "must not end before it begins; give [begin, end] of samples");
        return 0;
}

static int check_worker(const struct json_field *at, void *object, struct err *err);

/* clang-format off */
static const struct json_table_row range = { .kind = JSON_TABLE_CUSTOM, .size_bytes = sizeof(struct sample_range),
                                             .decode = decode_range };
static const struct json_table_row worker_rows[] = {
        { "name",   JSON_TABLE_BORROWED, WORKER(name), .min = 1, .required = true, .mend = "the worker's name" },
        { "batch",  JSON_TABLE_UINT, WORKER(batch), .max = SHARDS_MAX_BATCH, .required = true,
          .mend = "its share of each batch" },
        { "ranges", JSON_TABLE_LIST, WORKER(ranges.range), .element = &range,
          .count = offsetof(struct file_worker, ranges.count), .max = RANGES_MAX },
        { "begin",  JSON_TABLE_UINT, WORKER(begin), .max = SHARDS_MAX_BATCH, .mend = EPOCH_MEND },
        { "end",    JSON_TABLE_UINT, WORKER(end), .max = SHARDS_MAX_BATCH, .mend = EPOCH_MEND },
        { "used",   JSON_TABLE_LIST, WORKER(used.range), .element = &range,
          .count = offsetof(struct file_worker, used.count), .max = RANGES_MAX },
        { .name = NULL },
};
static const struct json_table worker_table = { .rows = worker_rows, .size_bytes = sizeof(struct file_worker),
                                                .check = check_worker };

static const struct json_table_row plan_rows[] = {
        { "batch",    JSON_TABLE_UINT, PLAN(batch), .min = 1, .max = SHARDS_MAX_BATCH, .required = true, .mend = PLAN_MEND },
        { "position", JSON_TABLE_UINT, PLAN(position), .max = SHARDS_MAX_BATCH, .mend = "where the plan began" },
        { "workers",  JSON_TABLE_LIST, PLAN(workers), .table = &worker_table, .min = 1, .max = WORKERS_MAX,
          .count = offsetof(struct file_plan, worker_count), .required = true, .mend = PLAN_MEND },
        { .name = NULL },
};
static const struct json_table plan_table = { .rows = plan_rows, .size_bytes = sizeof(struct file_plan) };

static const struct json_table_row measured_rows[] = {
        { "name", JSON_TABLE_BORROWED, MEASURED(name), .min = 1, .required = true, .mend = "the worker's name" },
        { "gone", JSON_TABLE_BOOL, MEASURED(gone) },
        { .name = NULL },
};
static const struct json_table measured_table = { .rows = measured_rows, .size_bytes = sizeof(struct file_measured) };

static const struct json_table_row step_rows[] = {
        { .name = "name", .kind = JSON_TABLE_UNREAD },
        { "step_ms",  JSON_TABLE_DOUBLE, STEP(step_ms), .least = DECIMAL_LEAST, .most = PLAN_TIME_MAX, .required = true,
          .mend = "its measured ms of one step" },
        { .name = "gone", .kind = JSON_TABLE_UNREAD },
        { "min",      JSON_TABLE_UINT, STEP(model.min), .max = LIMIT_MAX, .mend = "the least samples it may take" },
        { "max",      JSON_TABLE_UINT, STEP(model.max), .max = LIMIT_MAX, .mend = "the most samples it can take" },
        { "multiple", JSON_TABLE_UINT, STEP(model.multiple), .min = 1, .max = LIMIT_MAX,
          .mend = "a whole number that divides its share" },
        { .name = NULL },
};
static const struct json_table step_table = { .rows = step_rows, .size_bytes = sizeof(struct file_step), .strict = true };

static const struct json_table_row file_rows[] = {
        { "plan",     JSON_TABLE_OBJECT, FILE_(plan), .table = &plan_table, .required = true },
        { "position", JSON_TABLE_UINT, FILE_(position), .max = SHARDS_MAX_BATCH, .required = true,
          .mend = "the samples of the epoch that are used" },
        { "cost_ms",  JSON_TABLE_DOUBLE, FILE_(cost_ms), .most = PLAN_TIME_MAX, .required = true,
          .mend = "the ms that changing the plan takes" },
        { "measured", JSON_TABLE_LIST, FILE_(measured), .table = &measured_table, .min = 1, .max = WORKERS_MAX,
          .count = offsetof(struct file, measured_count), .required = true, .mend = "what was measured of every worker" },
        { .name = NULL },
};
static const struct json_table file_table = { .rows = file_rows, .size_bytes = sizeof(struct file), .strict = true };
/* clang-format on */

/* What the decoding of one file needs on the way. */
struct decoding {
        struct plan_reshard_request *request;
        const struct file *file;
        struct json_field workers, measured;
        bool *seen;  /* [count] measured */
        size_t next; /* where the next measured name is likely */
};

/* "ranges", or "begin" and "end" as plan shards writes them. */
static int check_worker(const struct json_field *at, void *object, struct err *err)
{
        struct file_worker *worker = object;
        struct json_field begin = json_field_get(at, "begin"), end = json_field_get(at, "end");

        if (json_field_get(at, "ranges").value != NULL)
                return 0;
        if (begin.value == NULL)
                return json_field_error(&begin, err, "is missing; give " EPOCH_MEND);
        if (end.value == NULL)
                return json_field_error(&end, err, "is missing; give " EPOCH_MEND);
        if (worker->end < worker->begin)
                return json_field_error(&end, err,
                                        "must be a whole number in %" PRIu64 "..%" PRIu64 ", not %" PRIu64
                                        "; give " EPOCH_MEND,
                                        worker->begin, SHARDS_MAX_BATCH, worker->end);
        if (sample_ranges_add(&worker->ranges, worker->begin, worker->end) < 0)
                return err_set(err, -ENOMEM, "no memory for ranges");
        return 0;
}

/* Ranges that follow each other are one. */
static int join(const struct sample_ranges *from, struct sample_ranges *to, struct err *err)
{
        for (size_t i = 0; i < from->count; i++)
                if (sample_ranges_add(to, from->range[i].begin, from->range[i].end) < 0)
                        return err_set(err, -ENOMEM, "no memory for ranges");
        return 0;
}

static int take_in_force(struct decoding *decoding, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        const struct file_plan *plan = &decoding->file->plan;
        uint64_t total = 0;

        for (size_t i = 0; i < plan->worker_count; i++) {
                const struct file_worker *own = &plan->workers[i];

                request->count++;
                request->names[i] = own->name;
                request->workers[i].batch = own->batch;
                if (join(&own->ranges, &request->workers[i].ranges, err) < 0 ||
                    join(&own->used, &request->used_before[i], err) < 0)
                        return -ENOMEM;
                total += own->batch;
        }
        if (total != plan->batch)
                return json_field_error(&decoding->workers, err,
                                        "shares of %" PRIu64 " in all do not make the batch of %" PRIu64
                                        "; give the plan as it was answered",
                                        total, plan->batch);
        return plan_field_unique(&decoding->workers, request->names, sizeof(*request->names),
                                 plan->worker_count, err);
}

/* The step as it was timed, for any share: a line through nothing and [b, step] to beyond the batch. */
static int model_of_step(const struct decoding *decoding, double step_ms, struct reshard_worker *worker,
                         struct err *err)
{
        struct shard_point *point = calloc(1, sizeof(*point));
        uint64_t times = (decoding->file->plan.batch + worker->batch - 1) / worker->batch;
        struct decimal decimal = { 0 };

        if (point == NULL)
                return err_set(err, -ENOMEM, "no memory for a worker");
        (void) decimal_from_double(step_ms, &decimal);
        point->samples = worker->batch * times;
        point->ms = decimal_to_double((unsigned __int128) decimal.digits * times, decimal.exponent);
        worker->model.model = SHARD_TABLE;
        worker->model.points = point;
        worker->model.point_count = 1;
        return 0;
}

static int decode_step(const struct decoding *decoding, const struct json_field *at,
                       struct reshard_worker *worker, struct err *err)
{
        struct json_field step_ms = json_field_get(at, "step_ms");
        struct file_step step = { .step_ms = 0 };
        int r = json_table_decode_at(&step_table, at, &step, err);

        if (r < 0)
                return r;
        if (worker->batch == 0)
                return json_field_error(
                        &step_ms, err,
                        "is of a worker without a share; give \"speed\", \"alpha_ms\" and \"beta_ms\", "
                        "or \"table\"");
        worker->model = step.model;
        worker->model.has_max = json_field_get(at, "max").value != NULL;
        return model_of_step(decoding, step.step_ms, worker, err);
}

/* Names come in the plan's order, as a rule: the search begins where the last one ended. Return:
 * request->count where it is new. */
static size_t find_name(const struct plan_reshard_request *request, size_t from, const char *name)
{
        for (size_t n = 0; n < request->count; n++) {
                size_t i = (from + n) % request->count;

                if (strcmp(request->names[i], name) == 0)
                        return i;
        }
        return request->count;
}

static int take_one_measured(struct decoding *decoding, const struct json_field *at,
                             const struct file_measured *measured, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        size_t i = find_name(request, decoding->next, measured->name);
        struct reshard_worker *worker = &request->workers[i];

        decoding->next = i + 1;
        if (i == request->count) {
                request->names[i] = measured->name;
                request->count++;
        }
        decoding->seen[i] = true;
        worker->gone = measured->gone;
        if (measured->gone)
                return 0;
        if (json_field_get(at, "step_ms").value != NULL)
                return decode_step(decoding, at, worker, err);
        return plan_shards_worker_decode(at, &worker->model, err);
}

static int take_measured(struct decoding *decoding, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        const struct file *file = decoding->file;
        int r = plan_field_unique(&decoding->measured, &file->measured->name, sizeof(*file->measured),
                                  file->measured_count, err);

        for (size_t i = 0; r == 0 && i < file->measured_count; i++) {
                struct json_field at = json_field_at(&decoding->measured, i);

                r = take_one_measured(decoding, &at, &file->measured[i], err);
        }
        for (size_t i = 0; r == 0 && i < file->plan.worker_count; i++) {
                if (decoding->seen[i])
                        continue;
                if (request->workers[i].batch > 0)
                        return json_field_error(
                                &decoding->measured, err,
                                "says nothing of '%.100s', which has a share; give its step_ms, or "
                                "\"gone\": true",
                                request->names[i]);
                request->workers[i].gone = true; /* unused and not measured: still left out */
        }
        return r;
}

static int count_steps(struct decoding *decoding, const struct json_field *root, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        struct json_field position = json_field_get(root, "position");
        uint64_t since = decoding->file->plan.position, batch = decoding->file->plan.batch;
        uint64_t done = request->position - since, all = since;

        for (size_t i = 0; i < decoding->file->plan.worker_count; i++)
                all += sample_ranges_total(&request->workers[i].ranges);

        if (request->position > all)
                return json_field_error(&position, err,
                                        "%" PRIu64 " is beyond the epoch's %" PRIu64
                                        " samples; give at most that",
                                        request->position, all);
        if (request->position < since)
                return json_field_error(&position, err,
                                        "%" PRIu64 " is before the plan in force began, at %" PRIu64
                                        "; give at least that",
                                        request->position, since);
        request->reshard.steps = done / batch;
        if (request->position == all)
                request->reshard.steps = UINT64_MAX;
        else if (done % batch != 0)
                return json_field_error(&position, err,
                                        "%" PRIu64 " is within a step of %" PRIu64 " samples; give %" PRIu64
                                        " or %" PRIu64,
                                        request->position, batch, request->position - done % batch,
                                        request->position - done % batch + batch);
        return 0;
}

static int by_begin(const void *a, const void *b)
{
        const struct sample_range *left = a, *right = b;

        return (left->begin > right->begin) - (left->begin < right->begin);
}

/* The plan in force may hold no sample twice, or the new one would. */
static int check_disjoint(const struct decoding *decoding, struct err *err)
{
        const struct plan_reshard_request *request = decoding->request;
        CLEANUP(free_p) struct sample_range *all = NULL;
        size_t count = 0, at = 0;

        for (size_t i = 0; i < request->count; i++)
                count += request->workers[i].ranges.count + request->used_before[i].count;
        all = calloc(count + 1, sizeof(*all));
        if (all == NULL)
                return err_set(err, -ENOMEM, "no memory for ranges");
        for (size_t i = 0; i < request->count; i++) {
                for (size_t j = 0; j < request->workers[i].ranges.count; j++)
                        all[at++] = request->workers[i].ranges.range[j];
                for (size_t j = 0; j < request->used_before[i].count; j++)
                        all[at++] = request->used_before[i].range[j];
        }
        qsort(all, count, sizeof(*all), by_begin);
        for (size_t i = 1; i < count; i++)
                if (all[i].begin < all[i - 1].end)
                        return json_field_error(&decoding->workers, err,
                                                "hold sample %" PRIu64
                                                " twice; give the plan as it was answered",
                                                all[i].begin);
        return 0;
}

static int make_room(struct decoding *decoding, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        size_t most = decoding->file->plan.worker_count + decoding->file->measured_count;

        request->workers = calloc(most, sizeof(*request->workers));
        request->used_before = calloc(most, sizeof(*request->used_before));
        request->names = calloc(most, sizeof(*request->names));
        decoding->seen = calloc(most, sizeof(*decoding->seen));
        if (request->workers == NULL || request->used_before == NULL || request->names == NULL ||
            decoding->seen == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu workers", most);
        return 0;
}

static int take_file(struct decoding *decoding, const struct json_field *root, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        int r = make_room(decoding, err);

        if (r == 0)
                r = take_in_force(decoding, err);
        if (r == 0)
                r = take_measured(decoding, err);
        if (r == 0)
                r = check_disjoint(decoding, err);
        request->position = decoding->file->position;
        if (r == 0)
                r = count_steps(decoding, root, err);
        request->reshard.workers = request->workers;
        request->reshard.count = request->count;
        request->reshard.batch = decoding->file->plan.batch;
        request->reshard.cost_ms = decoding->file->cost_ms;
        return r;
}

int plan_reshard_request_decode(const json_t *json, struct plan_reshard_request *ret, struct err *err)
{
        struct json_field root = json_field_root(json), plan = json_field_get(&root, "plan");
        struct plan_reshard_request request = { .count = 0 };
        struct file file = { .position = 0 };
        struct decoding decoding = { .request = &request,
                                     .file = &file,
                                     .workers = json_field_get(&plan, "workers"),
                                     .measured = json_field_get(&root, "measured") };
        int r = json_table_decode(&file_table, json, &file, err);

        if (r < 0)
                return r;
        r = take_file(&decoding, &root, err);
        free(decoding.seen);
        json_table_free(&file_table, &file);
        if (r == 0)
                *ret = request;
        else
                plan_reshard_request_free(&request);
        return r;
}

void plan_reshard_request_free(struct plan_reshard_request *request)
{
        for (size_t i = 0; i < request->count; i++) {
                free((void *) request->workers[i].model.points);
                sample_ranges_free(&request->workers[i].ranges);
                sample_ranges_free(&request->used_before[i]);
        }
        free(request->workers);
        free(request->used_before);
        free(request->names);
        *request = (struct plan_reshard_request){ 0 };
}

static const char *reason_of(const struct reshard_plan *plan)
{
        if (plan->forced)
                return "a worker of the plan in force cannot go on";
        if (plan->change)
                return "the gain over the rest of the epoch is at least the cost";
        if (plan->remaining == 0)
                return "nothing of the epoch is left";
        return plan->gain_ms > 0 ? "the gain over the rest of the epoch is below the cost"
                                 : "the plan in force is as good as any";
}

static void write_ranges(struct json_writer *json, const char *key, const struct sample_ranges *first,
                         const struct sample_ranges *second)
{
        const struct sample_ranges *parts[] = { first, second };

        json_writer_open(json, key, '[');
        for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
                for (size_t i = 0; parts[p] != NULL && i < parts[p]->count; i++) {
                        json_writer_open(json, NULL, '[');
                        json_writer_uint64(json, NULL, parts[p]->range[i].begin);
                        json_writer_uint64(json, NULL, parts[p]->range[i].end);
                        json_writer_close(json, ']');
                }
        json_writer_close(json, ']');
}

void plan_reshard_answer_json(const struct plan_reshard_request *request, const struct reshard_plan *plan,
                              struct text *out)
{
        struct json_writer json = { .text = out };

        json_writer_open(&json, NULL, '{');
        json_writer_string(&json, "decision", plan->change ? "change" : "keep");
        json_writer_string(&json, "reason", reason_of(plan));
        json_writer_uint64(&json, "position", request->position);
        json_writer_uint64(&json, "remaining", plan->remaining);
        json_writer_double(&json, "current_step_ms", plan->current_step_ms);
        json_writer_double(&json, "new_step_ms", plan->new_step_ms);
        json_writer_double(&json, "gain_ms", plan->gain_ms);
        json_writer_double(&json, "cost_ms", request->reshard.cost_ms);
        json_writer_uint64(&json, "batch", request->reshard.batch);
        json_writer_open(&json, "workers", '[');
        for (size_t i = 0; i < plan->count; i++) {
                const struct reshard_share *share = &plan->shares[i];

                json_writer_open(&json, NULL, '{');
                json_writer_string(&json, "name", request->names[i]);
                json_writer_uint64(&json, "batch", share->batch);
                json_writer_double(&json, "weight", (double) share->batch / (double) request->reshard.batch);
                json_writer_double(&json, "step_ms", share->step_ms);
                write_ranges(&json, "used", &request->used_before[i], &share->used);
                write_ranges(&json, "ranges", &share->rest, NULL);
                json_writer_close(&json, '}');
        }
        json_writer_close(&json, ']');
        json_writer_close(&json, '}');
}

void plan_reshard_answer_table(const struct plan_reshard_request *request, const struct reshard_plan *plan,
                               struct text *out)
{
        text_printf(out, "%s: %s\n", plan->change ? "change" : "keep", reason_of(plan));
        text_printf(out,
                    "step now %.6g ms, planned anew %.6g ms: %.6g ms over the %" PRIu64
                    " samples left, at a cost of %.6g ms\n\n",
                    plan->current_step_ms, plan->new_step_ms, plan->gain_ms, plan->remaining,
                    request->reshard.cost_ms);
        text_printf(out, "%-24s %10s %9s %12s  samples from now on\n", "worker", "batch", "weight",
                    "step ms");
        for (size_t i = 0; i < plan->count; i++) {
                const struct reshard_share *share = &plan->shares[i];

                text_printf(out, "%-24s %10" PRIu64 " %9.4f %12.4f ", request->names[i], share->batch,
                            (double) share->batch / (double) request->reshard.batch, share->step_ms);
                for (size_t j = 0; j < share->rest.count; j++)
                        text_printf(out, " %" PRIu64 ":%" PRIu64, share->rest.range[j].begin,
                                    share->rest.range[j].end);
                text_append_char(out, '\n');
        }
}
