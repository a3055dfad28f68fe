/* A group's words, its ranks' parts of a batch and its pod's name. */
#include "job/plan/job_group.h"

#include <stdlib.h>
#include <string.h>

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

/* Return: the number, and where it ends; UINT32_MAX = there is none, or one beyond any model. */
static uint32_t layer_of(const char *at, const char **ret_end)
{
        char *end;
        unsigned long layer = strtoul(at, &end, 10);

        *ret_end = end;
        return *at < '0' || *at > '9' || layer > INT32_MAX ? UINT32_MAX : (uint32_t) layer;
}

bool job_group_rank_layers(const char *layers, size_t n, uint32_t *ret_first, uint32_t *ret_last)
{
        uint32_t first, last;

        for (; n > 0; n--, layers++)
                if ((layers = strchr(layers, ',')) == NULL)
                        return false;
        first = layer_of(layers, &layers);
        if (first == UINT32_MAX || *layers != ':')
                return false;
        last = layer_of(layers + 1, &layers);
        if (last == UINT32_MAX || last < first)
                return false;
        *ret_first = first;
        *ret_last = last;
        return true;
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
        group->node[0] = group->devices[0] = '\0';
        group->incarnation++;
        group->state = JOB_GROUP_LOST;
}
