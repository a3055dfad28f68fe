/* Reading and checking a plan, and its cut over the groups. */
#include "job/launcher/subtask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/pb_json.h"
#include "base/pb_check.h"
#include "base/text.h"
#include "job/launcher/message.h"
#include "job/plan/stages/stage_message.h"
#include "job/spec/job.h"
#include "job/spec/program_table.h"
#include "planner/splits/pipeline_ranks.h"

static const struct pb_check bounds[] = {
#include "job/plan/subtask.bounds.h"
        { .of = NULL },
};

bool subtask_is_server(const Subtask__Group *group)
{
        return group->role == SUBTASK__GROUP__ROLE__server;
}

static bool takes_part(const Subtask__Group *group)
{
        return group->used && !subtask_is_server(group);
}

/* Chips of the workers that are used. */
static uint64_t workers_of(const Subtask__Plan *plan)
{
        uint64_t chips = 0;

        for (size_t i = 0; i < plan->n_groups; i++)
                chips += takes_part(plan->groups[i]) ? plan->groups[i]->chips : 0;
        return chips;
}

bool subtask_has_stages(const Subtask__Plan *plan)
{
        uint32_t next = 0, layers = 0;
        size_t seen = 0; /* ranks */

        for (size_t i = 0; i < plan->n_groups; i++)
                for (size_t k = 0; k < plan->groups[i]->n_stages; k++)
                        if (plan->groups[i]->stages[k]->last >= layers)
                                layers = plan->groups[i]->stages[k]->last + 1;
        for (size_t i = 0; i < plan->n_groups; i++) {
                const Subtask__Group *group = plan->groups[i];

                for (size_t k = 0; k < group->n_stages; k++) {
                        if (next == layers && pipeline_ranks_begin(seen, group->stages[k]->first))
                                next = 0; /* a pipeline more */
                        seen++;
                        if (takes_part(group) && group->stages[k]->first != next)
                                return false;
                        next = takes_part(group) ? group->stages[k]->last + 1 : next;
                }
                if (takes_part(group) && group->n_stages != group->chips)
                        return false;
        }
        return next == layers;
}

bool subtask_may_share_anew(const Subtask__Plan *plan)
{
        for (size_t i = 0; i < plan->n_groups; i++)
                if (plan->groups[i]->n_stages > 0)
                        return false;
        return plan->shards == SUBTASK__SHARDS__weighted;
}

/* Of chips of one model, which are alike unless their plan or a world has shown more. */
static struct shard_worker chip_of(const Subtask__Group *group, size_t k)
{
        double speed = group->n_chip_speeds > 0 ? group->chip_speeds[k] : group->speed / group->chips,
               alpha_ms = group->n_chip_alpha_ms > 0 ? group->chip_alpha_ms[k] : 0;

        return alpha_ms > 0 ? (struct shard_worker){ .model = SHARD_AFFINE,
                                                     .alpha_ms = alpha_ms,
                                                     .beta_ms = 1000 / speed }
                            : (struct shard_worker){ .model = SHARD_SPEED, .speed = speed };
}

/* The part of one group, over its chips. */
static int share_in_group(const Subtask__Plan *plan, Subtask__Group *group, struct err *err)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(group->chips, sizeof(*workers));
        CLEANUP(free_p) struct shard *shards = calloc(group->chips, sizeof(*shards));
        int r;

        if (workers == NULL || shards == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t k = 0; k < group->chips; k++)
                workers[k] = chip_of(group, k);
        r = group->batch == 0 ? 0
                              : shards_cut(workers, group->chips, group->batch, subtask_may_share_anew(plan),
                                           shards, NULL, err);
        for (size_t k = 0; r == 0 && k < group->chips; k++)
                group->chip_batches[k] = (uint32_t) shards[k].batch;
        return r;
}

/* Once a world has shown how fast its chips are, all of them at once: what is fixed in a chip's step has no
 * sum over a group. */
