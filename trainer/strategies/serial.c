/* One process does what a world would: the same chunks, weighted alike, added in the order of the workers. */
#include <errno.h>
#include <string.h>

#include "trainer/operators/vector.h"
#include "trainer/stop.h"
#include "trainer/strategy.h"

static int step_of_chunks(struct training *t, float *sum, struct err *err)
{
        for (size_t worker = 0; worker < t->workers; worker++) {
                int r = training_gradient(t, t->step, worker, NULL, NULL, err);

                if (r < 0)
                        return r;
                backend_to_host(&t->backend, sum);
                if (worker == 0)
                        memcpy(sum, t->gradients, t->model.parameter_count * sizeof(*sum));
                else
                        vector_add(t->model.parameter_count, t->gradients, sum);
        }
        return 0;
}

int strategy_serial(struct training *t, struct err *err)
{
        float *sum = t->gradients;
        struct stop stop;
        int r = 0;

        if (t->workers > 1)
                sum = backend_allocate(&t->backend, t->model.parameter_count * sizeof(*sum));
        if (sum == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu gradients", t->model.parameter_count);
        stop_open(&stop, t);
        for (; r == 0 && t->step < t->last_step && !t->stopped; t->step++) {
                if (stop_now(&stop, t)) {
                        r = stop_with_checkpoint(t, err);
                        break;
                }
                uint64_t at;

                r = t->workers > 1 ? step_of_chunks(t, sum, err)
                                   : training_gradient(t, t->step, 0, NULL, NULL, err);
                if (r < 0)
                        break;
                at = record_now();
                backend_to_device(&t->backend, sum);
                training_update(t, sum);
                (void) record_done(&t->record, RECORD_UPDATE, t->step, at);
                r = training_finish_step(t, t->step, err);
                if (r == 0)
                        r = training_checkpoint(t, t->step, err);
        }
        stop_close(&stop, t);
        if (sum != t->gradients)
                backend_release(&t->backend, sum);
        return r;
}
