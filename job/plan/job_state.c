/* The words of a state, and the small rules that keep it whole. */
#include "job/plan/job_state.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

/* clang-format off */
const char *const job_state_condition_names[JOB_CONDITION_COUNT] = {
        [JOB_CONDITION_ACCEPTED]  = "Accepted",
        [JOB_CONDITION_PLANNED]   = "Planned",
        [JOB_CONDITION_PODS_CREATED] = "PodsCreated",
        [JOB_CONDITION_RUNNING]   = "Running",
        [JOB_CONDITION_SUSPENDED] = "Suspended",
        [JOB_CONDITION_SUCCEEDED] = "Succeeded",
        [JOB_CONDITION_FAILED]    = "Failed",
};
/* clang-format on */

void job_state_clear_plan(struct job_state *state)
{
        free(state->groups);
        free(state->notes);
        free(state->ranks);
        stage_ranks_free(&state->split);
        state->groups = NULL;
        state->notes = NULL;
        state->ranks = NULL;
        state->group_count = state->note_count = state->rank_count = 0;
}

struct job_state job_state_new(void)
{
        return (struct job_state){
                .progress = { .loss = NAN, .accuracy = NAN, .steps_behind_mean = NAN, .steps_behind_max = -1 }
        };
}

void job_state_free(struct job_state *state)
{
        if (state == NULL)
                return;
        job_state_clear_plan(state);
        *state = job_state_new();
}

void job_state_note(struct job_state *state, const char *fmt, ...)
{
        char *note = NULL;
        va_list values;

        if (state->note_count < JOB_NOTES_MAX)
                note = array_add(&state->notes, &state->note_count, NULL, JOB_NOTE_BYTES);
        if (note == NULL)
                return;
        va_start(values, fmt);
        (void) vsnprintf(note, JOB_NOTE_BYTES, fmt, values); /* cut to its field */
        va_end(values);
}

void job_state_set_condition(struct job_state *state, enum job_state_condition_type type, bool holds,
                             uint64_t now_usec, const char *reason, const char *message)
{
        struct job_state_condition *condition = &state->conditions[type];

        if (!condition->known || condition->holds != holds)
                condition->since_usec = now_usec;
        condition->known = true;
        condition->holds = holds;
        (void) text_copy(condition->reason, sizeof(condition->reason), reason);
        (void) text_copy(condition->message, sizeof(condition->message), message);
}

void job_state_doubt_condition(struct job_state *state, enum job_state_condition_type type, uint64_t now_usec,
                               const char *reason, const char *message)
{
        if (!state->conditions[type].known)
                return;
        job_state_set_condition(state, type, false, now_usec, reason, message);
        state->conditions[type].since_usec = now_usec;
        state->conditions[type].known = false;
}

bool job_state_awaits_condition(const struct job_state *state, enum job_state_condition_type type)
{
        const struct job_state_condition *condition = &state->conditions[type];

        return condition->reason[0] != '\0' && !(condition->known && condition->holds);
}

bool job_state_is_refused(const struct job_state *state)
{
        const struct job_state_condition *made = &state->conditions[JOB_CONDITION_PODS_CREATED];

        return made->known && !made->holds;
}

void job_state_set(struct job_state *state, enum job_phase phase, uint64_t now_usec, const char *reason,
                   const char *fmt, ...)
{
        va_list values;

        state->phase = phase;
        (void) text_copy(state->reason, sizeof(state->reason), reason);
        va_start(values, fmt);
        (void) vsnprintf(state->message, sizeof(state->message), fmt, values); /* cut to its field */
        va_end(values);
        job_state_set_condition(state, JOB_CONDITION_PLANNED, state->group_count > 0, now_usec, reason,
                                state->message);
        job_state_set_condition(state, JOB_CONDITION_RUNNING, phase == JOB_RUNNING, now_usec, reason,
                                state->message);
        if (phase == JOB_SUSPENDED || state->conditions[JOB_CONDITION_SUSPENDED].known)
                job_state_set_condition(state, JOB_CONDITION_SUSPENDED, phase == JOB_SUSPENDED, now_usec,
                                        reason, state->message);
        job_state_set_condition(state, JOB_CONDITION_SUCCEEDED, phase == JOB_SUCCEEDED, now_usec, reason,
                                state->message);
        job_state_set_condition(state, JOB_CONDITION_FAILED, phase == JOB_FAILED, now_usec, reason,
                                state->message);
        if (job_phase_ended(phase) && state->completion_usec == 0)
                state->completion_usec = now_usec;
}