static int share_by_chip(Subtask__Plan *plan, struct err *err)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(workers_of(plan), sizeof(*workers));
        CLEANUP(free_p) struct shard *shards = calloc(workers_of(plan), sizeof(*shards));
        size_t count = 0;
        int r;

        if (workers == NULL || shards == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t i = 0; i < plan->n_groups; i++)
                for (size_t k = 0; takes_part(plan->groups[i]) && k < plan->groups[i]->chips; k++)
                        workers[count++] = chip_of(plan->groups[i], k);
        r = shards_cut(workers, count, plan->global_batch, true, shards, NULL, err);
        count = 0;
        for (size_t i = 0; r == 0 && i < plan->n_groups; i++) {
                Subtask__Group *group = plan->groups[i];

                if (!takes_part(group))
                        continue;
                group->batch = 0;
                for (size_t k = 0; k < group->chips; k++) {
                        group->chip_batches[k] = (uint32_t) shards[count++].batch;
                        group->batch += group->chip_batches[k];
                }
        }
        return r;
}

/* Equal shares are the same for every chip, not for every group. */
static void share_equally(Subtask__Plan *plan)
{
        uint64_t chips = workers_of(plan), part = plan->global_batch / chips,
                 left = plan->global_batch % chips;

        for (size_t i = 0; i < plan->n_groups; i++) {
                Subtask__Group *group = plan->groups[i];
                uint64_t more = left < group->chips ? left : group->chips;

                if (!takes_part(group))
                        continue;
                group->batch = part * group->chips + more;
                left -= more;
        }
}

static int share_by_speed(Subtask__Plan *plan, struct err *err)
{
        CLEANUP(free_p) struct shard *shards = calloc(plan->n_groups, sizeof(*shards));
        CLEANUP(free_p) struct shard_worker *workers = calloc(plan->n_groups, sizeof(*workers));
        size_t count = 0;
        int r;

        if (shards == NULL || workers == NULL)
                return err_set(err, -ENOMEM, "no memory for the plan");
        for (size_t i = 0; i < plan->n_groups; i++)
                if (takes_part(plan->groups[i]))
                        workers[count++] = (struct shard_worker){ .model = SHARD_SPEED,
                                                                  .speed = plan->groups[i]->speed };
        r = shards_cut(workers, count, plan->global_batch, true, shards, NULL, err);
        count = 0;
        for (size_t i = 0; r == 0 && i < plan->n_groups; i++)
                if (takes_part(plan->groups[i]))
                        plan->groups[i]->batch = shards[count++].batch;
        return r;
}

static bool is_learned(const Subtask__Plan *plan)
{
        for (size_t i = 0; i < plan->n_groups; i++)
                if (takes_part(plan->groups[i]) && plan->groups[i]->n_chip_alpha_ms > 0)
                        return true;
        return false;
}

uint64_t subtask_chips(const Subtask__Group *group)
{
        uint64_t sum = 0;

        for (size_t k = 0; k < group->n_chip_batches; k++)
                sum += group->chip_batches[k];
        return sum;
}

/* Whoever takes part has all of the batch: the figures of the plan, or of the world before, stand. */
static bool batches_stand(const Subtask__Plan *plan)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < plan->n_groups; i++)
                sum += takes_part(plan->groups[i]) ? plan->groups[i]->batch : 0;
        return plan->batches_given && sum == plan->global_batch;
}

int subtask_cut(Subtask__Plan *plan, struct err *err)
{
        uint64_t before = 0;
        int r = 0;

        if (workers_of(plan) == 0)
                return err_set(err, -EINVAL, "groups: no worker is left");
        plan->batches_given = batches_stand(plan);
        if (!plan->batches_given && !subtask_may_share_anew(plan))
                share_equally(plan);
        else if (!plan->batches_given)
                r = is_learned(plan) ? share_by_chip(plan, err) : share_by_speed(plan, err);
        plan->world_size = 0;
        for (size_t i = 0; r == 0 && i < plan->n_groups; i++) {
                Subtask__Group *group = plan->groups[i];

                if (!group->used)
                        continue;
                group->has_batch = true;
                group->n_chip_batches = group->chips;
                if (subtask_chips(group) != group->batch)
                        r = share_in_group(plan, group, err);
                group->begin = shards_begin(plan->samples, before, plan->global_batch);
                before += group->batch;
                group->end = shards_begin(plan->samples, before, plan->global_batch);
                group->first_rank = plan->world_size;
                plan->world_size += group->chips;
        }
        plan->has_batches_given = plan->batches_given = true; /* as long as the same ones take part */
        return r;
}

Subtask__Plan subtask_sent(const Subtask__Plan *plan, Subtask__Group *groups, Subtask__Group **list)
{
        Subtask__Plan sent = *plan;

        sent.n_args = sent.n_resume_args = 0;
        sent.status_token = NULL;
        sent.split = NULL;
        for (size_t i = 0; i < plan->n_groups; i++) {
                groups[i] = *plan->groups[i];
                groups[i].n_chip_speeds = groups[i].n_chip_alpha_ms = 0;
                list[i] = &groups[i];
        }
        sent.groups = list;
        return sent;
}

