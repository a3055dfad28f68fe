/* All ranks are workers: each segment of the weighted gradients is summed over the world as soon as backward
 * has finished its tensors, while earlier layers are still being computed. */
#include <assert.h>
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "trainer/in_step/patience.h"
#include "trainer/strategies/group.h"
#include "trainer/strategies/segment_choice.h"
#include "trainer/strategies/segmented.h"
#include "trainer/strategy.h"

struct exchange {
        struct training *t;
        struct group group;
        struct segmented segmented;
        size_t *ends;
};

/* Where the segments end: what was given, measured, known from the preset, or everything at once. */
static int wanted_segments(struct exchange *x, size_t *last, struct err *err)
{
        const struct train_options *o = x->t->options;
        const struct preset *p = &x->t->preset;

        if (o->segments_auto)
                return segment_choice(x->t, last, err);
        for (size_t i = 0; i < o->segments.count; i++)
                last[i] = o->segments.values[i];
        if (o->segments.count > 0)
                return (int) o->segments.count;
        for (size_t i = 0; !o->segments_none && i < p->segment_count; i++)
                last[i] = p->segments[i];
        if (!o->segments_none && p->segment_count > 0)
                return (int) p->segment_count;
        last[0] = x->t->model.tensor_count - 1;
        return 1;
}

static int check_segments(const size_t *last, size_t count, size_t tensors, struct err *err)
{
        for (size_t i = 0; i < count; i++)
                if (last[i] >= tensors || (i > 0 && last[i] <= last[i - 1]) ||
                    (i + 1 == count && last[i] != tensors - 1))
                        return err_set(err, -EINVAL,
                                       "--segments: rising tensor numbers that end with %zu, the last one, "
                                       "are wanted",
                                       tensors - 1);
        return 0;
}

/* Rank 0's decide: other builds may have other presets, other ranks another environment. Return: their
 * number, or what was given if that is an error, which all ranks have in common. */
static int same_segments(struct exchange *x, int count)
{
        int from_first = count;

        MPI_Bcast(&from_first, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (from_first > 0 && from_first <= TRAIN_OPTIONS_LIST_MAX)
                MPI_Bcast(x->ends, from_first * (int) sizeof(*x->ends), MPI_BYTE, 0, MPI_COMM_WORLD);
        return from_first;
}

static int plan_segments(struct exchange *x, struct err *err)
{
        size_t tensors = x->t->model.tensor_count;
        int count;

        x->ends = calloc(TRAIN_OPTIONS_LIST_MAX, sizeof(*x->ends));
        x->segmented = (struct segmented){ .t = x->t,
                                           .recorded = true,
                                           .ends = x->ends,
                                           .requests = calloc(TRAIN_OPTIONS_LIST_MAX, sizeof(MPI_Request)) };
        count = world_agree(&x->t->world, x->ends != NULL && x->segmented.requests != NULL ? 0 : -ENOMEM,
                            err);
        if (count == 0 && x->ends != NULL)
                count = wanted_segments(x, x->ends, err);
        count = same_segments(x, count);
        if (count < 0)
                return count;
        assert(x->ends != NULL && count <= TRAIN_OPTIONS_LIST_MAX);
        if (check_segments(x->ends, (size_t) count, tensors, err) < 0)
                return err->code;
        x->segmented.count = (size_t) count;
        for (size_t i = 0; i < x->segmented.count; i++)
                x->ends[i] = tensors - 1 - x->ends[i];
        return 0;
}

/* Two levels: within the group, between the leaders, back into the group. */
static int grouped_gradient(struct exchange *x, struct err *err)
{
        struct training *t = x->t;
        size_t count = t->model.parameter_count;
        uint64_t at;
        int r = training_gradient(t, t->step, (size_t) t->world.rank, NULL, err);

        if (r < 0)
                return r;
        at = record_now();
        if (t->patient)
                patience_gather();
        group_add(&x->group, t->gradients, count);
        if (x->group.leader)
                MPI_Allreduce(MPI_IN_PLACE, t->gradients, (int) count, MPI_FLOAT, MPI_SUM,
                              x->group.all_leaders);
        group_spread(&x->group, t->gradients, count);
        t->waited_usec = record_done(&t->record, RECORD_EXCHANGE, t->step, at) - at;
        return 0;
}

static int segmented_gradient(struct exchange *x, struct err *err)
{
        struct training *t = x->t;
        struct runner_ready ready = { segmented_ready, &x->segmented };
        uint64_t at, begin, hidden;
        int r;

        segmented_begin(&x->segmented);
        r = training_gradient(t, t->step, (size_t) t->world.rank, &ready, err);
        if (r < 0)
                return r;
        at = record_now();
        begin = x->segmented.begin_usec > 0 ? x->segmented.begin_usec : at;
        hidden = at - begin;
        t->record.hidden_usec += hidden > x->segmented.called_usec ? hidden - x->segmented.called_usec : 0;
        t->record.total_usec[RECORD_BACKWARD] -= x->segmented.called_usec; /* counted as waiting */
        if (t->patient)
                patience_gather();
        segmented_wait(&x->segmented);
        (void) record_done(&t->record, RECORD_EXCHANGE, t->step, begin);
        t->waited_usec = record_done(&t->record, RECORD_WAIT, t->step, at) - at;
        return 0;
}

static int one_step(void *context, struct err *err)
{
        struct exchange *x = context;
        struct training *t = x->t;
        int r = x->group.grouped ? grouped_gradient(x, err) : segmented_gradient(x, err);
        uint64_t at = record_now();

        if (r < 0)
                return r;
        backend_to_device(&t->backend, t->gradients);
        training_update(t, t->gradients);
        (void) record_done(&t->record, RECORD_UPDATE, t->step, at);
        return strategy_end_step(t, err);
}

static int run(struct training *t, struct err *err)
{
        struct exchange x = { .t = t };
        int r;

        if (!t->world.parallel)
                return strategy_serial.run(t, err);
        r = world_agree(&t->world, group_open(&x.group, t, err), err);
        if (r == 0)
                r = world_agree(&t->world, plan_segments(&x, err), err);
        t->agreed_error = r < 0;
        if (r == 0)
                r = strategy_in_step(t, one_step, &x, err);
        group_close(&x.group);
        free(x.ends);
        free(x.segmented.requests);
        return r;
}

const struct strategy strategy_allreduce = { .name = "allreduce", .run = run, .live = true };
