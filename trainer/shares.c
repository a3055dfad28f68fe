/* What was assigned is collected from all ranks, so that every rank cuts the batch alike. */
#include "trainer/shares.h"

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define DEFAULT_BATCH 128

/* Workers that were assigned their batch or weight. Return: all or none of them, or -EINVAL naming one that
 * was not. */
static int count_assigned(const struct shares *s, const struct shares_assigned *workers, bool weights,
                          struct err *err)
{
        size_t assigned = 0, last = 0;

        for (size_t i = 0; i < s->workers; i++) {
                bool has = weights ? workers[i].weight >= 0 : workers[i].batch != SHARES_NOT_ASSIGNED;

                assigned += has;
                last = has ? last : i;
        }
        if (assigned == 0 || assigned == s->workers)
                return (int) assigned;
        if (s->pipelines != NULL)
                return err_set(
                        err, -EINVAL,
                        "no rank of pipeline %zu (ranks %d to %d) has %s, those of others have: set it "
                        "on the first one at least",
                        last, s->pipelines->begin[last], s->pipelines->begin[last + 1] - 1,
                        weights ? "REMUDA_WEIGHT" : "REMUDA_BATCH");
        return err_set(err, -EINVAL, "rank %zu has no %s, others have: set it on every worker",
                       (size_t) s->first_worker + last, weights ? "REMUDA_WEIGHT" : "REMUDA_BATCH");
}

static double due(const struct shares_assigned *worker, bool by_batch)
{
        return by_batch ? (double) worker->batch : worker->weight;
}

static void use_proportions(struct shares *s, const struct shares_assigned *workers, bool by_batch)
{
        double sum = 0, before = 0;

        for (size_t i = 0; i < s->workers; i++)
                sum += due(&workers[i], by_batch);
        for (size_t i = 0; sum > 0 && i < s->workers; i++) {
                double here = before + due(&workers[i], by_batch) / sum;

                s->of[i] = (size_t) llround((double) s->batch * here) -
                           (size_t) llround((double) s->batch * before);
                before = here;
        }
}

static void use_equal(struct shares *s)
{
        for (size_t i = 0; i < s->workers; i++)
                s->of[i] = s->batch * (i + 1) / s->workers - s->batch * i / s->workers;
}

int shares_cut(struct shares *s, const struct shares_assigned *workers, size_t batch, struct err *err)
{
        int assigned = count_assigned(s, workers, false, err);
        size_t sum = 0;

        s->batch = batch > 0 ? batch : DEFAULT_BATCH;
        use_equal(s);
        for (size_t i = 0; assigned > 0 && i < s->workers; i++)
                sum += (size_t) workers[i].batch;
        if (assigned >= 0 && sum == 0)
                assigned = count_assigned(s, workers, true, err);
        if (assigned <= 0)
                return assigned;
        if (sum == 0 || (batch > 0 && batch != sum)) {
                use_proportions(s, workers, sum > 0);
                return 0;
        }
        s->batch = sum;
        for (size_t i = 0; i < s->workers; i++)
                s->of[i] = (size_t) workers[i].batch;
        return 0;
}

size_t shares_worker(const struct shares *s, int rank)
{
        return s->pipelines != NULL ? s->pipelines->of[rank] : (size_t) (rank - s->first_worker);
}

bool shares_computes(const struct shares *s, int rank)
{
        return rank >= s->first_worker;
}

/* What the ranks of each pipeline were assigned, added up, in the place of what its first ones were: a worker
 * is never behind its ranks. */
static void add_up(const struct pipelines *p, struct shares_assigned *all)
{
        for (size_t worker = 0; worker < p->count; worker++) {
                struct shares_assigned sum = { SHARES_NOT_ASSIGNED, -1 };

                for (int rank = p->begin[worker]; rank < p->begin[worker + 1]; rank++) {
                        if (all[rank].batch != SHARES_NOT_ASSIGNED)
                                sum.batch =
                                        (sum.batch == SHARES_NOT_ASSIGNED ? 0 : sum.batch) + all[rank].batch;
                        if (all[rank].weight >= 0)
                                sum.weight = (sum.weight < 0 ? 0 : sum.weight) + all[rank].weight;
                }
                all[worker] = sum;
        }
}

static int use_assigned(struct shares *s, const struct train_options *o, const struct world *w,
                        struct shares_assigned *all, struct err *err)
{
        all[w->rank] =
                (struct shares_assigned){ o->own_batch == SIZE_MAX ? SHARES_NOT_ASSIGNED : o->own_batch,
                                          o->own_weight };
        if (w->parallel)
                MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all, (int) sizeof(*all), MPI_BYTE, MPI_COMM_WORLD);
        if (s->pipelines != NULL)
                add_up(s->pipelines, all);
        return shares_cut(s, all + s->first_worker, o->batch, err);
}

