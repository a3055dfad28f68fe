/* A permutation an epoch, cut by prefix sums of the shares; with the exchange, a queue of samples a worker.
 */
#include "trainer/data/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/random.h"

struct growth {
        uint64_t epoch; /* from here on */
        size_t samples;
};

struct cut {            /* of the batches */
        uint64_t from;  /* that step on */
        uint64_t epoch; /* which is that step of that epoch */
        size_t step;
        size_t *bounds; /* workers + 1 prefix sums of the shares */
};

struct queue { /* what a worker has left of the epoch, next one first */
        uint32_t *ids;
        size_t first, end;
};

struct sampler {
        struct sampler_rule rule;
        struct cut *cuts; /* by rising steps, the first from the beginning */
        size_t cut_count;
        struct growth *growths;
        size_t growth_count;
        uint32_t *permutation;
        size_t permutation_room;
        uint64_t epoch; /* of permutation and queues */
        bool ready;
        struct queue *queues; /* with exchange only */
        uint32_t *queue_memory, *moved;
        size_t queue_step; /* the queues hold what is left before this step */
};

/* @kept: so many of those that are there; the rest is forgotten */
static int add_cut(struct sampler *s, const struct cut *cut, size_t kept, const size_t *shares,
                   struct err *err)
{
        CLEANUP(free_p) size_t *bounds = calloc(s->rule.workers + 1, sizeof(*bounds));
        struct cut *more = reallocarray(s->cuts, s->cut_count + 1, sizeof(*more));

        if (more != NULL)
                s->cuts = more;
        if (more == NULL || bounds == NULL)
                return err_set(err, -ENOMEM, "no memory for the sampler");
        for (size_t i = 0; i < s->rule.workers; i++)
                bounds[i + 1] = bounds[i] + shares[i];
        if (bounds[s->rule.workers] != s->rule.batch)
                return err_set(err, -EINVAL, "the shares add up to %zu, the batch is %zu: make them equal",
                               bounds[s->rule.workers], s->rule.batch);
        while (s->cut_count > kept)
                free(s->cuts[--s->cut_count].bounds);
        s->cuts[s->cut_count] = *cut;
        s->cuts[s->cut_count++].bounds = TAKE(bounds);
        return 0;
}

int sampler_new(const struct sampler_rule *rule, struct sampler **ret, struct err *err)
{
        CLEANUP(sampler_free_p) struct sampler *s = calloc(1, sizeof(*s));

        if (s == NULL)
                return err_set(err, -ENOMEM, "no memory for the sampler");
        s->rule = *rule;
        s->queues = calloc(rule->workers, sizeof(*s->queues));
        if (s->queues == NULL)
                return err_set(err, -ENOMEM, "no memory for the sampler");
        if (add_cut(s, &(struct cut){ 0 }, 0, rule->shares, err) < 0 ||
            sampler_grow(s, 0, rule->samples, err) < 0)
                return err->code;
        *ret = TAKE(s);
        return 0;
}

void sampler_free(struct sampler *s)
{
        if (s == NULL)
                return;
        for (size_t i = 0; i < s->cut_count; i++)
                free(s->cuts[i].bounds);
        free(s->cuts);
        free(s->growths);
        free(s->permutation);
        free(s->queues);
        free(s->queue_memory);
        free(s->moved);
        free(s);
}

void sampler_free_p(struct sampler **s)
{
        sampler_free(*s);
}

int sampler_grow(struct sampler *s, uint64_t epoch, size_t samples, struct err *err)
{
        struct growth *more;

        if (samples == 0 || samples > UINT32_MAX)
                return err_set(err, -EINVAL, "%zu samples: 1 to 4294967295 are possible", samples);
        more = reallocarray(s->growths, s->growth_count + 1, sizeof(*more));
        if (more == NULL)
                return err_set(err, -ENOMEM, "no memory for the sampler");
        s->growths = more;
        s->growths[s->growth_count++] = (struct growth){ .epoch = epoch, .samples = samples };
        return 0;
}

static size_t samples_of(const struct sampler *s, uint64_t epoch)
{
        size_t samples = 0;

        for (size_t i = 0; i < s->growth_count && s->growths[i].epoch <= epoch; i++)
                samples = s->growths[i].samples;
        return samples;
}

