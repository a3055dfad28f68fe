/* Reads a plan in force and what was measured since, and writes the plan for the rest of the epoch. */
#include "planner/shards/plan_reshard.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/json/json_writer.h"
#include "planner/shards/plan_field.h"
#include "planner/shards/plan_shards.h"

#define RANGES_MAX  ((size_t) 1 << 20)
#define WORKERS_MAX ((size_t) 1 << 14) /* each name is looked up among all */

static const char *const request_fields[] = { "plan", "position", "cost_ms", "measured", NULL };
static const char *const measured_fields[] = { "name", "step_ms", "gone", "min", "max", "multiple", NULL };

/* What the decoding of one file needs on the way. */
struct decoding {
        struct plan_reshard_request *request;
        struct json_field plan, workers, measured;
        uint64_t batch, epoch, since; /* since: the position when the plan in force began */
        bool *seen;                   /* [count] measured */
        size_t next;                  /* where the next measured name is likely */
};

static int decode_ranges(const struct json_field *worker, const char *name, struct sample_ranges *ret,
                         struct err *err)
{
        struct json_field list;
        int r = json_field_array(worker, name, RANGES_MAX, &list, err);

        if (r != 0)
                return r;
        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field at = json_field_at(&list, i);
                uint64_t begin = 0;
                double end = 0;

                r = plan_field_pair(&at, SHARDS_MAX_BATCH, "[begin, end] of samples", &begin, &end, err);
                if (r < 0)
                        return r;
                if (end > (double) SHARDS_MAX_BATCH || end != (double) (uint64_t) end ||
                    (uint64_t) end < begin)
                        return json_field_error(
                                &at, err, "must not end before it begins; give [begin, end] of samples");
                if (sample_ranges_add(ret, begin, (uint64_t) end) < 0)
                        return err_set(err, -ENOMEM, "no memory for ranges");
        }
        return 0;
}

/* "ranges", or "begin" and "end" as plan shards writes them. */
static int decode_held(const struct json_field *at, struct reshard_worker *worker, struct err *err)
{
        const char *mend = "the plan of an \"epoch\"";
        uint64_t begin = 0, end = 0;
        int r = decode_ranges(at, "ranges", &worker->ranges, err);

        if (r != JSON_FIELD_ABSENT)
                return r;
        r = plan_field_uint64(at, "begin", true, 0, SHARDS_MAX_BATCH, mend, &begin, err);
        if (r == 0)
                r = plan_field_uint64(at, "end", true, begin, SHARDS_MAX_BATCH, mend, &end, err);
        if (r == 0 && sample_ranges_add(&worker->ranges, begin, end) < 0)
                return err_set(err, -ENOMEM, "no memory for ranges");
        return r;
}

static int decode_in_force(struct decoding *decoding, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        size_t count = json_field_count(&decoding->workers);
        uint64_t total = 0;
        int r;

        for (size_t i = 0; i < count; i++) {
                struct json_field at = json_field_at(&decoding->workers, i);
                struct reshard_worker *worker = &request->workers[i];

                request->count++;
                r = json_field_is_object(&at, err);
                if (r == 0)
                        r = plan_field_string(&at, "name", "the worker's name", &request->names[i], err);
                if (r == 0)
                        r = plan_field_uint64(&at, "batch", true, 0, SHARDS_MAX_BATCH,
                                              "its share of each batch", &worker->batch, err);
                if (r == 0)
                        r = decode_held(&at, worker, err);
                if (r == 0)
                        r = decode_ranges(&at, "used", &request->used_before[i], err);
                if (r < 0)
                        return r;
                total += worker->batch;
                decoding->epoch += sample_ranges_total(&worker->ranges);
        }
        if (total != decoding->batch)
                return json_field_error(&decoding->workers, err,
                                        "shares of %" PRIu64 " in all do not make the batch of %" PRIu64
                                        "; give the plan as it was answered",
                                        total, decoding->batch);
        return plan_field_unique(&decoding->workers, request->names, count, err);
}

/* The step as it was timed, for any share: a line through nothing and [b, step] to beyond the batch. */
static int model_of_step(const struct decoding *decoding, double step_ms, struct reshard_worker *worker,
                         struct err *err)
{
        struct shard_point *point = calloc(1, sizeof(*point));
        uint64_t times = (decoding->batch + worker->batch - 1) / worker->batch;
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

static int decode_limits(const struct json_field *at, struct shard_worker *model, struct err *err)
{
        const uint64_t most = (uint64_t) 1 << 53;
        int r = plan_field_uint64(at, "min", false, 0, most, "the least samples it may take", &model->min,
                                  err);

        if (r >= 0)
                r = plan_field_uint64(at, "max", false, 0, most, "the most samples it can take", &model->max,
                                      err);
        model->has_max = r == 0;
        if (r >= 0)
                r = plan_field_uint64(at, "multiple", false, 1, most, "a whole number that divides its share",
                                      &model->multiple, err);
        return r < 0 ? r : 0;
}

static int decode_step(const struct decoding *decoding, const struct json_field *at,
                       struct reshard_worker *worker, struct err *err)
{
        struct json_field step = json_field_get(at, "step_ms");
        double step_ms = 0;
        int r = json_field_only(at, measured_fields, err);

