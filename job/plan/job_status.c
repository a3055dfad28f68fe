/* The tables of a TrainingJob's status: one row a member, read and written by it; what is derived for readers
 * has a struct of its own, filled in when it is written. */
#include "job/plan/job_status.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/text.h"
#include "job/spec/job_arguments.h"

#define SECONDS .kind = JSON_TABLE_TIME, .scale = 1000000, .omit = true /* as Kubernetes writes them */
#define ROLE    .kind = JSON_TABLE_CHOICE, .names = job_role_names
#define CHARS   .kind = JSON_TABLE_CHARS
#define UINT    .kind = JSON_TABLE_UINT
/* -1, NAN = nothing is known */
#define EXIT_CODE .kind = JSON_TABLE_INT, .max = 255, .unset = true
#define SAID      .kind = JSON_TABLE_INT, .max = INT64_MAX, .unset = true
#define FIGURE    .kind = JSON_TABLE_DOUBLE, .unset = true
#define DOUBLE    .kind = JSON_TABLE_DOUBLE
#define TEXT      .kind = JSON_TABLE_BORROWED, .omit = true
#define TABLE(rows_of, of, ...)                                                                              \
        {                                                                                                    \
                .rows = rows_of, .size_bytes = sizeof(of), .lenient = true, __VA_ARGS__                      \
        }

/* A rank as the status lists it: what it said is read back, the rest follows from the plan. */
struct listed_rank {
        uint32_t rank;
        bool server;
        const char *subtask, *runtime, *node, *pod, *device;
        uint64_t batch;
        double weight;
        char shard[48];
        int64_t samples;      /* -1 = it has said nothing */
        double samples_per_s; /* 0 = not known */
        int64_t steps_behind; /* -1 = not known */
        uint64_t restarts, before;
        int exit_code;
};

struct listed_condition {
        const char *type, *status, *reason, *message;
        uint64_t generation, since_usec;
};

/* Either of the two, while it is read. */
struct list {
        union {
                struct listed_rank *ranks;
                struct listed_condition *conditions;
        };
        size_t count;
};

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct job_group, member)
static const struct json_table_row group_rows[] = {
        { "name",             CHARS, AT(name) },
        { "role",             ROLE,  AT(server) },
        { "entry",            UINT,  AT(entry), .max = JOB_ROLES_MAX - 1 },
        { "index",            UINT,  AT(index) },
        { "incarnation",      UINT,  AT(incarnation), .max = 1000000 },
        { "node",             CHARS, AT(node), .omit = true },
        { "group",            CHARS, AT(group), .omit = true },
        { "runtime",          CHARS, AT(runtime), .omit = true },
        { "vendor",           CHARS, AT(vendor), .omit = true },
        { "model",            CHARS, AT(model), .omit = true },
        { "resource",         CHARS, AT(resource), .omit = true },
        { "chips",            UINT,  AT(chips), .max = JOB_CHIPS_MAX },
        { "ranks",            UINT,  AT(ranks), .max = JOB_CHIPS_MAX },
        { "firstRank",        UINT,  AT(first_rank), .max = JOB_CHIPS_MAX },
        { "layers",           CHARS, AT(layers), .omit = true },
        { "planned",          JSON_TABLE_BOOL, AT(planned), .omit = true },
        { "devices",          CHARS, AT(devices), .omit = true },
        { "batch",            UINT,  AT(batch), .max = 1 << 24 },
        { "weight",           DOUBLE, AT(weight) },
        { "speedSource",      JSON_TABLE_CHOICE, AT(source), .names = chip_speed_names },
        { "precision",        CHARS, AT(precision), .omit = true },
        { "samplesPerSecond", DOUBLE, AT(samples_per_s) },
        { "state",            JSON_TABLE_CHOICE, AT(state), .names = job_group_state_names },
        { "restarts",         UINT,  AT(restarts) },
        { "exitCode",         EXIT_CODE, AT(exit_code) },
        { .name = NULL },
};
#undef AT

