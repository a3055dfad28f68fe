#include "job/launcher/subtask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/launcher/rendezvous_pb.h"
#include "job/spec/job.h"
#include "launcher/subtask_read.h"
#include "planner/shards/shards.h"

void subtask_plan_free(struct subtask_plan *plan)
{
        for (size_t i = 0; i < plan->group_count; i++)
                free(plan->groups[i].chip_speeds);
        free(plan->groups);
        json_decref(plan->args);
        json_decref(plan->resume_args);
        json_decref(plan->environment);
        *plan = (struct subtask_plan){ 0 };
}

int subtask_read_uint(const json_t *object, const char *name, uint64_t min, uint64_t max, uint64_t *ret,
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

/* Left out, *ret keeps what it holds. */
int subtask_read_optional(const json_t *object, const char *name, uint64_t max, uint64_t *ret,
                          struct err *err)
{
        return json_object_get(object, name) == NULL ? 0 : subtask_read_uint(object, name, 0, max, ret, err);
}

static int read_bool(const json_t *object, const char *name, bool *ret, struct err *err)
{
        const json_t *value = json_object_get(object, name);

        if (value != NULL && !json_is_boolean(value))
                return err_set(err, -EINVAL, "%s: true or false is needed", name);
        *ret = json_is_true(value);
        return 0;
}

static int read_role(const json_t *value, struct subtask_group *group, struct err *err)
{
        const json_t *role = json_object_get(value, "role");
        const char *name = role == NULL ? "worker" : json_string_value(role);

        if (name == NULL || (strcmp(name, "worker") != 0 && strcmp(name, "server") != 0))
                return err_set(err, -EINVAL, "role: worker or server is needed");
        group->server = strcmp(name, "server") == 0;
        return 0;
}

static int read_group(const json_t *value, struct subtask_group *group, bool *ret_batch, struct err *err)
{
        const char *name = json_string_value(json_object_get(value, "name"));
        const char *runtime = json_string_value(json_object_get(value, "runtime"));
        const char *vendor = json_string_value(json_object_get(value, "vendor"));
        const json_t *speed = json_object_get(value, "speed");
        int r;

        if (name == NULL || !job_name_valid(name) || !text_copy(group->name, sizeof(group->name), name))
                return err_set(err, -EINVAL, "name: 1 to 63 small letters, digits and '-' are needed");
        if (runtime == NULL || runtime[0] == '\0' ||
            !text_copy(group->runtime, sizeof(group->runtime), runtime))
                return err_set(err, -EINVAL, "runtime: the name of a runtime is needed, such as cpu");
        if (!text_copy(group->vendor, sizeof(group->vendor), vendor == NULL ? "" : vendor))
                return err_set(err, -EINVAL, "vendor: the name of a vendor is needed, such as huawei");
        group->speed = speed == NULL ? 1 : json_number_value(speed);
        if (!(group->speed >= 1e-9 && group->speed <= 1e18))
                return err_set(err, -EINVAL, "speed: a number above 0 is needed");
        r = read_role(value, group, err);
        if (r == 0)
                r = read_bool(value, "spare", &group->spare, err);
        if (r == 0)
                r = subtask_read_optional(value, "batch", 1 << 24, &group->batch, err);
        *ret_batch = json_object_get(value, "batch") != NULL;
        return r < 0 ? r : subtask_read_uint(value, "chips", 1, RENDEZVOUS_CHIPS_MAX, &group->chips, err);
}

/* The exact plan gives nothing to one that would only slow the others; here all take part, so that it takes a
 * sample of the largest share. */
static void settle_idle(struct shard *shards, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                size_t largest = 0;

                if (shards[i].batch > 0)
                        continue;
                for (size_t k = 1; k < count; k++)
                        if (shards[k].batch > shards[largest].batch)
                                largest = k;
                if (shards[largest].batch < 2)
                        return;
                shards[largest].batch--;
                shards[i].batch++;
        }
}

int subtask_share(const double *speeds, size_t count, uint64_t batch, struct shard *shards, struct err *err)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(count, sizeof(*workers));
        struct shards_plan plan;
        int r;

        if (workers == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t i = 0; i < count; i++)
                workers[i] = (struct shard_worker){ .model = SHARD_SPEED, .speed = speeds[i] };
        r = shards_plan(workers, count, batch, shards, &plan, err);
        if (r == 0)
                settle_idle(shards, count);
        return r;
}

uint64_t subtask_workers(const struct subtask_plan *plan)
{
        uint64_t chips = 0;

        for (size_t i = 0; i < plan->group_count; i++)
                if (plan->groups[i].used && !plan->groups[i].server)
                        chips += plan->groups[i].chips;
        return chips;
}

static int share_by_speed(struct subtask_plan *plan, struct err *err)
{
        CLEANUP(free_p) struct shard *shards = calloc(plan->group_count, sizeof(*shards));
        CLEANUP(free_p) double *speeds = calloc(plan->group_count, sizeof(*speeds));
        size_t workers = 0;
        int r;

        if (shards == NULL || speeds == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t i = 0; i < plan->group_count; i++)
                if (plan->groups[i].used && !plan->groups[i].server)
                        speeds[workers++] = plan->groups[i].speed;
        r = subtask_share(speeds, workers, plan->global_batch, shards, err);
        workers = 0;
        for (size_t i = 0; r == 0 && i < plan->group_count; i++)
                if (plan->groups[i].used)
                        plan->groups[i].batch = plan->groups[i].server ? 0 : shards[workers++].batch;
        return r;
}

