/* Is a status one that a controller wrote for this job? Part of job/plan/job_status.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "job/plan/job_status.h"

static int wrong(struct err *err, size_t subtask, const char *field, const char *why)
{
        return err_set(err, -EBADMSG, "status.subtasks[%zu].%s: %s", subtask, field, why);
}

static int check_group(const struct job *job, const struct job_state *state, size_t i, struct err *err)
{
        const struct job_group *group = &state->groups[i];

        if (!group->server && group->entry >= job->worker_count)
                return wrong(err, i, "entry", "spec.workers has no such entry");
        if (group->ranks < group->chips)
                return wrong(err, i, "ranks", "fewer than its chips");
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
