/* Mixes of workers are dealt out to pipelines, all ways or by exchange. */
#include "planner/splits/replicas.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/splits/replicas_mixes.h"

#define IMPROVED 4 /* numbers of pipelines that are improved, the best to begin with */

enum { TOO_MANY = 1 };

struct deal { /* pipelines by their mixes, of which a step is made, and who is idle */
        size_t mixes[REPLICAS_WORKERS_MAX];
        size_t count;
        uint16_t idle[REPLICAS_KINDS_MAX];
        double step_ms;
};

struct search {
        const struct pipeline_problem *problem;
        struct replicas_mixes of;
        size_t wanted;
        struct deal at, best;
        double alone_ms; /* the best step of one pipeline, whatever is wanted */
        size_t tried;
        double most_spent;
};

static bool is_spent(const struct search *s)
{
        return s->of.spent > s->most_spent;
}

/* Microbatches that a pipeline has done by then. */
static uint64_t done_by(const struct pipeline_plan *plan, double ms)
{
        if (ms < plan->sum_ms)
                return 0;
        return plan->period_ms > 0 ? (uint64_t) ((ms - plan->sum_ms) / plan->period_ms * (1 + 1e-12)) + 1
                                   : UINT32_MAX;
}

/* Who would be done first with one microbatch more? */
static size_t first_done(const struct search *s, const struct deal *deal, const unsigned *given)
{
        size_t first = 0;

        for (size_t i = 1; i < deal->count; i++)
                if (pipeline_step_ms(&s->of.mixes[deal->mixes[i]].plan, given[i] + 1) <
                    pipeline_step_ms(&s->of.mixes[deal->mixes[first]].plan, given[first] + 1))
                        first = i;
        return first;
}

/* Shares the microbatches: each goes to whoever would be done with it first. @ret: of each pipeline, one at
 * least, or NULL. Return: the longest; INFINITY where there are fewer microbatches than pipelines. */
