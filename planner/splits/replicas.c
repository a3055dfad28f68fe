/* Mixes of devices are dealt out to pipelines, all ways or by exchange. */
#include "planner/splits/replicas.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define DEVICES_MAX 256

enum { TOO_MANY = 1 };

struct mix { /* a pipeline over so many devices of each class */
        unsigned counts[CHAIN_CLASSES_MAX];
        struct chain_plan plan; /* no stages: it cannot hold the model */
        double exchange_ms;     /* of its slowest device, once over its link */
};

struct deal { /* pipelines by their mixes, of which a step is made */
        size_t mixes[DEVICES_MAX];
        size_t count;
        double step_ms;
};

struct search {
        const struct chain_problem *problem;
        const uint64_t *params_bytes;
        size_t wanted;
        struct mix *mixes;
        size_t mix_count, mix_capacity;
        struct deal at, best;
        size_t tried;
};

static void search_free(struct search *s)
{
        for (size_t i = 0; i < s->mix_count; i++)
                chain_plan_free(&s->mixes[i].plan);
        free(s->mixes);
}

static double exchange_of(const struct search *s, const struct chain_plan *plan)
{
        double most = 0;

        for (size_t k = 0; k < plan->stage_count; k++) {
                const struct chain_stage *stage = &plan->stages[k];
                double bytes = 0;

                for (size_t i = stage->first; i <= stage->last; i++)
                        bytes += (double) s->params_bytes[i];
                most = fmax(most, bytes / s->problem->classes[stage->class_index].bytes_per_ms);
        }
        return most;
}

/* The mix of these counts, split once. Return: 0 or a negative errno. */
static int mix_of(struct search *s, const unsigned *counts, size_t *ret, struct err *err)
{
        struct chain_class classes[CHAIN_CLASSES_MAX];
        struct chain_problem problem = *s->problem;
        struct err why = { 0 };
        struct mix *mix;
        int r;

        for (size_t i = 0; i < s->mix_count; i++)
                if (memcmp(s->mixes[i].counts, counts, sizeof(s->mixes[i].counts)) == 0) {
                        *ret = i;
                        return 0;
                }
        mix = array_add(&s->mixes, &s->mix_count, &s->mix_capacity, sizeof(*mix));
        if (mix == NULL)
                return err_set(err, -ENOMEM, "no memory for the pipelines");
        *mix = (struct mix){ .exchange_ms = 0 };
        memcpy(mix->counts, counts, sizeof(mix->counts));
        for (size_t c = 0; c < problem.class_count; c++) {
                classes[c] = problem.classes[c];
                classes[c].count = counts[c];
        }
        problem.classes = classes;
        *ret = s->mix_count - 1;
        r = chain_split(&problem, &mix->plan, &why); /* one that does not fit is an answer */
        if (r < 0)
                return err_set(err, r, "%s", why.msg);
        mix->exchange_ms = exchange_of(s, &mix->plan);
        return 0;
}

/* Microbatches that a pipeline has done by then. */
static uint64_t done_by(const struct chain_plan *plan, double ms)
{
        if (ms < plan->latency_ms)
                return 0;
        return plan->period_ms > 0 ? (uint64_t) ((ms - plan->latency_ms) / plan->period_ms * (1 + 1e-12)) + 1
                                   : UINT32_MAX;
}

static double step_of(const struct chain_plan *plan, unsigned microbatches)
{
        return plan->latency_ms + plan->period_ms * (microbatches - 1);
}

/* Who would be done first with one microbatch more? */
static size_t first_done(const struct search *s, const struct deal *deal, const unsigned *given)
{
        size_t first = 0;

        for (size_t i = 1; i < deal->count; i++)
                if (step_of(&s->mixes[deal->mixes[i]].plan, given[i] + 1) <
                    step_of(&s->mixes[deal->mixes[first]].plan, given[first] + 1))
                        first = i;
        return first;
}

/* Shares the microbatches: each goes to whoever would be done with it first. @ret: of each pipeline, one at
 * least, or NULL. Return: the longest; INFINITY where there are fewer microbatches than pipelines. */
