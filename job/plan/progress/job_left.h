/* Job left: between which times a job may end, by how unlike its own windows were. Pure.
 *
 * A window is from one moment of the job's history to the next at which more samples were done, in the world
 * that runs now: what a checkpoint or a slow step takes is in it. Were what is left to go as the fastest
 * tenth of the windows did, the job would take the least, and as the slowest tenth, the most (10th and 90th
 * percentile, by nearest rank); the figure at the rate of the last half minute lies between them or is one of
 * them.
 *
 *     1000 samples are left; ten windows of 80, 90, 95, 100, 100, 100, 105, 110, 120 and 200 samples/s, the
 *     last half minute 100: the 1st of the ten and the 9th are 80 and 120, so 8.3 s to 12.5 s beside 10 s
 * With fewer than JOB_LEFT_WINDOWS windows nothing is said. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "job/plan/progress/job_progress.h"

#define JOB_LEFT_WINDOWS 5

/* job_left_spread() - @samples_left, @seconds_left: that are to be done, and how long at the rate of now.
 * Return: is anything known? */
bool job_left_spread(const struct job_progress_point *points, size_t count, double samples_left,
                     double seconds_left, double *ret_least_sec, double *ret_most_sec);
