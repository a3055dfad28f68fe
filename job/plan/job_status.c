#include "job/plan/job_status.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"

/* --- writing
 * ---------------------------------------------------------------------------------------------------- */

static void put(json_t *object, const char *name, json_t *value)
{
        (void) json_object_set_new(object, name, value);
}

static void put_text(json_t *object, const char *name, const char *text)
{
        if (text[0] != '\0')
                put(object, name, json_string(text));
}

static void put_number(json_t *object, const char *name, uint64_t number)
{
        put(object, name, json_integer((json_int_t) number));
}

static void put_time(json_t *object, const char *name, uint64_t usec)
{
        char text[TIMESTAMP_BYTES];

        if (usec > 0) /* whole seconds, as Kubernetes writes them */
                put(object, name, json_string(timestamp_format(usec / 1000000 * 1000000, text)));
}

static json_t *encode_conditions(const struct job_state *state)
{
        json_t *list = json_array();

        for (size_t i = 0; i < JOB_CONDITION_COUNT; i++) {
                const struct job_condition *condition = &state->conditions[i];
                json_t *entry;

                if (!condition->known)
                        continue;
                entry = json_pack("{s:s, s:s, s:s, s:s, s:I}", "type", job_condition_names[i], "status",
                                  condition->holds ? "True" : "False", "reason", condition->reason, "message",
                                  condition->message, "observedGeneration",
                                  (json_int_t) state->observed_generation);
                put_time(entry, "lastTransitionTime", condition->since_usec);
                (void) json_array_append_new(list, entry);
        }
        return list;
}

static json_t *encode_progress(const struct job *job, const struct job_progress *progress)
{
        json_t *object = json_object();

        put_number(object, "epoch", progress->epoch);
        if (job != NULL)
                put_number(object, "epochs", job->epochs);
        put_number(object, "step", progress->step);
        put_number(object, "samples", progress->samples);
        put_number(object, "samplesTotal", progress->samples_total);
        if (progress->seconds_left > 0)
                put(object, "secondsLeft", json_real(progress->seconds_left));
        if (progress->has_loss)
                put(object, "loss", json_real(progress->loss));
        if (progress->has_accuracy)
                put(object, "accuracy", json_real(progress->accuracy));
        put_time(object, "time", progress->time_usec);
        return object;
}

static json_t *encode_plan(const struct job *job, const char *name, const struct job_state *state)
{
        json_t *plan = json_object(), *notes = json_array();
        char pod[JOB_POD_NAME_BYTES];

        job_manager_pod_name(name, state->world, pod);
        put(plan, "placement", json_string(job_placement_names[job->placement]));
        put(plan, "strategy", json_string(job_strategy_names[job->strategy]));
        put_number(plan, "globalBatch", job->global_batch);
        put_number(plan, "samples", state->samples);
        put_number(plan, "worldSize", job_state_world_size(state));
        put(plan, "manager", json_string(pod));
        put_text(plan, "address", state->address);
        for (size_t i = 0; i < state->note_count; i++)
                (void) json_array_append_new(notes, json_string(state->notes[i]));
        put(plan, "notes", notes);
        return plan;
}

static void put_shard(json_t *entry, const struct job *job, const struct job_state *state,
                      const struct job_group *group, uint32_t n, uint32_t ranks)
{
        uint64_t begin, end;

        if (job_state_shard(job, state, group, n, ranks, &begin, &end)) {
                char text[48];

                (void) text_format(text, sizeof(text), "%llu:%llu", (unsigned long long) begin,
                                   (unsigned long long) end);
                put(entry, "shard", json_string(text));
        }
}

static json_t *encode_group(const struct job *job, const struct job_state *state, const char *name,
                            const struct job_group *group)
{
        json_t *entry = json_object();
        char pod[JOB_POD_NAME_BYTES];

        job_group_pod_name(name, group, pod);
        put(entry, "name", json_string(group->name));
        put(entry, "role", json_string(group->server ? "server" : "worker"));
        put_number(entry, "entry", group->entry);
        put_number(entry, "index", group->index);
        put_number(entry, "incarnation", group->incarnation);
        put(entry, "pod", json_string(pod));
        put_text(entry, "node", group->node);
        put_text(entry, "group", group->group);
        put_text(entry, "runtime", group->runtime);
        put_text(entry, "vendor", group->vendor);
        put_text(entry, "model", group->model);
        put_text(entry, "resource", group->resource);
        put_number(entry, "chips", group->chips);
        put_number(entry, "ranks", group->ranks);
        put_number(entry, "firstRank", group->first_rank);
        put_number(entry, "batch", group->batch);
        put(entry, "weight", json_real(group->weight));
        put_shard(entry, job, state, group, 0, group->ranks);
        put(entry, "speedSource", json_string(job_speed_source_names[group->source]));
        put(entry, "samplesPerSecond", json_real(group->samples_per_s));
        put(entry, "state", json_string(job_group_state_names[group->state]));
        put_number(entry, "restarts", group->restarts);
        if (group->exit_code >= 0)
                put_number(entry, "exitCode", (uint64_t) group->exit_code);
        return entry;
}

