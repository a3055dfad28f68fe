/* Finds the least moment that a test accepts, by pivoting over all (worker, share) pairs without listing
 * them.
 *
 * Example: 3 and 1 samples a second, a batch of 10. Candidates are the times of every share: 333 ms x 1, 2, 3
 * ... of the first worker and 1000 ms x 1, 2, 3 ... of the second. The pivot 2333 ms (7 and 2 by then: 9
 * samples, too few) raises `low` to 7 and 2; the pivot 3000 ms (9 and 3: enough) lowers `high` to the shares
 * before it, 8 and 2; of the one candidate left, 2667 ms, the test says yes. Rounding the real shares 7.5
 * and 2.5 would have had to guess.
 *
 * Invariant: at the time of anyone's low share the test fails, and every candidate above a high share is as
 * late as a moment that passes or later: the answer is a share in low + 1 ... high, or the last moment that
 * passed. Each pivot leaves half of the candidates on average: O(log(n batch)) tests. Bisection over doubles
 * is no substitute: it ends between two doubles, not on the share that decides a tie. */
#include "planner/shards/shard_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/random.h"

/* What is known at any time: each worker's answer lies in low ... high, `low` was not enough for all of them,
 * and what is above `high` is no longer of interest. */
struct search {
        const struct shard_curves *curves;
        uint64_t *low, *high, *trial; /* [count] each */
        uint64_t random; /* pivots need to be unrelated to the input, not to differ between runs */
};

static uint64_t candidates_left(const struct search *search)
{
        uint64_t total = 0;

        for (size_t i = 0; i < search->curves->count; i++)
                total += search->high[i] - search->low[i];
        return total;
}

static struct shard_curve_moment candidate(const struct search *search, uint64_t index)
{
        size_t i = 0;

        while (index >= search->high[i] - search->low[i]) {
                index -= search->high[i] - search->low[i];
                i++;
        }
        return shard_curve_at(search->curves, i, search->low[i] + 1 + index);
}

/* The middle one of three candidates. */
static struct shard_curve_moment choose_pivot(struct search *search, uint64_t total)
{
        struct shard_curve_moment a = candidate(search, random_next(&search->random) % total), b, c, swap;

        if (total < 16)
                return a;
        b = candidate(search, random_next(&search->random) % total);
        c = candidate(search, random_next(&search->random) % total);
        if (shard_curve_compare(search->curves, &a, &b) > 0) {
                swap = a;
                a = b;
                b = swap;
        }
        if (shard_curve_compare(search->curves, &b, &c) <= 0)
                return b;
        return shard_curve_compare(search->curves, &a, &c) > 0 ? a : c;
}

/* The latest candidate that is about within `ms`. */
static bool choose_hinted(const struct search *search, double ms, struct shard_curve_moment *ret)
{
        bool found = false;

        for (size_t i = 0; i < search->curves->count; i++) {
                const struct shard_curve *curve = &search->curves->curve[i];
                double samples = shard_curve_samples(curve, ms) * (1 + 1e-15);
                uint64_t share = (uint64_t) samples / curve->multiple;
                struct shard_curve_moment moment;

                if (share > search->high[i])
                        share = search->high[i];
                if (share <= search->low[i])
                        continue;
                moment = shard_curve_at(search->curves, i, share);
                if (!found || moment.ms > ret->ms)
                        *ret = moment;
                found = true;
        }
        return found;
}

/* Everyone's largest share by the moment, within low ... high. */
static void fill_trial(struct search *search, const struct shard_curve_moment *moment, bool strictly)
{
        for (size_t i = 0; i < search->curves->count; i++)
                search->trial[i] = shard_curve_reach(search->curves, i, moment, strictly, search->low[i],
                                                     search->high[i]);
}

/* Tries one moment and halves the search by it. */
static int try_moment(struct search *search, const struct shard_curve_moment *moment, shard_test test,
                      void *context, uint64_t *ret_shares, struct shard_curve_moment *ret)
{
        size_t bytes = search->curves->count * sizeof(*search->trial);
        int r;

        fill_trial(search, moment, false);
        r = test(context, search->trial);
        if (r < 0)
                return r;
        if (r == 0) {
                memcpy(search->low, search->trial, bytes);
                return 0;
        }
        memcpy(ret_shares, search->trial, bytes);
        *ret = *moment;
        memcpy(search->high, search->trial, bytes);
        fill_trial(search, moment, true);
        memcpy(search->high, search->trial, bytes);
        return 1;
}

static struct shard_curve_moment last_moment(const struct shard_curves *curves)
{
        struct shard_curve_moment last = shard_curve_at(curves, 0, curves->curve[0].limit);

        for (size_t i = 1; i < curves->count; i++) {
                struct shard_curve_moment moment = shard_curve_at(curves, i, curves->curve[i].limit);

                if (shard_curve_compare(curves, &last, &moment) < 0)
                        last = moment;
        }
        return last;
}

int shard_search(const struct shard_curves *curves, shard_test test, void *context, const double *hints_ms,
                 size_t hint_count, uint64_t *ret_shares, struct shard_curve_moment *ret, struct err *err)
{
        CLEANUP(free_p) uint64_t *memory = calloc(3 * curves->count, sizeof(*memory));
        struct search search = { .curves = curves };
        struct shard_curve_moment moment;
        uint64_t total;
        int r;

        if (memory == NULL)
                return err_set(err, -ENOMEM, "no memory to plan %zu workers", curves->count);
        search.low = memory;
        search.high = memory + curves->count;
        search.trial = memory + 2 * curves->count;
        for (size_t i = 0; i < curves->count; i++)
                search.high[i] = curves->curve[i].limit;

        moment = last_moment(curves);
        r = try_moment(&search, &moment, test, context, ret_shares, ret);
        if (r <= 0)
                return r;
        for (size_t i = 0; i < hint_count; i++)
                if (choose_hinted(&search, hints_ms[i], &moment)) {
                        r = try_moment(&search, &moment, test, context, ret_shares, ret);
                        if (r < 0)
                                return r;
                }
        while ((total = candidates_left(&search)) > 0) {
                moment = choose_pivot(&search, total);
                r = try_moment(&search, &moment, test, context, ret_shares, ret);
                if (r < 0)
                        return r;
        }
        return 1;
}
