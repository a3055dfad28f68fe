/* Reads a batch and its workers, plans them, and prices those that were left out. */
#include "planner/shards/plan_shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/shards/plan_field.h"

#define TABLE_MAX      ((size_t) 1 << 16)
#define PRICED_WORKERS ((size_t) 1 << 18) /* workers x plans that are spent on saying why one is left out */

static const char *const request_fields[] = { "batch", "epoch",   "workers",  "groups", "communication",
                                              "name",  "comment", "estimate", NULL };
static const char *const group_fields[] = { "name", "workers", NULL };
static const char *const worker_fields[] = { "name", "speed", "alpha_ms", "beta_ms", "table",
                                             "min",  "max",   "multiple", "source",  NULL };
static const char *const communication_fields[] = { "alpha_ms", "beta_ms_per_byte", "bytes", NULL };

static int decode_table(const struct json_field *at, struct shard_worker *worker, struct err *err)
{
        const char *mend = "points [samples, ms], samples rising and ms not falling";
        struct json_field table;
        struct shard_point *points;
        struct shard_point before = { 0 };
        size_t count, used = 0;
        int r = plan_field_list(at, "table", TABLE_MAX, mend, &table, err);

        if (r < 0)
                return r;
        count = json_field_count(&table);
        points = calloc(count, sizeof(*points));
        if (points == NULL)
                return err_set(err, -ENOMEM, "no memory for a table of %zu points", count);
        worker->points = points;
        for (size_t i = 0; i < count; i++) {
                struct json_field point = json_field_at(&table, i);
                struct shard_point *own = &points[used];

                r = plan_field_pair(&point, SHARDS_MAX_BATCH, mend, &own->samples, &own->ms, err);
                if (r < 0)
                        return r;
                if (i == 0 && own->samples == 0 && own->ms == 0)
                        continue; /* understood anyway */
                if (own->samples <= before.samples)
                        return json_field_error(
                                &point, err, "must have more samples than the point before; give %s", mend);
                if (own->ms < before.ms)
                        return json_field_error(&point, err,
                                                "takes %g ms, less than the %g ms of fewer samples; give %s",
                                                own->ms, before.ms, mend);
                before = *own;
                used++;
        }
        if (used == 0)
                return json_field_error(&table, err, "has no point beyond [0, 0]; give %s", mend);
        worker->point_count = used;
        return 0;
}

static int decode_model(const struct json_field *at, struct shard_worker *worker, struct err *err)
{
        bool speed = json_object_get(at->value, "speed") != NULL;
        bool affine = json_object_get(at->value, "alpha_ms") != NULL ||
                      json_object_get(at->value, "beta_ms") != NULL;
        bool table = json_object_get(at->value, "table") != NULL;
        int r;

        if (speed + affine + table != 1)
                return json_field_error(
                        at, err,
                        "%s; give \"speed\" (samples a second), or \"alpha_ms\" and \"beta_ms\", or "
                        "\"table\", or with --store \"device\"",
                        speed + affine + table == 0 ? "has no speed" : "has more than one kind of speed");
        if (speed) {
                worker->model = SHARD_SPEED;
                return plan_field_double(at, "speed", true, 1e-30, "samples per second, more than 0",
                                         &worker->speed, err);
        }
        if (table) {
                worker->model = SHARD_TABLE;
                return decode_table(at, worker, err);
        }
        worker->model = SHARD_AFFINE;
        r = plan_field_double(at, "alpha_ms", true, 0, "the fixed ms of a step", &worker->alpha_ms, err);
        if (r < 0)
                return r;
        return plan_field_double(at, "beta_ms", true, 0, "the ms of each sample", &worker->beta_ms, err);
}

int plan_shards_worker_decode(const struct json_field *at, struct shard_worker *ret, struct err *err)
{
        const uint64_t most = (uint64_t) 1 << 53;
        struct shard_worker worker = { 0 };
        int r = decode_model(at, &worker, err);

        if (r >= 0)
                r = plan_field_uint64(at, "min", false, 0, most, "the least samples it may take", &worker.min,
                                      err);
        if (r >= 0)
                r = plan_field_uint64(at, "max", false, 0, most, "the most samples it can take", &worker.max,
                                      err);
        worker.has_max = r == 0;
        if (r >= 0)
                r = plan_field_uint64(at, "multiple", false, 1, most, "a whole number that divides its share",
                                      &worker.multiple, err);
        if (r < 0) {
                free((void *) worker.points);
                return r;
        }
        *ret = worker;
        return 0;
}