#define AT(member) JSON_TABLE_AT(struct listed_rank, member)
static const struct json_table_row rank_rows[] = {
        { "rank",           UINT, AT(rank) },
        { "role",           ROLE, AT(server) },
        { "subtask",        TEXT, AT(subtask) },
        { "runtime",        TEXT, AT(runtime) },
        { "node",           TEXT, AT(node) },
        { "pod",            TEXT, AT(pod) },
        { "device",         TEXT, AT(device) },
        { "batch",          UINT, AT(batch) },
        { "weight",         DOUBLE, AT(weight) },
        { "shard",          CHARS, AT(shard), .omit = true },
        { "samples",        SAID, AT(samples) },
        { "samplesPerSecond", DOUBLE, AT(samples_per_s), .omit = true },
        { "stepsBehind",    SAID, AT(steps_behind) },
        { "restarts",       UINT, AT(restarts) },
        { "restartsBefore", UINT, AT(before), .omit = true },
        { "exitCode",       EXIT_CODE, AT(exit_code) },
        { .name = NULL },
};
#undef AT

#define AT(member) JSON_TABLE_AT(struct listed_condition, member)
static const struct json_table_row condition_rows[] = {
        { "type",               TEXT, AT(type) },
        { "status",             TEXT, AT(status) },
        { "reason",             JSON_TABLE_BORROWED, AT(reason) },
        { "message",            JSON_TABLE_BORROWED, AT(message) },
        { "observedGeneration", UINT, AT(generation) },
        { "lastTransitionTime", SECONDS, AT(since_usec) },
        { .name = NULL },
};
#undef AT

#define AT(member) JSON_TABLE_AT(struct job_progress_point, member)
static const struct json_table_row percent = { "", UINT, .max = 100, .size_bytes = sizeof(uint8_t) };
static const struct json_table_row point_rows[] = {
        { "seconds", DOUBLE, AT(seconds) },
        { "world",   UINT,   AT(world) },
        { "step",    UINT,   AT(step) },
        { "samples", UINT,   AT(samples) },
        { "loss",    FIGURE, AT(loss) },
        { "busy",    JSON_TABLE_ARRAY, AT(busy), .element = &percent, .count = offsetof(struct job_progress_point, busy_count) },
        { .name = NULL },
};
#undef AT

#define AT(member) JSON_TABLE_AT(struct job_progress, member)
static const struct json_table_row progress_rows[] = {
        { "epoch",        UINT,   AT(epoch) },
        { "step",         UINT,   AT(step) },
        { "samples",      UINT,   AT(samples) },
        { "samplesTotal", UINT,   AT(samples_total) },
        { "secondsLeft",  DOUBLE, AT(seconds_left), .omit = true },
        { "secondsLeftLeast", DOUBLE, AT(seconds_left_least), .omit = true },
        { "secondsLeftMost", DOUBLE, AT(seconds_left_most), .omit = true },
        { "stepsBehindMean", FIGURE, AT(steps_behind_mean) },
        { "stepsBehindMax", SAID, AT(steps_behind_max) },
        { "loss",         FIGURE, AT(loss) },
        { "accuracy",     FIGURE, AT(accuracy) },
        { "time",         SECONDS, AT(time_usec) },
        { .name = NULL },
};
#undef AT

static const struct job_group no_group = { .exit_code = -1 };
static const struct listed_rank no_rank = { .subtask = "", .samples = -1, .steps_behind = -1, .exit_code = -1 };
static const struct job_progress_point no_point = { .loss = NAN };
static const struct json_table group_table = TABLE(group_rows, struct job_group, .initial = &no_group);
static const struct json_table point_table = TABLE(point_rows, struct job_progress_point, .initial = &no_point);
static const struct json_table rank_table = TABLE(rank_rows, struct listed_rank, .initial = &no_rank);
static const struct json_table condition_table = TABLE(condition_rows, struct listed_condition);
static const struct json_table progress_table = TABLE(progress_rows, struct job_progress);
static const struct json_table_row note = { "", CHARS, .size_bytes = JOB_NOTE_BYTES };

