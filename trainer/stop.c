/* SIGTERM is noted, no more: what follows is done between steps. */
#include "trainer/stop.h"

#include <signal.h>

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
        if (stop->listens)
                (void) signal(SIGTERM, note_sigterm);
}

void stop_close(const struct stop *stop)
{
        if (stop->listens)
                (void) signal(SIGTERM, SIG_DFL);
}

bool stop_requested(const struct stop *stop)
{
        return stop->listens && sigterm_came != 0;
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
