/* All ranks are workers: each segment of the weighted gradients is summed over the world as soon as backward
 * has finished its tensors, while earlier layers are still being computed; or each piece of them in two
 * levels (trainer/strategies/levels.h). */
#include <assert.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "trainer/in_step/patience.h"
#include "trainer/strategies/group.h"
#include "trainer/strategies/levels.h"
#include "trainer/strategies/levels_trial.h"
#include "trainer/strategies/segment_choice.h"
#include "trainer/strategies/segmented.h"
#include "trainer/strategy.h"

#define TURN_STEPS 4 /* of each cut, where several take turns */

struct exchange {
        struct training *t;
        struct group group;
        bool two_levels;
        struct levels levels;
        struct segmented segmented;
        struct mover *mover;
        size_t *ends; /* forward tensors where segments begin, of one cut after the other; 0 ends each */
        size_t cut_count;
        double saved_ms; /* of each step by its segments, measured; 0 = it was not */
};

/* Where the segments end: what was given, measured, known from the preset, or everything at once. */
static int wanted_segments(struct exchange *x, size_t *last, struct err *err)
{
        const struct train_options *o = x->t->options;
        const struct preset *p = &x->t->preset;

        last[0] = x->t->model.tensor_count - 1;
        if (o->segments_auto)
                return segment_choice(x->t, x->mover, last, &x->saved_ms, err);
        for (size_t i = 0; i < o->segments.count; i++)
                last[i] = o->segments.values[i];
        if (o->segments.count > 0)
                return (int) o->segments.count;
        for (size_t i = 0; !o->segments_none && i < p->segment_count; i++)
                last[i] = p->segments[i];
        return !o->segments_none && p->segment_count > 0 ? (int) p->segment_count : 1;
}

/* One cut, or several one after the other: behind the last tensor begins another. */
static int check_segments(const size_t *last, size_t count, size_t tensors, struct err *err)
{
        for (size_t i = 0; i < count; i++)
                if (last[i] >= tensors || (i > 0 && last[i - 1] < tensors - 1 && last[i] <= last[i - 1]) ||
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

static size_t cut_size(const size_t *ends)
{
        size_t count = 1;

        while (ends[count - 1] != 0)
                count++;
        return count;
}

/* The cut of this step. Example: the cuts { 4, 0 } and { 0 }: the second one in steps 4 to 7, 12 to 15... */
static void take_turn(struct exchange *x)
{
        const size_t *ends = x->ends;

        for (size_t turn = x->t->step / TURN_STEPS % x->cut_count; turn > 0; turn--)
                ends += cut_size(ends);
        x->segmented.ends = ends;
        x->segmented.count = cut_size(ends);
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
        if (count == 1) { /* nothing will ever be under way beside computing */
                mover_free(x->mover);
                x->mover = NULL;
        }
        x->segmented.mover = x->mover;
        x->t->slow.mover = x->mover;
        for (size_t i = 0; i < (size_t) count; i++) {
                x->ends[i] = tensors - 1 - x->ends[i];
                x->cut_count += x->ends[i] == 0;
        }
        return 0;
}

/* @begin_usec: when something was sent during the backward pass, 0 = nothing was; @called_usec: of the
 * backward pass, in the library; @at: when it ended */
static void wait_for(struct exchange *x, uint64_t begin_usec, uint64_t called_usec, uint64_t at)
{
        struct training *t = x->t;
        uint64_t begin = begin_usec > 0 ? begin_usec : at;

        t->record.total_usec[RECORD_BACKWARD] -= called_usec; /* counted as waiting */
        if (!x->two_levels)
                segmented_start(&x->segmented);
        if (t->patient)
                patience_gather();
        if (x->two_levels)
                levels_wait(&x->levels);
        else
                segmented_wait(&x->segmented);
        (void) record_done(&t->record, RECORD_EXCHANGE, t->step, begin);
        t->waited_usec = record_done(&t->record, RECORD_WAIT, t->step, at) - at;
}

static int grouped_gradient(struct exchange *x, struct err *err)
{
        struct training *t = x->t;
        struct runner_ready ready = { levels_ready, &x->levels };
        int r;

        levels_begin(&x->levels);
        r = training_gradient(t, t->step, (size_t) t->world.rank, &ready, err);
        if (r == 0)
                wait_for(x, x->levels.begin_usec, x->levels.called_usec, record_now());
        return r;
}

static int segmented_gradient(struct exchange *x, struct err *err)
{
        struct training *t = x->t;
        struct runner_ready ready = { segmented_ready, &x->segmented };
        int r;

        take_turn(x);
        segmented_begin(&x->segmented);
        r = training_gradient(t, t->step, (size_t) t->world.rank, &ready, err);
        if (r < 0)
                return r;
        t->record.saved_ms += x->saved_ms;
        wait_for(x, x->segmented.begin_usec, x->segmented.called_usec, record_now());
        return 0;
}

static int one_step(void *context, struct err *err)
{
        struct exchange *x = context;
        struct training *t = x->t;
        int r = x->two_levels ? grouped_gradient(x, err) : segmented_gradient(x, err);
        uint64_t at = record_now();

        if (r < 0)
                return r;
        training_take_sums(t);
        training_update(t, t->gradients);
        (void) record_done(&t->record, RECORD_UPDATE, t->step, at);
        return strategy_end_step(t, err);
}

/* In how many levels: as --groups says, or in two where a launcher proposes them and they are the faster. */
static int open_levels(struct exchange *x, struct err *err)
{
        struct training *t = x->t;
        int r = world_agree(&t->world, group_open(&x->group, t, err), err);

        if (r < 0 || !x->group.grouped)
                return r;
        r = world_agree(
                &t->world,
                levels_open(&x->levels, &x->group, &t->backend, t->sums, t->model.parameter_count, err), err);
        x->two_levels = r == 0 && (!t->options->groups_proposed || levels_trial(&x->levels, t));
        if (r == 0 && !x->two_levels)
                levels_close(&x->levels);
        if (x->two_levels && t->world.rank == 0)
                (void) fprintf(stderr, "remuda-train: groups add up their gradients %s\n",
                               x->levels.in_memory
                                       ? "in memory that their members share"
                                       : "by messages: a group is on several hosts, or its members "
                                         "may not share memory");
        return r;
}

static int run(struct training *t, struct err *err)
{
        struct exchange x = { .t = t };
        int r;

        if (!t->world.parallel)
                return strategy_serial.run(t, err);
        r = open_levels(&x, err);
        if (r == 0 && !x.two_levels) {
                x.mover = t->world.size > 1 ? mover_new(MPI_THREAD_SERIALIZED) : NULL;
                t->slow.mover = x.mover;
                r = world_agree(&t->world, plan_segments(&x, err), err);
        }
        t->agreed_error = r < 0;
        if (r == 0)
                r = strategy_in_step(t, one_step, &x, err);
        levels_close(&x.levels);
        segmented_take(&x.segmented);
        t->slow.mover = NULL;
        mover_free(x.mover);
        group_close(&x.group);
        free(x.ends);
        free(x.segmented.requests);
        return r;
}

const struct strategy strategy_allreduce = { .name = "allreduce", .run = run, .live = true };
