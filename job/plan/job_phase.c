/* The words of the phases, and which of them are the end. */
#include "job/plan/job_phase.h"

/* clang-format off */
const char *const job_phase_names[JOB_PHASE_COUNT + 1] = {
        [JOB_PENDING]    = "Pending",
        [JOB_PLANNING]   = "Planning",
        [JOB_STARTING]   = "Starting",
        [JOB_RUNNING]    = "Running",
        [JOB_RESTARTING] = "Restarting",
        [JOB_SUSPENDED]  = "Suspended",
        [JOB_SUCCEEDED]  = "Succeeded",
        [JOB_FAILED]     = "Failed",
        [JOB_CANCELLED]  = "Cancelled",
};
/* clang-format on */

bool job_phase_ended(enum job_phase phase)
{
        return phase == JOB_SUCCEEDED || phase == JOB_FAILED || phase == JOB_CANCELLED;
}
