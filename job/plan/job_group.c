/* A group's words, its ranks' parts of a batch and its pod's name. */
#include "job/plan/job_group.h"

#include "base/text.h"

/* clang-format off */
const char *const job_group_state_names[JOB_GROUP_STATE_COUNT + 1] = {
        [JOB_GROUP_WAITING]   = "Waiting",
        [JOB_GROUP_RUNNING]   = "Running",
        [JOB_GROUP_SUCCEEDED] = "Succeeded",
        [JOB_GROUP_FAILED]    = "Failed",
        [JOB_GROUP_LOST]      = "Lost",
};
/* clang-format on */

uint64_t job_group_rank_batch(const struct job_group *group, uint32_t n)
{
        return group->batch / group->ranks + (n < group->batch % group->ranks);
}

void job_group_pod_name(const char *job, const struct job_group *group, char name[JOB_POD_NAME_BYTES])
{
        if (group->incarnation == 0)
                (void) text_format(name, JOB_POD_NAME_BYTES, "%s-%s", job, group->name);
        else
                (void) text_format(name, JOB_POD_NAME_BYTES, "%s-%s-r%u", job, group->name,
                                   group->incarnation);
}

void job_group_lose(struct job_group *group)
{
        group->node[0] = '\0';
        group->incarnation++;
        group->state = JOB_GROUP_LOST;
}