#define AT(member)    JSON_TABLE_AT(struct job_state, member)
#define COUNT(member) .count = offsetof(struct job_state, member)
static const struct json_table_row state_rows[] = {
        { "phase",              JSON_TABLE_CHOICE, AT(phase), .names = job_phase_names },
        { "reason",             CHARS, AT(reason), .omit = true },
        { "message",            CHARS, AT(message), .omit = true },
        { "observedGeneration", UINT,  AT(observed_generation) },
        { "startTime",          SECONDS, AT(start_usec) },
        { "completionTime",     SECONDS, AT(completion_usec) },
        { "world",              UINT,  AT(world), .max = 1000000 },
        { "restarts",           UINT,  AT(restarts) },
        { "reshards",           UINT,  AT(reshards) },
        { "recuts",             UINT,  AT(recuts) },
        { "launcherCrashes",    UINT,  AT(launcher_crashes), .max = JOB_LAUNCHER_CRASHES_MAX },
        { "lastEvent",          CHARS, AT(last_event), .omit = true },
        { "history",            JSON_TABLE_ARRAY, AT(points), .table = &point_table, COUNT(point_count), .omit = true },
        { .name = NULL },
};
/* Once its ranks have said something. */
static const struct json_table_row published_rows[] = {
        { "samplesPerSecond", DOUBLE, AT(progress.samples_per_s) },
        { "progress",         JSON_TABLE_OBJECT, AT(progress), .table = &progress_table },
        { .name = NULL },
};
/* Once it has a place. */
static const struct json_table_row planned_rows[] = {
        { "plan.samples", UINT,  AT(samples) },
        { "plan.address", CHARS, AT(address), .omit = true },
        { "plan.notes",   JSON_TABLE_LIST, AT(notes), .element = &note, COUNT(note_count), .max = JOB_NOTES_MAX },
        { "subtasks",     JSON_TABLE_LIST, AT(groups), .table = &group_table, COUNT(group_count), .max = JOB_GROUPS_MAX },
        { .name = NULL },
};
#undef AT
#undef COUNT
#define LIST(member, of, max_) JSON_TABLE_LIST, JSON_TABLE_AT(struct list, member), .table = (of), .count = offsetof(struct list, count), .max = (max_)
static const struct json_table_row rank_list[] = { { "ranks", LIST(ranks, &rank_table, JOB_STATUS_RANKS_MAX) }, { .name = NULL } };
static const struct json_table_row condition_list[] = { { "conditions", LIST(conditions, &condition_table, 64) }, { .name = NULL } };
/* clang-format on */
static const struct json_table state_table = TABLE(state_rows, struct job_state);
static const struct json_table published_table = TABLE(published_rows, struct job_state);
static const struct json_table planned_table = TABLE(planned_rows, struct job_state);
static const struct json_table ranks_table = TABLE(rank_list, struct list);
static const struct json_table conditions_table = TABLE(condition_list, struct list);

/* Adds what a table writes; takes the part. Jansson refuses what is NULL for want of memory. */
static int add(json_t *status, json_t *part)
{
        int r = json_object_update(status, part);

        json_decref(part);
        return r;
}

static int add_conditions(json_t *status, const struct job_state *state)
{
        struct listed_condition listed[JOB_CONDITION_COUNT];
        struct list list = { .conditions = listed };

        for (size_t i = 0; i < JOB_CONDITION_COUNT; i++) {
                const struct job_state_condition *condition = &state->conditions[i];

                if (condition->known || condition->reason[0] != '\0')
                        listed[list.count++] =
                                (struct listed_condition){ .type = job_state_condition_names[i],
                                                           .status = !condition->known  ? "Unknown"
                                                                     : condition->holds ? "True"
                                                                                        : "False",
                                                           .reason = condition->reason,
                                                           .message = condition->message,
                                                           .generation = state->observed_generation,
                                                           .since_usec = condition->since_usec };
        }
        return add(status, json_table_encode(&conditions_table, &list));
}

static void write_shard(const struct job *job, const struct job_state *state, const struct job_group *group,
                        uint32_t n, uint32_t ranks, char shard[48])
{
        uint64_t begin, end;

        shard[0] = '\0';
        if (job_state_shard(job, state, group, n, ranks, &begin, &end))
                (void) text_format(shard, 48, "%llu:%llu", (unsigned long long) begin,
                                   (unsigned long long) end);
}