size_t sampler_steps(const struct sampler *s, uint64_t epoch)
{
        return (samples_of(s, epoch) + s->rule.batch - 1) / s->rule.batch;
}

size_t sampler_batch(const struct sampler *s, uint64_t epoch, size_t step)
{
        size_t left = samples_of(s, epoch) - step * s->rule.batch;

        return left < s->rule.batch ? left : s->rule.batch;
}

/* The prefix sums in force in a step. */
static const size_t *bounds_at(const struct sampler *s, uint64_t epoch, size_t step)
{
        size_t i = s->cut_count - 1;

        while (s->cuts[i].epoch > epoch || (s->cuts[i].epoch == epoch && s->cuts[i].step > step))
                i--;
        return s->cuts[i].bounds;
}

static size_t bound(const struct sampler *s, const size_t *bounds, size_t batch, size_t worker)
{
        return (size_t) ((unsigned __int128) batch * bounds[worker] / s->rule.batch);
}

size_t sampler_count(const struct sampler *s, uint64_t epoch, size_t step, size_t worker)
{
        const size_t *bounds = bounds_at(s, epoch, step);
        size_t batch = sampler_batch(s, epoch, step);

        return bound(s, bounds, batch, worker + 1) - bound(s, bounds, batch, worker);
}

void sampler_locate(const struct sampler *s, uint64_t global_step, uint64_t *ret_epoch, size_t *ret_step)
{
        uint64_t epoch = 0;

        /* epochs differ in length only until the last growth: count those, divide the rest */
        while (epoch < s->growths[s->growth_count - 1].epoch && global_step >= sampler_steps(s, epoch))
                global_step -= sampler_steps(s, epoch++);
        if (epoch >= s->growths[s->growth_count - 1].epoch) {
                epoch += global_step / sampler_steps(s, epoch);
                global_step %= sampler_steps(s, epoch);
        }
        *ret_epoch = epoch;
        *ret_step = (size_t) global_step;
}

int sampler_recut(struct sampler *s, uint64_t from, const size_t *shares, struct err *err)
{
        struct cut cut = { .from = from };
        size_t kept = s->cut_count;

        sampler_locate(s, from, &cut.epoch, &cut.step);
        if (s->rule.exchange > 0)
                return err_set(err, -EINVAL, "step %llu cannot be cut anew: its epoch is dealt out",
                               (unsigned long long) from);
        while (kept > 1 && s->cuts[kept - 1].from >= from)
                kept--;
        return add_cut(s, &cut, kept, shares, err);
}

uint64_t sampler_since(const struct sampler *s, uint64_t global_step)
{
        size_t i = s->cut_count - 1;

        while (i > 0 && s->cuts[i].from > global_step)
                i--;
        return s->cuts[i].from;
}

static int permute(struct sampler *s, uint64_t epoch)
{
        size_t samples = samples_of(s, epoch);
        struct random_source r = random_for(s->rule.seed, "permutation", epoch);

        if (s->ready && s->epoch == epoch)
                return 0;
        s->ready = false;
        if (samples > s->permutation_room) {
                uint32_t *more = reallocarray(s->permutation, samples, sizeof(*more));

                if (more == NULL)
                        return -ENOMEM;
                s->permutation = more;
                s->permutation_room = samples;
                free(s->queue_memory);
                s->queue_memory = NULL;
        }
        for (size_t i = 0; i < samples; i++)
                s->permutation[i] = (uint32_t) i;
        random_shuffle(&r, s->permutation, samples);
        s->epoch = epoch;
        s->ready = true;
        s->queue_step = SIZE_MAX;
        return 0;
}

