/* Ages: for how long the jobs of a cluster have waited for what is to come of them: a start, a word of their
 * manager, a checkpoint. Of one job, or of
 * all the longest of each, for alerts. Pure. */
#pragma once

#include "job/plan/job_state.h"

struct ages {
        uint64_t starting_usec;   /* planned, and not running yet */
        uint64_t silent_usec;     /* running, and its manager has not said how far it is */
        uint64_t checkpoint_usec; /* running, with checkpoints that outlive its pods, and none was written */
};

/* ages_of() - of one job; 0 = it does not wait for that, or the clock was set back. */
struct ages ages_of(const struct job *job, const struct job_state *state, uint64_t now_usec);

/* ages_add() - one more job. @now_usec: CLOCK_REALTIME */
void ages_add(struct ages *ages, const struct job *job, const struct job_state *state, uint64_t now_usec);
