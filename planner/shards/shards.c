/* Plans a batch: the least step with every `min` forgotten, which is easy and nearly always right, else the
 * hard problem; and, where communication is counted, the number of workers that is worth it. */
#include "planner/shards/shards.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/shards/shard_choice.h"
#include "planner/shards/shard_ideal.h"
#include "planner/shards/shard_search.h"

#define HARD_LEAST_STEPS  (SHARDS_MAX_STEPS / 64) /* drop-harmful asks the hard questions many times */
#define LEAST_MAX_WORKERS ((size_t) 1 << 14)

/* The best plan so far of those with at most so many workers. */
struct least {
        const struct shard_communication *communication;
        const struct shard_curves *curves;
        struct shard_choice *choice;
        uint64_t *trial, *best; /* [count] shares */
        struct shard_curve_moment moment;
        size_t used; /* 0 = no plan yet */
        struct err *err;
};

static double table_ms(const struct shard_worker *worker, double samples)
{
        struct shard_point before = { 0 };

        for (size_t i = 0; i < worker->point_count; i++) {
                const struct shard_point *point = &worker->points[i];

                if (samples <= (double) point->samples)
                        return before.ms + (point->ms - before.ms) * (samples - (double) before.samples) /
                                                   (double) (point->samples - before.samples);
                before = *point;
        }
        return before.ms;
}

double shards_ms(const struct shard_worker *worker, double samples)
{
        if (samples <= 0)
                return 0;
        if (worker->model == SHARD_SPEED)
                return 1000.0 * samples / worker->speed;
        if (worker->model == SHARD_AFFINE)
                return worker->alpha_ms + worker->beta_ms * samples;
        return table_ms(worker, samples);
}

double shards_communication_ms(const struct shard_communication *communication, size_t used)
{
        double p = (double) used;

        if (used <= 1)
                return 0;
        return 2 * (p - 1) * communication->alpha_ms +
               2 * (p - 1) / p * (double) communication->bytes * communication->beta_ms_per_byte;
}

uint64_t shards_begin(uint64_t epoch, uint64_t before, uint64_t batch)
{
        return (uint64_t) ((unsigned __int128) epoch * before / batch);
}

/* (2 (p - 1) p alpha + 2 (p - 1) bytes beta) / p, exactly. */
static struct exact_time exact_communication(const struct shard_communication *communication, size_t used)
{
        struct decimal alpha = { 0 }, beta = { 0 };
        const struct decimal one = { .digits = 1 };
        uint64_t messages = 2 * (uint64_t) (used - 1);
        struct exact_time bytes;

        (void) decimal_from_double(communication->alpha_ms, &alpha); /* both were checked */
        (void) decimal_from_double(communication->beta_ms_per_byte, &beta);
        bytes = (struct exact_time){ .term = { exact_product(beta, messages) }, .count = 1 };
        bytes = exact_scale(bytes, communication->bytes);
        return (struct exact_time){ .term = { exact_product(alpha, messages * used), bytes.term[0] },
                                    .count = 2,
                                    .over = exact_product(one, used) };
}

static struct exact_time exact_total(const struct least *least, const struct shard_curve_moment *moment,
                                     size_t used)
{
        struct exact_time step = shard_curve_exact(least->curves, moment);
        struct exact_time ring = exact_communication(least->communication, used);

        return exact_add(&step, &ring);
}

/* Step of `moment` and communication of `used` against the best so far. */
static int compare_with_best(const struct least *least, const struct shard_curve_moment *moment, size_t used)
{
        struct exact_time own = exact_total(least, moment, used);
        struct exact_time best = exact_total(least, &least->moment, least->used);

        return exact_compare(&own, &best);
}

/* The smallest step of at most `most` workers, offered as the best. Return: the workers it uses, 0 if there
 * is none, negative errno. */
static int64_t try_most(struct least *least, size_t most, const double *hints_ms, size_t hint_count,
                        struct shard_curve_moment *ret)
{
        size_t used;
        int order, r;