static int check_stages(const Subtask__Group *group, struct err *err)
{
        if (group->n_stages != 0 && group->n_stages != group->chips)
                return err_set(err, -EINVAL, "stages: %zu; one for each of its chips, %u, or none is needed",
                               group->n_stages, group->chips);
        for (size_t i = 0; i < group->n_stages; i++)
                if (pb_check(bounds, &group->stages[i]->base, -EINVAL, err) < 0 ||
                    group->stages[i]->first > group->stages[i]->last)
                        return err_set(err, -EINVAL, "stages[%zu]: first and last of some layers are needed",
                                       i);
        return 0;
}

static int check_group(const Subtask__Group *group, struct err *err)
{
        if (!object_name_label_valid(group->name))
                return err_set(err, -EINVAL, "name: 1 to 63 small letters, digits and '-' are needed");
        if (group->runtime[0] == '\0' || strlen(group->runtime) >= JOB_RUNTIME_BYTES)
                return err_set(err, -EINVAL, "runtime: the name of a runtime is needed, such as cpu");
        if (strlen(group->vendor) >= 24)
                return err_set(err, -EINVAL, "vendor: the name of a vendor is needed, such as huawei");
        if (!(group->speed >= 1e-9 && group->speed <= 1e18))
                return err_set(err, -EINVAL, "speed: a number above 0 is needed");
        for (size_t i = 0; i < group->n_chip_speeds; i++)
                if (group->n_chip_speeds != group->chips ||
                    !(group->chip_speeds[i] >= 1e-9 && group->chip_speeds[i] <= 1e18))
                        return err_set(err, -EINVAL, "chip_speeds: a number above 0 is needed for each chip");
        return pb_check(bounds, &group->base, -EINVAL, err) < 0 ? -EINVAL : check_stages(group, err);
}

static int check_groups(const Subtask__Plan *plan, struct err *err)
{
        uint64_t chips = 0;
        bool workers = false;

        if (plan->n_groups == 0 || plan->n_groups > SUBTASK_GROUPS_MAX)
                return err_set(err, -EINVAL, "groups: a list of 1 to %d is needed", SUBTASK_GROUPS_MAX);
        for (size_t i = 0; i < plan->n_groups; i++) {
                const Subtask__Group *group = plan->groups[i];

                if (check_group(group, err) < 0)
                        return err_wrap(err, -EINVAL, "groups[%zu]", i);
                for (size_t k = 0; k < i; k++)
                        if (strcmp(plan->groups[k]->name, group->name) == 0)
                                return err_set(err, -EINVAL, "groups[%zu].name: '%s' is there twice", i,
                                               group->name);
                if (subtask_is_server(group) && workers)
                        return err_set(err, -EINVAL, "groups[%zu].role: servers come before the workers", i);
                workers = workers || !subtask_is_server(group);
                chips += group->chips;
        }
        if (chips > SUBTASK_CHIPS_MAX)
                return err_set(err, -EINVAL, "groups: %llu chips in all; at most %d are allowed",
                               (unsigned long long) chips, SUBTASK_CHIPS_MAX);
        return 0;
}

static int check_environment(const Subtask__Plan *plan, struct err *err)
{
        for (size_t i = 0; i < plan->n_environment; i++) {
                const char *name = plan->environment[i]->key;

                if (name[0] == '\0' || strchr(name, '=') != NULL)
                        return err_set(err, -EINVAL,
                                       "environment.%.60s: a name without '=' and a string are needed", name);
                if (program_table_steers(name))
                        return err_set(err, -EINVAL,
                                       "environment.%.60s: the loader's variables are the table's alone",
                                       name);
        }
        return 0;
}

static int check_split(const Subtask__Plan *plan, struct err *err)
{
        const Subtask__Split *split = plan->split;

        if (split == NULL)
                return 0;
        if (split->n_layers > JOB_LAYERS_MAX)
                return err_set(err, -EINVAL, "split.layers: %zu; at most %d are allowed", split->n_layers,
                               JOB_LAYERS_MAX);
        if (pb_check(bounds, &split->base, -EINVAL, err) < 0)
                return err_wrap(err, -EINVAL, "split");
        for (size_t i = 0; i < split->n_layers; i++)
                if (pb_check(bounds, &split->layers[i]->base, -EINVAL, err) < 0)
                        return err_wrap(err, -EINVAL, "split.layers[%zu]", i);
        return stage_message_check(plan, err);
}

