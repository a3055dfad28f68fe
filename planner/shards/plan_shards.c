/* Reads a batch and its workers, plans them, and prices those that were left out. */
#include "planner/shards/plan_shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "planner/shards/plan_field.h"
#include "planner/shards/plan_speeds.h"

#define TABLE_MAX      ((size_t) 1 << 16)
#define PRICED_WORKERS ((size_t) 1 << 18) /* workers x plans that are spent on saying why one is left out */

/* A worker as the file has it: with a speed of its own, or of a device of the SpeedTable. */
struct file_worker {
        struct shard_worker worker;
        struct plan_speeds_device device;
};

/* A group of workers as the file has it. */
struct file_group {
        const char *name;
        struct file_worker *workers;
        size_t worker_count;
};

struct file {
        uint64_t batch, epoch;
        struct shard_communication communication;
        struct file_worker *workers;
        size_t worker_count;
        struct file_group *groups;
        size_t group_count;
        const struct plan_speeds_known *known; /* for devices; NULL = they have none */
};

#define WORKER(member)        JSON_TABLE_AT(struct file_worker, worker.member)
#define DEVICE(member)        JSON_TABLE_AT(struct file_worker, device.member)
#define GROUP(member)         JSON_TABLE_AT(struct file_group, member)
#define COMMUNICATION(member) JSON_TABLE_AT(struct shard_communication, member)
#define FILE_(member)         JSON_TABLE_AT(struct file, member)
#define LIMIT_MAX             ((int64_t) 1 << 53)
#define POINT_MEND            "points [samples, ms], samples rising and ms not falling"
#define ALPHA_MEND            "the fixed ms of a step"
#define SPEED_MEND                                                                                           \
        "\"speed\" (samples a second), or \"alpha_ms\" and \"beta_ms\", or \"table\", or with --store "      \
        "\"device\""
#define BETA_MEND "the ms of each sample"

static int decode_point(const struct json_field *at, void *field, struct err *err)
{
        struct shard_point *point = field;

        return plan_field_pair(at, SHARDS_MAX_BATCH, POINT_MEND, &point->samples, &point->ms, err);
}

static int check_worker(const struct json_field *at, void *object, struct err *err);
static int check_file(const struct json_field *at, void *object, struct err *err);

/* clang-format off */
static const struct json_table_row point = { .kind = JSON_TABLE_CUSTOM, .size_bytes = sizeof(struct shard_point),
                                             .decode = decode_point };
static const struct json_table_row worker_rows[] = {
        { "name",     JSON_TABLE_BORROWED, WORKER(name), .min = 1, .required = true, .mend = "a name of its own" },
        { "speed",    JSON_TABLE_DOUBLE, WORKER(speed), .least = 1e-30, .most = PLAN_TIME_MAX,
          .mend = "samples per second, more than 0" },
        { "alpha_ms", JSON_TABLE_DOUBLE, WORKER(alpha_ms), .most = PLAN_TIME_MAX, .mend = ALPHA_MEND },
        { "beta_ms",  JSON_TABLE_DOUBLE, WORKER(beta_ms), .most = PLAN_TIME_MAX, .mend = BETA_MEND },
        { "table",    JSON_TABLE_LIST, WORKER(points), .element = &point, .count = offsetof(struct file_worker, worker.point_count),
          .min = 1, .max = TABLE_MAX, .mend = POINT_MEND },
        { "min",      JSON_TABLE_UINT, WORKER(min), .max = LIMIT_MAX, .mend = "the least samples it may take" },
        { "max",      JSON_TABLE_UINT, WORKER(max), .max = LIMIT_MAX, .mend = "the most samples it can take" },
        { "multiple", JSON_TABLE_UINT, WORKER(multiple), .min = 1, .max = LIMIT_MAX,
          .mend = "a whole number that divides its share" },
        { "source",   JSON_TABLE_BORROWED, WORKER(source) },
        { "device",   JSON_TABLE_BORROWED, DEVICE(device) },
        { "program",  JSON_TABLE_BORROWED, DEVICE(program) },
        { "shared_by", JSON_TABLE_UINT,    DEVICE(shared_by), .min = 1, .max = 4096 },
        { .name = NULL },
};
static const struct json_table worker_table = { .rows = worker_rows, .size_bytes = sizeof(struct file_worker),
                                                .strict = true, .check = check_worker };
