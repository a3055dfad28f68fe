#include "launcher/subtask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec/rendezvous_pb.h"
#include "core/cleanup.h"
#include "core/job.h"
#include "core/shards.h"
#include "core/text.h"

void subtask_plan_free(struct subtask_plan *plan)
{
        free(plan->groups);
        json_decref(plan->args);
        *plan = (struct subtask_plan){ 0 };
}

static int read_uint(const json_t *object, const char *name, uint64_t min, uint64_t max, uint64_t *ret,
                     struct err *err)
{
        const json_t *value = json_object_get(object, name);

        if (!json_is_integer(value) || json_integer_value(value) < (json_int_t) min ||
            json_integer_value(value) > (json_int_t) max)
                return err_set(err, -EINVAL, "%s: a whole number in %llu..%llu is needed", name,
                               (unsigned long long) min, (unsigned long long) max);
        *ret = (uint64_t) json_integer_value(value);
        return 0;
}

static int read_group(const json_t *value, struct subtask_group *group, struct err *err)
{
        const char *name = json_string_value(json_object_get(value, "name"));
        const char *runtime = json_string_value(json_object_get(value, "runtime"));
        const json_t *speed = json_object_get(value, "speed");

        if (name == NULL || !job_name_valid(name) || !text_copy(group->name, sizeof(group->name), name))
                return err_set(err, -EINVAL, "name: 1 to 63 small letters, digits and '-' are needed");
        if (runtime == NULL || runtime[0] == '\0' ||
            !text_copy(group->runtime, sizeof(group->runtime), runtime))
                return err_set(err, -EINVAL, "runtime: the name of a runtime is needed, such as cpu");
        group->speed = speed == NULL ? 1 : json_number_value(speed);
        if (!(group->speed >= 1e-9 && group->speed <= 1e18))
                return err_set(err, -EINVAL, "speed: a number above 0 is needed");
        return read_uint(value, "chips", 1, RENDEZVOUS_CHIPS_MAX, &group->chips, err);
}

static int cut(const double *speeds, size_t count, uint64_t batch, struct shard *shards, struct err *err)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(count, sizeof(*workers));
        struct shards_plan plan;

        if (workers == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t i = 0; i < count; i++)
                workers[i] = (struct shard_worker){ .model = SHARD_SPEED, .speed = speeds[i] };
        return shards_plan(workers, count, batch, shards, &plan, err);
}

static int cut_groups(struct subtask_plan *plan, struct err *err)
{
        CLEANUP(free_p) struct shard *shards = calloc(plan->group_count, sizeof(*shards));
        CLEANUP(free_p) double *speeds = calloc(plan->group_count, sizeof(*speeds));
        uint64_t before = 0;
        int r;

        if (shards == NULL || speeds == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t i = 0; i < plan->group_count; i++)
                speeds[i] = plan->groups[i].speed;
        r = cut(speeds, plan->group_count, plan->global_batch, shards, err);
        for (size_t i = 0; r == 0 && i < plan->group_count; i++) {
                struct subtask_group *group = &plan->groups[i];

                group->batch = shards[i].batch;
                group->begin = shards_begin(plan->samples, before, plan->global_batch);
                before += shards[i].batch;
                group->end = shards_begin(plan->samples, before, plan->global_batch);
                group->first_rank = plan->world_size;
                plan->world_size += group->chips;
        }
        return r;
}

static int read_plan(const json_t *value, struct subtask_plan *plan, struct err *err)
{
        const char *job = json_string_value(json_object_get(value, "job"));
        const json_t *groups = json_object_get(value, "groups"), *args = json_object_get(value, "args");
        size_t count = json_array_size(groups);

        if (job == NULL || !job_name_valid(job) || !text_copy(plan->job, sizeof(plan->job), job))
                return err_set(err, -EINVAL, "job: 1 to 63 small letters, digits and '-' are needed");
        if (count == 0 || count > SUBTASK_GROUPS_MAX)
                return err_set(err, -EINVAL, "groups: a list of 1 to %d is needed", SUBTASK_GROUPS_MAX);
        if (args != NULL && !json_is_array(args))
                return err_set(err, -EINVAL, "args: a list of strings is needed");
        for (size_t i = 0; i < json_array_size(args); i++)
                if (!json_is_string(json_array_get(args, i)))
                        return err_set(err, -EINVAL, "args[%zu]: a string is needed", i);
        plan->args = args == NULL ? json_array() : json_incref((json_t *) args);
        plan->groups = calloc(count, sizeof(*plan->groups));
        if (plan->groups == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t i = 0; i < count; i++) {
                int r = read_group(json_array_get(groups, i), &plan->groups[i], err);

                if (r < 0)
                        return err_wrap(err, r, "groups[%zu]", i);
                for (size_t k = 0; k < i; k++)
                        if (strcmp(plan->groups[k].name, plan->groups[i].name) == 0)
                                return err_set(err, -EINVAL, "groups[%zu].name: '%s' is there twice", i,
                                               plan->groups[i].name);
                plan->group_count = i + 1;
        }
        return 0;
}

