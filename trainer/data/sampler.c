/* A permutation an epoch, cut by prefix sums of the shares; or shards that are owned. */
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

struct permutation {
        uint32_t *ids;
        size_t room;
        uint64_t epoch;
        bool ready;
};

struct sampler {
        struct sampler_rule rule;
        struct cut *cuts; /* by rising steps, the first from the beginning */
        size_t cut_count;
        struct growth *growths;
        size_t growth_count;
        struct permutation
                kept[2];     /* of an even epoch and of an odd one: who works ahead asks for the next */
        struct owned *owned; /* once they are asked for */
        bool keeps;          /* one worker's shard alone */
        const struct dealing *dealings; /* of them; the last is this rule's. None: it is dealt once */
        size_t dealing_count;
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
        s->rule.owned = rule->owned || rule->exchange > 0;
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
        free(s->kept[0].ids);
        free(s->kept[1].ids);
        owned_free(s->owned);
        free(s);
}

void sampler_free_p(struct sampler **s)
{
        sampler_free(*s);
}

int sampler_grow(struct sampler *s, uint64_t epoch, size_t samples, struct err *err)
{
        struct growth *more;

        if (s->rule.owned && s->growth_count > 0)
                return err_set(err, -EINVAL,
                               "new samples have no owner: --poll and shards that are kept do "
                               "not go together");
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
        if (s->rule.owned)
                return err_set(err, -EINVAL, "step %llu cannot be cut anew: its samples have owners",
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
        struct permutation *p = &s->kept[epoch % 2];

        if (p->ready && p->epoch == epoch)
                return 0;
        p->ready = false;
        if (samples > p->room) {
                uint32_t *more = reallocarray(p->ids, samples, sizeof(*more));

                if (more == NULL)
                        return -ENOMEM;
                p->ids = more;
                p->room = samples;
        }
        for (size_t i = 0; i < samples; i++)
                p->ids[i] = (uint32_t) i;
        if (!s->rule.owned) /* shards are dealt as the samples lie */
                random_shuffle(&r, p->ids, samples);
        p->epoch = epoch;
        p->ready = true;
        return 0;
}

/* Writes to whom each position of a batch goes: contiguous blocks, or dealt by the largest claim so far. */
static size_t take(const struct sampler *s, uint64_t epoch, size_t step, size_t worker, uint32_t *ids)
{
        const uint32_t *batch_ids = s->kept[epoch % 2].ids + step * s->rule.batch;
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

/* A worker's parts of all batches of an epoch. */
static size_t shard_size(const struct sampler *s, size_t worker)
{
        size_t size = 0;

        for (size_t step = 0; step < sampler_steps(s, 0); step++)
                size += sampler_count(s, 0, step, worker);
        return size;
}

/* @ids: gets all samples, shard after shard; @sizes: of the shards. Return: 0 or -ENOMEM. */
static int deal(struct sampler *s, uint32_t *ids, size_t *sizes)
{
        size_t steps = sampler_steps(s, 0), samples = samples_of(s, 0), used = 0;

        if (permute(s, 0) < 0)
                return -ENOMEM;
        for (size_t w = 0; w < s->rule.workers; w++) {
                sizes[w] = shard_size(s, w);
                for (size_t step = 0; s->rule.order == SAMPLER_ROUND_ROBIN && step < steps; step++)
                        used += take(s, 0, step, w, ids + used);
        }
        for (size_t i = 0; s->rule.order == SAMPLER_BLOCKS && i < samples; i++)
                ids[i] = (uint32_t) i;
        free(s->kept[0].ids);
        s->kept[0] = (struct permutation){ 0 };
        return 0;
}

void sampler_dealt(struct sampler *s, const struct dealings *d)
{
        s->dealings = d->list;
        s->dealing_count = d->count;
}

/* From the workers before these, as they were when these began. */
static int deal_anew(struct sampler *s, struct owned_rule *rule, uint32_t *ids, size_t *sizes)
{
        const struct dealing *d = &s->dealings[s->dealing_count - 2];
        struct sampler_rule theirs = { .seed = s->rule.seed,
                                       .samples = samples_of(s, 0),
                                       .batch = s->rule.batch,
                                       .workers = d->workers,
                                       .shares = d->shares,
                                       .order = d->round_robin ? SAMPLER_ROUND_ROBIN : SAMPLER_BLOCKS,
                                       .exchange = d->exchange,
                                       .owned = true,
                                       .as_it_lies = d->as_it_lies };
        CLEANUP(sampler_free_p) struct sampler *before = NULL;
        struct err err = { 0 };

        if (sampler_new(&theirs, &before, &err) < 0 || before == NULL)
                return -ENOMEM;
        before->dealings = s->dealings;
        before->dealing_count = s->dealing_count - 1;
        if (sampler_replay(before, d[1].from) < 0)
                return -ENOMEM;
        sampler_locate(s, d[1].from, &rule->epoch, &rule->step);
        for (size_t w = 0; w < s->rule.workers; w++)
                sizes[w] = shard_size(s, w);
        owned_deal(before->owned, rule->step, rule, ids);
        return 0;
}

static int open_owned(struct sampler *s)
{
        CLEANUP(free_p) uint32_t *ids = calloc(samples_of(s, 0), sizeof(*ids));
        CLEANUP(free_p) size_t *sizes = calloc(s->rule.workers, sizeof(*sizes));
        CLEANUP(free_p) size_t *shares = calloc(s->rule.workers, sizeof(*shares));
        struct owned_rule rule = { .seed = s->rule.seed,
                                   .exchange = s->rule.exchange,
                                   .shuffle = !s->rule.as_it_lies,
                                   .workers = s->rule.workers,
                                   .steps = sampler_steps(s, 0),
                                   .shares = shares,
                                   .sizes = sizes };

        if (ids == NULL || sizes == NULL || shares == NULL)
                return -ENOMEM;
        for (size_t w = 0; w < s->rule.workers; w++)
                shares[w] = s->cuts[0].bounds[w + 1] - s->cuts[0].bounds[w];
        if (s->dealing_count > 1 ? deal_anew(s, &rule, ids, sizes) < 0 : deal(s, ids, sizes) < 0)
                return -ENOMEM;
        return owned_new(&rule, ids, &s->owned);
}

/* The shards as they are in that epoch or before it. */
static int ready_owned(struct sampler *s, uint64_t epoch)
{
        if (s->owned != NULL && owned_epoch(s->owned) > epoch && !s->keeps) {
                owned_free(s->owned);
                s->owned = NULL;
        }
        return s->owned != NULL ? 0 : open_owned(s);
}

int sampler_chunk(struct sampler *s, uint64_t epoch, size_t step, size_t worker, uint32_t *ids)
{
        if (s->rule.owned)
                return ready_owned(s, epoch) < 0 ? -ENOMEM
                                                 : (int) owned_chunk(s->owned, epoch, step, worker, ids);
        return permute(s, epoch) < 0 ? -ENOMEM : (int) take(s, epoch, step, worker, ids);
}

int sampler_replay(struct sampler *s, uint64_t global_step)
{
        uint64_t epoch;
        size_t step;

        sampler_locate(s, global_step, &epoch, &step);
        if (ready_owned(s, epoch) < 0)
                return -ENOMEM;
        owned_replay(s->owned, epoch, step);
        return 0;
}

void sampler_keep(struct sampler *s, size_t worker)
{
        owned_keep(s->owned, worker);
        s->keeps = true;
}

struct owned *sampler_owned(struct sampler *s)
{
        return s->owned;
}

size_t sampler_ahead(const struct sampler *s)
{
        return s->keeps ? OWNED_AHEAD - 1 : SIZE_MAX;
}