static struct listed_rank list_rank(const struct job *job, const struct job_state *state,
                                    const struct job_group *group, uint32_t n, const char *pod)
{
        const struct job_progress_rank *said = job_state_rank(state, group->name, n);
        struct listed_rank rank = { .rank = group->first_rank + n,
                                    .server = group->server,
                                    .subtask = group->name,
                                    .runtime = group->runtime,
                                    .node = group->node,
                                    .pod = pod,
                                    .device = group->model,
                                    .batch = job_state_rank_batch(state, group, n),
                                    .samples = said == NULL || group->server ? -1 : (int64_t) said->samples,
                                    .samples_per_s = said != NULL ? said->samples_per_s : 0,
                                    .steps_behind = said != NULL ? said->steps_behind : -1,
                                    .restarts = said != NULL ? said->restarts : group->restarts,
                                    .before = said != NULL ? said->before : 0,
                                    .exit_code = said != NULL ? said->exit_code : -1 };

        rank.weight = (double) rank.batch / (double) job->global_batch;
        rank.exit_code = state->phase == JOB_SUCCEEDED ? 0 : rank.exit_code;
        write_shard(job, state, group, n, 1, rank.shard);
        return rank;
}

/* What of a group follows from the rest of it. */
static int complete_group(json_t *entry, const struct job *job, const struct job_state *state,
                          const struct job_group *group, const char *pod)
{
        int r = json_object_set_new(entry, "pod", json_string(pod));
        char shard[48];

        write_shard(job, state, group, 0, group->ranks, shard);
        if (shard[0] != '\0')
                r |= json_object_set_new(entry, "shard", json_string(shard));
        return r;
}

/* The second level, and the pods that both are on. */
static int add_ranks(json_t *status, const struct job *job, const char *name, const struct job_state *state)
{
        CLEANUP(free_p) struct listed_rank *ranks = calloc(JOB_STATUS_RANKS_MAX, sizeof(*ranks));
        CLEANUP(free_p) char(*pods)[JOB_POD_NAME_BYTES] = calloc(state->group_count + 1, sizeof(*pods));
        struct list list = { .ranks = ranks };
        int r = 0;

        if (ranks == NULL || pods == NULL)
                return -1;
        for (size_t i = 0; i < state->group_count; i++) {
                const struct job_group *group = &state->groups[i];

                job_group_pod_name(name, group, pods[i]);
                r |= complete_group(json_array_get(json_object_get(status, "subtasks"), i), job, state, group,
                                    pods[i]);
                for (uint32_t n = 0; n < group->ranks && list.count < JOB_STATUS_RANKS_MAX; n++)
                        ranks[list.count++] = list_rank(job, state, group, n, pods[i]);
        }
        return r | add(status, json_table_encode(&ranks_table, &list));
}

/* "cuda,cpu": of the workers, each once. */
static void list_runtimes(const struct job_state *state, char *ret, size_t ret_bytes)
{
        ret[0] = '\0';
        for (size_t i = 0; i < state->group_count; i++) {
                const struct job_group *group = &state->groups[i];
                size_t used = strlen(ret), k = 0;

                while (k < i &&
                       (state->groups[k].server || strcmp(state->groups[k].runtime, group->runtime) != 0))
                        k++;
                if (k == i && !group->server &&
                    !text_format(ret + used, ret_bytes - used, "%s%s", used > 0 ? "," : "", group->runtime))
                        ret[used] = '\0';
        }
}

static int complete_plan(json_t *status, const struct job *job, const char *name,
                         const struct job_state *state)
{
        uint32_t running = 0, planned = 0;
        char text[32], runtimes[256], pod[JOB_POD_NAME_BYTES];
        int r;

        for (size_t i = 0; i < state->group_count; i++) {
                if (state->groups[i].server)
                        continue;
                planned += state->groups[i].ranks;
                if (state->groups[i].state == JOB_GROUP_RUNNING)
                        running += state->groups[i].ranks;
        }
        (void) text_format(text, sizeof(text), "%u/%u", running, planned);
        job_state_manager_pod_name(name, state->world, pod);
        r = add(json_object_get(status, "plan"),
                json_pack("{s:s, s:s, s:I, s:I, s:s}", "placement", job_placement_names[job->placement],
                          "strategy", job_strategy_names[job->strategy], "globalBatch",
                          (json_int_t) job->global_batch, "worldSize",
                          (json_int_t) job_state_world_size(state), "manager", pod));
        list_runtimes(state, runtimes, sizeof(runtimes));
        return r | json_object_set_new(status, "workers", json_string(text)) |
               json_object_set_new(status, "runtimes", json_string(runtimes));
}