int subtask_check(const Subtask__Plan *plan, struct err *err)
{
        int r = pb_check(bounds, &plan->base, -EINVAL, err);

        if (r == 0 && !object_name_label_valid(plan->job))
                r = err_set(err, -EINVAL, "job: 1 to 63 small letters, digits and '-' are needed");
        if (r == 0 && strlen(plan->checkpoint) >= 1024)
                r = err_set(err, -EINVAL, "checkpoint: a folder's path is needed");
        if (r == 0 && plan->status_token[0] != '\0' &&
            (strlen(plan->status_token) < 16 || strlen(plan->status_token) > 63))
                r = err_set(err, -EINVAL, "status_token: 16 to 63 characters are needed");
        if (r == 0)
                r = check_environment(plan, err);
        if (r == 0)
                r = check_groups(plan, err);
        if (r == 0)
                r = check_split(plan, err);
        if (r == 0 && plan->restart != NULL && pb_check(bounds, &plan->restart->base, -EINVAL, err) < 0)
                r = err_wrap(err, -EINVAL, "restart");
        return r;
}

static int check_batches(Subtask__Plan *plan, struct err *err)
{
        size_t given = 0, workers = 0;
        uint64_t sum = 0;

        for (size_t i = 0; i < plan->n_groups; i++) {
                const Subtask__Group *group = plan->groups[i];

                if (!takes_part(group))
                        continue;
                workers++;
                given += group->has_batch != 0;
                sum += group->batch;
        }
        if (given != 0 && (given != workers || sum != plan->global_batch))
                return err_set(err, -EINVAL,
                               "groups[].batch: given for %zu of %zu workers, %llu in all; give every worker "
                               "one, so that they add up to global_batch, %llu",
                               given, workers, (unsigned long long) sum,
                               (unsigned long long) plan->global_batch);
        plan->batches_given = given != 0;
        return 0;
}

/* What belongs to the world at hand is the manager's to say, and follows from what the plan says. */
static int begin(Subtask__Plan *plan, struct pb_arena *arena, struct err *err)
{
        plan->has_version = plan->has_world = plan->has_restarts = true;
        plan->version = MESSAGE_VERSION;
        plan->restarts = 0;
        for (size_t i = 0; i < plan->n_groups; i++) {
                plan->groups[i]->used = !plan->groups[i]->spare;
                plan->groups[i]->batch = subtask_is_server(plan->groups[i]) ? 0 : plan->groups[i]->batch;
                plan->groups[i]->address = pb_arena_take(arena, SUBTASK_ADDRESS_BYTES);
                plan->groups[i]->chip_batches =
                        pb_arena_take(arena, plan->groups[i]->chips * sizeof(*plan->groups[i]->chip_batches));
                plan->groups[i]->n_chip_batches = plan->groups[i]->n_chip_alpha_ms = 0;
                if (plan->groups[i]->address == NULL || plan->groups[i]->chip_batches == NULL)
                        return err_set(err, -ENOMEM, "no memory for the plan");
        }
        if (plan->restart == NULL) {
                plan->restart = pb_arena_take(arena, sizeof(*plan->restart));
                if (plan->restart == NULL)
                        return err_set(err, -ENOMEM, "no memory for the plan");
                subtask__restart__init(plan->restart);
        }
        if (!plan->restart->has_min_chips)
                plan->restart->min_chips = (uint32_t) workers_of(plan);
        if (plan->restart->hang_seconds == 0)
                plan->restart->hang_seconds = JOB_HANG_SECONDS;
        return check_batches(plan, err);
}

int subtask_read(const json_t *value, struct pb_arena *arena, Subtask__Plan **ret, struct err *err)
{
        Subtask__Plan *plan;
        int r;

        if (!json_is_object(value))
                return err_set(err, -EINVAL, "a JSON object is needed");
        plan = pb_json_decode(value, &subtask__plan__descriptor, arena, err);
        r = plan == NULL ? -EINVAL : subtask_check(plan, err);
        if (r == 0)
                r = begin(plan, arena, err);
        if (r == 0)
                r = subtask_cut(plan, err);
        if (r == 0)
                *ret = plan;
        return r;
}