static double share(const struct search *s, const struct deal *deal, unsigned *ret)
{
        unsigned given[DEVICES_MAX], left = s->problem->microbatches;
        double low = 0, high = 0, longest = 0;

        if (deal->count == 0 || deal->count > left)
                return INFINITY;
        for (size_t i = 0; i < deal->count; i++) {
                const struct chain_plan *plan = &s->mixes[deal->mixes[i]].plan;

                if (plan->stage_count == 0)
                        return INFINITY;
                high = fmax(high, step_of(plan, left));
        }
        for (unsigned n = 0; n < 60; n++) { /* below `low` not all can be done */
                double middle = (low + high) / 2;
                uint64_t sum = 0;

                for (size_t i = 0; i < deal->count; i++)
                        sum += done_by(&s->mixes[deal->mixes[i]].plan, middle);
                if (sum < left)
                        low = middle;
                else
                        high = middle;
        }
        for (size_t i = 0; i < deal->count; i++) {
                uint64_t done = done_by(&s->mixes[deal->mixes[i]].plan, low);

                given[i] = done < 1 ? 1 : done > left ? left : (unsigned) done;
                left -= left < given[i] ? left : given[i];
                if (left < deal->count - i - 1) { /* each of those that follow needs one */
                        given[i] -= (unsigned) (deal->count - i - 1) - left;
                        left = (unsigned) (deal->count - i - 1);
                }
        }
        for (; left > 0; left--)
                given[first_done(s, deal, given)]++;
        for (size_t i = 0; i < deal->count; i++)
                longest = fmax(longest, step_of(&s->mixes[deal->mixes[i]].plan, given[i]));
        if (ret != NULL)
                memcpy(ret, given, deal->count * sizeof(*ret));
        return longest;
}

static double exchange_ms(const struct search *s, const struct deal *deal)
{
        double most = 0, n = (double) deal->count;

        for (size_t i = 0; i < deal->count; i++)
                most = fmax(most, s->mixes[deal->mixes[i]].exchange_ms);
        return 2 * (n - 1) / n * most;
}

/* Is it the best so far? */
static bool judge(struct search *s, struct deal *deal)
{
        deal->step_ms = share(s, deal, NULL);
        if (isfinite(deal->step_ms))
                deal->step_ms += exchange_ms(s, deal);
        if ((s->wanted > 0 && deal->count != s->wanted) || !(deal->step_ms < s->best.step_ms * (1 - 1e-12)))
                return false;
        s->best = *deal;
        return true;
}

/* All ways to deal out what is left, in mixes that do not grow: each set of pipelines once. What is left at
 * the end may stay idle. Recursion is bounded by the devices. Return: 0, TOO_MANY ways, or a negative errno.
 */
static int deal_out(struct search *s, unsigned *left, const unsigned *most, struct err *err)
{
        unsigned counts[CHAIN_CLASSES_MAX] = { 0 };
        size_t classes = s->problem->class_count;

        if (++s->tried > REPLICAS_TRIED)
                return TOO_MANY;
        (void) judge(s, &s->at);
        for (;;) { /* the next mix in order, of what is left */
                size_t c = 0, mix;
                int r, order = 0;

                if (++s->tried > REPLICAS_TRIED)
                        return TOO_MANY; /* mixes too small to hold the model are ways that were tried */
                while (c < classes && counts[c] == left[c])
                        counts[c++] = 0;
                if (c == classes)
                        return 0;
                counts[c]++;
                for (size_t k = classes; k-- > 0 && order == 0;)
                        order = (counts[k] > most[k]) - (counts[k] < most[k]);
                if (order > 0)
                        return 0; /* and so are all that follow */
                r = mix_of(s, counts, &mix, err);
                if (r < 0)
                        return r;
                if (s->mixes[mix].plan.stage_count == 0 || s->at.count == DEVICES_MAX)
                        continue;
                for (size_t k = 0; k < classes; k++)
                        left[k] -= counts[k];
                s->at.mixes[s->at.count++] = mix;
                r = deal_out(s, left, counts, err);
                s->at.count--;
                for (size_t k = 0; k < classes; k++)
                        left[k] += counts[k];
                if (r != 0)
                        return r;
        }
}