/* Appends the workers of one list; room has been made for them. */
static int decode_workers(const struct json_field *list, struct plan_shards_request *request, struct err *err)
{
        size_t first = request->worker_count, count = json_field_count(list);

        for (size_t i = 0; i < count; i++) {
                struct json_field at = json_field_at(list, i);
                size_t own = request->worker_count;
                int r = json_field_is_object(&at, err);

                if (r == 0)
                        r = json_field_only(&at, worker_fields, err);
                if (r == 0)
                        r = plan_field_string(&at, "name", "a name of its own", &request->names[own], err);
                if (r == 0 && json_field_string(&at, "source", &request->sources[own], err) < 0)
                        r = -EBADMSG;
                if (r == 0)
                        r = plan_shards_worker_decode(&at, &request->workers[own], err);
                if (r < 0)
                        return r;
                request->worker_count++;
        }
        return plan_field_unique(list, request->names + first, count, err);
}

static int make_room(struct plan_shards_request *request, size_t count, struct err *err)
{
        if (count > SHARDS_MAX_WORKERS)
                return err_set(err, -E2BIG, "workers: %zu are more than %zu; plan parts of them", count,
                               SHARDS_MAX_WORKERS);
        request->workers = calloc(count, sizeof(*request->workers));
        request->names = calloc(count, sizeof(*request->names));
        request->sources = calloc(count, sizeof(*request->sources));
        if (request->workers == NULL || request->names == NULL || request->sources == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu workers", count);
        return 0;
}

static int decode_groups(const struct json_field *root, struct plan_shards_request *request, struct err *err)
{
        CLEANUP(free_p) const char **names = NULL;
        struct json_field list, workers;
        size_t total = 0;
        int r = plan_field_list(root, "groups", SHARDS_MAX_WORKERS, "groups with workers", &list, err);

        if (r < 0)
                return r;
        request->group_count = json_field_count(&list);
        request->groups = calloc(request->group_count, sizeof(*request->groups));
        names = calloc(request->group_count, sizeof(*names));
        if (request->groups == NULL || names == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu groups", request->group_count);
        for (size_t i = 0; i < request->group_count; i++) {
                struct json_field at = json_field_at(&list, i);

                r = json_field_is_object(&at, err);
                if (r == 0)
                        r = json_field_only(&at, group_fields, err);
                if (r == 0)
                        r = plan_field_string(&at, "name", "a name of its own", &names[i], err);
                if (r == 0)
                        r = plan_field_list(&at, "workers", SHARDS_MAX_WORKERS, "at least one worker",
                                            &workers, err);
                if (r < 0)
                        return r;
                request->groups[i] = (struct plan_shards_group){ .name = names[i],
                                                                 .first = total,
                                                                 .count = json_field_count(&workers) };
                total += request->groups[i].count;
        }
        r = plan_field_unique(&list, names, request->group_count, err);
        if (r == 0)
                r = make_room(request, total, err);
        for (size_t i = 0; r == 0 && i < request->group_count; i++) {
                struct json_field at = json_field_at(&list, i);

                workers = json_field_get(&at, "workers");
                r = decode_workers(&workers, request, err);
        }
        return r;
}

static int decode_communication(const struct json_field *root, struct plan_shards_request *request,
                                struct err *err)
{
        struct shard_communication *communication = &request->communication;
        struct json_field at;
        int r = json_field_object(root, "communication", &at, err);

        if (r != 0)
                return r < 0 ? r : 0;
        request->has_communication = true;
        r = json_field_only(&at, communication_fields, err);
        if (r == 0)
                r = plan_field_double(&at, "alpha_ms", true, 0, "the ms of starting one message",
                                      &communication->alpha_ms, err);
        if (r == 0)
                r = plan_field_double(&at, "beta_ms_per_byte", true, 0, "the ms of one byte",
                                      &communication->beta_ms_per_byte, err);
        if (r == 0)
                r = plan_field_uint64(&at, "bytes", true, 0, (uint64_t) 1 << 53, "the bytes of all gradients",
                                      &communication->bytes, err);
        return r;
}

static int decode(const struct json_field *root, struct plan_shards_request *request, struct err *err)
{
        struct json_field list;
        int r = json_field_is_object(root, err);

        if (r == 0)
                r = json_field_only(root, request_fields, err);
        if (r == 0)
                r = plan_field_uint64(root, "batch", true, 1, SHARDS_MAX_BATCH,
                                      "the samples of one global batch", &request->batch, err);
        if (r == 0)
                r = plan_field_uint64(root, "epoch", false, 1, SHARDS_MAX_BATCH, "the samples of one epoch",
                                      &request->epoch, err);
        if (r >= 0)
                r = decode_communication(root, request, err);
        if (r < 0)
                return r;
        if (json_object_get(root->value, "groups") != NULL) {
                if (json_object_get(root->value, "workers") != NULL)
                        return err_set(err, -EBADMSG, "workers: stands beside groups; give one of the two");
                return decode_groups(root, request, err);
        }
        r = plan_field_list(root, "workers", SHARDS_MAX_WORKERS, "at least one worker", &list, err);
        if (r == 0)
                r = make_room(request, json_field_count(&list), err);
        return r == 0 ? decode_workers(&list, request, err) : r;
}

int plan_shards_request_decode(const json_t *json, struct plan_shards_request *ret, struct err *err)
{
        struct json_field root = json_field_root(json);
        struct plan_shards_request request = { 0 };
        int r = decode(&root, &request, err);

        if (r < 0) {
                plan_shards_request_free(&request);
                return r;
        }
        *ret = request;
        return 0;
}

void plan_shards_request_free(struct plan_shards_request *request)
{
        for (size_t i = 0; i < request->worker_count; i++)
                free((void *) request->workers[i].points);
        free(request->workers);
        free(request->names);
        free(request->sources);
        free(request->groups);
        *request = (struct plan_shards_request){ 0 };
}

/* What one more worker would have cost: the plan's own workers and this one, planned again. */
static int price(const struct plan_shards_request *request, const struct plan_shards_answer *answer,
                 struct plan_shards_left_out *left_out, struct err *err)
{
        CLEANUP(free_p) struct shard_worker *some = calloc(answer->plan.used + 1, sizeof(*some));
        CLEANUP(free_p) struct shard *shards = calloc(answer->plan.used + 1, sizeof(*shards));
        struct shards_plan plan;
        size_t count = 0;
        int r;

        if (some == NULL || shards == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu workers", answer->plan.used + 1);
        for (size_t i = 0; i < request->worker_count; i++)
                if (answer->shards[i].batch > 0 || i == left_out->worker)
                        some[count++] = request->workers[i];
        r = shards_plan(some, count, request->batch, shards, &plan, err);
        if (r < 0)
                return r;
        left_out->step_ms = plan.step_ms;
        left_out->communication_ms = shards_communication_ms(&request->communication, count);
        left_out->priced = true;
        return 0;
}

static int find_left_out(const struct plan_shards_request *request, struct plan_shards_answer *answer,
                         struct err *err)
{
        size_t count = request->worker_count - answer->plan.used;

        answer->left_out = calloc(count + 1, sizeof(*answer->left_out));
        if (answer->left_out == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu workers", count);
        for (size_t i = 0; i < request->worker_count; i++) {
                struct plan_shards_left_out *own = &answer->left_out[answer->left_out_count];

                if (answer->shards[i].batch > 0)
                        continue;
                own->worker = i;
                answer->left_out_count++;
                if (answer->left_out_count * (answer->plan.used + 1) <= PRICED_WORKERS) {
                        int r = price(request, answer, own, err);

                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

int plan_shards_request_answer(const struct plan_shards_request *request, bool least,
                               struct plan_shards_answer *ret, struct err *err)
{
        struct plan_shards_answer answer = { .least = least };
        int r = 0;

        if (least && !request->has_communication)
                return err_set(err, -EINVAL,
                               "communication: is missing; --drop-harmful weighs it: give alpha_ms, "
                               "beta_ms_per_byte and bytes");
        answer.shards = calloc(request->worker_count, sizeof(*answer.shards));
        if (answer.shards == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu workers", request->worker_count);
        r = shards_plan_least(request->workers, request->worker_count, request->batch,
                              least ? &request->communication : NULL, answer.shards, &answer.plan, err);
        if (r == 0 && least) {
                answer.communication_ms = shards_communication_ms(&request->communication, answer.plan.used);
                r = find_left_out(request, &answer, err);
        }
        if (r < 0) {
                plan_shards_answer_free(&answer);
                return r;
        }
        *ret = answer;
        return 0;
}

void plan_shards_answer_free(struct plan_shards_answer *answer)
{
        free(answer->shards);
        free(answer->left_out);
        *answer = (struct plan_shards_answer){ 0 };
}