static double share(const struct search *s, const struct deal *deal, unsigned *ret)
{
        unsigned given[REPLICAS_WORKERS_MAX], left = s->problem->microbatches;
        double low = 0, high = 0, longest = 0;

        if (deal->count == 0 || deal->count > left)
                return INFINITY;
        for (size_t i = 0; i < deal->count; i++) {
                const struct pipeline_plan *plan = &s->of.mixes[deal->mixes[i]].plan;

                if (plan->stage_count == 0)
                        return INFINITY;
                high = fmax(high, pipeline_step_ms(plan, left));
        }
        for (unsigned n = 0; n < 60; n++) { /* below `low` not all can be done */
                double middle = (low + high) / 2;
                uint64_t sum = 0;

                for (size_t i = 0; i < deal->count; i++)
                        sum += done_by(&s->of.mixes[deal->mixes[i]].plan, middle);
                if (sum < left)
                        low = middle;
                else
                        high = middle;
        }
        for (size_t i = 0; i < deal->count; i++) {
                uint64_t done = done_by(&s->of.mixes[deal->mixes[i]].plan, low);

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
                longest = fmax(longest, pipeline_step_ms(&s->of.mixes[deal->mixes[i]].plan, given[i]));
        if (ret != NULL)
                memcpy(ret, given, deal->count * sizeof(*ret));
        return longest;
}

/* In a ring of the pipelines; over links inside a node where all are on one. */
static double exchange_ms(const struct search *s, const struct deal *deal)
{
        double most = 0, inside = 0, n = (double) deal->count;
        size_t node = s->of.mixes[deal->mixes[0]].node;

        for (size_t i = 0; i < deal->count; i++) {
                const struct replicas_mixes_mix *mix = &s->of.mixes[deal->mixes[i]];

                most = fmax(most, mix->exchange_ms);
                inside = fmax(inside, mix->inside_ms);
                if (node == REPLICAS_UNALIKE || mix->node == REPLICAS_UNALIKE ||
                    replicas_mixes_worker(&s->of, node)->node !=
                            replicas_mixes_worker(&s->of, mix->node)->node)
                        node = REPLICAS_UNALIKE;
        }
        return n < 2 ? 0 : 2 * (n - 1) / n * (node == REPLICAS_UNALIKE ? most : inside);
}

/* Sharing takes as long as there are pipelines, whether or not their plans were made before. */
static double step_of(struct search *s, const struct deal *deal)
{
        double ms = share(s, deal, NULL);

        s->of.spent += (double) deal->count;
        return isfinite(ms) ? ms + exchange_ms(s, deal) : ms;
}

/* Does everybody take part who must? */
static bool may_idle(const struct search *s, const uint16_t *idle)
{
        unsigned chips[PIPELINE_ROLES_MAX] = { 0 };

        for (size_t k = 0; k < s->of.kind_count; k++)
                chips[replicas_mixes_worker(&s->of, k)->role] +=
                        (s->of.kinds[k].count - idle[k]) * replicas_mixes_worker(&s->of, k)->chips;
        for (size_t r = 0; r < PIPELINE_ROLES_MAX; r++)
                if (chips[r] < s->problem->min_chips[r])
                        return false;
        return true;
}

/* Is it the best so far? Costs @deal its step. */
static void judge(struct search *s, struct deal *deal)
{
        deal->step_ms = may_idle(s, deal->idle) ? step_of(s, deal) : INFINITY;
        if (deal->count == 1)
                s->alone_ms = fmin(s->alone_ms, deal->step_ms);
        if ((s->wanted == 0 || deal->count == s->wanted) && deal->step_ms < s->best.step_ms * (1 - 1e-12))
                s->best = *deal;
}

/* Adds a pipeline of the mix to the deal, of those who are idle; takes the last one away. */
static void add_mix(const struct search *s, struct deal *deal, size_t mix)
{
        for (size_t k = 0; k < s->of.kind_count; k++)
                deal->idle[k] = (uint16_t) (deal->idle[k] - s->of.mixes[mix].counts[k]);
        deal->mixes[deal->count++] = mix;
}

static void take_mix(const struct search *s, struct deal *deal)
{
        const struct replicas_mixes_mix *mix = &s->of.mixes[deal->mixes[--deal->count]];

        for (size_t k = 0; k < s->of.kind_count; k++)
                deal->idle[k] = (uint16_t) (deal->idle[k] + mix->counts[k]);
}

static void all_idle(const struct search *s, struct deal *deal)
{
        *deal = (struct deal){ .step_ms = INFINITY };
        for (size_t k = 0; k < s->of.kind_count; k++)
                deal->idle[k] = (uint16_t) s->of.kinds[k].count;
}

/* All ways to deal out who is idle yet, in mixes that do not grow: each set of pipelines once. Recursion is
 * bounded by the workers. Return: 0, TOO_MANY ways, or -ENOMEM. */
static int deal_out(struct search *s, const uint16_t *most, struct err *err)
{
        uint16_t counts[REPLICAS_KINDS_MAX] = { 0 };

        if (++s->tried > REPLICAS_TRIED || is_spent(s))
                return TOO_MANY;
        judge(s, &s->at);
        for (;;) { /* the next mix in order, of what is left */
                size_t k = 0, mix;
                int r, order = 0;

                if (++s->tried > REPLICAS_TRIED || is_spent(s))
                        return TOO_MANY; /* mixes too small to hold the model are ways that were tried */
                while (k < s->of.kind_count && counts[k] == s->at.idle[k])
                        counts[k++] = 0;
                if (k == s->of.kind_count)
                        return 0;
                counts[k]++;
                for (k = s->of.kind_count; k-- > 0 && order == 0;)
                        order = (counts[k] > most[k]) - (counts[k] < most[k]);
                if (order > 0)
                        return 0; /* and so are all that follow */
                r = replicas_mixes_find(&s->of, counts, &mix, err);
                if (r < 0)
                        return r;
                if (s->of.mixes[mix].plan.stage_count == 0)
                        continue;
                add_mix(s, &s->at, mix);
                r = deal_out(s, counts, err);
                take_mix(s, &s->at);
                if (r != 0)
                        return r;
        }
}

enum start {
        START_IN_TURN, /* pipeline i has each n-th worker: all are alike */
        START_BLOCKS,  /* workers of a kind stay together */
        START_COUNT
};

static int start_deal(struct search *s, size_t n, enum start start, struct deal *ret, struct err *err)
{
        size_t next = 0, workers = s->problem->worker_count;
        CLEANUP(free_p) uint16_t(*counts)[REPLICAS_KINDS_MAX] = calloc(n + 1, sizeof(*counts));

        all_idle(s, ret);
        if (counts == NULL)
                return err_set(err, -ENOMEM, "no memory for the pipelines");
        for (size_t k = 0; k < s->of.kind_count; k++)
                for (unsigned u = 0; u < s->of.kinds[k].count; u++, next++)
                        counts[start == START_IN_TURN ? next % n : next * n / workers][k]++;
        for (size_t i = 0; i < n; i++) {
                size_t mix;
                int r = replicas_mixes_find(&s->of, counts[i], &mix, err);

                if (r < 0)
                        return r;
                add_mix(s, ret, mix);
        }
        return 0;
}

/* Counts of a deal's i-th pipeline; of those who are idle: i = count. */
static const uint16_t *counts_of(const struct search *s, const struct deal *deal, size_t i)
{
        return i == deal->count ? deal->idle : s->of.mixes[deal->mixes[i]].counts;
}

static int set_counts(struct search *s, struct deal *deal, size_t i, const uint16_t *counts, struct err *err)
{
        if (i < deal->count)
                return replicas_mixes_find(&s->of, counts, &deal->mixes[i], err);
        memcpy(deal->idle, counts, sizeof(deal->idle));
        return 0;
}

/* A worker of kind @a from one pipeline to another, one of kind @b back (kind_count: none). Return: 1 = the
 * step is shorter, and it is done; 0; -ENOMEM. */
static int try_move(struct search *s, struct deal *deal, const size_t pair[2], size_t a, size_t b,
                    struct err *err)
{
        uint16_t from[REPLICAS_KINDS_MAX], to[REPLICAS_KINDS_MAX];
        struct deal moved;
        int r;

        memcpy(from, counts_of(s, deal, pair[0]), sizeof(from));
        memcpy(to, counts_of(s, deal, pair[1]), sizeof(to));
        if (a == b || from[a] == 0 || (b < s->of.kind_count && to[b] == 0))
                return 0;
        from[a]--;
        to[a]++;
        if (b < s->of.kind_count) {
                from[b]++;
                to[b]--;
        }
        s->tried++;
        moved = *deal;
        r = set_counts(s, &moved, pair[0], from, err);
        if (r == 0)
                r = set_counts(s, &moved, pair[1], to, err);
        if (r < 0)
                return r;
        moved.step_ms = may_idle(s, moved.idle) ? step_of(s, &moved) : INFINITY;
        if (!(moved.step_ms < deal->step_ms * (1 - 1e-9)))
                return 0;
        *deal = moved;
        return 1;
}

static int improve(struct search *s, struct deal *deal, struct err *err)
{
        size_t kinds = s->of.kind_count, moves = kinds * (kinds + 1);
        bool better = true;

        s->tried = 0;
        while (better && s->tried < (size_t) 4 * REPLICAS_TRIED && !is_spent(s)) {
                better = false;
                for (size_t i = 0; i <= deal->count; i++)
                        for (size_t j = 0; j <= deal->count; j++)
                                for (size_t x = 0; i != j && x < moves && !is_spent(s); x++) {
                                        const size_t pair[2] = { i, j };
                                        int r = try_move(s, deal, pair, x % kinds, x / kinds, err);

                                        if (r < 0)
                                                return r;
                                        better = better || r > 0;
                                }
        }
        judge(s, deal);
        return 0;
}

/* Puts a deal where it belongs among the best ones. */
static void keep_best(struct deal *best, struct deal deal)
{
        for (size_t i = 0; i < IMPROVED; i++)
                if (deal.step_ms < best[i].step_ms) {
                        struct deal other = best[i];

                        best[i] = deal;
                        deal = other;
                }
}

/* Every start of so many pipelines. */
static int try_starts(struct search *s, size_t n, struct deal *best, struct err *err)
{
        for (unsigned start = 0; start < START_COUNT; start++) {
                struct deal deal;
                int r = start_deal(s, n, (enum start) start, &deal, err);

                if (r < 0)
                        return r;
                judge(s, &deal);
                keep_best(best, deal);
        }
        return 0;
}

/* Numbers of pipelines by their best start; the best few are improved, and so is the best of all ways that
 * were tried before they were too many. */
static int search_by_exchange(struct search *s, struct err *err)
{
        size_t first = s->wanted > 0 ? s->wanted : 1;
        size_t last = s->wanted > 0 ? s->wanted : s->problem->worker_count;
        struct deal best[IMPROVED + 1];
        double all = s->most_spent;
        int r = 0;

        for (size_t i = 0; i < IMPROVED; i++)
                best[i].step_ms = INFINITY;
        for (size_t n = first; r == 0 && n <= last && n <= s->problem->microbatches; n++)
                if (n == first || !is_spent(s))
                        r = try_starts(s, n, best, err);
        best[IMPROVED] = s->best; /* none yet: its step is INFINITY */
        for (size_t i = 0; r == 0 && i <= IMPROVED; i++) {
                s->most_spent = s->of.spent + all / (IMPROVED + 1);
                if (isfinite(best[i].step_ms))
                        r = improve(s, &best[i], err);
        }
        return r;
}

/* Each worker that holds the model is a replica, as many of the fastest as help. */
static int data_alone(struct search *s, struct replicas_plan *ret, struct err *err)
{
        struct deal deal;

        all_idle(s, &deal);
        ret->data_ms = INFINITY;
        while (deal.count < s->problem->microbatches) { /* the fastest one that is left */
                size_t fastest = SIZE_MAX, mix;

                for (size_t k = 0; k < s->of.kind_count; k++) {
                        uint16_t one[REPLICAS_KINDS_MAX] = { 0 };
                        int r;

                        one[k] = 1;
                        if (deal.idle[k] == 0 || replicas_mixes_worker(&s->of, k)->chips > 1)
                                continue;
                        r = replicas_mixes_find(&s->of, one, &mix, err);
                        if (r < 0)
                                return r;
                        if (s->of.mixes[mix].plan.stage_count > 0 &&
                            (fastest == SIZE_MAX ||
                             s->of.mixes[mix].plan.period_ms < s->of.mixes[fastest].plan.period_ms))
                                fastest = mix;
                }
                if (fastest == SIZE_MAX)
                        break;
                add_mix(s, &deal, fastest);
                judge(s, &deal);
                ret->data_ms = fmin(ret->data_ms, step_of(s, &deal));
        }
        return 0;
}

/* One pipeline over whoever makes it the shortest, which is what there is without replicas; others of one
 * pipeline come with the search. */
static int pipeline_alone(struct search *s, struct err *err)
{
        struct pipeline_plan plan = { 0 };
        uint16_t counts[REPLICAS_KINDS_MAX] = { 0 };
        struct deal deal;
        size_t mix;
        int r = pipeline_plan(s->problem, &plan, err);

        s->of.spent += r == 0 ? plan.effort_spent : 0;
        for (size_t k = 0; r == 0 && k < plan.stage_count; k++)
                if (k == 0 || plan.stages[k].worker != plan.stages[k - 1].worker)
                        counts[s->of.kind_of[plan.stages[k].worker]]++;
        pipeline_plan_free(&plan);
        if (r == 0)
                r = replicas_mixes_find(&s->of, counts, &mix, err);
        if (r != 0)
                return r == -ENOMEM ? r : 0; /* none that holds the model is an answer */
        all_idle(s, &deal);
        add_mix(s, &deal, mix);
        judge(s, &deal);
        return 0;
}

/* The next worker of a kind that is nobody's yet. */
static size_t take_worker(const struct search *s, size_t kind, bool *taken)
{
        size_t i = 0;

        while (taken[i] || s->of.kind_of[i] != kind)
                i++;
        taken[i] = true;
        return i;
}

/* A mix's plan over workers of the problem. */
static int copy_plan(const struct search *s, const struct pipeline_plan *from, bool *taken,
                     struct pipeline_plan *to)
{
        size_t chip = 0;

        *to = *from;
        to->stages = calloc(from->stage_count, sizeof(*to->stages));
        if (to->stages == NULL)
                return -ENOMEM;
        for (size_t k = 0; k < to->stage_count; k++) {
                size_t kind = from->stages[k].worker;

                to->stages[k] = from->stages[k];
                to->stages[k].worker = chip > 0 ? to->stages[k - 1].worker : take_worker(s, kind, taken);
                chip = chip + 1 == replicas_mixes_worker(&s->of, kind)->chips ? 0 : chip + 1;
        }
        return 0;
}

static int copy_best(struct search *s, struct replicas_plan *plan)
{
        CLEANUP(free_p) bool *taken = calloc(s->problem->worker_count + 1, sizeof(*taken));
        unsigned given[REPLICAS_WORKERS_MAX] = { 0 };
        int r = 0;

        plan->replicas = calloc(s->best.count, sizeof(*plan->replicas));
        if (plan->replicas == NULL || taken == NULL)
                return -ENOMEM;
        plan->count = s->best.count;
        (void) share(s, &s->best, given);
        for (size_t i = 0; r == 0 && i < plan->count; i++) {
                const struct pipeline_plan *from = &s->of.mixes[s->best.mixes[i]].plan;

                plan->replicas[i].microbatches = given[i];
                plan->replicas[i].step_ms = pipeline_step_ms(from, given[i]);
                r = copy_plan(s, from, taken, &plan->replicas[i].plan);
        }
        plan->step_ms = s->best.step_ms;
        plan->exchange_ms = exchange_ms(s, &s->best);
        plan->exact = plan->exact && s->of.exact;
        plan->effort_spent = s->of.spent;
        return r;
}

static int check(const struct pipeline_problem *problem, size_t count, struct err *err)
{
        if (problem->layer_count == 0 || problem->layer_count > PIPELINE_LAYERS_MAX ||
            problem->worker_count == 0 || problem->microbatches == 0 || !(problem->effort > 0))
                return err_set(err, -EINVAL,
                               "1 to %d layers, a chip and a microbatch or more, and an effort, are needed "
                               "for replicas",
                               PIPELINE_LAYERS_MAX);
        if (problem->worker_count > REPLICAS_WORKERS_MAX)
                return err_set(err, -EINVAL, "%zu devices; at most %d are dealt out to replicas",
                               problem->worker_count, REPLICAS_WORKERS_MAX);
        if (count > problem->worker_count || count > problem->microbatches)
                return err_set(err, -EINVAL, "%zu replicas of %zu devices and %u microbatches; ask for fewer",
                               count, problem->worker_count, problem->microbatches);
        return 0;
}

static int search(struct search *s, struct replicas_plan *plan, struct err *err)
{
        uint16_t most[REPLICAS_KINDS_MAX];
        int r;

        s->best.step_ms = s->alone_ms = INFINITY;
        s->most_spent = 2 * s->problem->effort;
        r = pipeline_alone(s, err);
        if (r == 0)
                r = data_alone(s, plan, err);
        if (r < 0)
                return r;
        all_idle(s, &s->at);
        memcpy(most, s->at.idle, sizeof(most));
        r = deal_out(s, most, err);
        if (r == TOO_MANY) {
                plan->exact = false;
                s->most_spent = s->of.spent + 2 * s->problem->effort;
                r = search_by_exchange(s, err);
        }
        if (r == 0 && s->best.count == 0)
                return err_set(err, PIPELINE_NO_FIT,
                               "no %spipelines over the devices hold the model; add devices or memory, or "
                               "fewer microbatches",
                               s->wanted > 0 ? "such number of " : "");
        return r;
}

int replicas_plan(const struct pipeline_problem *problem, const uint64_t *params_bytes, size_t count,
                  struct replicas_plan *ret, struct err *err)
{
        struct search s = { .problem = problem, .wanted = count };
        struct replicas_plan plan = { .exact = true };
        int r = check(problem, count, err);

        if (r != 0)
                return r;
        r = replicas_mixes_init(&s.of, problem, params_bytes, err);
        if (r == 0)
                r = search(&s, &plan, err);
        if (r == 0 && copy_best(&s, &plan) < 0)
                r = err_set(err, -ENOMEM, "no memory for the replicas");
        replicas_mixes_free(&s.of);
        if (r != 0) {
                replicas_plan_free(&plan);
                return r;
        }
        plan.pipeline_ms = isfinite(s.alone_ms) ? s.alone_ms : -1;
        plan.data_ms = isfinite(plan.data_ms) ? plan.data_ms : -1;
        *ret = plan;
        return 0;
}

void replicas_plan_free(struct replicas_plan *plan)
{
        if (plan == NULL)
                return;
        for (size_t i = 0; i < plan->count; i++)
                pipeline_plan_free(&plan->replicas[i].plan);
        free(plan->replicas);
        *plan = (struct replicas_plan){ 0 };
}