static int add_published(json_t *status, const struct job *job, const struct job_state *state)
{
        int r = add(status, json_table_encode(&published_table, state));

        r |= json_object_set_new(status, "samplesDone", json_integer((json_int_t) state->progress.samples));
        if (job != NULL && job_arguments_epochs(job) > 0)
                r |= json_object_set_new(json_object_get(status, "progress"), "epochs",
                                         json_integer((json_int_t) job->epochs));
        return r;
}

json_t *job_status_encode(const struct job *job, const char *name, const struct job_state *state)
{
        json_t *status = json_table_encode(&state_table, state);
        int r = add_conditions(status, state);

        if (state->progress.time_usec > 0)
                r |= add_published(status, job, state);
        if (job != NULL && state->group_count > 0) {
                r |= add(status, json_table_encode(&planned_table, state));
                r |= complete_plan(status, job, name, state);
                r |= add_ranks(status, job, name, state);
        } else {
                r |= add(status, json_pack("{s:[], s:[]}", "subtasks", "ranks"));
        }
        if (r < 0) {
                json_decref(status);
                return NULL;
        }
        return status;
}

/* A group that cannot be one makes the whole plan somebody else's: as a new job. */
static void take_groups(struct job_state *state, size_t listed)
{
        bool ours = state->group_count == listed;

        for (size_t i = 0; i < state->group_count; i++) {
                const struct job_group *group = &state->groups[i];

                ours = ours && object_name_label_valid(group->name) && group->chips > 0 && group->ranks > 0;
                if (group->index >= state->next_index)
                        state->next_index = group->index + 1;
        }
        if (!ours)
                state->group_count = state->next_index = 0;
}

/* The second level is derived from the first but for what its ranks said. */
static void take_ranks(struct job_state *state, const struct listed_rank *ranks, size_t count)
{
        const char *last = "";
        uint32_t index = 0;

        for (size_t i = 0; i < count; i++) {
                struct job_progress_rank *rank;

                if (ranks[i].subtask[0] == '\0')
                        continue;
                index = strcmp(ranks[i].subtask, last) == 0 ? index + 1 : 0;
                last = ranks[i].subtask;
                if (ranks[i].samples < 0)
                        continue;
                rank = job_state_make_rank(state, last, index);
                if (rank == NULL)
                        return;
                rank->samples = (uint64_t) ranks[i].samples;
                rank->batch = (int64_t) ranks[i].batch;
                rank->samples_per_s = ranks[i].samples_per_s;
                rank->steps_behind = ranks[i].steps_behind;
                rank->restarts = ranks[i].restarts;
                rank->before = ranks[i].before <= ranks[i].restarts ? ranks[i].before : 0;
                rank->exit_code = ranks[i].exit_code;
        }
}

static void take_condition(struct job_state *state, const struct listed_condition *listed)
{
        for (size_t k = 0; listed->type != NULL && k < JOB_CONDITION_COUNT; k++) {
                struct job_state_condition *condition = &state->conditions[k];

                if (strcmp(job_state_condition_names[k], listed->type) != 0)
                        continue;
                condition->known = listed->status == NULL || strcmp(listed->status, "Unknown") != 0;
                condition->holds = listed->status != NULL && strcmp(listed->status, "True") == 0;
                (void) text_copy(condition->reason, sizeof(condition->reason),
                                 listed->reason == NULL ? "" : listed->reason);
                (void) text_copy(condition->message, sizeof(condition->message),
                                 listed->message == NULL ? "" : listed->message);
                condition->since_usec = listed->since_usec;
        }
}