        least->choice->fewest_wanted = most;
        r = shard_search(least->curves, shard_choice_test, least->choice, hints_ms, hint_count, least->trial,
                         ret, least->err);
        if (r <= 0)
                return r;
        used = least->communication != NULL ? shard_choice_fewest(least->choice, least->trial) : 1;
        if (least->used != 0) {
                order = compare_with_best(least, ret, used);
                if (order > 0 || (order == 0 && used >= least->used))
                        return (int64_t) used;
        }
        least->used = used;
        least->moment = *ret;
        memcpy(least->best, least->trial, least->curves->count * sizeof(*least->best));
        return (int64_t) used;
}

/* Plans of first ... last workers cannot be quicker than `bound` in the step, nor than `first` workers in the
 * communication: halves the range while that leaves a hope. */
static int search_range(struct least *least, size_t first, size_t last,
                        const struct shard_curve_moment *bound)
{
        struct shard_curve_moment moment;
        size_t middle;
        int64_t used;
        int order, r;

        if (first > last)
                return 0;
        order = compare_with_best(least, bound, first);
        if (order > 0 || (order == 0 && first >= least->used))
                return 0;
        middle = first + (last - first) / 2;
        used = try_most(least, middle, &bound->ms, 1, &moment);
        if (used < 0)
                return (int) used;
        r = search_range(least, middle + 1, last, bound);
        if (r < 0 || used == 0)
                return r;
        return search_range(least, first, (size_t) used - 1, &moment);
}

/* Return: 1 and the shares, 0 when the limits do not allow the batch, negative errno. */
static int plan_shares(const struct shard_curves *curves, struct shard_choice *choice,
                       const struct shard_communication *communication, const double *hints_ms,
                       size_t hint_count, uint64_t *ret_shares, struct err *err)
{
        CLEANUP(free_p) uint64_t *trial = calloc(curves->count, sizeof(*trial));
        struct least least = { .communication = communication,
                               .curves = curves,
                               .choice = choice,
                               .trial = trial,
                               .best = ret_shares,
                               .err = err };
        struct shard_curve_moment moment;
        int64_t used;
        int r;

        if (trial == NULL)
                return err_set(err, -ENOMEM, "no memory to plan %zu workers", curves->count);
        used = try_most(&least, curves->count, hints_ms, hint_count, &moment);
        if (used <= 0)
                return (int) used;
        if (communication != NULL && used > 1) {
                r = search_range(&least, 1, (size_t) used - 1, &moment);
                if (r < 0)
                        return r;
        }
        r = shard_choice_take(choice, ret_shares, err);
        return r < 0 ? r : 1;
}

static int check_least_size(const struct shard_choice *choice, struct err *err)
{
        size_t count = choice->curves->count;

        if (count > LEAST_MAX_WORKERS)
                return err_set(err, -E2BIG, "%zu workers: harmful ones are looked for among at most %zu",
                               count, LEAST_MAX_WORKERS);
        if (!choice->plain && count > HARD_LEAST_STEPS / (choice->units + 1))
                return err_set(
                        err, -E2BIG,
                        "%zu workers x a batch of %" PRIu64 " are more than the %" PRIu64
                        " steps that looking for harmful workers with `min` or unlike `multiple`s may take",
                        count, choice->units * choice->unit, HARD_LEAST_STEPS);
        return 0;
}

/* With every `min` forgotten the problem is easy; and if its best plan keeps to the minima, it is the best of
 * those that do. Return: 1 and the shares, 0 if that does not help, negative errno. */
