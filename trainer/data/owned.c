/* A row of samples a worker: used from the front, passed on from the tail. */
#include "trainer/data/owned.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/random.h"

struct shard {
        uint32_t *ids; /* NULL = elsewhere */
        size_t size, share;
};

struct owned {
        struct owned_rule rule;
        struct shard *shards;
        uint32_t *ids, *moved; /* all shards; what goes round */
        uint64_t epoch;
        size_t rounds; /* of this epoch that are replayed: those after the steps before that one */
        size_t kept;   /* worker, or OWNED_ALL */
};

static void begin_epoch(struct owned *o, uint64_t epoch)
{
        for (size_t w = 0; o->rule.shuffle && w < o->rule.workers; w++) {
                struct random_source r = random_for(o->rule.seed, "shard", epoch * o->rule.workers + w);

                if (o->shards[w].ids != NULL)
                        random_shuffle(&r, o->shards[w].ids, o->shards[w].size);
        }
        o->epoch = epoch;
        o->rounds = 0;
}

int owned_new(const struct owned_rule *rule, const uint32_t *ids, struct owned **ret)
{
        struct owned *o = calloc(1, sizeof(*o));
        size_t total = 0;

        for (size_t w = 0; w < rule->workers; w++)
                total += rule->sizes[w];
        if (o == NULL)
                return -ENOMEM;
        *o = (struct owned){ .rule = *rule, .kept = OWNED_ALL };
        o->shards = calloc(rule->workers, sizeof(*o->shards));
        o->ids = calloc(total + 1, sizeof(*o->ids));
        o->moved = calloc(total + 1, sizeof(*o->moved));
        if (o->shards == NULL || o->ids == NULL || o->moved == NULL) {
                owned_free(o);
                return -ENOMEM;
        }
        memcpy(o->ids, ids, total * sizeof(*ids));
        total = 0;
        for (size_t w = 0; w < rule->workers; w++) {
                o->shards[w] = (struct shard){ o->ids + total, rule->sizes[w], rule->shares[w] };
                total += rule->sizes[w];
        }
        if (rule->step == 0)
                begin_epoch(o, rule->epoch);
        o->epoch = rule->epoch;
        o->rounds = rule->step;
        *ret = o;
        return 0;
}

void owned_free(struct owned *o)
{
        if (o == NULL)
                return;
        free(o->shards);
        free(o->ids);
        free(o->moved);
        free(o);
}

uint64_t owned_epoch(const struct owned *o)
{
        return o->epoch;
}

/* Of a worker's samples, those that the steps before this one use. */
static size_t used_before(const struct owned *o, size_t step, size_t worker)
{
        const struct shard *s = &o->shards[worker];

        return step >= o->rule.steps ? s->size : step * s->share;
}

/* Copies samples `from`.. of all that are used (or not) at the beginning of a step, owner after owner. */
static void copy_samples(const struct owned *o, size_t step, bool used, size_t from, size_t count,
                         uint32_t *ids)
{
        for (size_t w = 0; count > 0 && w < o->rule.workers; w++) {
                size_t before = used_before(o, step, w), all = used ? before : o->shards[w].size - before;
                size_t some = from < all ? all - from : 0;

                some = some < count ? some : count;
                memcpy(ids, o->shards[w].ids + (used ? 0 : before) + (some > 0 ? from : 0),
                       some * sizeof(*ids));
                from = from < all ? 0 : from - all;
                ids += some;
                count -= some;
        }
}

void owned_deal(const struct owned *o, size_t step, const struct owned_rule *rule, uint32_t *ids)
{
        size_t used = 0, unused = 0;

        assert(o->kept == OWNED_ALL && o->rounds == step);
        for (size_t w = 0; w < rule->workers; w++) {
                size_t old = step * rule->shares[w], young = rule->sizes[w] - old;

                copy_samples(o, step, true, used, old, ids);
                copy_samples(o, step, false, unused, young, ids + old);
                used += old;
                unused += young;
                ids += rule->sizes[w];
        }
}