/* as part of a larger object, whose other members are not ours */
static const struct json_table lone_worker_table = { .rows = worker_rows, .size_bytes = sizeof(struct file_worker),
                                                     .check = check_worker };

static const struct json_table_row group_rows[] = {
        { "name",    JSON_TABLE_BORROWED, GROUP(name), .min = 1, .required = true, .mend = "a name of its own" },
        { "workers", JSON_TABLE_LIST, GROUP(workers), .table = &worker_table,
          .count = offsetof(struct file_group, worker_count), .min = 1, .max = SHARDS_MAX_WORKERS, .required = true,
          .mend = "at least one worker" },
        { .name = NULL },
};
static const struct json_table group_table = { .rows = group_rows, .size_bytes = sizeof(struct file_group), .strict = true };

static const struct json_table_row communication_rows[] = {
        { "alpha_ms", JSON_TABLE_DOUBLE, COMMUNICATION(alpha_ms), .most = PLAN_TIME_MAX, .required = true,
          .mend = "the ms of starting one message" },
        { "beta_ms_per_byte", JSON_TABLE_DOUBLE, COMMUNICATION(beta_ms_per_byte), .most = PLAN_TIME_MAX, .required = true,
          .mend = "the ms of one byte" },
        { "bytes", JSON_TABLE_UINT, COMMUNICATION(bytes), .max = LIMIT_MAX, .required = true,
          .mend = "the bytes of all gradients" },
        { .name = NULL },
};
static const struct json_table communication_table = { .rows = communication_rows,
                                                       .size_bytes = sizeof(struct shard_communication), .strict = true };

static const struct json_table_row file_rows[] = {
        { "batch",   JSON_TABLE_UINT, FILE_(batch), .min = 1, .max = SHARDS_MAX_BATCH, .required = true,
          .mend = "the samples of one global batch" },
        { "epoch",   JSON_TABLE_UINT, FILE_(epoch), .min = 1, .max = SHARDS_MAX_BATCH, .mend = "the samples of one epoch" },
        { "workers", JSON_TABLE_LIST, FILE_(workers), .table = &worker_table, .count = offsetof(struct file, worker_count),
          .min = 1, .max = SHARDS_MAX_WORKERS, .mend = "at least one worker" },
        { "groups",  JSON_TABLE_LIST, FILE_(groups), .table = &group_table, .count = offsetof(struct file, group_count),
          .min = 1, .max = SHARDS_MAX_WORKERS, .mend = "groups with workers" },
        { "communication", JSON_TABLE_OBJECT, FILE_(communication), .table = &communication_table },
        { .name = "name", .kind = JSON_TABLE_UNREAD },
        { .name = "comment", .kind = JSON_TABLE_UNREAD },
        { .name = "estimate", .kind = JSON_TABLE_UNREAD },
        { .name = NULL },
};
static const struct json_table file_table = { .rows = file_rows, .size_bytes = sizeof(struct file), .strict = true,
                                              .check = check_file };
/* clang-format on */

/* Points rise; [0, 0] at the front is understood anyway and is dropped. */
static int check_points(const struct json_field *table, struct shard_worker *worker, struct err *err)
{
        struct shard_point *points = (struct shard_point *) worker->points; /* the table's own memory */
        struct shard_point before = { 0 };
        bool origin = points[0].samples == 0 && points[0].ms == 0;

        for (size_t i = origin; i < worker->point_count; i++) {
                struct json_field at = json_field_at(table, i);

                if (points[i].samples <= before.samples)
                        return json_field_error(
                                &at, err, "must have more samples than the point before; give " POINT_MEND);
                if (points[i].ms < before.ms)
                        return json_field_error(
                                &at, err,
                                "takes %g ms, less than the %g ms of fewer samples; give " POINT_MEND,
                                points[i].ms, before.ms);
                before = points[i];
        }
        if (worker->point_count == origin)
                return json_field_error(table, err, "has no point beyond [0, 0]; give " POINT_MEND);
        worker->point_count -= origin;
        memmove(points, points + origin, worker->point_count * sizeof(*points));
        return 0;
}