struct job_group *job_state_group(const struct job_state *state, const char *name)
{
        for (size_t i = 0; i < state->group_count; i++)
                if (strcmp(state->groups[i].name, name) == 0)
                        return &state->groups[i];
        return NULL;
}

struct job_progress_rank *job_state_rank(const struct job_state *state, const char *group, uint32_t index)
{
        for (size_t i = 0; i < state->rank_count; i++)
                if (state->ranks[i].index == index && strcmp(state->ranks[i].group, group) == 0)
                        return &state->ranks[i];
        return NULL;
}

struct job_progress_rank *job_state_make_rank(struct job_state *state, const char *group, uint32_t index)
{
        struct job_progress_rank *rank = job_state_rank(state, group, index);

        if (rank != NULL || state->rank_count == JOB_STATUS_RANKS_MAX)
                return rank;
        rank = array_add(&state->ranks, &state->rank_count, NULL, sizeof(*rank));
        if (rank == NULL)
                return NULL;
        *rank = (struct job_progress_rank){
                .index = index, .batch = -1, .exit_code = -1, .steps_behind = -1
        };
        (void) text_copy(rank->group, sizeof(rank->group), group);
        return rank;
}

uint64_t job_state_rank_batch(const struct job_state *state, const struct job_group *group, uint32_t n)
{
        const struct job_progress_rank *rank = job_state_rank(state, group->name, n);

        return rank != NULL && rank->batch >= 0 ? (uint64_t) rank->batch : job_group_rank_batch(group, n);
}

/* Every second point stands for the one before it, too. */
static void thin_points(struct job_state *state)
{
        for (size_t i = 0; i < state->point_count / 2; i++) {
                const struct job_progress_point *first = &state->points[2 * i];
                struct job_progress_point point = state->points[2 * i + 1];

                for (size_t k = 0; k < point.busy_count && k < first->busy_count; k++)
                        point.busy[k] = (uint8_t) ((first->busy[k] + point.busy[k]) / 2);
                state->points[i] = point;
        }
        state->point_count /= 2;
}

void job_state_add_point(struct job_state *state, const struct job_progress_point *point)
{
        if (state->point_count == JOB_PROGRESS_POINTS_MAX)
                thin_points(state);
        state->points[state->point_count++] = *point;
}

bool job_state_shard(const struct job *job, const struct job_state *state, const struct job_group *group,
                     uint32_t n, uint32_t ranks, uint64_t *ret_begin, uint64_t *ret_end)
{
        uint64_t before = 0, part = 0;

        if (state->samples == 0 || group->server || job->strategy == JOB_STRATEGY_SPLIT ||
            job->global_batch == 0)
                return false;
        for (const struct job_group *g = state->groups; g != group; g++)
                before += g->server ? 0 : g->batch;
        for (uint32_t i = 0; i < n + ranks; i++)
                *(i < n ? &before : &part) += job_state_rank_batch(state, group, i);
        *ret_begin = (uint64_t) ((double) state->samples * (double) before / (double) job->global_batch);
        *ret_end =
                (uint64_t) ((double) state->samples * (double) (before + part) / (double) job->global_batch);
        return true;
}

uint64_t job_state_saved_usec(const struct job *job, const struct job_state *state)
{
        const struct job_progress *progress = &state->progress;
        uint64_t every = job->checkpoint.every_steps, since;
        double usec;

        if (!job->checkpoint.given || job->checkpoint.claim[0] == '\0' || every == 0 ||
            progress->step < every)
                return 0;
        since = progress->step % every;
        usec = since == 0 ? 0 : (double) since * (double) job->global_batch / progress->samples_per_s * 1e6;
        return usec >= 0 && usec < (double) progress->time_usec ? progress->time_usec - (uint64_t) usec : 0;
}

uint32_t job_state_world_size(const struct job_state *state)
{
        uint32_t ranks = 0;

        for (size_t i = 0; i < state->group_count; i++)
                ranks += state->groups[i].ranks;
        return ranks;
}

void job_state_manager_pod_name(const char *job, uint64_t world, char name[JOB_POD_NAME_BYTES])
{
        (void) text_format(name, JOB_POD_NAME_BYTES, "%s-m%llu", job, (unsigned long long) world);
}
