/* Who computes how much of a batch: from --batch and --shares, or from what a launcher told each rank. */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/strategy.h"
#include "trainer/training.h"

#define DEFAULT_BATCH 128

/* b_i of every worker when none was given by option: what REMUDA_BATCH said to each, or equal parts. */
static void gather_shares(struct training *t)
{
        const struct options *o = t->options;
        unsigned long long own = o->own_batch;
        unsigned long long *all = calloc((size_t) t->world.size, sizeof(*all));
        bool told = all != NULL;
        size_t sum = 0;

        if (all == NULL)
                return;
        if (t->world.parallel)
                MPI_Allgather(&own, 1, MPI_UNSIGNED_LONG_LONG, all, 1, MPI_UNSIGNED_LONG_LONG,
                              MPI_COMM_WORLD);
        else
                all[0] = own;
        for (size_t i = 0; i < t->workers; i++)
                sum += t->shares[i] = (size_t) all[(size_t) t->first_worker + i];
        free(all);
        told = sum > 0 && o->batch == 0;
        t->batch = told ? sum : o->batch > 0 ? o->batch : DEFAULT_BATCH;
        for (size_t i = 0; !told && i < t->workers; i++)
                t->shares[i] = t->batch * (i + 1) / t->workers - t->batch * i / t->workers;
}

static int use_given_shares(struct training *t, struct err *err)
{
        const struct options *o = t->options;
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
        const struct options *o = t->options;
        const struct strategy *s = strategy_find(o->strategy);

        if (strcmp(o->strategy, "serial") == 0 && t->world.size > 1)
                return err_set(err, -EINVAL,
                               "--strategy serial is one process, this world has %d: see allreduce",
                               t->world.size);
        t->first_worker = s->served ? (int) o->servers : 0;
        if (t->first_worker >= t->world.size)
                return err_set(err, -EINVAL,
                               "--strategy %s with %d servers wants %d ranks or more, this world has %d",
                               o->strategy, t->first_worker, t->first_worker + 1, t->world.size);
        t->workers = s->whole ? 1 : (size_t) (t->world.size - t->first_worker);
        if (strcmp(o->strategy, "serial") == 0 && o->shares.count > 0)
                t->workers = o->shares.count;
        if (o->poll > 0 && t->world.size > 1 &&
            (strcmp(o->distribute, "manager") != 0 || s->whole || o->servers > 1))
                return err_set(
                        err, -EINVAL,
                        "--poll in a world wants --distribute manager, one server at the most, and no split");
        if (s->whole && t->world.size > 1 && o->export_file != NULL)
                return err_set(err, -EINVAL,
                               "--export wants the whole model in one process: train with --checkpoint, then "
                               "--strategy serial --resume --export");
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
        if (t->options->shares.count == 0)
                gather_shares(t);
        t->own_share = largest_own_chunk(t);
        return 0;
}
