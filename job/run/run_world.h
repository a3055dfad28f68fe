/* World: one MPI world of a run: its ranks as launchers see them, mpirun's command line, and what is left of
 * it. */
#pragma once

#include "job/plan/launch.h"
#include "job/run/run.h"
#include "job/run/run_guard.h"
#include "job/spec/job_arguments.h"

/* run_world_start() - write the rank file and start mpirun for ranks first..rank_count-1.
 * @tag: names the files: "rank" for training, "measure"
 * @args: what every program is given, the table's own arguments before them
 * @ret: the process that supervises mpirun; once it has ended, run_world_clean() */
int run_world_start(struct run *run, size_t first, const char *tag, const struct arguments *args,
                    struct run_guard *ret, struct err *err);
void run_world_clean(const struct run *run, struct run_guard *guard);

/* run_world_arguments() - the options of the reference trainer that this job gives. */
void run_world_arguments(const struct run *run, bool resume, struct arguments *args);

/* run_world_fill() - the ranks from @first on as launchers see them; they borrow from the run. @ranks: room
 * for them; NULL = no memory, and the answer is false. */
bool run_world_fill(const struct run *run, size_t first, struct launch_rank *ranks, struct launch_world *ret);
