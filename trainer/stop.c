/* SIGTERM is noted; ranks in step exchange whether it came to any. */
#include "trainer/stop.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

#include "trainer/checkpoint.h"

static volatile sig_atomic_t sigterm_came;

static void note_sigterm(int signal_number)
{
        (void) signal_number;
        sigterm_came = 1;
}

void stop_open(struct stop *stop, const struct training *t)
{
        *stop = (struct stop){ .listens = t->options->checkpoint != NULL };
        if (stop->listens && t->world.parallel) {
                stop->request = malloc(sizeof(MPI_Request));
                stop->listens = stop->request != NULL;
        }
        /* without memory on one rank the exchange would be one-sided: none then */
        if (t->options->checkpoint != NULL && t->world.parallel) {
                int all = stop->listens;

                MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
                stop->listens = all != 0;
        }
        if (stop->listens)
                (void) signal(SIGTERM, note_sigterm);
}

void stop_listen(struct stop *stop, const struct training *t)
{
        *stop = (struct stop){ .listens = t->options->checkpoint != NULL };
        if (stop->listens)
                (void) signal(SIGTERM, note_sigterm);
}

bool stop_requested(const struct stop *stop)
{
        return stop->listens && sigterm_came != 0;
}

static void begin(struct stop *stop)
{
        stop->requested = sigterm_came;
        stop->anybody = 0;
        MPI_Iallreduce(&stop->requested, &stop->anybody, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, stop->request);
        stop->exchanging = true;
}

static void end(struct stop *stop)
{
        if (stop->exchanging)
                MPI_Wait(stop->request, MPI_STATUS_IGNORE);
        stop->exchanging = false;
}

bool stop_now(struct stop *stop, const struct training *t)
{
        if (!stop->listens)
                return false;
        if (!t->world.parallel)
                return sigterm_came != 0;
        end(stop);
        if (stop->anybody != 0)
                return true;
        begin(stop);
        return false;
}

void stop_close(struct stop *stop, const struct training *t)
{
        (void) t;
        end(stop);
        free(stop->request);
        if (stop->listens)
                (void) signal(SIGTERM, SIG_DFL);
}

int stop_with_checkpoint(struct training *t, struct err *err)
{
        t->stopped = true;
        record_flush(&t->record);
        if ((t->world.rank != 0 && t->stages == NULL) || t->step == 0 ||
            training_checkpoint_due(t, t->step)) /* due: it was written with the step */
                return 0;
        return checkpoint_write(t, t->step, err);
}
