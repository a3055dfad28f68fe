/* Both ways in turn, the median round of each, of every round the rank that came last. */
#include "trainer/strategies/levels_trial.h"

#include <stdio.h>
#include <string.h>

#include "base/median.h"
#include "trainer/record.h"

#define ROUNDS 5 /* after one that warms up; the first costs connections */

static double timed(struct levels *l, const struct training *t, bool two)
{
        MPI_Request one_level;
        uint64_t begin;
        double ms;

        MPI_Barrier(MPI_COMM_WORLD);
        begin = record_now();
        if (two) {
                levels_begin(l);
                levels_wait(l);
        } else {
                MPI_Iallreduce(MPI_IN_PLACE, t->gradients, (int) t->model.parameter_count, MPI_FLOAT, MPI_SUM,
                               MPI_COMM_WORLD, &one_level); /* as a step does */
                MPI_Wait(&one_level, MPI_STATUS_IGNORE);
        }
        ms = (double) (record_now() - begin) / 1e3;
        MPI_Allreduce(MPI_IN_PLACE, &ms, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return ms;
}

bool levels_trial(struct levels *l, struct training *t)
{
        double one[ROUNDS + 1], two[ROUNDS + 1];
        uint64_t begin = record_now();
        bool faster;

        backend_to_host(&t->backend, t->gradients);
        memset(t->gradients, 0, t->part.count * sizeof(*t->gradients));
        for (size_t i = 0; i <= ROUNDS; i++) {
                one[i] = timed(l, t, false);
                two[i] = timed(l, t, true);
        }
        one[0] = median(one + 1, ROUNDS);
        two[0] = median(two + 1, ROUNDS);
        faster = two[0] < one[0];
        MPI_Bcast(&faster, 1, MPI_C_BOOL, 0, MPI_COMM_WORLD);
        if (t->world.rank == 0)
                (void) fprintf(
                        stderr,
                        "remuda-train: the gradients are summed in %s: in trials two take %.3f ms, one "
                        "%.3f ms\n",
                        faster ? "two levels" : "one level", two[0], one[0]);
        backend_to_device(&t->backend, t->gradients);
        record_paused(&t->record, RECORD_MEASURE, t->step, begin);
        return faster;
}
