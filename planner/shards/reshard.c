/* Divides what is left of an epoch anew: every worker keeps the front of what it has, and only the surplus
 * moves.
 *
 * Example: a batch of 10, two workers with 5 each, samples 0:50 and 50:100; after 4 steps 30 are left with
 * each. New shares 8 and 2 make quotas of 48 and 12: the first keeps 20:50 and gets 82:100, the second keeps
 * 70:82. Invariant: quotas are differences of floor(left x shares before / batch), so they add up to what is
 * left, whatever is rounded; ranges are only ever moved from one reader to one list, so no sample is lost or
 * doubled. */
#include "planner/shards/reshard.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "planner/shards/shard_curves.h"

#define ALL_SAMPLES ((uint64_t) INT64_MAX)

/* A reader of ranges from the front. */
struct reader {
        const struct sample_ranges *ranges;
        size_t at;
        uint64_t offset; /* into ranges->range[at] */
};

/* Moves up to `samples` into *to (NULL = skips them). Return: how many were left to move, or negative. */
static int64_t move_samples(struct reader *reader, uint64_t samples, struct sample_ranges *to)
{
        while (samples > 0 && reader->at < reader->ranges->count) {
                const struct sample_range *range = &reader->ranges->range[reader->at];
                uint64_t begin = range->begin + reader->offset, room = range->end - begin;
                uint64_t taken = room < samples ? room : samples;

                if (to != NULL && sample_ranges_add(to, begin, begin + taken) < 0)
                        return -ENOMEM;
                samples -= taken;
                reader->offset += taken;
                if (taken == room) {
                        reader->at++;
                        reader->offset = 0;
                }
        }
        return (int64_t) samples;
}

