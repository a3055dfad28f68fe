/* Communicators are made once, run by run on all ranks; a step begins a sum on each and waits for all. */
#include "trainer/strategies/replica_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/in_step/mover.h"
#include "trainer/strategies/stages.h"

static void open_run(struct replica_sums *s, const struct training *t, size_t layer, size_t end)
{
        bool holds = pipelines_holds(&t->pipelines, t->world.rank, layer);
        struct training_part part = stages_part(&t->model, layer, end - 1);
        struct replica_run run = { MPI_COMM_NULL, part.from - t->part.from, part.count };

        MPI_Comm_split(MPI_COMM_WORLD, holds ? 0 : MPI_UNDEFINED, t->world.rank, &run.ranks);
        if (holds)
                s->runs[s->count++] = run;
}

int replica_sums_open(struct replica_sums *s, const struct training *t, struct err *err)
{
        size_t layers = t->model.layer_count;
        int r;

        *s = (struct replica_sums){ 0 };
        if (t->pipelines.count == 1)
                return 0;
        s->runs = calloc(layers, sizeof(*s->runs));
        s->requests = calloc(layers + 1, sizeof(*s->requests));
        r = world_agree(&t->world,
                        s->runs != NULL && s->requests != NULL
                                ? 0
                                : err_set(err, -ENOMEM, "no memory for the sums of %zu layers", layers),
                        err);
        if (r < 0 || s->runs == NULL)
                return r;
        for (size_t layer = 0, end; layer < layers; layer = end) {
                end = pipelines_run_end(&t->pipelines, layer);
                open_run(s, t, layer, end);
        }
        return 0;
}

void replica_sums_close(struct replica_sums *s)
{
        for (size_t i = 0; i < s->count; i++)
                MPI_Comm_free(&s->runs[i].ranks);
        free(s->runs);
        free(s->requests);
        *s = (struct replica_sums){ 0 };
}

/* The ranks that hold the last layer are the last stages: those that know losses. */
static void begin_loss(struct replica_sums *s, const struct training *t)
{
        MPI_Comm last = pipelines_holds(&t->pipelines, t->world.rank, t->model.layer_count - 1)
                                ? s->runs[s->count - 1].ranks
                                : MPI_COMM_NULL;

        s->requests[s->count] = MPI_REQUEST_NULL;
        memcpy(s->loss, t->staged.loss, sizeof(s->loss));
        if (last != MPI_COMM_NULL)
                MPI_Iallreduce(MPI_IN_PLACE, s->loss, 2, MPI_DOUBLE, MPI_SUM, last, &s->requests[s->count]);
}

void replica_sums_add(struct replica_sums *s, struct training *t)
{
        backend_to_host(&t->backend, t->gradients);
        for (size_t i = 0; i < s->count; i++) {
                const struct replica_run *run = &s->runs[i];

                MPI_Iallreduce(MPI_IN_PLACE, t->gradients + run->from, (int) run->count, MPI_FLOAT, MPI_SUM,
                               run->ranks, &s->requests[i]);
        }
        begin_loss(s, t);
        mover_wait(s->requests, s->count + 1);
        backend_to_device(&t->backend, t->gradients);
        memcpy(t->staged.loss, s->loss, sizeof(s->loss));
}