int subtask_plan_decode(const json_t *value, struct subtask_plan *ret, struct err *err)
{
        int r;

        *ret = (struct subtask_plan){ 0 };
        r = read_uint(value, "global_batch", 1, 1 << 24, &ret->global_batch, err);
        if (r == 0 && json_object_get(value, "samples") != NULL)
                r = read_uint(value, "samples", 0, (uint64_t) 1 << 40, &ret->samples, err);
        if (r == 0)
                r = read_plan(value, ret, err);
        if (r == 0)
                r = cut_groups(ret, err);
        if (r < 0)
                subtask_plan_free(ret);
        return r;
}

char *subtask_encode(const struct subtask_plan *plan, size_t index, const char *master, unsigned port)
{
        const struct subtask_group *group = &plan->groups[index];
        json_t *value = json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:[I,I], s:s, s:i}",
                                  "version", RENDEZVOUS_VERSION, "job", plan->job, "group", group->name,
                                  "runtime", group->runtime, "chips", (json_int_t) group->chips, "first_rank",
                                  (json_int_t) group->first_rank, "world_size", (json_int_t) plan->world_size,
                                  "batch", (json_int_t) group->batch, "global_batch",
                                  (json_int_t) plan->global_batch, "shard", (json_int_t) group->begin,
                                  (json_int_t) group->end, "master", master, "port", (int) port);
        char *text = value == NULL ? NULL : json_dumps(value, JSON_COMPACT);

        json_decref(value);
        return text;
}

/* --- the second level
 * ------------------------------------------------------------------------------------------------- */

struct part {
        const char *job, *group, *runtime, *master;
        uint64_t chips, first_rank, world_size, batch, global_batch, begin, end, port;
};

static int read_part(const json_t *value, struct part *part, struct err *err)
{
        const json_t *shard = json_object_get(value, "shard");
        uint64_t version = 0;
        int r = read_uint(value, "version", 0, 1000000, &version, err);

        if (r == 0 && version != RENDEZVOUS_VERSION)
                return err_set(err, -EINVAL,
                               "version: the manager speaks %llu, this launcher %d; install the same version",
                               (unsigned long long) version, RENDEZVOUS_VERSION);
        part->job = json_string_value(json_object_get(value, "job"));
        part->group = json_string_value(json_object_get(value, "group"));
        part->runtime = json_string_value(json_object_get(value, "runtime"));
        part->master = json_string_value(json_object_get(value, "master"));
        if (r == 0 &&
            (part->job == NULL || part->group == NULL || part->runtime == NULL || part->master == NULL))
                r = err_set(err, -EINVAL, "job, group, runtime and master are needed");
        if (r == 0)
                r = read_uint(value, "chips", 1, RENDEZVOUS_CHIPS_MAX, &part->chips, err);
        if (r == 0)
                r = read_uint(value, "first_rank", 0, 1 << 20, &part->first_rank, err);
        if (r == 0)
                r = read_uint(value, "world_size", 1, 1 << 20, &part->world_size, err);
        if (r == 0)
                r = read_uint(value, "batch", 0, 1 << 24, &part->batch, err);
        if (r == 0)
                r = read_uint(value, "global_batch", 1, 1 << 24, &part->global_batch, err);
        if (r == 0)
                r = read_uint(value, "port", 1, 65535, &part->port, err);
        if (r == 0 &&
            (!json_is_integer(json_array_get(shard, 0)) || !json_is_integer(json_array_get(shard, 1)) ||
             json_integer_value(json_array_get(shard, 0)) < 0 ||
             json_integer_value(json_array_get(shard, 1)) < json_integer_value(json_array_get(shard, 0))))
                r = err_set(err, -EINVAL, "shard: [begin, end] is needed");
        if (r < 0)
                return r;
        part->begin = (uint64_t) json_integer_value(json_array_get(shard, 0));
        part->end = (uint64_t) json_integer_value(json_array_get(shard, 1));
        if (part->first_rank + part->chips > part->world_size || part->batch > part->global_batch)
                return err_set(err, -EINVAL, "the part is larger than the whole");
        return 0;
}

