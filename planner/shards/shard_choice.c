/* Chooses among the plans of one step: sorting where every worker may take 0, 1, 2 ... up to its share, and
 * the sets of sums (shard_sums) where not. */
#include "planner/shards/shard_choice.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"

int shard_choice_make(const struct shard_curves *curves, uint64_t batch, struct shard_choice *ret,
                      struct err *err)
{
        struct shard_choice choice = { .curves = curves, .plain = true, .fewest_wanted = curves->count };
        int r = 0;

        for (size_t i = 0; i < curves->count; i++) {
                choice.unit = exact_common_divisor(choice.unit, curves->curve[i].multiple);
                choice.plain = choice.plain && curves->curve[i].least == 1 &&
                               curves->curve[i].multiple == curves->curve[0].multiple;
        }
        assert(choice.unit > 0); /* there is a worker */
        choice.units = batch / choice.unit;
        if (batch % choice.unit != 0)
                return err_set(err, -ERANGE,
                               "batch: %" PRIu64 " cannot be made of shares that are multiples of %" PRIu64
                               ": %" PRIu64 " too many, or %" PRIu64 " too few",
                               batch, choice.unit, batch % choice.unit, choice.unit - batch % choice.unit);
        choice.order = calloc(curves->count, sizeof(*choice.order));
        if (choice.order == NULL)
                r = err_set(err, -ENOMEM, "no memory to plan %zu workers", curves->count);
        if (r == 0 && !choice.plain)
                r = shard_sums_make(curves, choice.units, choice.unit, &choice.sums, err);
        if (r < 0) {
                shard_choice_free(&choice);
                return r;
        }
        *ret = choice;
        return 0;
}

void shard_choice_free(struct shard_choice *choice)
{
        shard_sums_free(&choice->sums);
        free(choice->order);
        *choice = (struct shard_choice){ 0 };
}

static uint64_t units_of(const struct shard_choice *choice, const uint64_t *shares)
{
        uint64_t total = 0;

        for (size_t i = 0; i < choice->curves->count; i++)
                total += shares[i] * (choice->curves->curve[i].multiple / choice->unit);
        return total;
}

static int larger_first(const void *a, const void *b, void *context)
{
        const uint64_t *shares = context;
        size_t left = *(const size_t *) a, right = *(const size_t *) b;

        if (shares[left] != shares[right])
                return shares[left] > shares[right] ? -1 : 1;
        return (left > right) - (left < right);
}

static void sort_by_share(struct shard_choice *choice, const uint64_t *shares)
{
        for (size_t i = 0; i < choice->curves->count; i++)
                choice->order[i] = i;
        qsort_r(choice->order, choice->curves->count, sizeof(*choice->order), larger_first, (void *) shares);
}

/* The largest shares together, until they make the batch. */
static size_t plain_fewest(struct shard_choice *choice, const uint64_t *shares)
{
        uint64_t total = 0;

        sort_by_share(choice, shares);
        for (size_t i = 0; i < choice->curves->count; i++) {
                total += shares[choice->order[i]];
                if (total >= choice->units)
                        return i + 1;
        }
        return SHARD_SUMS_NONE;
}

size_t shard_choice_fewest(struct shard_choice *choice, const uint64_t *shares)
{
        if (units_of(choice, shares) < choice->units)
                return SHARD_SUMS_NONE;
        return choice->plain ? plain_fewest(choice, shares) : shard_sums_fewest(&choice->sums, shares);
}

int shard_choice_test(void *context, const uint64_t *shares)
{
        struct shard_choice *choice = context;

        if (units_of(choice, shares) < choice->units)
                return 0;
        if (choice->fewest_wanted < choice->curves->count)
                return shard_choice_fewest(choice, shares) <= choice->fewest_wanted;
        return choice->plain || shard_sums_reach(&choice->sums, shares);
}

/* Fenwick trees over the workers that are still to come, largest share first: how many, and their sum. */
struct remainder {
        size_t count, top; /* top: the largest power of two within count */
        size_t *workers;   /* [count + 1] */
        uint64_t *shares;  /* [count + 1] */
};