static int use_given(struct shares *s, const struct train_options *o, struct err *err)
{
        const struct pipelines *p = s->pipelines;
        bool by_rank = p != NULL && (p->count == 1 || o->shares.count == p->ranks); /* added up, as above */
        size_t sum = 0;

        if (o->shares.count != s->workers && !by_rank && p != NULL)
                return err_set(err, -EINVAL,
                               "--shares has %zu numbers, the world has %zu pipelines on %zu ranks: one for "
                               "each pipeline is wanted, or one for each rank",
                               o->shares.count, p->count, p->ranks);
        if (o->shares.count != s->workers && !by_rank)
                return err_set(err, -EINVAL,
                               "--shares has %zu numbers, the world has %zu workers: one for each is wanted",
                               o->shares.count, s->workers);
        for (size_t i = 0; i < o->shares.count; i++) {
                sum += o->shares.values[i];
                s->of[by_rank && s->workers > 1 ? p->of[i] : by_rank ? 0 : i] += o->shares.values[i];
        }
        if (sum == 0 || (o->batch > 0 && sum != o->batch))
                return err_set(err, -EINVAL, "--shares add up to %zu, --batch is %zu: make them equal", sum,
                               o->batch);
        s->batch = sum;
        return 0;
}

/* Of replicas of a pipeline each must have something to do. */
static int check_pipelines(const struct shares *s, const struct train_options *o, struct err *err)
{
        if (s->pipelines == NULL || s->workers == 1)
                return 0;
        if (o->microbatches < s->workers)
                return err_set(err, -EINVAL,
                               "--microbatches: %zu of a batch, the world has %zu pipelines: one for each at "
                               "least is wanted, several let its stages work at once",
                               o->microbatches, s->workers);
        for (size_t i = 0; i < s->workers; i++)
                if (s->of[i] == 0)
                        return err_set(
                                err, -EINVAL,
                                "pipeline %zu (ranks %d to %d) has none of a batch's %zu samples: give it "
                                "some, or leave its ranks out",
                                i, s->pipelines->begin[i], s->pipelines->begin[i + 1] - 1, s->batch);
        return 0;
}

static int find_workers(struct shares *s, const struct train_options *o, const struct world *w, bool served,
                        struct err *err)
{
        bool serial = strcmp(o->strategy, "serial") == 0;

        if (serial && w->size > 1)
                return err_set(err, -EINVAL,
                               "--strategy serial is one process, this world has %d: see allreduce", w->size);
        if (s->pipelines != NULL && o->groups.count > 0)
                return err_set(err, -EINVAL, "--groups: --strategy %s has stages, not groups: leave it out",
                               o->strategy);
        s->first_worker = served ? (int) o->servers : 0;
        if (s->first_worker >= w->size)
                return err_set(err, -EINVAL,
                               "--strategy %s with %d servers wants %d ranks or more, this world has %d",
                               o->strategy, s->first_worker, s->first_worker + 1, w->size);
        s->workers = s->pipelines != NULL ? s->pipelines->count : (size_t) (w->size - s->first_worker);
        if (serial && o->shares.count > 0)
                s->workers = o->shares.count;
        s->of = calloc(s->workers, sizeof(*s->of));
        return s->of != NULL ? 0 : err_set(err, -ENOMEM, "no memory for %zu shares", s->workers);
}

static size_t largest_own_chunk(const struct shares *s, const struct world *w)
{
        size_t largest = 0;

        if (w->size > 1)
                return shares_computes(s, w->rank) ? s->of[shares_worker(s, w->rank)] : 0;
        for (size_t i = 0; i < s->workers; i++)
                largest = s->of[i] > largest ? s->of[i] : largest;
        return largest;
}

/* Every rank comes along, so that none is left waiting. */
int shares_resolve(const struct train_options *o, const struct world *w, bool served,
                   const struct pipelines *pipelines, struct shares *ret, struct err *err)
{
        CLEANUP(free_p) struct shares_assigned *all = calloc((size_t) w->size, sizeof(*all));
        int r;

        *ret = (struct shares){ .pipelines = pipelines };
        r = all != NULL ? find_workers(ret, o, w, served, err) : err_set(err, -ENOMEM, "no memory");
        if (r == 0 && o->shares.count > 0)
                r = use_given(ret, o, err);
        r = world_agree(w, r, err);
        if (r == 0 && all != NULL && o->shares.count == 0)
                r = world_agree(w, use_assigned(ret, o, w, all, err), err);
        if (r == 0)
                r = check_pipelines(ret, o, err);
        ret->own = r == 0 ? largest_own_chunk(ret, w) : 0;
        return r;
}

void shares_free(struct shares *s)
{
        free(s->of);
        s->of = NULL;
}