/* What everyone has used, and what is left of its own. @left: [count], zeroed */
static int divide_used(const struct reshard_request *request, struct reshard_share *shares,
                       struct sample_ranges *left)
{
        for (size_t i = 0; i < request->count; i++) {
                const struct reshard_worker *worker = &request->workers[i];
                struct reader reader = { .ranges = &worker->ranges };
                uint64_t used;

                if (__builtin_mul_overflow(request->steps, worker->batch, &used) || used > ALL_SAMPLES)
                        used = ALL_SAMPLES;
                if (move_samples(&reader, used, &shares[i].used) < 0 ||
                    move_samples(&reader, ALL_SAMPLES, &left[i]) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Everyone keeps the front of its own up to its quota; the rest is handed to those that have too little. */
static int divide_left(const struct reshard_request *request, struct reshard_plan *plan,
                       const struct sample_ranges *left)
{
        struct sample_ranges surplus = { 0 };
        struct reader reader = { .ranges = &surplus };
        uint64_t before = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < request->count; i++) {
                struct reader own = { .ranges = &left[i] };
                uint64_t end = shards_begin(plan->remaining, before + plan->shares[i].batch, request->batch);
                uint64_t quota = end - shards_begin(plan->remaining, before, request->batch);

                if (move_samples(&own, quota, &plan->shares[i].rest) < 0 ||
                    move_samples(&own, ALL_SAMPLES, &surplus) < 0)
                        r = -ENOMEM;
                before += plan->shares[i].batch;
        }
        before = 0;
        for (size_t i = 0; r == 0 && i < request->count; i++) {
                uint64_t end = shards_begin(plan->remaining, before + plan->shares[i].batch, request->batch);
                uint64_t quota = end - shards_begin(plan->remaining, before, request->batch);

                if (move_samples(&reader, quota - sample_ranges_total(&plan->shares[i].rest),
                                 &plan->shares[i].rest) < 0)
                        r = -ENOMEM;
                before += plan->shares[i].batch;
        }
        sample_ranges_free(&surplus);
        return r;
}

/* The slowest of the shares. */
static struct exact_time slowest(const struct shard_curves *curves, const uint64_t *shares, double *ret_ms)
{
        struct exact_time latest = { 0 };

        *ret_ms = 0;
        for (size_t i = 0; i < curves->count; i++) {
                const struct shard_curve *curve = &curves->curve[i];
                uint64_t end =
                        curve->pieces[curve->piece_count - 1].to; /* of a table; its share may be beyond */
                struct shard_curve_moment moment =
                        shard_curve_at(curves, i, shares[i] < end ? shares[i] : end);
                struct exact_time own = shard_curve_exact(curves, &moment);

                if (exact_compare(&latest, &own) < 0) {
                        latest = own;
                        *ret_ms = shard_curve_ms(&moment);
                }
        }
        return latest;
}

/* remaining / batch steps of (current - new) against the cost: current r >= new r + cost b. */
static bool gain_reaches_cost(const struct reshard_request *request, struct exact_time current,
                              struct exact_time new, uint64_t remaining)
{
        struct decimal decimal = { 0 };
        struct exact_time cost;

        (void) decimal_from_double(request->cost_ms, &decimal); /* was checked */
        cost = (struct exact_time){ .term = { exact_product(decimal, request->batch) }, .count = 1 };
        current = exact_scale(current, remaining);
        new = exact_scale(new, remaining);
        new = exact_add(&new, &cost);
        return exact_compare(&current, &new) >= 0;
}

/* The workers that are not gone, planned anew, against the plan in force. */
struct fresh {
        struct shard_worker *workers; /* [count] */
        uint64_t *in_force, *planned; /* [count] shares */
        struct shard *shards;
        size_t count;
};

static int plan_fresh(const struct reshard_request *request, struct fresh *fresh, struct reshard_plan *plan,
                      struct err *err)
{
        struct shards_plan shards;
        struct shard_curves curves;
        struct exact_time current, new;
        bool same = true;
        int r;

        for (size_t i = 0; i < request->count; i++)
                if (!request->workers[i].gone) {
                        fresh->workers[fresh->count] = request->workers[i].model;
                        fresh->workers[fresh->count].multiple = 0; /* the curves below count in samples */
                        fresh->in_force[fresh->count++] = request->workers[i].batch;
                }
        if (fresh->count == 0)
                return err_set(err, -ERANGE, "measured: every worker is gone; add one that is not");
        r = shard_curves_make(fresh->workers, fresh->count, request->batch, &curves, err);
        if (r < 0)
                return r;
        for (size_t i = 0, at = 0; i < request->count; i++)
                if (!request->workers[i].gone)
                        fresh->workers[at++].multiple = request->workers[i].model.multiple;
        r = shards_plan(fresh->workers, fresh->count, request->batch, fresh->shards, &shards, err);
        if (r == 0) {
                for (size_t i = 0; i < fresh->count; i++) {
                        fresh->planned[i] = fresh->shards[i].batch;
                        same = same && fresh->planned[i] == fresh->in_force[i];
                }
                current = slowest(&curves, fresh->in_force, &plan->current_step_ms);
                new = slowest(&curves, fresh->planned, &plan->new_step_ms);
                plan->change = plan->forced || (!same && plan->remaining > 0 &&
                                                gain_reaches_cost(request, current, new, plan->remaining));
                plan->gain_ms = (plan->current_step_ms - plan->new_step_ms) *
                                ((double) plan->remaining / (double) request->batch);
        }
        shard_curves_free(&curves);
        return r;
}

static int decide(const struct reshard_request *request, struct reshard_plan *plan, struct err *err)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(request->count, sizeof(*workers));
        CLEANUP(free_p) uint64_t *shares = calloc(2 * request->count, sizeof(*shares));
        CLEANUP(free_p) struct shard *shards = calloc(request->count, sizeof(*shards));
        struct fresh fresh = { .workers = workers, .in_force = shares, .shards = shards };
        size_t at = 0;
        int r;

        if (workers == NULL || shares == NULL || shards == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu workers", request->count);
        fresh.planned = shares + request->count;
        r = plan_fresh(request, &fresh, plan, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < request->count; i++) {
                if (request->workers[i].gone)
                        continue;
                plan->shares[i].batch = plan->change ? fresh.planned[at] : fresh.in_force[at];
                plan->shares[i].step_ms =
                        shards_ms(&request->workers[i].model, (double) plan->shares[i].batch);
                at++;
        }
        return 0;
}

/* Gone, or measured to an end before its share. */
static bool cannot_go_on(const struct reshard_worker *worker)
{
        if (worker->batch == 0)
                return false;
        return worker->gone || (worker->model.model == SHARD_TABLE && worker->model.point_count > 0 &&
                                worker->model.points[worker->model.point_count - 1].samples < worker->batch);
}

static int check(const struct reshard_request *request, struct err *err)
{
        struct decimal unused;
        uint64_t total = 0;

        if (!decimal_from_double(request->cost_ms, &unused))
                return err_set(err, -EINVAL, "cost_ms: must be finite and not negative");
        for (size_t i = 0; i < request->count; i++)
                total += request->workers[i].batch;
        if (request->count == 0 || request->batch == 0 || total != request->batch)
                return err_set(err, -EINVAL, "plan: its shares do not add up to its batch");
        return 0;
}

static int make_plan(const struct reshard_request *request, struct sample_ranges *left,
                     struct reshard_plan *plan, struct err *err)
{
        int r = divide_used(request, plan->shares, left);

        if (r < 0)
                return err_set(err, r, "no memory for %zu workers", request->count);
        for (size_t i = 0; i < request->count; i++) {
                plan->remaining += sample_ranges_total(&left[i]);
                plan->forced = plan->forced || cannot_go_on(&request->workers[i]);
        }
        r = decide(request, plan, err);
        if (r < 0)
                return r;
        if (plan->change) {
                r = divide_left(request, plan, left);
                return r < 0 ? err_set(err, r, "no memory for %zu workers", request->count) : 0;
        }
        for (size_t i = 0; i < request->count; i++) {
                plan->shares[i].rest = left[i];
                left[i] = (struct sample_ranges){ 0 };
        }
        return 0;
}

int reshard_plan_make(const struct reshard_request *request, struct reshard_plan *ret, struct err *err)
{
        struct reshard_plan plan = { .count = request->count };
        struct sample_ranges *left;
        int r = check(request, err);

        if (r < 0)
                return r;
        plan.shares = calloc(request->count, sizeof(*plan.shares));
        left = calloc(request->count, sizeof(*left));
        if (plan.shares != NULL && left != NULL)
                r = make_plan(request, left, &plan, err);
        else
                r = err_set(err, -ENOMEM, "no memory for %zu workers", request->count);
        for (size_t i = 0; left != NULL && i < request->count; i++)
                sample_ranges_free(&left[i]);
        free(left);
        if (r < 0) {
                reshard_plan_free(&plan);
                return r;
        }
        *ret = plan;
        return 0;
}

void reshard_plan_free(struct reshard_plan *plan)
{
        for (size_t i = 0; plan->shares != NULL && i < plan->count; i++) {
                sample_ranges_free(&plan->shares[i].used);
                sample_ranges_free(&plan->shares[i].rest);
        }
        free(plan->shares);
        *plan = (struct reshard_plan){ 0 };
}
