/* Job speeds: what a manager says of its ranks, as observations for the SpeedTable. In memory only. */
#pragma once

#include "job/plan/job_report.h"
#include "planner/speeds/speed_table.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

/* One rank's observation owns its names. */
struct job_speed {
        char program[SHA256_HEX_BYTES], device[SPEED_TABLE_DEVICE_BYTES];
        double batch, step_ms, weight;
};

/* job_speeds_read() - one observation for each worker that has done ten of its batches and says how fast it
 * is (samples_per_s: while it was busy, so its own speed and not that of the slowest), of whatever program; 0
 * of one that is not believed. None for the stages of a split, which do not compute whole samples.
 * A manager's word is that of a tenant: under a program's hash it counts if the program table or the nodes
 * vouch for that very hash, and not at all if they vouch for another; else it is kept under the job's own
 * name for the program, which no other namespace reads.
 * @programs: of the job; Return: how many of @ret (max) were filled in. */
size_t job_speeds_read(const struct ledger_speeds_programs *programs, const struct job_state *state,
                       const struct job_report *report, struct job_speed *ret, size_t max);
