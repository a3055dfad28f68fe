/* World: one MPI world of a run: the ranks' variables, mpirun's command line, and its end. */
#pragma once

#include "job/plan/launch.h"
#include "job/run/run.h"
#include "job/run/run_guard.h"
#include "job/spec/job_arguments.h"

struct run_world {
        struct run_guard guard;
        bool ended;
        int exit_code; /* mpirun's, once ended */
};

/* run_world_start() - write the rank file and start mpirun for ranks first..rank_count-1.
 * @tag: names the files: "rank" for training, "measure"
 * @args: what every program is given, the table's own arguments before them */
int run_world_start(struct run *run, size_t first, const char *tag, const struct arguments *args,
                    struct run_world *ret, struct err *err);

/* run_world_reap() - has the guard ended? Fills ended and exit_code, and cleans up after a guard that was
 * killed.
 */
void run_world_reap(struct run *run, struct run_world *world);

/* run_world_arguments() - the options of the reference trainer that this job gives. */
void run_world_arguments(const struct run *run, bool resume, struct arguments *args);

/* run_world_fill() - the ranks from @first on as launchers see them; they borrow from the run. @ranks: room
 * for them; NULL = no memory, and the answer is false. */
bool run_world_fill(const struct run *run, size_t first, struct launch_rank *ranks, struct launch_world *ret);