static json_t *entry(const struct part *part, size_t chip, uint64_t batch, uint64_t begin, uint64_t end,
                     const char *folder)
{
        uint64_t rank = part->first_rank + chip;
        char number[12][64], out[4096], errors[4096], report[4096];

        (void) text_format(out, sizeof(out), "%s/rank-%llu.out", folder, (unsigned long long) rank);
        (void) text_format(errors, sizeof(errors), "%s/rank-%llu.err", folder, (unsigned long long) rank);
        (void) text_format(report, sizeof(report), "%s/rank-%llu.report", folder, (unsigned long long) rank);
        (void) text_format(number[0], 64, "%llu", (unsigned long long) batch);
        (void) text_format(number[1], 64, "%.17g", (double) batch / (double) part->global_batch);
        (void) text_format(number[2], 64, "%llu:%llu", (unsigned long long) begin, (unsigned long long) end);
        (void) text_format(number[3], 64, "%llu", (unsigned long long) rank);
        (void) text_format(number[4], 64, "%llu", (unsigned long long) part->world_size);
        (void) text_format(number[5], 64, "%zu", chip);
        (void) text_format(number[6], 64, "%llu", (unsigned long long) part->chips);
        (void) text_format(number[7], 64, "%llu", (unsigned long long) part->port);
        return json_pack(
                "{s:s, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}, s:s, s:s, s:s}",
                "runtime", part->runtime, "environment", "REMUDA_JOB", part->job, "REMUDA_ROLE", "worker",
                "REMUDA_GROUP", part->group, "REMUDA_BATCH", number[0], "REMUDA_WEIGHT", number[1],
                "REMUDA_SHARD", number[2], "RANK", number[3], "WORLD_SIZE", number[4], "LOCAL_RANK",
                number[5], "LOCAL_WORLD_SIZE", number[6], "MASTER_ADDR", part->master, "MASTER_PORT",
                number[7], "stdout", out, "stderr", errors, "report", report);
}

static int cut_chips(const struct part *part, const char *folder, json_t *ranks, struct err *err)
{
        CLEANUP(free_p) struct shard *shards = calloc(part->chips, sizeof(*shards));
        CLEANUP(free_p) double *speeds = calloc(part->chips, sizeof(*speeds));
        uint64_t before = 0, size = part->end - part->begin, begin, end;
        int r = 0;

        if (shards == NULL || speeds == NULL)
                return err_set(err, -ENOMEM, "no memory for the subtask");
        for (size_t i = 0; i < part->chips; i++) /* the chips of a group are of one model */
                speeds[i] = 1;
        if (part->batch > 0)
                r = cut(speeds, part->chips, part->batch, shards, err);
        for (uint64_t i = 0; r == 0 && i < part->first_rank; i++)
                (void) json_array_append_new(ranks, json_null());
        for (size_t i = 0; r == 0 && i < part->chips; i++) {
                begin = part->begin + (part->batch == 0 ? 0 : shards_begin(size, before, part->batch));
                before += shards[i].batch;
                end = part->begin + (part->batch == 0 ? 0 : shards_begin(size, before, part->batch));
                if (json_array_append_new(ranks, entry(part, i, shards[i].batch, begin, end, folder)) < 0)
                        r = err_set(err, -ENOMEM, "no memory for the subtask");
        }
        return r;
}

int subtask_cut(const char *text, const char *folder, json_t **ret, struct err *err)
{
        json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *ranks;
        struct part part = { 0 };
        int r;

        if (!json_is_object(value)) {
                json_decref(value);
                return err_set(err, -EINVAL, "subtask: not a JSON object");
        }
        ranks = json_array();
        r = read_part(value, &part, err);
        if (r == 0)
                r = cut_chips(&part, folder, ranks, err);
        if (r == 0)
                *ret = json_pack("{s:O}", "ranks", ranks);
        json_decref(ranks);
        json_decref(value);
        return r < 0 ? err_wrap(err, r, "subtask") : 0;
}