/* Writes to whom each position of a batch goes: contiguous blocks, or dealt by the largest claim so far. */
static size_t take(const struct sampler *s, uint64_t epoch, size_t step, size_t worker, uint32_t *ids)
{
        const uint32_t *batch_ids = s->permutation + step * s->rule.batch;
        const size_t *bounds = bounds_at(s, epoch, step);
        size_t batch = sampler_batch(s, epoch, step);
        size_t first = bound(s, bounds, batch, worker), count = bound(s, bounds, batch, worker + 1) - first;

        if (s->rule.order == SAMPLER_BLOCKS) {
                memcpy(ids, batch_ids + first, count * sizeof(*ids));
                return count;
        }
        /* Dealing: round r gives a sample to every worker whose count passes r * count / longest: the j-th
         * sample of a worker has the key (j + 1/2) / count, and the batch is handed out by rising key.
         * Counting the keys below one's own gives the position without sorting. */
        for (size_t j = 0; j < count; j++) {
                size_t position = 0;

                for (size_t other = 0; other < s->rule.workers; other++) {
                        size_t theirs = bound(s, bounds, batch, other + 1) - bound(s, bounds, batch, other);
                        /* i with (2i+1)/theirs < (2j+1)/count, ties to the lower worker */
                        size_t product = (2 * j + 1) * theirs;
                        size_t below = (product / count + 1) / 2;

                        if (below > 0 && (2 * below - 1) * count == product && other >= worker)
                                below--;
                        position += below;
                }
                ids[j] = batch_ids[position];
        }
        return count;
}

static int fill_queues(struct sampler *s, uint64_t epoch)
{
        size_t steps = sampler_steps(s, epoch), samples = samples_of(s, epoch), used = 0;

        if (s->queue_memory == NULL) {
                free(s->moved);
                s->queue_memory = calloc(s->permutation_room, sizeof(*s->queue_memory));
                s->moved = calloc(s->permutation_room, sizeof(*s->moved));
                if (s->queue_memory == NULL || s->moved == NULL)
                        return -ENOMEM;
        }
        for (size_t w = 0; w < s->rule.workers; w++) {
                s->queues[w] = (struct queue){ .ids = s->queue_memory + used };
                for (size_t step = 0; step < steps; step++)
                        s->queues[w].end += take(s, epoch, step, w, s->queues[w].ids + s->queues[w].end);
                used += s->queues[w].end;
        }
        s->queue_step = 0;
        return used == samples ? 0 : -EINVAL;
}

/* After step: everyone picks `count` of what it has left by a partial shuffle towards the tail, then the
 * tails move one place round the ring. */
static void pass_to_neighbours(struct sampler *s, uint64_t epoch, size_t step)
{
        size_t smallest = SIZE_MAX, workers = s->rule.workers, count;

        for (size_t w = 0; w < workers; w++) {
                size_t left = s->queues[w].end - s->queues[w].first;

                smallest = left < smallest ? left : smallest;
        }
        count = (size_t) (s->rule.exchange * (double) smallest);
        if (count == 0 || workers < 2)
                return;
        for (size_t w = 0; w < workers; w++) {
                struct queue *q = &s->queues[w];
                struct random_source r =
                        random_for(s->rule.seed ^ (epoch << 32), "exchange", step * workers + w);

                for (size_t i = 0; i < count; i++) {
                        size_t last = q->end - 1 - i,
                               j = q->first + (size_t) random_below(&r, last - q->first + 1);
                        uint32_t id = q->ids[last];

                        q->ids[last] = q->ids[j];
                        q->ids[j] = id;
                }
                memcpy(s->moved + w * count, q->ids + q->end - count, count * sizeof(*s->moved));
        }
        for (size_t w = 0; w < workers; w++) {
                struct queue *next = &s->queues[(w + 1) % workers];

                memcpy(next->ids + next->end - count, s->moved + w * count, count * sizeof(*s->moved));
        }
}

static int advance_queues(struct sampler *s, uint64_t epoch, size_t step)
{
        if (s->queue_step > step && fill_queues(s, epoch) < 0)
                return -ENOMEM;
        for (; s->queue_step < step; s->queue_step++) {
                for (size_t w = 0; w < s->rule.workers; w++)
                        s->queues[w].first += sampler_count(s, epoch, s->queue_step, w);
                pass_to_neighbours(s, epoch, s->queue_step);
        }
        return 0;
}

int sampler_chunk(struct sampler *s, uint64_t epoch, size_t step, size_t worker, uint32_t *ids)
{
        size_t count = sampler_count(s, epoch, step, worker);

        if (permute(s, epoch) < 0)
                return -ENOMEM;
        if (s->rule.exchange <= 0 || s->rule.workers < 2)
                return (int) take(s, epoch, step, worker, ids);
        if (advance_queues(s, epoch, step) < 0)
                return -ENOMEM;
        memcpy(ids, s->queues[worker].ids + s->queues[worker].first, count * sizeof(*ids));
        return (int) count;
}
