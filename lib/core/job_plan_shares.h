/* Job plan, its shares: the speeds of a plan's chips and the cut of the batch by them. Part of
 * core/job_plan.h. */
#pragma once

#include "core/job_plan.h"

/* job_plan_server_role() - spec.servers, or one on the CPU when none is given. */
struct job_role job_plan_server_role(const struct job *job);

/* job_plan_chip_speed() - samples a second of one chip, to compare by: measured for the job's model, else
 * from the device table, else 0. */
double job_plan_chip_speed(const struct ledger *ledger, const struct job *job,
                           const struct ledger_group *group);

/* job_plan_step_ms() - how long a step of the groups placed so far would take; INFINITY when the batch cannot
 * be cut or there is no memory. */
double job_plan_step_ms(const struct job_plan_question *question, const struct job_state *state);