static int plan_relaxed(const struct shard_curves *curves, uint64_t batch,
                        const struct shard_communication *communication, const double *hints_ms,
                        size_t hint_count, uint64_t *ret_shares, struct err *err)
{
        CLEANUP(free_p) uint64_t *least = calloc(curves->count, sizeof(*least));
        struct shard_choice choice = { 0 };
        int r;

        if (least == NULL)
                return err_set(err, -ENOMEM, "no memory to plan %zu workers", curves->count);
        for (size_t i = 1; i < curves->count; i++)
                if (curves->curve[i].multiple != curves->curve[0].multiple)
                        return 0;
        for (size_t i = 0; i < curves->count; i++) {
                least[i] = curves->curve[i].least;
                curves->curve[i].least = 1;
        }
        r = shard_choice_make(curves, batch, &choice, err);
        if (r == 0 && communication != NULL)
                r = check_least_size(&choice, err);
        if (r == 0) {
                r = plan_shares(curves, &choice, communication, hints_ms, hint_count, ret_shares, err);
                if (r == 0)
                        r = shard_choice_explain(&choice, err);
        }
        shard_choice_free(&choice);
        for (size_t i = 0; i < curves->count; i++) {
                curves->curve[i].least = least[i];
                if (r == 1 && ret_shares[i] != 0 && ret_shares[i] < least[i])
                        r = 0;
        }
        return r;
}

static int plan_in_multiples(const struct shard_curves *curves, uint64_t batch, double ideal_ms,
                             const struct shard_communication *communication, uint64_t *ret_shares,
                             struct err *err)
{
        double whole_ms = shard_ideal_whole_ms(curves, batch);
        double hints_ms[] = { ideal_ms * (1 - 1e-12), whole_ms * (1 + 1e-12), whole_ms * 1.001,
                              whole_ms * 1.01, whole_ms * 1.1 };
        size_t hint_count = ideal_ms < 0 || whole_ms < 0 ? 0 : communication == NULL ? 2 : 1;
        struct shard_choice choice = { 0 };
        int r;

        r = plan_relaxed(curves, batch, communication, hints_ms, hint_count, ret_shares, err);
        if (r != 0)
                return r < 0 ? r : 0;
        r = shard_choice_make(curves, batch, &choice, err);
        if (r == 0 && communication != NULL)
                r = check_least_size(&choice, err);
        if (r == 0) {
                if (hint_count == 2 && !choice.plain)
                        hint_count = ARRAY_SIZE(hints_ms);
                r = plan_shares(curves, &choice, communication, hints_ms, hint_count, ret_shares, err);
                if (r == 0)
                        r = shard_choice_explain(&choice, err);
        }
        shard_choice_free(&choice);
        return r < 0 ? r : 0;
}

/* The slowest with batch / count each, or -1: compared as whole numbers, worked out as a real one. */
static double equal_ms(const struct shard_worker *workers, size_t count, uint64_t batch)
{
        double slowest = 0;

        for (size_t i = 0; i < count; i++) {
                const struct shard_worker *worker = &workers[i];
                double ms;

                if ((unsigned __int128) worker->min * count > batch ||
                    (worker->has_max && (unsigned __int128) worker->max * count < batch) ||
                    (worker->model == SHARD_TABLE &&
                     (unsigned __int128) worker->points[worker->point_count - 1].samples * count < batch))
                        return -1;
                ms = shards_ms(worker, (double) batch / (double) count);
                slowest = ms > slowest ? ms : slowest;
        }
        return slowest;
}

static int check_sizes(size_t count, uint64_t batch, struct err *err)
{
        if (count == 0)
                return err_set(err, -EINVAL, "workers: give at least one");
        if (count > SHARDS_MAX_WORKERS)
                return err_set(err, -E2BIG, "workers: %zu are more than %zu; plan groups of them", count,
                               SHARDS_MAX_WORKERS);
        if (batch == 0)
                return err_set(err, -EINVAL, "batch: must be at least 1");
        if (batch > SHARDS_MAX_BATCH)
                return err_set(err, -E2BIG, "batch: %" PRIu64 " is more than %" PRIu64, batch,
                               SHARDS_MAX_BATCH);
        return 0;
}

