/* The list of strategies, and the steps of those that go in step. */
#include "trainer/strategy.h"

#include <string.h>

#include "base/cleanup.h"
#include "trainer/checkpoint.h"
#include "trainer/in_step/in_step.h"
#include "trainer/in_step/patience.h"

static const struct strategy *const strategies[] = {
        &strategy_serial,  &strategy_allreduce, &strategy_split,
        &strategy_ps_sync, &strategy_ps_async,  &strategy_ps_ssp
};

const struct strategy *strategy_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(strategies); i++)
                if (strcmp(strategies[i]->name, name) == 0)
                        return strategies[i];
        return NULL;
}

/* Of ranks that go in step rank 0 measures and the others wait: that is none of the next step's exchange. */
static void wait_for_evaluation(struct training *t)
{
        uint64_t begin = record_now();

        patience_gather();
        if (t->world.rank != 0)
                record_paused(&t->record, RECORD_WAIT, t->step, begin);
}

int strategy_end_step(struct training *t, struct err *err)
{
        int r = training_finish_step(t, t->step, err);

        if (r == 0 && t->stages == NULL && t->world.parallel && training_evaluates_after(t, t->step))
                wait_for_evaluation(t);
        if (r < 0 || !training_checkpoint_due(t, t->step + 1) || (t->world.rank != 0 && t->stages == NULL))
                return r;
        return checkpoint_write(t, t->step + 1, err);
}

int strategy_in_step(struct training *t, int (*step)(void *context, struct err *err), void *context,
                     struct err *err)
{
        struct in_step in_step;
        int r = 0;

        in_step_open(&in_step, t);
        while (r == 0 && t->step < t->last_step && !t->stopped) {
                r = step(context, err);
                t->step += r == 0;
                if (r == 0)
                        r = in_step_next(&in_step, t, err);
                if (r == 0 && t->stopped)
                        r = stop_with_checkpoint(t, err);
        }
        if (r == 0)
                in_step_close(&in_step);
        return r;
}