static void remainder_change(struct remainder *remainder, size_t rank, size_t workers, uint64_t shares)
{
        for (size_t at = rank + 1; at <= remainder->count; at += at & -at) {
                remainder->workers[at] += workers; /* wraps: a removal adds the complement */
                remainder->shares[at] += shares;
        }
}

/* The sum of the `wanted` largest. */
static uint64_t remainder_largest(const struct remainder *remainder, size_t wanted)
{
        uint64_t sum = 0;
        size_t at = 0;

        for (size_t step = remainder->top; step > 0; step /= 2)
                if (at + step <= remainder->count && remainder->workers[at + step] <= wanted) {
                        at += step;
                        wanted -= remainder->workers[at];
                        sum += remainder->shares[at];
                }
        return sum;
}

/* In order: a worker takes all it may if the largest of those behind it can do the rest with one fewer. */
static void plain_take_in_order(struct shard_choice *choice, struct remainder *behind, const size_t *rank,
                                size_t fewest, uint64_t *shares)
{
        uint64_t rest = choice->units;

        for (size_t i = 0; i < choice->curves->count; i++) {
                uint64_t share = shares[i] < rest ? shares[i] : rest;

                remainder_change(behind, rank[i], (size_t) -1, -shares[i]);
                if (fewest == 0 || share == 0 || rest - share > remainder_largest(behind, fewest - 1)) {
                        shares[i] = 0;
                        continue;
                }
                shares[i] = share;
                rest -= share;
                fewest--;
        }
}

static int plain_take(struct shard_choice *choice, uint64_t *shares, struct err *err)
{
        size_t count = choice->curves->count;
        size_t fewest = plain_fewest(choice, shares);
        CLEANUP(free_p) size_t *rank = calloc(count, sizeof(*rank));
        CLEANUP(free_p) size_t *tree_workers = calloc(count + 1, sizeof(*tree_workers));
        CLEANUP(free_p) uint64_t *tree_shares = calloc(count + 1, sizeof(*tree_shares));
        struct remainder behind = {
                .count = count, .top = 1, .workers = tree_workers, .shares = tree_shares
        };

        if (rank == NULL || tree_workers == NULL || tree_shares == NULL)
                return err_set(err, -ENOMEM, "no memory to plan %zu workers", count);
        while (behind.top * 2 <= count)
                behind.top *= 2;
        for (size_t i = 0; i < count; i++) {
                rank[choice->order[i]] = i;
                remainder_change(&behind, i, 1, shares[choice->order[i]]);
        }
        plain_take_in_order(choice, &behind, rank, fewest, shares);
        return 0;
}

int shard_choice_take(struct shard_choice *choice, uint64_t *shares, struct err *err)
{
        return choice->plain ? plain_take(choice, shares, err) : shard_sums_take(&choice->sums, shares, err);
}

int shard_choice_explain(struct shard_choice *choice, struct err *err)
{
        CLEANUP(free_p) uint64_t *limits = calloc(choice->curves->count, sizeof(*limits));
        uint64_t batch = choice->units * choice->unit, most;

        if (limits == NULL)
                return err_set(err, -ENOMEM, "no memory to plan %zu workers", choice->curves->count);
        for (size_t i = 0; i < choice->curves->count; i++)
                limits[i] = choice->curves->curve[i].limit;
        most = units_of(choice, limits) * choice->unit;
        if (most < batch)
                return err_set(err, -ERANGE,
                               "batch: %" PRIu64 " samples do not fit: the workers take at most %" PRIu64
                               " together (max, tables), %" PRIu64
                               " too many; lower the batch or add workers",
                               batch, most, batch - most);
        most = shard_sums_nearest(&choice->sums, limits) * choice->unit;
        return err_set(err, -ERANGE,
                       "batch: no shares that keep to min, max and multiple add up to %" PRIu64
                       ": the nearest smaller batch is %" PRIu64 ", %" PRIu64 " fewer",
                       batch, most, batch - most);
}
