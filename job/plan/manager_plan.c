/* A job and its plan, as a manager reads them: groups with their shares or stages, arguments, what may be
 * repaired. */
#include "job/plan/manager_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/pb_json.h"
#include "job/plan/launch_variables.h"
#include "job/plan/stages/stage_message.h"
#include "job/plan/subtask.pb-c.h"
#include "job/spec/job_arguments.h"

#define ENVIRONMENT_MAX 32
#define REJOIN_SEC      60    /* for a lost group to come back, before the job goes on with fewer */
#define REJOIN_ALL_SEC  86400 /* the same where it cannot */

const char *manager_plan_checkpoint(const struct job *job)
{
        if (!job->checkpoint.given)
                return "";
        return job->checkpoint.path[0] == '\0' ? MANAGER_PLAN_CHECKPOINT : job->checkpoint.path;
}

/* Shares are no arguments: every rank is given its own by the manager, in every world (REMUDA_BATCH). */
static void world_arguments(const struct job *job, const struct job_state *state, struct arguments *args)
{
        struct job_arguments what = { .checkpoint = manager_plan_checkpoint(job),
                                      .resume = false /* resume_args say it */ };

        for (size_t i = 0; i < state->group_count; i++)
                what.servers += state->groups[i].server ? state->groups[i].ranks : 0;
        if (job_arguments_taken(job))
                job_arguments_add(job, &what, args);
        for (size_t i = 0; i < job->arg_count; i++)
                arguments_add(args, "%s", job->args[i]);
}

/* What the manager may do by itself: start the world anew, as often as is left. */
static Subtask__Restart restart_of(const struct job *job, const struct job_state *state)
{
        Subtask__Restart restart = SUBTASK__RESTART__INIT;
        uint64_t max = job_restart_max(job), least = 0;

        for (size_t i = 0; i < job->worker_count; i++)
                least += job->workers[i].min_chips;
        restart.has_max = restart.has_hang_seconds = restart.has_rejoin_seconds = restart.has_min_chips =
                true;
        restart.max = (uint32_t) (max > state->restarts ? max - state->restarts : 0);
        restart.hang_seconds = (uint32_t) job->restart.hang_seconds;
        restart.rejoin_seconds = least < job_worker_chips(job) ? REJOIN_SEC : REJOIN_ALL_SEC;
        restart.min_chips = (uint32_t) least;
        restart.has_resplit = true;
        restart.resplit = job->restart.resplit;
        return restart;
}

/* What is known of all workers alike: measured speeds; parts of the batch, which have the ratio of the speeds
 * they were cut by. One that was left out of the last world has no part. */
struct known {
        bool speeds, batches;
};

static struct known known_of(const struct job_state *state)
{
        struct known known = { true, true };

        for (size_t i = 0; i < state->group_count; i++) {
                const struct job_group *group = &state->groups[i];

                known.speeds = known.speeds && (group->server || group->samples_per_s > 0);
                known.batches = known.batches && (group->server || group->batch > 0);
        }
        return known;
}

/* What its ranks took of each batch in the world before: as the speeds of its chips, these are the parts that
 * its batch is cut into again. Return: false where nobody knows, or some had none. */
static bool take_parts(const struct job_state *state, const struct job_group *group, double *parts)
{
        bool unlike = false;

        for (uint32_t n = 0; n < group->ranks; n++) {
                uint64_t batch = job_state_rank_batch(state, group, n);

                if (batch == 0)
                        return false;
                unlike = unlike || batch != job_group_rank_batch(group, n);
                parts[n] = (double) batch;
        }
        return unlike;
}

/* The first world has the batches as they are planned; once a group is missing only ratios count. */
static Subtask__Group plan_group(const struct job_group *group, struct known known)
{
        Subtask__Group entry = SUBTASK__GROUP__INIT;

        entry.name = (char *) group->name;
        entry.runtime = (char *) group->runtime;
        entry.vendor = (char *) group->vendor;
        entry.has_role = entry.has_chips = entry.has_speed = entry.has_network_mbps = true;
        entry.role = group->server ? SUBTASK__GROUP__ROLE__server : SUBTASK__GROUP__ROLE__worker;
        entry.chips = group->ranks;
        entry.speed = !group->server && known.speeds    ? group->samples_per_s
                      : !group->server && known.batches ? (double) group->batch
                                                        : (double) group->ranks;
        entry.node = (char *) group->node;
        entry.network_mbps = (uint32_t) group->network_mbps;
        entry.has_batch = !group->server && known.batches;
        entry.batch = group->batch;
        return entry;
}

/* The layers of its ranks, "0:1,2:3". @stages, @list: room for its ranks. Return: how many. */
static size_t plan_layers(const struct job_group *group, Subtask__Stage *stages, Subtask__Stage **list)
{
        size_t count = 0;
        uint32_t first, last;

        while (count < group->ranks && job_group_rank_layers(group->layers, count, &first, &last)) {
                stages[count].base = (ProtobufCMessage) PROTOBUF_C_MESSAGE_INIT(&subtask__stage__descriptor);
                stages[count].first = first;
                stages[count].last = last;
                list[count] = &stages[count];
                count++;
        }
        return count;
}