int subtask_plan_cut(struct subtask_plan *plan, struct err *err)
{
        uint64_t before = 0;
        int r = 0;

        if (subtask_workers(plan) == 0)
                return err_set(err, -EINVAL, "groups: no worker is left");
        if (!plan->batches_given)
                r = share_by_speed(plan, err);
        plan->batches_given = false; /* who takes part may change */
        plan->world_size = 0;
        for (size_t i = 0; r == 0 && i < plan->group_count; i++) {
                struct subtask_group *group = &plan->groups[i];

                if (!group->used)
                        continue;
                group->begin = shards_begin(plan->samples, before, plan->global_batch);
                before += group->batch;
                group->end = shards_begin(plan->samples, before, plan->global_batch);
                group->first_rank = plan->world_size;
                plan->world_size += group->chips;
        }
        return r;
}

static int read_groups(const json_t *groups, struct subtask_plan *plan, struct err *err)
{
        size_t count = json_array_size(groups), batches = 0, expected = 0;
        uint64_t sum = 0, chips = 0;
        bool workers = false;

        if (count == 0 || count > SUBTASK_GROUPS_MAX)
                return err_set(err, -EINVAL, "groups: a list of 1 to %d is needed", SUBTASK_GROUPS_MAX);
        plan->groups = calloc(count, sizeof(*plan->groups));
        if (plan->groups == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t i = 0; i < count; i++) {
                struct subtask_group *group = &plan->groups[i];
                bool has_batch = false;
                int r = read_group(json_array_get(groups, i), group, &has_batch, err);

                plan->group_count = i + 1;
                if (r < 0)
                        return err_wrap(err, r, "groups[%zu]", i);
                for (size_t k = 0; k < i; k++)
                        if (strcmp(plan->groups[k].name, group->name) == 0)
                                return err_set(err, -EINVAL, "groups[%zu].name: '%s' is there twice", i,
                                               group->name);
                if (group->server && workers)
                        return err_set(err, -EINVAL, "groups[%zu].role: servers come before the workers", i);
                workers = workers || !group->server;
                group->used = !group->spare;
                chips += group->chips;
                if (group->server || group->spare)
                        continue;
                expected++;
                batches += has_batch;
                sum += group->batch;
        }
        if (chips > SUBTASK_CHIPS_MAX)
                return err_set(err, -EINVAL, "groups: %llu chips in all; at most %d are allowed",
                               (unsigned long long) chips, SUBTASK_CHIPS_MAX);
        if (batches != 0 && (batches != expected || sum != plan->global_batch))
                return err_set(err, -EINVAL,
                               "groups[].batch: given for %zu of %zu workers, %llu in all; give every worker "
                               "one, so "
                               "that they add up to global_batch, %llu",
                               batches, expected, (unsigned long long) sum,
                               (unsigned long long) plan->global_batch);
        plan->batches_given = batches != 0;
        return 0;
}

static int read_strings(const json_t *value, const char *name, json_t **ret, struct err *err)
{
        const json_t *list = json_object_get(value, name);

        if (list != NULL && !json_is_array(list))
                return err_set(err, -EINVAL, "%s: a list of strings is needed", name);
        for (size_t i = 0; i < json_array_size(list); i++)
                if (!json_is_string(json_array_get(list, i)))
                        return err_set(err, -EINVAL, "%s[%zu]: a string is needed", name, i);
        *ret = list == NULL ? json_array() : json_incref((json_t *) list);
        return *ret == NULL ? err_set(err, -ENOMEM, "no memory for the plan") : 0;
}

static int read_environment(const json_t *value, struct subtask_plan *plan, struct err *err)
{
        const json_t *object = json_object_get(value, "environment");
        const char *name;
        json_t *text;

        if (object != NULL && !json_is_object(object))
                return err_set(err, -EINVAL, "environment: an object of strings is needed");
        json_object_foreach((json_t *) object, name, text)
        {
                if (!json_is_string(text) || name[0] == '\0' || strchr(name, '=') != NULL)
                        return err_set(err, -EINVAL,
                                       "environment.%.60s: a name without '=' and a string are needed", name);
                if (text_starts_with(name, "LD_") || text_starts_with(name, "GLIBC_"))
                        return err_set(err, -EINVAL,
                                       "environment.%.60s: the loader's variables are the table's alone",
                                       name);
        }
        plan->environment = object == NULL ? json_object() : json_incref((json_t *) object);
        return plan->environment == NULL ? err_set(err, -ENOMEM, "no memory for the plan") : 0;
}

