/* Job speeds: what a manager says of its ranks, as observations for the SpeedTable. In memory only. */
#pragma once

#include "job/plan/job_report.h"
#include "planner/speeds/speed_table.h"

/* One rank's observation owns its names; program "" = not known. */
struct job_speed {
        char program[SHA256_HEX_BYTES], device[SPEED_TABLE_DEVICE_BYTES];
        double batch, step_ms, weight;
};

/* job_speeds_read() - one observation for each worker that has done ten of its batches and says how fast it
 * is (samples_per_s: while it was busy, so its own speed and not that of the slowest). None for programs that
 * are not the reference trainer, whose figures may mean anything, and none for the stages of a split, which
 * do not compute whole samples.
 * Return: how many of @ret (max) were filled in. */
size_t job_speeds_read(const struct job *job, const struct job_state *state, const struct job_report *report,
                       struct job_speed *ret, size_t max);