static void put_rank_life(json_t *entry, const struct job_group *group, const struct job_rank *rank,
                          enum job_phase phase)
{
        if (rank != NULL && !group->server)
                put_number(entry, "samples", rank->samples);
        put_number(entry, "restarts", rank != NULL ? rank->restarts : group->restarts);
        if (rank != NULL && rank->before > 0)
                put_number(entry, "restartsBefore", rank->before);
        if (phase == JOB_SUCCEEDED)
                put_number(entry, "exitCode", 0);
        else if (rank != NULL && rank->exit_code >= 0)
                put_number(entry, "exitCode", (uint64_t) rank->exit_code);
}

static void add_ranks(const struct job *job, const char *name, const struct job_state *state,
                      const struct job_group *group, json_t *ranks)
{
        char pod[JOB_POD_NAME_BYTES];

        job_group_pod_name(name, group, pod);
        for (uint32_t n = 0; n < group->ranks && json_array_size(ranks) < JOB_STATUS_RANKS_MAX; n++) {
                uint64_t batch = job_rank_batch(group, n);
                json_t *entry = json_object();

                put_number(entry, "rank", group->first_rank + n);
                put(entry, "role", json_string(group->server ? "server" : "worker"));
                put(entry, "subtask", json_string(group->name));
                put_text(entry, "runtime", group->runtime);
                put_text(entry, "node", group->node);
                put(entry, "pod", json_string(pod));
                put_text(entry, "device", group->model);
                put_number(entry, "batch", batch);
                put(entry, "weight", json_real((double) batch / (double) job->global_batch));
                put_shard(entry, job, state, group, n, 1);
                put_rank_life(entry, group, job_state_rank(state, group->name, n), state->phase);
                (void) json_array_append_new(ranks, entry);
        }
}

static json_t *encode_workers(const struct job_state *state)
{
        uint32_t running = 0, planned = 0;
        char text[32];

        for (size_t i = 0; i < state->group_count; i++) {
                if (state->groups[i].server)
                        continue;
                planned += state->groups[i].ranks;
                if (state->groups[i].state == JOB_GROUP_RUNNING)
                        running += state->groups[i].ranks;
        }
        (void) text_format(text, sizeof(text), "%u/%u", running, planned);
        return json_string(text);
}

/* Short numbers: it is written again with every look. */
static json_t *encode_points(const struct job_state *state)
{
        json_t *list = json_array();

        for (size_t i = 0; i < state->point_count; i++) {
                const struct job_point *point = &state->points[i];
                json_t *entry = json_object(), *busy = json_array();

                put(entry, "seconds", json_real(round(point->seconds * 100) / 100));
                put_number(entry, "world", point->world);
                put_number(entry, "step", point->step);
                put_number(entry, "samples", point->samples);
                if (isfinite(point->loss))
                        put(entry, "loss", json_real(round(point->loss * 1e6) / 1e6));
                for (uint32_t k = 0; k < point->busy_count; k++)
                        (void) json_array_append_new(busy, json_integer(point->busy[k]));
                put(entry, "busy", busy);
                (void) json_array_append_new(list, entry);
        }
        return list;
}

json_t *job_status_encode(const struct job *job, const char *name, const struct job_state *state)
{
        json_t *status = json_object(), *groups = json_array(), *ranks = json_array();

        put(status, "phase", json_string(job_phase_names[state->phase]));
        put_text(status, "reason", state->reason);
        put_text(status, "message", state->message);
        put_number(status, "observedGeneration", state->observed_generation);
        put_time(status, "startTime", state->start_usec);
        put_time(status, "completionTime", state->completion_usec);
        put_number(status, "world", state->world);
        put_number(status, "restarts", state->restarts);
        put_number(status, "reshards", state->reshards);
        put_text(status, "lastEvent", state->last_event);
        if (state->progress.time_usec > 0) {
                put_number(status, "samplesDone", state->progress.samples);
                put(status, "samplesPerSecond", json_real(state->progress.samples_per_s));
                put(status, "progress", encode_progress(job, &state->progress));
        }
        if (job != NULL && state->group_count > 0) {
                put(status, "workers", encode_workers(state));
                put(status, "plan", encode_plan(job, name, state));
        }
        for (size_t i = 0; job != NULL && i < state->group_count; i++) {
                (void) json_array_append_new(groups, encode_group(job, state, name, &state->groups[i]));
                add_ranks(job, name, state, &state->groups[i], ranks);
        }
        put(status, "subtasks", groups);
        put(status, "ranks", ranks);
        if (state->point_count > 0)
                put(status, "history", encode_points(state));
        put(status, "conditions", encode_conditions(state));
        return status;
}

