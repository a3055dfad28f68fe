/* Which sums can be made of shares with minima and multiples, and with how few workers: a bitset, and a
 * dynamic programme by sliding minima.
 *
 * Example: one worker takes 0 or 4 ... 6, another 0, 3 or 6. Its sums 0, 4, 5, 6 moved by 0, 3 and 6 are 0, 3
 * ... 12: a batch of 2 is impossible, 3 needs the second alone, 8 both. Invariant: after worker i the set
 * holds exactly the sums of the workers up to i. Taking the largest shares first is no substitute: for 7 it
 * takes 6 of the first and cannot make the rest of 1, where 4 + 3 is a plan. */
#include "planner/shards/shard_sums.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NEVER UINT16_MAX /* no number of workers makes this sum */

int shard_sums_make(const struct shard_curves *curves, uint64_t units, uint64_t unit, struct shard_sums *ret,
                    struct err *err)
{
        struct shard_sums sums = { .curves = curves, .units = units, .unit = unit };

        if (curves->count >= UINT16_MAX || units >= UINT32_MAX ||
            curves->count > SHARDS_MAX_STEPS / (units + 1))
                return err_set(err, -E2BIG,
                               "%zu workers x a batch of %" PRIu64 " are more than the %" PRIu64
                               " steps that an exact answer with `min` or unlike `multiple`s may take; give "
                               "all workers the same `multiple` and no `min`, or a larger common `multiple`",
                               curves->count, units * unit, SHARDS_MAX_STEPS);
        for (int i = 0; i < 2; i++) {
                sums.bits[i] = calloc(units / 64 + 1, sizeof(uint64_t));
                sums.rows[i] = calloc(units + 1, sizeof(uint16_t));
        }
        sums.window = calloc(units + 1, sizeof(uint32_t));
        *ret = sums;
        if (sums.bits[0] != NULL && sums.bits[1] != NULL && sums.rows[0] != NULL && sums.rows[1] != NULL &&
            sums.window != NULL)
                return 0;
        shard_sums_free(ret);
        return err_set(err, -ENOMEM, "no memory for a batch of %" PRIu64, units);
}

void shard_sums_free(struct shard_sums *sums)
{
        for (int i = 0; i < 2; i++) {
                free(sums->bits[i]);
                free(sums->rows[i]);
        }
        free(sums->window);
        *sums = (struct shard_sums){ 0 };
}

/* One worker's allowed sums but 0: least, least + 1 ... most steps of `step` units. */
struct steps {
        uint64_t step, least, most;
};

static struct steps steps_of(const struct shard_sums *sums, size_t worker, uint64_t share)
{
        const struct shard_curve *curve = &sums->curves->curve[worker];
        uint64_t step = curve->multiple / sums->unit;
        uint64_t room = sums->units / step;

        return (struct steps){ .step = step, .least = curve->least, .most = share < room ? share : room };
}

/* to |= from << shift, of `words` words; `to` may be `from`. */
static void or_shifted(uint64_t *to, const uint64_t *from, size_t words, uint64_t shift)
{
        size_t whole = shift / 64;
        unsigned part = shift % 64;

        if (whole >= words)
                return;
        if (part == 0) {
                for (size_t i = words; i-- > whole;)
                        to[i] |= from[i - whole];
                return;
        }
        for (size_t i = words; i-- > whole + 1;)
                to[i] |= from[i - whole] << part | from[i - whole - 1] >> (64 - part);
        to[whole] |= from[0] << part;
}

/* Every worker in turn: the sums so far, moved by each of its steps. Moving by a run of n steps doubles up.
 */
bool shard_sums_reach(struct shard_sums *sums, const uint64_t *shares)
{
        size_t words = sums->units / 64 + 1;
        uint64_t *reached = sums->bits[0], *moved = sums->bits[1];

        memset(reached, 0, words * sizeof(*reached));
        reached[0] = 1;
        for (size_t i = 0; i < sums->curves->count; i++) {
                struct steps steps = steps_of(sums, i, shares[i]);
                uint64_t wanted;

                if (steps.most < steps.least)
                        continue;
                memset(moved, 0, words * sizeof(*moved));
                or_shifted(moved, reached, words, steps.least * steps.step);
                wanted = steps.most - steps.least + 1;
                for (uint64_t have = 1; have < wanted;) {
                        uint64_t more = wanted - have < have ? wanted - have : have;

                        or_shifted(moved, moved, words, more * steps.step);
                        have += more;
                }
                for (size_t w = 0; w < words; w++)
                        reached[w] |= moved[w];
        }
        return (reached[sums->units / 64] >> (sums->units % 64)) & 1;
}

uint64_t shard_sums_nearest(struct shard_sums *sums, const uint64_t *shares)
{
        uint64_t at = sums->units;

        (void) shard_sums_reach(sums, shares);
        while (at > 0 && !((sums->bits[0][at / 64] >> (at % 64)) & 1))
                at--;
        return at;
}

