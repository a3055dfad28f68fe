/* Job phase: how far the life of a job is, in one word. */
#pragma once

#include <stdbool.h>

enum job_phase {
        JOB_PENDING,
        JOB_PLANNING,
        JOB_STARTING,
        JOB_RUNNING,
        JOB_RESTARTING,
        JOB_SUSPENDED, /* it is told to wait, and has no chips */
        JOB_SUCCEEDED,
        JOB_FAILED,
        JOB_CANCELLED,
        JOB_PHASE_COUNT
};

extern const char *const job_phase_names[JOB_PHASE_COUNT + 1]; /* NULL ends them */

bool job_phase_ended(enum job_phase phase);
