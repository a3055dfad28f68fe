/* Job rate: how fast a job has been of late: the samples and steps that its manager tells, kept over
 * JOB_RATE_USEC. Pure; time is an argument.
 *
 * A job that is started again counts on from its checkpoint: what is less than before begins the window anew,
 * so that no step is counted twice and none backwards. Example: (0 s, 0), (10 s, 1000), (20 s, 3000) give 150
 * samples/s; then (40 s, 4000) gives (4000 - 1000) / 30 s = 100, the point of 0 s being too old. Invariant:
 * the points are in time, samples and steps never fall from one to the next. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_RATE_USEC   30000000
#define JOB_RATE_POINTS 32

struct job_rate_point {
        uint64_t usec, samples, steps;
};

/* All 0 is an empty one. */
struct job_rate {
        struct job_rate_point points[JOB_RATE_POINTS];
        size_t count;
};

/* job_rate_add() - what was told now. Points closer than a JOB_RATE_POINTS / 2-th of the window become one.
 */
void job_rate_add(struct job_rate *rate, struct job_rate_point point);

/* job_rate_seconds() - between its oldest point and its newest. */
double job_rate_seconds(const struct job_rate *rate);

/* job_rate_of() - over what is left of the window.
 * @ret_samples_per_s, @ret_step_seconds: 0 and NAN when no step was made in it
 * Return: false without two points in it, or when the last is older than the window: nothing is known. */
bool job_rate_of(const struct job_rate *rate, uint64_t now_usec, double *ret_samples_per_s,
                 double *ret_step_seconds);