struct stage_room { /* for the layers of all ranks */
        Subtask__Stage *items, **list;
};

/* @groups, @list, @parts, @stages: room for all groups, and all ranks, of the state */
static Subtask__Plan plan_of(const struct job *job, const struct job_state *state, Subtask__Group *groups,
                             Subtask__Group **list, double *parts, struct stage_room *stages,
                             struct stage_message *split)
{
        Subtask__Plan plan = SUBTASK__PLAN__INIT;
        struct known known = known_of(state);

        plan.job = (char *) job->name;
        plan.has_global_batch = plan.has_samples = plan.has_epochs = plan.has_resume = plan.has_shards = true;
        plan.global_batch = job->global_batch;
        plan.samples = state->samples;
        plan.epochs = job->epochs;
        plan.has_restarts = true; /* before this manager; it counts its own, from 0 */
        plan.restarts = state->restarts;
        plan.has_launcher_crashes = state->launcher_crashes > 0; /* it counts on from there */
        plan.launcher_crashes = state->launcher_crashes;
        plan.segments = job->segment_list;
        plan.n_segments = job->segment_count;
        plan.resume = state->world > 0 && job->checkpoint.given;
        plan.has_batches_given = plan.batches_given = true;
        plan.shards = job_shares_follow_speeds(job) ? SUBTASK__SHARDS__weighted : SUBTASK__SHARDS__equal;
        for (size_t i = 0; i < state->group_count; i++) {
                groups[i] = plan_group(&state->groups[i], known);
                list[i] = &groups[i];
                groups[i].chip_speeds = parts;
                if (plan.shards == SUBTASK__SHARDS__weighted && take_parts(state, &state->groups[i], parts))
                        groups[i].n_chip_speeds = state->groups[i].ranks;
                parts += state->groups[i].ranks;
                groups[i].stages = stages->list;
                groups[i].n_stages = plan_layers(&state->groups[i], stages->items, stages->list);
                stages->items += groups[i].n_stages;
                stages->list += groups[i].n_stages;
        }
        plan.has_staged = plan.staged = job->strategy == JOB_STRATEGY_SPLIT;
        plan.split = stage_message_fill(&state->split, state, groups, split);
        plan.groups = list;
        plan.n_groups = state->group_count;
        return plan;
}

/* Variables of every rank. */
struct environment {
        Subtask__Variable variables[ENVIRONMENT_MAX], *list[ENVIRONMENT_MAX];
        size_t count;
        bool failed;
};

static void add_variable(void *userdata, const char *name, const char *value)
{
        struct environment *to = userdata;
        Subtask__Variable *variable = &to->variables[to->count];

        assert(to->count < ENVIRONMENT_MAX);
        subtask__variable__init(variable);
        variable->key = (char *) name;
        variable->value = strdup(value);
        to->failed = to->failed || variable->value == NULL;
        to->list[to->count++] = variable;
}

static void free_environment(struct environment *environment)
{
        for (size_t i = 0; i < environment->count; i++)
                free(environment->variables[i].value);
}

json_t *manager_plan(const struct job *job, const struct job_state *state, const char *status_token)
{
        CLEANUP(free_p) Subtask__Group *groups = calloc(state->group_count + 1, sizeof(*groups));
        CLEANUP(free_p) Subtask__Group **list = calloc(state->group_count + 1, sizeof(*list));
        CLEANUP(free_p) double *parts = calloc(job_state_world_size(state) + 1, sizeof(*parts));
        CLEANUP(free_p) Subtask__Stage *stages = calloc(job_state_world_size(state) + 1, sizeof(*stages));
        CLEANUP(free_p)
        Subtask__Stage **stage_list = calloc(job_state_world_size(state) + 1, sizeof(*stage_list));
        struct stage_room room = { stages, stage_list };
        CLEANUP(stage_message_free) struct stage_message split = { 0 };
        struct environment environment = { 0 };
        Subtask__Restart restart = restart_of(job, state);
        struct arguments args = { 0 };
        char *resume = (char *) "--resume";
        json_t *json = NULL;
        Subtask__Plan plan;

        if (groups == NULL || list == NULL || parts == NULL || stages == NULL || stage_list == NULL)
                return NULL;
        plan = plan_of(job, state, groups, list, parts, &room, &split);
        plan.status_token = (char *) status_token;
        plan.restart = &restart;
        world_arguments(job, state, &args);
        plan.args = args.list;
        plan.n_args = args.count;
        plan.resume_args = &resume;
        plan.n_resume_args = job->checkpoint.given && job_arguments_taken(job);
        launch_variables_job(job, &(struct launch_variables){ add_variable, &environment });
        if (job->checkpoint.given)
                add_variable(&environment, "REMUDA_CHECKPOINT", manager_plan_checkpoint(job));
        plan.environment = environment.list;
        plan.n_environment = environment.count;
        if (!args.failed && !environment.failed && !split.failed)
                json = pb_json_encode(&plan.base);
        arguments_free(&args);
        free_environment(&environment);
        return json;
}
