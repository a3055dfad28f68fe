/* mpirun's command line, as far as every world of ours has the same. Pure but for the heap. */
#pragma once

#include "job/spec/job_arguments.h"

/* mpirun_line_begin() - @own_cores: every rank has a core of its own, so that it may spin and is bound */
void mpirun_line_begin(struct arguments *line, const char *mpirun, bool own_cores);
void mpirun_line_mca(struct arguments *line, const char *name, const char *value);

/* mpirun_line_ranks() - so many more ranks of a runtime, each started by remuda-launch; its further options,
 * "--" and the program's arguments may follow. */
void mpirun_line_ranks(struct arguments *line, uint64_t count, const char *launcher, const char *runtime,
                       unsigned grace_seconds);
