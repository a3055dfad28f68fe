/* Who computes how much of a batch: from --batch and --shares, or from what a launcher told each rank. */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/strategy.h"
#include "trainer/training.h"

#define DEFAULT_BATCH 128
#define NOT_TOLD      UINT64_MAX

struct told {           /* to one rank by a launcher */
        uint64_t batch; /* REMUDA_BATCH, NOT_TOLD */
        double weight;  /* REMUDA_WEIGHT, negative = not told */
};

/* Workers that were told their batch or weight. Return: all or none of them, or -EINVAL naming one that was
 * not. */
static int count_told(const struct training *t, const struct told *workers, bool weights, struct err *err)
{
        size_t told = 0, last = 0;

        for (size_t i = 0; i < t->workers; i++) {
                bool has = weights ? workers[i].weight >= 0 : workers[i].batch != NOT_TOLD;

                told += has;
                last = has ? last : i;
        }
        if (told == 0 || told == t->workers)
                return (int) told;
        return err_set(err, -EINVAL, "rank %zu has no %s, others have: set it on every worker",
                       (size_t) t->first_worker + last, weights ? "REMUDA_WEIGHT" : "REMUDA_BATCH");
}

/* Cuts the batch in proportion to the weights: rounds the sums of the first i, so that the parts add up and
 * each is within one of its due. */
static void use_weights(struct training *t, const struct told *workers, double sum)
{
        double before = 0;

        t->batch = t->options->batch > 0 ? t->options->batch : DEFAULT_BATCH;
        for (size_t i = 0; i < t->workers; i++) {
                double here = before + workers[i].weight / sum;

                t->shares[i] = (size_t) llround((double) t->batch * here) -
                               (size_t) llround((double) t->batch * before);
                before = here;
        }
}

/* The batches as they were told, or, where --batch is another sum, in their proportion. */
static void use_batches(struct training *t, struct told *workers, size_t sum)
{
        for (size_t i = 0; i < t->workers; i++) {
                t->shares[i] = (size_t) workers[i].batch;
                workers[i].weight = (double) workers[i].batch;
        }
        t->batch = sum;
        if (t->options->batch > 0 && t->options->batch != sum)
                use_weights(t, workers, (double) sum);
}

static void use_equal(struct training *t)
{
        t->batch = t->options->batch > 0 ? t->options->batch : DEFAULT_BATCH;
        for (size_t i = 0; i < t->workers; i++)
                t->shares[i] = t->batch * (i + 1) / t->workers - t->batch * i / t->workers;
}

/* b_i of every worker when none was given by option: what a launcher said to each, or equal parts. */
static int cut_batch(struct training *t, struct told *workers, struct err *err)
{
        int batches = count_told(t, workers, false, err), weights;
        size_t sum = 0;
        double weight = 0;

        use_equal(t);
        if (batches < 0)
                return batches;
        for (size_t i = 0; batches > 0 && i < t->workers; i++)
                sum += (size_t) workers[i].batch;
        if (sum > 0) {
                use_batches(t, workers, sum);
                return 0;
        }
        weights = count_told(t, workers, true, err);
        if (weights < 0)
                return weights;
        for (size_t i = 0; weights > 0 && i < t->workers; i++)
                weight += workers[i].weight;
        if (weight > 0)
                use_weights(t, workers, weight);
        return 0;
}

static int gather_shares(struct training *t, struct told *all, struct err *err)
{
        const struct train_options *o = t->options;
        size_t sum = 0;

        all[t->world.rank] =
                (struct told){ o->own_batch == SIZE_MAX ? NOT_TOLD : o->own_batch, o->own_weight };
        if (t->world.parallel)
                MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all, (int) sizeof(*all), MPI_BYTE, MPI_COMM_WORLD);
        if (!strategy_find(o->strategy)->whole && t->world.parallel)
                return cut_batch(t, all + t->first_worker, err);
        use_equal(t); /* the batch is not cut over ranks */
        for (int i = 0; i < t->world.size; i++)
                sum += all[i].batch == NOT_TOLD ? 0 : (size_t) all[i].batch;
        if (o->batch == 0 && sum > 0 && t->workers == 1)
                t->batch = t->shares[0] = sum;
        return 0;
}

static int use_given_shares(struct training *t, struct err *err)
{
        const struct train_options *o = t->options;
        size_t sum = 0;

        if (o->shares.count != t->workers && !strategy_find(o->strategy)->whole)
                return err_set(err, -EINVAL,
                               "--shares has %zu numbers, the world has %zu workers: one for each is wanted",
                               o->shares.count, t->workers);
        for (size_t i = 0; i < o->shares.count; i++)
                sum += o->shares.values[i];
        for (size_t i = 0; i < t->workers; i++)
                t->shares[i] = strategy_find(o->strategy)->whole ? sum : o->shares.values[i];
        if (sum == 0 || (o->batch > 0 && sum != o->batch))
                return err_set(err, -EINVAL, "--shares add up to %zu, --batch is %zu: make them equal", sum,
                               o->batch);
        t->batch = sum;
        return 0;
}

static int resolve(struct training *t, struct err *err)
{
        const struct train_options *o = t->options;
        const struct strategy *s = strategy_find(o->strategy);

        if (strcmp(o->strategy, "serial") == 0 && t->world.size > 1)
                return err_set(err, -EINVAL,
                               "--strategy serial is one process, this world has %d: see allreduce",
                               t->world.size);
        if (s->whole && o->groups.count > 0)
                return err_set(err, -EINVAL, "--groups: --strategy %s has stages, not groups: leave it out",
                               o->strategy);
        t->first_worker = s->served ? (int) o->servers : 0;
        if (t->first_worker >= t->world.size)
                return err_set(err, -EINVAL,
                               "--strategy %s with %d servers wants %d ranks or more, this world has %d",
                               o->strategy, t->first_worker, t->first_worker + 1, t->world.size);
        t->workers = s->whole ? 1 : (size_t) (t->world.size - t->first_worker);
        if (strcmp(o->strategy, "serial") == 0 && o->shares.count > 0)
                t->workers = o->shares.count;
        t->shares = calloc(t->workers, sizeof(*t->shares));
        return t->shares != NULL ? 0 : err_set(err, -ENOMEM, "no memory for %zu shares", t->workers);
}

static size_t largest_own_chunk(const struct training *t)
{
        size_t largest = 0;

        if (t->world.size > 1 && !strategy_find(t->options->strategy)->whole)
                return t->world.rank < t->first_worker ? 0 : t->shares[t->world.rank - t->first_worker];
        for (size_t i = 0; i < t->workers; i++)
                largest = t->shares[i] > largest ? t->shares[i] : largest;
        return largest;
}

int shares_resolve(struct training *t, struct err *err)
{
        int r = world_agree(&t->world, resolve(t, err), err);

        if (r < 0)
                return r;
        if (t->options->shares.count > 0)
                r = use_given_shares(t, err);
        /* every rank must come along, so that none is left waiting */
        r = world_agree(&t->world, r, err);
        if (r < 0)
                return r;
        if (t->options->shares.count == 0) {
                CLEANUP(free_p) struct told *all = calloc((size_t) t->world.size, sizeof(*all));

                r = world_agree(&t->world, all != NULL ? 0 : err_set(err, -ENOMEM, "no memory"), err);
                if (r == 0)
                        r = world_agree(&t->world, gather_shares(t, all, err), err);
                if (r < 0)
                        return r;
        }
        t->own_share = largest_own_chunk(t);
        return 0;
}