/* --- reading
 * ---------------------------------------------------------------------------------------------------- */

static void get_text(const json_t *object, const char *name, char *field, size_t bytes)
{
        const char *text = json_string_value(json_object_get(object, name));

        (void) text_copy(field, bytes, text == NULL ? "" : text);
}

static uint64_t get_number(const json_t *object, const char *name, uint64_t max)
{
        json_int_t number = json_integer_value(json_object_get(object, name));

        return number < 0 || (uint64_t) number > max ? 0 : (uint64_t) number;
}

static uint64_t get_time(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        uint64_t usec = 0;

        return text != NULL && timestamp_parse(text, &usec) == 0 ? usec : 0;
}

static unsigned get_choice(const json_t *object, const char *name, const char *const *names, unsigned count)
{
        const char *text = json_string_value(json_object_get(object, name));

        for (unsigned i = 0; text != NULL && i < count; i++)
                if (strcmp(names[i], text) == 0)
                        return i;
        return 0;
}

static void decode_group(const json_t *entry, struct job_group *group)
{
        const char *role = json_string_value(json_object_get(entry, "role"));
        const json_t *exit_code = json_object_get(entry, "exitCode");

        *group = (struct job_group){ .exit_code = -1 };
        get_text(entry, "name", group->name, sizeof(group->name));
        group->server = role != NULL && strcmp(role, "server") == 0;
        group->entry = (uint32_t) get_number(entry, "entry", JOB_ROLES_MAX - 1);
        group->index = (uint32_t) get_number(entry, "index", UINT32_MAX);
        group->incarnation = (uint32_t) get_number(entry, "incarnation", 1000000);
        get_text(entry, "node", group->node, sizeof(group->node));
        get_text(entry, "group", group->group, sizeof(group->group));
        get_text(entry, "runtime", group->runtime, sizeof(group->runtime));
        get_text(entry, "vendor", group->vendor, sizeof(group->vendor));
        get_text(entry, "model", group->model, sizeof(group->model));
        get_text(entry, "resource", group->resource, sizeof(group->resource));
        group->chips = (uint32_t) get_number(entry, "chips", JOB_CHIPS_MAX);
        group->ranks = (uint32_t) get_number(entry, "ranks", JOB_CHIPS_MAX);
        group->first_rank = (uint32_t) get_number(entry, "firstRank", JOB_CHIPS_MAX);
        group->batch = get_number(entry, "batch", 1 << 24);
        group->weight = json_number_value(json_object_get(entry, "weight"));
        group->source = (enum job_speed_source) get_choice(entry, "speedSource", job_speed_source_names,
                                                           JOB_SPEED_COUNT);
        group->samples_per_s = json_number_value(json_object_get(entry, "samplesPerSecond"));
        group->state = (enum job_group_state) get_choice(entry, "state", job_group_state_names,
                                                         JOB_GROUP_STATE_COUNT);
        group->restarts = get_number(entry, "restarts", INT64_MAX);
        if (json_is_integer(exit_code))
                group->exit_code = (int) get_number(entry, "exitCode", 255);
}

static int decode_groups(const json_t *list, struct job_state *state)
{
        size_t count = json_array_size(list);

        if (count > JOB_GROUPS_MAX)
                return 0; /* not ours: as a new job */
        state->groups = calloc(count + 1, sizeof(*state->groups));
        if (state->groups == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                struct job_group *group = &state->groups[i];

                decode_group(json_array_get(list, i), group);
                if (group->name[0] == '\0' || !job_name_valid(group->name) || group->chips == 0 ||
                    group->ranks == 0) {
                        state->group_count = 0;
                        return 0;
                }
                state->group_count = i + 1;
                if (group->index >= state->next_index)
                        state->next_index = group->index + 1;
        }
        return 0;
}

static void decode_progress(const json_t *status, struct job_progress *progress)
{
        const json_t *object = json_object_get(status, "progress");

        if (!json_is_object(object))
                return;
        progress->epoch = get_number(object, "epoch", INT64_MAX);
        progress->step = get_number(object, "step", INT64_MAX);
        progress->samples = get_number(object, "samples", INT64_MAX);
        progress->samples_total = get_number(object, "samplesTotal", INT64_MAX);
        progress->seconds_left = json_number_value(json_object_get(object, "secondsLeft"));
        progress->has_loss = json_is_number(json_object_get(object, "loss"));
        progress->loss = json_number_value(json_object_get(object, "loss"));
        progress->has_accuracy = json_is_number(json_object_get(object, "accuracy"));
        progress->accuracy = json_number_value(json_object_get(object, "accuracy"));
        progress->samples_per_s = json_number_value(json_object_get(status, "samplesPerSecond"));
        progress->time_usec = get_time(object, "time");
}