static int check_worker(const struct json_field *at, void *object, struct err *err)
{
        struct file_worker *own = object;
        struct shard_worker *worker = &own->worker;
        struct json_field alpha = json_field_get(at, "alpha_ms"), beta = json_field_get(at, "beta_ms");
        struct json_field table = json_field_get(at, "table");
        bool speed = json_field_get(at, "speed").value != NULL;
        bool affine = alpha.value != NULL || beta.value != NULL;

        worker->has_max = json_field_get(at, "max").value != NULL;
        if (!speed && !affine && table.value == NULL && own->device.device != NULL)
                return 0; /* check_list() knows whether it has one */
        if (speed + affine + (table.value != NULL) != 1)
                return json_field_error(at, err, "%s; give " SPEED_MEND,
                                        speed || affine || table.value != NULL
                                                ? "has more than one kind of speed"
                                                : "has no speed");
        worker->model = speed ? SHARD_SPEED : affine ? SHARD_AFFINE : SHARD_TABLE;
        if (affine && alpha.value == NULL)
                return json_field_error(&alpha, err, "is missing; give " ALPHA_MEND);
        if (affine && beta.value == NULL)
                return json_field_error(&beta, err, "is missing; give " BETA_MEND);
        return table.value != NULL ? check_points(&table, worker, err) : 0;
}

int plan_shards_worker_decode(const struct json_field *at, struct shard_worker *ret, struct err *err)
{
        struct file_worker own = { .worker = { .name = NULL } };
        int r = json_table_decode_at(&lone_worker_table, at, &own, err);

        if (r == 0 && own.worker.model == SHARD_SPEED && !(own.worker.speed > 0))
                return json_field_error(at, err, "has no speed; give " SPEED_MEND);
        if (r == 0)
                *ret = own.worker;
        return r;
}

/* Names differ within a list, and devices have speeds somewhere. */
static int check_list(const struct json_field *in, const struct file *file, const struct file_worker *workers,
                      size_t count, struct err *err)
{
        struct json_field list = json_field_get(in, "workers");

        for (size_t i = 0; i < count && file->known == NULL; i++) {
                struct json_field at = json_field_at(&list, i), device = json_field_get(&at, "device");

                if (device.value != NULL)
                        return json_field_error(
                                &device, err,
                                "has its speed in a store; give --store, or \"speed\" (samples a second)");
        }
        return plan_field_unique(&list, &workers->worker.name, sizeof(*workers), count, err);
}

static int check_file(const struct json_field *at, void *object, struct err *err)
{
        struct file *file = object;
        struct json_field workers = json_field_get(at, "workers"), list = json_field_get(at, "groups");
        size_t total = file->worker_count;
        int r = 0;

        if (file->groups != NULL && file->workers != NULL)
                return err_set(err, -EBADMSG, "workers: stands beside groups; give one of the two");
        if (file->groups == NULL && file->workers == NULL)
                return json_field_error(&workers, err, "is missing; give at least one worker");
        if (file->groups == NULL)
                return check_list(at, file, file->workers, file->worker_count, err);
        r = plan_field_unique(&list, &file->groups->name, sizeof(*file->groups), file->group_count, err);
        for (size_t i = 0; r == 0 && i < file->group_count; i++) {
                const struct file_group *group = &file->groups[i];
                struct json_field own = json_field_at(&list, i);

                r = check_list(&own, file, group->workers, group->worker_count, err);
                total += group->worker_count;
        }
        if (r == 0 && total > SHARDS_MAX_WORKERS)
                r = err_set(err, -E2BIG, "workers: %zu are more than %zu; plan parts of them", total,
                            SHARDS_MAX_WORKERS);
        return r;
}

