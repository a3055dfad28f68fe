/* Group: the launcher of one device group. It joins the manager, takes its subtask, cuts it over its chips,
 * runs mpirun's daemon here when the manager asks, and tells how the ranks are; world after world, until it
 * may go. */
#pragma once

#include "job/launcher/rendezvous.h"

/* group_run() - until the job is over. Return: an exit code (base/exit_code.h). */
int group_run(const struct rendezvous_options *options);
