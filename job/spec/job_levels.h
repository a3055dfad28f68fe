/* Job levels: spec.groups, how the workers are cut into groups that add up their gradients among themselves,
 * before one of each speaks to the others. Pure data and its rules; the job owns the list. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define JOB_LEVELS_MAX 4096 /* groups: what the trainer takes */

struct job;

enum job_levels_kind {
        JOB_LEVELS_AUTO, /* where the links make it pay (job/plan/launch_levels.h) */
        JOB_LEVELS_NONE,
        JOB_LEVELS_LIST
};

struct job_levels {
        int kind;
        uint64_t *workers; /* of each group, in rank order; of a list */
        size_t count;
};

/* job_levels_check() - 0; -EINVAL, "spec.groups: what is wrong; remedy". */
int job_levels_check(const struct job *job, struct err *err);

/* job_levels_may_be() - is it for the links to say? Not where the job says how, nor where segments are
 * listed, which are of one level; nor is it with other strategies than allreduce.
 * @ret_why: of false, what stands against it; may be NULL */
bool job_levels_may_be(const struct job *job, const char **ret_why);
