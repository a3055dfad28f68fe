/* What spec.groups may say beside the other fields, and when it leaves the choice to the links. */
#include "job/spec/job_levels.h"

#include <errno.h>

#include "job/spec/job.h"

/* Which worker is in which group is known beforehand only where their number is. */
int job_levels_check(const struct job *job, struct err *err)
{
        uint64_t workers = job_worker_chips(job), sum = 0, least = 0;

        if (job->levels.kind != JOB_LEVELS_LIST)
                return 0;
        for (size_t i = 0; i < job->worker_count; i++)
                least += job->workers[i].min_chips;
        for (size_t i = 0; i < job->levels.count; i++)
                sum += job->levels.workers[i];
        if (job->strategy == JOB_STRATEGY_SPLIT)
                return err_set(
                        err, -EINVAL,
                        "spec.groups: are of workers that hold the whole model, and strategy is split; "
                        "leave groups out");
        if (job->strategy == JOB_STRATEGY_ALLREDUCE && job->segments == JOB_SEGMENTS_LIST)
                return err_set(
                        err, -EINVAL,
                        "spec.groups: two levels send pieces of their own, and segments lists those of "
                        "one level; leave one of them out");
        if (least < workers)
                return err_set(
                        err, -EINVAL,
                        "spec.groups: a list is of all workers, and with minChips there may be %llu or "
                        "%llu; write groups: auto, or leave minChips out",
                        (unsigned long long) least, (unsigned long long) workers);
        if (sum != workers)
                return err_set(err, -EINVAL,
                               "spec.groups: add up to %llu, the workers are %llu; make them equal",
                               (unsigned long long) sum, (unsigned long long) workers);
        return 0;
}

bool job_levels_may_be(const struct job *job, const char **ret_why)
{
        const char *why = job->levels.kind == JOB_LEVELS_NONE       ? "the job says groups: none"
                          : job->levels.kind == JOB_LEVELS_LIST     ? "the job lists its groups"
                          : job->strategy != JOB_STRATEGY_ALLREDUCE ? "its strategy is not allreduce"
                          : job->segments == JOB_SEGMENTS_LIST
                                  ? "the job lists segments, which are of one level"
                                  : NULL;

        if (ret_why != NULL && why != NULL)
                *ret_why = why;
        return why == NULL;
}