size_t owned_round(const struct owned *o, size_t step)
{
        size_t least = SIZE_MAX, owners = 0;

        for (size_t w = 0; w < o->rule.workers; w++) {
                size_t left = o->shards[w].size - used_before(o, step + 1 + OWNED_AHEAD, w);

                if (o->shards[w].size == 0)
                        continue;
                owners++;
                least = left < least ? left : least;
        }
        return owners < 2 ? 0 : (size_t) (o->rule.exchange * (double) least);
}

size_t owned_next(const struct owned *o, size_t worker)
{
        size_t w = worker;

        do
                w = (w + 1) % o->rule.workers;
        while (w != worker && o->shards[w].size == 0);
        return w;
}

size_t owned_previous(const struct owned *o, size_t worker)
{
        size_t w = worker;

        do
                w = (w + o->rule.workers - 1) % o->rule.workers;
        while (w != worker && o->shards[w].size == 0);
        return w;
}

/* Brings `count` of what is left to the tail, as a shuffle would that ends after so many. */
static uint32_t *choose(struct owned *o, size_t step, size_t worker, size_t count)
{
        struct shard *s = &o->shards[worker];
        size_t first = used_before(o, step + 1 + OWNED_AHEAD, worker);
        struct random_source r =
                random_for(o->rule.seed ^ (o->epoch << 32), "exchange", step * o->rule.workers + worker);

        for (size_t i = 0; i < count; i++) {
                size_t last = s->size - 1 - i, j = first + (size_t) random_below(&r, last - first + 1);
                uint32_t id = s->ids[last];

                s->ids[last] = s->ids[j];
                s->ids[j] = id;
        }
        return s->ids + s->size - count;
}

/* All choose before any gets. */
static void replay_round(struct owned *o, size_t step)
{
        size_t count = owned_round(o, step);

        for (size_t w = 0; count > 0 && w < o->rule.workers; w++)
                if (o->shards[w].size > 0)
                        memcpy(o->moved + w * count, choose(o, step, w, count), count * sizeof(*o->moved));
        for (size_t w = 0; count > 0 && w < o->rule.workers; w++) {
                const struct shard *next = &o->shards[owned_next(o, w)];

                if (o->shards[w].size > 0)
                        memcpy(next->ids + next->size - count, o->moved + w * count,
                               count * sizeof(*o->moved));
        }
}

void owned_replay(struct owned *o, uint64_t epoch, size_t rounds)
{
        while (o->epoch < epoch) {
                for (; o->rounds < o->rule.steps; o->rounds++)
                        replay_round(o, o->rounds);
                begin_epoch(o, o->epoch + 1);
        }
        for (; o->rounds < rounds; o->rounds++)
                replay_round(o, o->rounds);
}

size_t owned_chunk(struct owned *o, uint64_t epoch, size_t step, size_t worker, uint32_t *ids)
{
        size_t first = used_before(o, step, worker), count = used_before(o, step + 1, worker) - first;

        assert(epoch >= o->epoch && (o->kept == OWNED_ALL || o->kept == worker));
        if (o->kept == OWNED_ALL)
                owned_replay(o, epoch, step > OWNED_AHEAD ? step - OWNED_AHEAD : 0);
        else if (epoch > o->epoch)
                begin_epoch(o, epoch);
        memcpy(ids, o->shards[worker].ids + first, count * sizeof(*ids));
        return count;
}

void owned_keep(struct owned *o, size_t worker)
{
        struct shard *s = &o->shards[worker];

        memmove(o->ids, s->ids, s->size * sizeof(*o->ids));
        for (size_t w = 0; w < o->rule.workers; w++)
                o->shards[w].ids = w == worker ? o->ids : NULL;
        o->kept = worker;
        free(o->moved);
        o->moved = NULL;
}

size_t owned_shard(const struct owned *o, size_t worker, const uint32_t **ret)
{
        *ret = o->shards[worker].ids;
        return o->shards[worker].size;
}

const uint32_t *owned_give(struct owned *o, uint64_t epoch, size_t step)
{
        assert(epoch == o->epoch && o->kept != OWNED_ALL);
        return choose(o, step, o->kept, owned_round(o, step));
}

void owned_get(struct owned *o, const uint32_t *ids, size_t count)
{
        const struct shard *s = &o->shards[o->kept];

        memcpy(s->ids + s->size - count, ids, count * sizeof(*ids));
}