static int read_restart(const json_t *value, struct subtask_plan *plan, struct err *err)
{
        const json_t *restart = json_object_get(value, "restart");
        int r = 0;

        plan->hang_seconds = JOB_HANG_SECONDS;
        plan->rejoin_seconds = 30;
        plan->min_chips = subtask_workers(plan);
        if (restart != NULL && !json_is_object(restart))
                return err_set(err, -EINVAL, "restart: an object is needed");
        r = subtask_read_optional(restart, "max", 1000, &plan->restart_max, err);
        if (r == 0)
                r = subtask_read_optional(restart, "hang_seconds", 86400, &plan->hang_seconds, err);
        if (r == 0)
                r = subtask_read_optional(restart, "rejoin_seconds", 86400, &plan->rejoin_seconds, err);
        if (r == 0)
                r = subtask_read_optional(restart, "min_chips", SUBTASK_CHIPS_MAX, &plan->min_chips, err);
        if (plan->hang_seconds == 0)
                plan->hang_seconds = JOB_HANG_SECONDS;
        return r < 0 ? err_wrap(err, r, "restart") : 0;
}

static int read_plan(const json_t *value, struct subtask_plan *plan, struct err *err)
{
        const char *job = json_string_value(json_object_get(value, "job"));
        const char *checkpoint = json_string_value(json_object_get(value, "checkpoint")), *status_token;
        int r;

        if (job == NULL || !job_name_valid(job) || !text_copy(plan->job, sizeof(plan->job), job))
                return err_set(err, -EINVAL, "job: 1 to 63 small letters, digits and '-' are needed");
        if (!text_copy(plan->checkpoint, sizeof(plan->checkpoint), checkpoint == NULL ? "" : checkpoint))
                return err_set(err, -EINVAL, "checkpoint: a folder's path is needed");
        status_token = json_string_value(json_object_get(value, "status_token"));
        if (status_token != NULL &&
            (strlen(status_token) < 16 ||
             !text_copy(plan->status_token, sizeof(plan->status_token), status_token)))
                return err_set(err, -EINVAL, "status_token: 16 to 63 characters are needed");
        plan->epochs = plan->world = 1;
        r = subtask_read_optional(value, "samples", (uint64_t) 1 << 40, &plan->samples, err);
        if (r == 0)
                r = subtask_read_optional(value, "epochs", 1000000, &plan->epochs, err);
        if (r == 0)
                r = subtask_read_optional(value, "world", (uint64_t) 1 << 31, &plan->world, err);
        if (r == 0)
                r = read_bool(value, "resume", &plan->resume, err);
        if (r == 0)
                r = read_strings(value, "args", &plan->args, err);
        if (r == 0)
                r = read_strings(value, "resume_args", &plan->resume_args, err);
        if (r == 0)
                r = read_environment(value, plan, err);
        if (r == 0)
                r = read_groups(json_object_get(value, "groups"), plan, err);
        return r < 0 ? r : read_restart(value, plan, err);
}

int subtask_plan_decode(const json_t *value, struct subtask_plan *ret, struct err *err)
{
        int r;

        *ret = (struct subtask_plan){ 0 };
        r = subtask_read_uint(value, "global_batch", 1, 1 << 24, &ret->global_batch, err);
        if (r == 0)
                r = read_plan(value, ret, err);
        if (r == 0)
                r = subtask_plan_cut(ret, err);
        if (r < 0)
                subtask_plan_free(ret);
        return r;
}

/* Everybody's place: HCCL's rank table and Paddle's endpoints name all of a world. */
static json_t *hosts_json(const struct subtask_plan *plan)
{
        json_t *hosts = json_array();

        for (size_t i = 0; i < plan->group_count; i++) {
                const struct subtask_group *group = &plan->groups[i];

                if (group->used)
                        (void) json_array_append_new(
                                hosts, json_pack("{s:s, s:s, s:s, s:I, s:i, s:b}", "name", group->name,
                                                 "runtime", group->runtime, "address", group->address,
                                                 "chips", (json_int_t) group->chips, "port",
                                                 (int) group->port, "server", group->server));
        }
        return hosts;
}

char *subtask_encode(const struct subtask_plan *plan, size_t index)
{
        const struct subtask_group *group = &plan->groups[index];
        json_t *speeds = json_array(), *value;
        char *text;

        for (size_t i = 0; group->chip_speeds != NULL && i < group->chips; i++)
                (void) json_array_append_new(speeds, json_real(group->chip_speeds[i]));
        value = json_pack(
                "{s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:[I,I], s:s, s:O, s:o, s:o}",
                "version", RENDEZVOUS_VERSION, "job", plan->job, "group", group->name, "runtime",
                group->runtime, "vendor", group->vendor, "world", (json_int_t) plan->world, "restarts",
                (json_int_t) plan->restarts, "restart_max", (json_int_t) plan->restart_max, "chips",
                (json_int_t) group->chips, "first_rank", (json_int_t) group->first_rank, "batch",
                (json_int_t) group->batch, "global_batch", (json_int_t) plan->global_batch, "shard",
                (json_int_t) group->begin, (json_int_t) group->end, "checkpoint", plan->checkpoint,
                "environment", plan->environment, "speeds", speeds, "hosts", hosts_json(plan));
        text = value == NULL ? NULL : json_dumps(value, JSON_COMPACT);
        json_decref(value);
        return text;
}
