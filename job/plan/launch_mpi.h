/* Launch MPI: mpirun's line, and its hosts and application files for lines longer than a shell takes. Pure.
 */
#pragma once

#include "job/plan/launch.h"

/* Return: 0, or -EINVAL where a rank has no program (launch_mpi_app(): or a word with a blank). */
int launch_mpi_run(const struct launch_world *world, struct text *out, struct err *err);
int launch_mpi_hosts(const struct launch_world *world, struct text *out, struct err *err);
int launch_mpi_app(const struct launch_world *world, struct text *out, struct err *err);