/* Dealt out in turn, class by class: pipeline i has each n-th device. */
static int start_deal(struct search *s, size_t n, struct deal *ret, struct err *err)
{
        size_t next = 0;
        unsigned counts[DEVICES_MAX][CHAIN_CLASSES_MAX] = { { 0 } };

        *ret = (struct deal){ .count = n };
        for (size_t c = 0; c < s->problem->class_count; c++)
                for (unsigned u = 0; u < s->problem->classes[c].count; u++)
                        counts[next++ % n][c]++;
        for (size_t i = 0; i < n; i++) {
                int r = mix_of(s, counts[i], &ret->mixes[i], err);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* A device of class @a from one pipeline to another, one of class @b back (class_count: none). */
static int try_move(struct search *s, struct deal *deal, const size_t pair[2], size_t a, size_t b,
                    struct err *err)
{
        unsigned from[CHAIN_CLASSES_MAX], to[CHAIN_CLASSES_MAX];
        struct deal moved = *deal;
        unsigned devices = 0;
        int r;

        memcpy(from, s->mixes[deal->mixes[pair[0]]].counts, sizeof(from));
        memcpy(to, s->mixes[deal->mixes[pair[1]]].counts, sizeof(to));
        if (from[a] == 0 || (b < s->problem->class_count && to[b] == 0))
                return 0;
        from[a]--;
        to[a]++;
        if (b < s->problem->class_count) {
                from[b]++;
                to[b]--;
        }
        for (size_t c = 0; c < s->problem->class_count; c++)
                devices += from[c];
        if (devices == 0)
                return 0;
        r = mix_of(s, from, &moved.mixes[pair[0]], err);
        if (r == 0)
                r = mix_of(s, to, &moved.mixes[pair[1]], err);
        if (r < 0)
                return r;
        moved.step_ms = share(s, &moved, NULL);
        moved.step_ms += isfinite(moved.step_ms) ? exchange_ms(s, &moved) : 0;
        if (!(moved.step_ms < deal->step_ms * (1 - 1e-9)))
                return 0;
        *deal = moved;
        return 1;
}

static int improve(struct search *s, struct deal *deal, struct err *err)
{
        size_t classes = s->problem->class_count;
        bool better = true;

        while (better && s->tried < (uint64_t) 4 * REPLICAS_TRIED) {
                better = false;
                for (size_t i = 0; i < deal->count; i++)
                        for (size_t j = 0; j < deal->count; j++)
                                for (size_t x = 0; i != j && x < classes * (classes + 1); x++) {
                                        const size_t pair[2] = { i, j };
                                        int r = try_move(s, deal, pair, x % classes, x / classes, err);

                                        s->tried++;
                                        if (r < 0)
                                                return r;
                                        better = better || r > 0;
                                }
        }
        (void) judge(s, deal);
        return 0;
}

static int search_by_exchange(struct search *s, size_t devices, struct err *err)
{
        size_t first = s->wanted > 0 ? s->wanted : 1, last = s->wanted > 0 ? s->wanted : devices;

        for (size_t n = first; n <= last && n <= s->problem->microbatches; n++) {
                struct deal deal;
                int r = start_deal(s, n, &deal, err);

                s->tried = 0;
                if (r == 0) {
                        (void) judge(s, &deal);
                        r = improve(s, &deal, err);
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Steps of either alone. Each device that holds the model is a replica, as many of the fastest as help. */
static int alone(struct search *s, struct replicas_plan *ret, struct err *err)
{
        unsigned counts[CHAIN_CLASSES_MAX] = { 0 };
        struct deal deal = { .count = 1 };
        int r;

        for (size_t c = 0; c < s->problem->class_count; c++)
                counts[c] = s->problem->classes[c].count;
        r = mix_of(s, counts, &deal.mixes[0], err);
        if (r < 0)
                return r;
        ret->pipeline_ms = share(s, &deal, NULL);
        ret->data_ms = INFINITY;
        deal.count = 0;
        for (;;) { /* the fastest device that is left */
                size_t fastest = SIZE_MAX, class = 0, mix;

                for (size_t c = 0; c < s->problem->class_count; c++) {
                        unsigned one[CHAIN_CLASSES_MAX] = { 0 };

                        one[c] = 1;
                        if (counts[c] == 0)
                                continue;
                        r = mix_of(s, one, &mix, err);
                        if (r < 0)
                                return r;
                        if (s->mixes[mix].plan.stage_count > 0 &&
                            (fastest == SIZE_MAX ||
                             s->mixes[mix].plan.period_ms < s->mixes[fastest].plan.period_ms)) {
                                fastest = mix;
                                class = c;
                        }
                }
                if (fastest == SIZE_MAX || deal.count == s->problem->microbatches)
                        break;
                counts[class]--;
                deal.mixes[deal.count++] = fastest;
                ret->data_ms = fmin(ret->data_ms, share(s, &deal, NULL) + exchange_ms(s, &deal));
        }
        ret->pipeline_ms = isfinite(ret->pipeline_ms) ? ret->pipeline_ms : -1;
        ret->data_ms = isfinite(ret->data_ms) ? ret->data_ms : -1;
        return 0;
}

static int copy_best(struct search *s, struct replicas_plan *plan)
{
        unsigned given[DEVICES_MAX] = { 0 };

        plan->replicas = calloc(s->best.count, sizeof(*plan->replicas));
        if (plan->replicas == NULL)
                return -ENOMEM;
        plan->count = s->best.count;
        (void) share(s, &s->best, given);
        for (size_t i = 0; i < plan->count; i++) {
                struct chain_plan *from = &s->mixes[s->best.mixes[i]].plan, *to = &plan->replicas[i].plan;

                *to = *from;
                to->stages = calloc(from->stage_count, sizeof(*to->stages));
                if (to->stages == NULL)
                        return -ENOMEM;
                memcpy(to->stages, from->stages, from->stage_count * sizeof(*to->stages));
                plan->replicas[i].microbatches = given[i];
                plan->replicas[i].step_ms = step_of(from, given[i]);
        }
        plan->step_ms = s->best.step_ms;
        plan->exchange_ms = exchange_ms(s, &s->best);
        return 0;
}

int replicas_plan(const struct chain_problem *problem, const uint64_t *params_bytes, size_t count,
                  struct replicas_plan *ret, struct err *err)
{
        CLEANUP(search_free)
        struct search s = { .problem = problem, .params_bytes = params_bytes, .wanted = count };
        unsigned left[CHAIN_CLASSES_MAX] = { 0 }, most[CHAIN_CLASSES_MAX] = { 0 };
        struct replicas_plan plan = { .exact = true };
        size_t devices = 0;
        int r;

        for (size_t c = 0; c < problem->class_count; c++) {
                left[c] = most[c] = problem->classes[c].count;
                devices += problem->classes[c].count;
        }
        if (devices > DEVICES_MAX)
                return err_set(err, -EINVAL, "%zu devices; at most %d are dealt out to replicas", devices,
                               DEVICES_MAX);
        if (count > devices || count > problem->microbatches)
                return err_set(err, -EINVAL, "%zu replicas of %zu devices and %u microbatches; ask for fewer",
                               count, devices, problem->microbatches);
        s.best.step_ms = INFINITY;
        r = alone(&s, &plan, err);
        if (r == 0)
                r = deal_out(&s, left, most, err);
        if (r == TOO_MANY) {
                plan.exact = false;
                s.at.count = 0;
                r = search_by_exchange(&s, devices, err);
        }
        if (r == 0 && s.best.count == 0)
                return err_set(
                        err, CHAIN_NO_FIT,
                        "no %spipelines over the devices hold the model; add devices or memory, or fewer "
                        "microbatches",
                        count > 0 ? "such number of " : "");
        if (r == 0)
                r = copy_best(&s, &plan);
        if (r < 0) {
                replicas_plan_free(&plan);
                return err != NULL && err->code != 0 ? r : err_set(err, r, "no memory for the replicas");
        }
        *ret = plan;
        return 0;
}

void replicas_plan_free(struct replicas_plan *plan)
{
        if (plan == NULL)
                return;
        for (size_t i = 0; i < plan->count; i++)
                chain_plan_free(&plan->replicas[i].plan);
        free(plan->replicas);
        *plan = (struct replicas_plan){ 0 };
}