/* The second level is derived from the first but for what its ranks said. */
static void decode_ranks(const json_t *list, struct job_state *state)
{
        const char *last = "";
        uint32_t index = 0;

        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *entry = json_array_get(list, i),
                             *exit_code = json_object_get(entry, "exitCode");
                const char *group = json_string_value(json_object_get(entry, "subtask"));
                struct job_rank *rank;

                if (group == NULL)
                        continue;
                index = strcmp(group, last) == 0 ? index + 1 : 0;
                last = group;
                if (!json_is_integer(json_object_get(entry, "samples")))
                        continue;
                rank = job_state_make_rank(state, group, index);
                if (rank == NULL)
                        return;
                rank->samples = get_number(entry, "samples", INT64_MAX);
                rank->restarts = get_number(entry, "restarts", INT64_MAX);
                rank->before = get_number(entry, "restartsBefore", rank->restarts);
                if (json_is_integer(exit_code))
                        rank->exit_code = (int) get_number(entry, "exitCode", 255);
        }
}

static void decode_points(const json_t *list, struct job_state *state)
{
        for (size_t i = 0; i < json_array_size(list) && i < JOB_POINTS_MAX; i++) {
                const json_t *entry = json_array_get(list, i), *loss = json_object_get(entry, "loss"),
                             *busy = json_object_get(entry, "busy");
                struct job_point point = { .seconds = json_number_value(json_object_get(entry, "seconds")),
                                           .world = get_number(entry, "world", INT64_MAX),
                                           .step = get_number(entry, "step", INT64_MAX),
                                           .samples = get_number(entry, "samples", INT64_MAX),
                                           .loss = json_is_number(loss) ? json_number_value(loss) : NAN };

                for (size_t k = 0; k < json_array_size(busy) && k < JOB_POINT_RANKS; k++) {
                        json_int_t percent = json_integer_value(json_array_get(busy, k));

                        point.busy[point.busy_count++] = (uint8_t) (percent < 0     ? 0
                                                                    : percent > 100 ? 100
                                                                                    : percent);
                }
                job_state_add_point(state, &point);
        }
}

static void decode_conditions(const json_t *list, struct job_state *state)
{
        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *entry = json_array_get(list, i);
                const char *type = json_string_value(json_object_get(entry, "type"));
                const char *holds = json_string_value(json_object_get(entry, "status"));

                for (size_t k = 0; type != NULL && k < JOB_CONDITION_COUNT; k++) {
                        struct job_condition *condition = &state->conditions[k];

                        if (strcmp(job_condition_names[k], type) != 0)
                                continue;
                        condition->known = true;
                        condition->holds = holds != NULL && strcmp(holds, "True") == 0;
                        get_text(entry, "reason", condition->reason, sizeof(condition->reason));
                        get_text(entry, "message", condition->message, sizeof(condition->message));
                        condition->since_usec = get_time(entry, "lastTransitionTime");
                }
        }
}

int job_status_decode(const json_t *status, struct job_state *ret)
{
        const json_t *plan = json_object_get(status, "plan"), *notes = json_object_get(plan, "notes");

        *ret = (struct job_state){ 0 };
        if (!json_is_object(status))
                return 0;
        ret->phase = (enum job_phase) get_choice(status, "phase", job_phase_names, JOB_PHASE_COUNT);
        get_text(status, "reason", ret->reason, sizeof(ret->reason));
        get_text(status, "message", ret->message, sizeof(ret->message));
        ret->observed_generation = get_number(status, "observedGeneration", INT64_MAX);
        ret->start_usec = get_time(status, "startTime");
        ret->completion_usec = get_time(status, "completionTime");
        ret->world = get_number(status, "world", 1000000);
        ret->restarts = get_number(status, "restarts", INT64_MAX);
        ret->reshards = get_number(status, "reshards", INT64_MAX);
        ret->samples = get_number(plan, "samples", INT64_MAX);
        get_text(status, "lastEvent", ret->last_event, sizeof(ret->last_event));
        get_text(plan, "address", ret->address, sizeof(ret->address));
        decode_progress(status, &ret->progress);
        decode_conditions(json_object_get(status, "conditions"), ret);
        for (size_t i = 0; i < json_array_size(notes); i++)
                if (json_is_string(json_array_get(notes, i)))
                        job_state_note(ret, "%s", json_string_value(json_array_get(notes, i)));
        decode_ranks(json_object_get(status, "ranks"), ret);
        decode_points(json_object_get(status, "history"), ret);
        if (decode_groups(json_object_get(status, "subtasks"), ret) < 0) {
                job_state_free(ret);
                return -ENOMEM;
        }
        return 0;
}
