/* The longest waits of all jobs. A time that is not known is that of the job's start: it waits since then. */
#include "job/controller/ages.h"

static void keep_longest(uint64_t *longest_usec, uint64_t since_usec, uint64_t now_usec)
{
        if (since_usec > 0 && now_usec > since_usec && now_usec - since_usec > *longest_usec)
                *longest_usec = now_usec - since_usec;
}

static uint64_t later(uint64_t a_usec, uint64_t b_usec)
{
        return a_usec > b_usec ? a_usec : b_usec;
}

void ages_add(struct ages *ages, const struct job *job, const struct job_state *state, uint64_t now_usec)
{
        uint64_t running_usec = state->conditions[JOB_CONDITION_RUNNING].since_usec;

        if (state->phase == JOB_STARTING)
                keep_longest(&ages->starting_usec, state->conditions[JOB_CONDITION_PLANNED].since_usec,
                             now_usec);
        if (state->phase != JOB_RUNNING)
                return;
        keep_longest(&ages->silent_usec, later(state->progress.time_usec, running_usec), now_usec);
        if (job->checkpoint.given && job->checkpoint.claim[0] != '\0' && job->checkpoint.every_steps > 0)
                keep_longest(&ages->checkpoint_usec, later(job_state_saved_usec(job, state), running_usec),
                             now_usec);
}