        if (r == 0)
                r = plan_field_double(at, "step_ms", true, DECIMAL_LEAST, "its measured ms of one step",
                                      &step_ms, err);
        if (r == 0 && worker->batch == 0)
                return json_field_error(
                        &step, err,
                        "is of a worker without a share; give \"speed\", \"alpha_ms\" and \"beta_ms\", "
                        "or \"table\"");
        if (r == 0)
                r = decode_limits(at, &worker->model, err);
        return r == 0 ? model_of_step(decoding, step_ms, worker, err) : r;
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

static int decode_one_measured(struct decoding *decoding, const struct json_field *at, const char *name,
                               struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        struct reshard_worker *worker;
        bool gone = false;
        size_t i;
        int r;

        i = find_name(request, decoding->next, name);
        worker = &request->workers[i];
        decoding->next = i + 1;
        if (i == request->count) {
                request->names[i] = name;
                request->count++;
        }
        decoding->seen[i] = true;
        r = json_field_bool(at, "gone", &gone, err);
        if (r < 0)
                return r;
        worker->gone = gone;
        if (gone)
                return 0;
        if (json_object_get(at->value, "step_ms") != NULL)
                return decode_step(decoding, at, worker, err);
        return plan_shards_worker_decode(at, &worker->model, err);
}

static int decode_measured(struct decoding *decoding, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        size_t count = json_field_count(&decoding->measured), planned = request->count;
        CLEANUP(free_p) const char **names = calloc(count + 1, sizeof(*names));
        int r = 0;

        if (names == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu workers", count);
        for (size_t i = 0; r == 0 && i < count; i++) {
                struct json_field at = json_field_at(&decoding->measured, i);

                r = json_field_is_object(&at, err);
                if (r == 0)
                        r = plan_field_string(&at, "name", "the worker's name", &names[i], err);
        }
        if (r == 0)
                r = plan_field_unique(&decoding->measured, names, count, err);
        for (size_t i = 0; r == 0 && i < count; i++) {
                struct json_field at = json_field_at(&decoding->measured, i);

                r = decode_one_measured(decoding, &at, names[i], err);
        }
        for (size_t i = 0; r == 0 && i < planned; i++) {
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
        uint64_t done = request->position - decoding->since, all = decoding->since + decoding->epoch;

        if (request->position > all)
                return json_field_error(&position, err,
                                        "%" PRIu64 " is beyond the epoch's %" PRIu64
                                        " samples; give at most that",
                                        request->position, all);
        if (request->position < decoding->since)
                return json_field_error(&position, err,
                                        "%" PRIu64 " is before the plan in force began, at %" PRIu64
                                        "; give at least that",
                                        request->position, decoding->since);
        request->question.steps = done / decoding->batch;
        if (request->position == all)
                request->question.steps = UINT64_MAX;
        else if (done % decoding->batch != 0)
                return json_field_error(
                        &position, err,
                        "%" PRIu64 " is within a step of %" PRIu64 " samples; give %" PRIu64 " or %" PRIu64,
                        request->position, decoding->batch, request->position - done % decoding->batch,
                        request->position - done % decoding->batch + decoding->batch);
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
        size_t most = json_field_count(&decoding->workers) + json_field_count(&decoding->measured);

        request->workers = calloc(most, sizeof(*request->workers));
        request->used_before = calloc(most, sizeof(*request->used_before));
        request->names = calloc(most, sizeof(*request->names));
        decoding->seen = calloc(most, sizeof(*decoding->seen));
        if (request->workers == NULL || request->used_before == NULL || request->names == NULL ||
            decoding->seen == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu workers", most);
        return 0;
}

static int decode_root(struct decoding *decoding, const struct json_field *root, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        int r = json_field_is_object(root, err);

        if (r == 0)
                r = json_field_only(root, request_fields, err);
        if (r == 0)
                r = json_field_require(root, "plan", err);
        if (r == 0)
                r = json_field_object(root, "plan", &decoding->plan, err);
        if (r == 0)
                r = plan_field_uint64(&decoding->plan, "batch", true, 1, SHARDS_MAX_BATCH,
                                      "the plan as it was answered", &decoding->batch, err);
        if (r == 0)
                r = plan_field_uint64(&decoding->plan, "position", false, 0, SHARDS_MAX_BATCH,
                                      "where the plan began", &decoding->since, err);
        if (r >= 0)
                r = plan_field_list(&decoding->plan, "workers", WORKERS_MAX, "the plan as it was answered",
                                    &decoding->workers, err);
        if (r == 0)
                r = plan_field_list(root, "measured", WORKERS_MAX, "what was measured of every worker",
                                    &decoding->measured, err);
        if (r == 0)
                r = plan_field_uint64(root, "position", true, 0, SHARDS_MAX_BATCH,
                                      "the samples of the epoch that are used", &request->position, err);
        if (r == 0)
                r = plan_field_double(root, "cost_ms", true, 0, "the ms that changing the plan takes",
                                      &request->question.cost_ms, err);
        return r;
}

static int decode(struct decoding *decoding, const struct json_field *root, struct err *err)
{
        struct plan_reshard_request *request = decoding->request;
        int r = decode_root(decoding, root, err);

        if (r == 0)
                r = make_room(decoding, err);
        if (r == 0)
                r = decode_in_force(decoding, err);
        if (r == 0)
                r = decode_measured(decoding, err);
        if (r == 0)
                r = check_disjoint(decoding, err);
        if (r == 0)
                r = count_steps(decoding, root, err);
        request->question.workers = request->workers;
        request->question.count = request->count;
        request->question.batch = decoding->batch;
        return r;
}

int plan_reshard_request_decode(const json_t *json, struct plan_reshard_request *ret, struct err *err)
{
        struct json_field root = json_field_root(json);
        struct plan_reshard_request request = { 0 };
        struct decoding decoding = { .request = &request };
        int r = decode(&decoding, &root, err);

        free(decoding.seen);
        if (r < 0) {
                plan_reshard_request_free(&request);
                return r;
        }
        *ret = request;
        return 0;
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

static const char *reason_of(const struct plan_reshard_request *request, const struct reshard_plan *plan)
{
        if (plan->forced)
                return "a worker of the plan in force cannot go on";
        if (plan->change)
                return "the gain over the rest of the epoch is at least the cost";
        if (plan->remaining == 0)
                return "nothing of the epoch is left";
        (void) request;
        return plan->gain_ms > 0 ? "the gain over the rest of the epoch is below the cost"
                                 : "the plan in force is as good as any";
}

static void write_ranges(struct json_writer *json, const char *key, const struct sample_ranges *first,
                         const struct sample_ranges *second)
{
        const struct sample_ranges *parts[] = { first, second };

        json_write_open(json, key, '[');
        for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
                for (size_t i = 0; parts[p] != NULL && i < parts[p]->count; i++) {
                        json_write_open(json, NULL, '[');
                        json_write_uint64(json, NULL, parts[p]->range[i].begin);
                        json_write_uint64(json, NULL, parts[p]->range[i].end);
                        json_write_close(json, ']');
                }
        json_write_close(json, ']');
}

void plan_reshard_answer_json(const struct plan_reshard_request *request, const struct reshard_plan *plan,
                              struct text *out)
{
        struct json_writer json = { .text = out };

        json_write_open(&json, NULL, '{');
        json_write_string(&json, "decision", plan->change ? "change" : "keep");
        json_write_string(&json, "reason", reason_of(request, plan));
        json_write_uint64(&json, "position", request->position);
        json_write_uint64(&json, "remaining", plan->remaining);
        json_write_double(&json, "current_step_ms", plan->current_step_ms);
        json_write_double(&json, "new_step_ms", plan->new_step_ms);
        json_write_double(&json, "gain_ms", plan->gain_ms);
        json_write_double(&json, "cost_ms", request->question.cost_ms);
        json_write_uint64(&json, "batch", request->question.batch);
        json_write_open(&json, "workers", '[');
        for (size_t i = 0; i < plan->count; i++) {
                const struct reshard_share *share = &plan->shares[i];

                json_write_open(&json, NULL, '{');
                json_write_string(&json, "name", request->names[i]);
                json_write_uint64(&json, "batch", share->batch);
                json_write_double(&json, "weight", (double) share->batch / (double) request->question.batch);
                json_write_double(&json, "step_ms", share->step_ms);
                write_ranges(&json, "used", &request->used_before[i], &share->used);
                write_ranges(&json, "ranges", &share->rest, NULL);
                json_write_close(&json, '}');
        }
        json_write_close(&json, ']');
        json_write_close(&json, '}');
}

void plan_reshard_answer_table(const struct plan_reshard_request *request, const struct reshard_plan *plan,
                               struct text *out)
{
        text_printf(out, "%s: %s\n", plan->change ? "change" : "keep", reason_of(request, plan));
        text_printf(out,
                    "step now %.6g ms, planned anew %.6g ms: %.6g ms over the %" PRIu64
                    " samples left, at a cost of %.6g ms\n\n",
                    plan->current_step_ms, plan->new_step_ms, plan->gain_ms, plan->remaining,
                    request->question.cost_ms);
        text_printf(out, "%-24s %10s %9s %12s  samples from now on\n", "worker", "batch", "weight",
                    "step ms");
        for (size_t i = 0; i < plan->count; i++) {
                const struct reshard_share *share = &plan->shares[i];

                text_printf(out, "%-24s %10" PRIu64 " %9.4f %12.4f ", request->names[i], share->batch,
                            (double) share->batch / (double) request->question.batch, share->step_ms);
                for (size_t j = 0; j < share->rest.count; j++)
                        text_printf(out, " %" PRIu64 ":%" PRIu64, share->rest.range[j].begin,
                                    share->rest.range[j].end);
                text_append_char(out, '\n');
        }
}