/* after[s] = fewest workers for s with this one, before[s] without: one sliding minimum per rest of s. */
static void add_worker(const struct shard_sums *sums, struct steps steps, const uint16_t *before,
                       uint16_t *after)
{
        uint32_t *window = sums->window; /* places of rising minima, in steps */

        memcpy(after, before, (sums->units + 1) * sizeof(*after));
        if (steps.most < steps.least)
                return;
        for (uint64_t rest = 0; rest < steps.step && rest <= sums->units; rest++) {
                uint64_t places = (sums->units - rest) / steps.step + 1;
                size_t head = 0, tail = 0;

                for (uint64_t at = steps.least; at < places; at++) {
                        uint64_t enters = at - steps.least;
                        uint16_t value = before[rest + enters * steps.step];
                        uint16_t *own = &after[rest + at * steps.step];

                        while (tail > head && before[rest + window[tail - 1] * steps.step] >= value)
                                tail--;
                        window[tail++] = (uint32_t) enters;
                        if (window[head] + steps.most < at)
                                head++;
                        value = before[rest + window[head] * steps.step];
                        if (value != NEVER && value + 1 < *own)
                                *own = (uint16_t) (value + 1);
                }
        }
}

static void first_row(const struct shard_sums *sums, uint16_t *row)
{
        memset(row, 0xff, (sums->units + 1) * sizeof(*row));
        row[0] = 0;
}

size_t shard_sums_fewest(struct shard_sums *sums, const uint64_t *shares)
{
        uint16_t *before = sums->rows[0], *after = sums->rows[1];

        first_row(sums, before);
        for (size_t i = 0; i < sums->curves->count; i++) {
                uint16_t *swap = before;

                add_worker(sums, steps_of(sums, i, shares[i]), before, after);
                before = after;
                after = swap;
        }
        return before[sums->units] == NEVER ? SHARD_SUMS_NONE : before[sums->units];
}

/* Rows for the workers from `first` to the end of its block, each the fewest for the sums of itself and all
 * behind it. @rows: block + 1 rows, the last one known already. */
static void fill_block(const struct shard_sums *sums, const uint64_t *shares, size_t first, size_t last,
                       uint16_t *rows)
{
        size_t width = sums->units + 1;

        for (size_t i = last; i-- > first;)
                add_worker(sums, steps_of(sums, i, shares[i]), rows + (i + 1 - first) * width,
                           rows + (i - first) * width);
}

/* The largest share that still ends in the fewest workers; *rest becomes what the others must do. */
static uint64_t largest_share(struct steps steps, const uint16_t *own, const uint16_t *behind, uint64_t *rest)
{
        uint64_t most = *rest / steps.step < steps.most ? *rest / steps.step : steps.most;

        for (uint64_t share = most; share >= steps.least; share--) {
                uint64_t left = *rest - share * steps.step;

                if (behind[left] != NEVER && behind[left] + 1 == own[*rest]) {
                        *rest = left;
                        return share;
                }
        }
        return 0;
}

/* Rows of the fewest, from the last worker to the first, would be count x batch: only the first row of every
 * block is kept, and a block's own rows are made again on the way forward. */
int shard_sums_take(struct shard_sums *sums, uint64_t *shares, struct err *err)
{
        size_t count = sums->curves->count, width = sums->units + 1, block = 1, blocks;
        CLEANUP(free_p) uint16_t *kept = NULL;
        CLEANUP(free_p) uint16_t *rows = NULL;
        uint64_t rest = sums->units;

        while (block * block < count)
                block++;
        blocks = (count + block - 1) / block;
        kept = calloc((blocks + 1) * width, sizeof(*kept));
        rows = calloc((block + 1) * width, sizeof(*rows));
        if (kept == NULL || rows == NULL)
                return err_set(err, -ENOMEM, "no memory for a batch of %zu", width - 1);

        first_row(sums, kept + blocks * width);
        for (size_t b = blocks; b-- > 0;) {
                size_t first = b * block, last = first + block < count ? first + block : count;

                memcpy(rows + (last - first) * width, kept + (b + 1) * width, width * sizeof(*rows));
                fill_block(sums, shares, first, last, rows);
                memcpy(kept + b * width, rows, width * sizeof(*rows));
        }
        for (size_t b = 0; b < blocks; b++) {
                size_t first = b * block, last = first + block < count ? first + block : count;

                memcpy(rows + (last - first) * width, kept + (b + 1) * width, width * sizeof(*rows));
                fill_block(sums, shares, first, last, rows);
                for (size_t i = first; i < last; i++)
                        shares[i] = largest_share(steps_of(sums, i, shares[i]), rows + (i - first) * width,
                                                  rows + (i + 1 - first) * width, &rest);
        }
        return 0;
}