int shards_plan_least(const struct shard_worker *workers, size_t count, uint64_t batch,
                      const struct shard_communication *communication, struct shard *ret_shards,
                      struct shards_plan *ret, struct err *err)
{
        CLEANUP(free_p) uint64_t *shares = NULL;
        struct shards_plan plan = { 0 };
        struct shard_curves curves;
        struct shard_curve_moment moment;
        struct decimal unused;
        int r;

        r = check_sizes(count, batch, err);
        if (r < 0)
                return r;
        if (communication != NULL && (!decimal_from_double(communication->alpha_ms, &unused) ||
                                      !decimal_from_double(communication->beta_ms_per_byte, &unused) ||
                                      communication->bytes > (uint64_t) 1 << 53))
                return err_set(err, -EINVAL, "communication: must be finite and not negative");
        shares = calloc(count, sizeof(*shares));
        if (shares == NULL)
                return err_set(err, -ENOMEM, "no memory to plan %zu workers", count);
        r = shard_curves_make(workers, count, batch, &curves, err);
        if (r < 0)
                return r;

        plan.ideal_ms = shard_ideal_ms(&curves, batch);
        r = plan_in_multiples(&curves, batch, plan.ideal_ms, communication, shares, err);
        for (size_t i = 0; r == 0 && i < count; i++) {
                ret_shards[i].batch = shares[i] * curves.curve[i].multiple;
                moment = shard_curve_at(&curves, i, shares[i]);
                ret_shards[i].step_ms = shard_curve_ms(&moment);
                plan.used += shares[i] != 0;
                if (ret_shards[i].step_ms > plan.step_ms)
                        plan.step_ms = ret_shards[i].step_ms;
        }
        shard_curves_free(&curves);
        if (r < 0)
                return r;
        if (plan.ideal_ms > plan.step_ms) /* they are equal, and it was rounded up */
                plan.ideal_ms = plan.step_ms;
        plan.equal_ms = equal_ms(workers, count, batch);
        *ret = plan;
        return 0;
}

int shards_plan(const struct shard_worker *workers, size_t count, uint64_t batch, struct shard *ret_shards,
                struct shards_plan *ret, struct err *err)
{
        return shards_plan_least(workers, count, batch, NULL, ret_shards, ret, err);
}

static void give(const struct shard_worker *worker, uint64_t batch, struct shard *shard)
{
        shard->batch = batch;
        shard->step_ms = shards_ms(worker, (double) batch);
}

/* Who has nothing takes a sample of the largest share, as long as there is one to spare. */
static void employ_all(const struct shard_worker *workers, size_t count, struct shard *shards)
{
        for (size_t i = 0; i < count; i++) {
                size_t largest = 0;

                if (!shards[i].idle)
                        continue;
                for (size_t k = 1; k < count; k++)
                        if (shards[k].batch > shards[largest].batch)
                                largest = k;
                if (shards[largest].batch < 2)
                        return;
                give(&workers[largest], shards[largest].batch - 1, &shards[largest]);
                give(&workers[i], 1, &shards[i]);
        }
}

int shards_cut(const struct shard_worker *workers, size_t count, uint64_t batch, bool by_speed,
               struct shard *ret_shards, double *ret_step_ms, struct err *err)
{
        struct shards_plan plan;
        double slowest = 0;
        int r = by_speed ? shards_plan(workers, count, batch, ret_shards, &plan, err) : 0;

        if (r < 0)
                return r;
        for (size_t i = 0; i < count; i++) {
                if (!by_speed)
                        give(&workers[i], batch / count + (i < batch % count), &ret_shards[i]);
                ret_shards[i].idle = ret_shards[i].batch == 0;
        }
        employ_all(workers, count, ret_shards);
        for (size_t i = 0; i < count; i++)
                if (ret_shards[i].step_ms > slowest)
                        slowest = ret_shards[i].step_ms;
        if (ret_step_ms != NULL)
                *ret_step_ms = slowest;
        return 0;
}