int job_status_decode(const json_t *status, struct job_state *ret)
{
        struct list ranks = { .count = 0 }, conditions = { .count = 0 };
        const struct {
                const struct json_table *table;
                void *to;
        } parts[] = {
                { &state_table, ret },    { &published_table, ret },          { &planned_table, ret },
                { &ranks_table, &ranks }, { &conditions_table, &conditions },
        };
        int r = 0;

        *ret = job_state_new();
        if (!json_is_object(status))
                return 0;
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
                r = json_table_decode(parts[i].table, status, parts[i].to, NULL);
        if (r == 0) {
                take_groups(ret, json_array_size(json_object_get(status, "subtasks")));
                take_ranks(ret, ranks.ranks, ranks.count);
                for (size_t i = 0; i < conditions.count; i++)
                        take_condition(ret, &conditions.conditions[i]);
        } else {
                job_state_free(ret);
        }
        json_table_free(&ranks_table, &ranks);
        json_table_free(&conditions_table, &conditions);
        return r;
}

static int wrong(struct err *err, size_t subtask, const char *field, const char *why)
{
        return err_set(err, -EBADMSG, "status.subtasks[%zu].%s: %s", subtask, field, why);
}

/* What its role has been given by the groups up to this one. */
static uint64_t ranks_so_far(const struct job_state *state, size_t i)
{
        const struct job_group *group = &state->groups[i];
        uint64_t ranks = 0;

        for (size_t k = 0; k <= i; k++)
                if (state->groups[k].server == group->server &&
                    (group->server || state->groups[k].entry == group->entry))
                        ranks += state->groups[k].ranks;
        return ranks;
}

static int check_group(const struct job *job, const struct job_state *state, size_t i, struct err *err)
{
        const struct job_group *group = &state->groups[i];

        if (!group->server && group->entry >= job->worker_count)
                return wrong(err, i, "entry", "spec.workers has no such entry");
        if (group->ranks < group->chips)
                return wrong(err, i, "ranks", "fewer than its chips");
        if (ranks_so_far(state, i) >
            (group->server ? job_server_chips(job) : job->workers[group->entry].chips))
                return wrong(err, i, "chips", "with those before it more than its role asks for");
        if (group->runtime[0] == '\0' || group->resource[0] == '\0')
                return wrong(err, i, group->runtime[0] == '\0' ? "runtime" : "resource", "missing");
        if (group->server
                    ? group->batch != 0
                    : !(fabs(group->weight - (double) group->batch / (double) job->global_batch) < 1e-6))
                return wrong(err, i, group->server ? "batch" : "weight", "not its part of spec.globalBatch");
        for (size_t k = 0; k < i; k++) {
                const struct job_group *other = &state->groups[k];

                if (strcmp(group->name, other->name) == 0)
                        return wrong(err, i, "name", "another one has it, too");
                if (group->first_rank < other->first_rank + other->ranks &&
                    other->first_rank < group->first_rank + group->ranks)
                        return wrong(err, i, "firstRank", "another one has these ranks, too");
        }
        return 0;
}

int job_status_check(const json_t *status, const struct job *job, const struct job_state *state,
                     struct err *err)
{
        const char *phase = json_string_value(json_object_get(status, "phase"));
        const json_t *phase_value = json_object_get(status, "phase"),
                     *subtasks = json_object_get(status, "subtasks");
        uint64_t batch = 0;
        int r = 0;

        if (status == NULL || json_is_null(status))
                return 0;
        if (!json_is_object(status))
                return err_set(err, -EBADMSG, "status: an object is needed");
        if (phase_value != NULL && (phase == NULL || strcmp(phase, job_phase_names[state->phase]) != 0))
                return err_set(err, -EBADMSG, "status.phase: '%.40s' is not a phase",
                               phase == NULL ? "" : phase);
        if (subtasks != NULL && (!json_is_array(subtasks) || json_array_size(subtasks) != state->group_count))
                return err_set(err, -EBADMSG,
                               "status.subtasks: not a list of at most %d subtasks with name, "
                               "chips and ranks",
                               JOB_GROUPS_MAX);
        for (size_t i = 0; r == 0 && i < state->group_count; i++) {
                r = check_group(job, state, i, err);
                batch += state->groups[i].batch;
        }
        if (r == 0 && state->group_count > 0 && batch != job->global_batch)
                return err_set(err, -EBADMSG,
                               "status.subtasks[].batch: %llu samples together, spec.globalBatch is %llu",
                               (unsigned long long) batch, (unsigned long long) job->global_batch);
        return r;
}
