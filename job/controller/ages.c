/* How long a job has waited, and the longest waits of all. A time that is not known is that of the job's
 * start: it waits since then. */
#include "job/controller/ages.h"

static uint64_t since(uint64_t since_usec, uint64_t now_usec)
{
        return since_usec > 0 && now_usec > since_usec ? now_usec - since_usec : 0;
}

static uint64_t later(uint64_t a_usec, uint64_t b_usec)
{
        return a_usec > b_usec ? a_usec : b_usec;
}

struct ages ages_of(const struct job *job, const struct job_state *state, uint64_t now_usec)
{
        uint64_t running_usec = state->conditions[JOB_CONDITION_RUNNING].since_usec;
        struct ages ages = { 0 };

        if (state->phase == JOB_STARTING)
                ages.starting_usec = since(state->conditions[JOB_CONDITION_PLANNED].since_usec, now_usec);
        if (state->phase != JOB_RUNNING)
                return ages;
        ages.silent_usec = since(later(state->progress.time_usec, running_usec), now_usec);
        if (job->checkpoint.given && job->checkpoint.claim[0] != '\0' && job->checkpoint.every_steps > 0)
                ages.checkpoint_usec = since(later(job_state_saved_usec(job, state), running_usec), now_usec);
        return ages;
}

void ages_add(struct ages *ages, const struct job *job, const struct job_state *state, uint64_t now_usec)
{
        struct ages one = ages_of(job, state, now_usec);

        ages->starting_usec = later(ages->starting_usec, one.starting_usec);
        ages->silent_usec = later(ages->silent_usec, one.silent_usec);
        ages->checkpoint_usec = later(ages->checkpoint_usec, one.checkpoint_usec);
}
