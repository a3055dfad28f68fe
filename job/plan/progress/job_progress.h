/* Job progress: how far a job is, as a whole, rank by rank, and at each of the moments that its report shows.
 * Data alone: job/plan/job_state.h keeps it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "job/plan/job_group.h"

struct job_progress {
        uint64_t epoch, step, samples, samples_total;
        double samples_per_s, seconds_left, loss, accuracy; /* NAN = not said */
        double seconds_left_least, seconds_left_most;       /* its spread (job_left.h); 0 = not known */
        double steps_behind_mean; /* of workers that do not go in step; NAN = they do, or it is not known */
        int64_t steps_behind_max; /* -1 = as above */
        uint64_t time_usec;       /* 0 = nothing was heard */
};

/* A subtask of the second level: what one rank has said, and what became of it. It is known by its group and
 * its place in it: numbers of ranks change when a group is left out. */
struct job_progress_rank {
        char group[JOB_GROUP_NAME_BYTES];
        uint32_t index;
        uint64_t samples;
        uint64_t restarts;    /* new processes that it was given */
        uint64_t before;      /* of them, under earlier managers */
        int64_t batch;        /* of each global batch, as its world has shared it; -1 = an equal part of its
                                 group's */
        int exit_code;        /* -1 = it runs, or nothing is known */
        double busy_sec;      /* that it has computed in its world, as it says */
        double samples_per_s; /* while it computes, as it says; 0 = not known */
        int64_t steps_behind; /* the worker that has most, where they do not go in step; -1 = not known */
};

/* How far the job was at a moment, for its report. */
#define JOB_PROGRESS_POINTS_MAX  48
#define JOB_PROGRESS_POINT_RANKS 16
struct job_progress_point {
        double seconds; /* since start_usec */
        uint64_t world, step, samples;
        double loss;                            /* NAN = not said */
        uint8_t busy[JOB_PROGRESS_POINT_RANKS]; /* percent of the time since the last point that each rank
                                                   computed */
        size_t busy_count;
};