/* Hands a list over, with the memory of its tables. */
static void take_workers(struct file_worker *workers, size_t *count, struct plan_shards_request *request,
                         struct plan_speeds_device *devices)
{
        for (size_t i = 0; i < *count; i++) {
                devices[request->worker_count] = workers[i].device;
                request->workers[request->worker_count++] = workers[i].worker;
        }
        *count = 0;
}

static int take_file(struct file *file, const char *model, struct plan_shards_request *request,
                     struct err *err)
{
        CLEANUP(free_p) struct plan_speeds_device *devices = NULL;
        size_t total = file->worker_count;

        for (size_t i = 0; i < file->group_count; i++)
                total += file->groups[i].worker_count;
        devices = calloc(total, sizeof(*devices));
        request->workers = calloc(total, sizeof(*request->workers));
        request->groups = file->groups != NULL ? calloc(file->group_count, sizeof(*request->groups)) : NULL;
        if (devices == NULL || request->workers == NULL || (file->groups != NULL && request->groups == NULL))
                return err_set(err, -ENOMEM, "no memory for %zu workers", total);
        take_workers(file->workers, &file->worker_count, request, devices);
        for (; request->group_count < file->group_count; request->group_count++) {
                struct file_group *group = &file->groups[request->group_count];

                request->groups[request->group_count] = (struct plan_shards_group){
                        .name = group->name, .first = request->worker_count, .count = group->worker_count
                };
                take_workers(group->workers, &group->worker_count, request, devices);
        }
        if (file->known == NULL)
                return 0;
        if (plan_speeds_fill(request->workers, devices, total, file->known, model, &request->speeds) < 0)
                return err_set(err, -ENOMEM, "no memory for %zu workers", total);
        return 0;
}

int plan_shards_request_decode(const json_t *json, const struct plan_speeds_known *known, const char *model,
                               struct plan_shards_request *ret, struct err *err)
{
        struct json_field root = json_field_root(json);
        struct plan_shards_request request;
        struct file file = { .known = known };
        int r = json_table_decode(&file_table, json, &file, err);

        if (r < 0)
                return r;
        request = (struct plan_shards_request){ .batch = file.batch,
                                                .epoch = file.epoch,
                                                .has_communication =
                                                        json_field_get(&root, "communication").value != NULL,
                                                .communication = file.communication };
        r = take_file(&file, model, &request, err);
        json_table_free(&file_table, &file);
        if (r == 0)
                *ret = request;
        else
                plan_shards_request_free(&request);
        return r;
}

void plan_shards_request_free(struct plan_shards_request *request)
{
        for (size_t i = 0; i < request->worker_count; i++)
                free((void *) request->workers[i].points);
        free(request->workers);
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

static bool has_limits(const struct plan_shards_request *request)
{
        for (size_t i = 0; i < request->worker_count; i++)
                if (request->workers[i].min > 0 || request->workers[i].has_max ||
                    request->workers[i].multiple > 1)
                        return true;
        return false;
}

/* Ranks of a job all take part, as the job itself is cut; where limits were given the plan stays. */
static int employ_ranks(const struct plan_shards_request *request, struct plan_shards_answer *answer,
                        struct err *err)
{
        int r;

        if (answer->plan.used == request->worker_count || !request->speeds.ranks || has_limits(request))
                return 0;
        r = shards_cut(request->workers, request->worker_count, request->batch, true, answer->shards,
                       &answer->plan.step_ms, err);
        answer->plan.used = 0;
        for (size_t i = 0; r == 0 && i < request->worker_count; i++)
                answer->plan.used += answer->shards[i].batch > 0;
        return r;
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
        if (least && request->speeds.untimed)
                return err_set(err, -EINVAL,
                               "communication: is in milliseconds, and the speeds of the devices are no "
                               "times but '%s'; "
                               "give each worker a speed, or run a job on them first",
                               request->workers[0].source);
        answer.shards = calloc(request->worker_count, sizeof(*answer.shards));
        if (answer.shards == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu workers", request->worker_count);
        r = shards_plan_least(request->workers, request->worker_count, request->batch,
                              least ? &request->communication : NULL, answer.shards, &answer.plan, err);
        if (r == 0 && !least)
                r = employ_ranks(request, &answer, err);
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
