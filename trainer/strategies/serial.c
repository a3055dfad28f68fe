/* One process does what a world would: the same chunks, weighted alike, added in the order of the workers. */
#include <errno.h>
#include <string.h>

#include "trainer/strategy.h"

struct serial {
        struct training *t;
        float *sum; /* of the gradients; t->gradients where there is one worker */
};

static int one_step(void *context, struct err *err)
{
        const struct serial *s = context;
        struct training *t = s->t;
        uint64_t at;

        for (size_t worker = 0; worker < t->shares.workers; worker++) {
                int r = training_gradient(t, t->step, worker, NULL, err);

                if (r < 0)
                        return r;
                if (s->sum == t->gradients)
                        break;
                backend_to_host(&t->backend, s->sum);
                if (worker == 0)
                        memcpy(s->sum, t->gradients, t->model.parameter_count * sizeof(*s->sum));
                else
                        backend_add(&t->backend, t->model.parameter_count, t->gradients, s->sum);
        }
        at = record_now();
        backend_to_device(&t->backend, s->sum);
        training_update(t, s->sum);
        (void) record_done(&t->record, RECORD_UPDATE, t->step, at);
        return strategy_end_step(t, err);
}

static int run(struct training *t, struct err *err)
{
        struct serial s = { t, t->gradients };
        int r;

        if (t->shares.workers > 1)
                s.sum = backend_floats(&t->backend, t->model.parameter_count);
        if (s.sum == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu gradients", t->model.parameter_count);
        r = strategy_in_step(t, one_step, &s, err);
        if (s.sum != t->gradients)
                backend_release(&t->backend, s.sum);
        return r;
}

const struct strategy strategy_serial = { .name = "serial", .run = run };
