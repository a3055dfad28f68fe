/* Job plan, its shares: the speeds of a plan's chips and the cut of the batch by them. Part of
 * job/plan/job_plan.h. */
#pragma once

#include "job/plan/job_plan.h"

/* job_plan_server_role() - spec.servers, or one on the CPU when none is given. */
struct job_role job_plan_server_role(const struct job *job);

/* job_plan_chip_speed() - samples a second of one chip of this device model, as measured for the job's
 * program of @runtime and its model; 0 = not known. */
double job_plan_chip_speed(const struct job_plan_question *question, const char *runtime, uint32_t model);

/* job_plan_step_ms() - how long a step of the groups placed so far would take; INFINITY when the batch cannot
 * be cut or there is no memory. */
double job_plan_step_ms(const struct job_plan_question *question, const struct job_state *state);
