/* Replicas of pipelines: against every assignment of chips to pipelines, of cuts to those in every order of
 * their chips, and of microbatches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/splits/replicas.h"
#include "tests/support/slowness.h"

#define LAYERS  5
#define WORKERS 5

static double ms[3][64];
static struct pipeline_layer layers[64];
static struct pipeline_worker workers[64];
static uint64_t params[64];

/* A pipeline of the chips, by the definitions. */
struct shape {
        double period, sum, exchange, inside;
};

static double link_of(const struct pipeline_worker *a, const struct pipeline_worker *b)
{
        if (a->inside_bytes_per_ms > 0 && b->inside_bytes_per_ms > 0 && a->node == b->node)
                return fmin(a->inside_bytes_per_ms, b->inside_bytes_per_ms);
        return fmin(a->bytes_per_ms, b->bytes_per_ms);
}

/* The cut that ends at these layers over the chips in their order. Return: does it fit? */
static bool shape_of(const struct pipeline_problem *p, const size_t *order, size_t count, const size_t *ends,
                     struct shape *ret)
{
        *ret = (struct shape){ 0 };
        for (size_t s = 0, i = 0; s < count; s++) {
                const struct pipeline_worker *w = &p->workers[order[s]];
                size_t from_end = count - s, held = from_end < p->microbatches ? from_end : p->microbatches;
                double load = 0, bytes = 0;
                uint64_t used = 0;

                if (i > 0)
                        load += 2 * (double) p->layers[i - 1].output_bytes /
                                link_of(w, &p->workers[order[s - 1]]);
                for (; i < ends[s]; i++) {
                        load += w->ms[i];
                        bytes += (double) params[i];
                        used += p->layers[i].state_bytes + held * p->layers[i].held_bytes;
                }
                if (s + 1 < count)
                        load += 2 * (double) p->layers[i - 1].output_bytes /
                                link_of(w, &p->workers[order[s + 1]]);
                if (used > w->memory_bytes)
                        return false;
                ret->period = fmax(ret->period, load);
                ret->sum += load;
                ret->exchange = fmax(ret->exchange, bytes / w->bytes_per_ms);
                ret->inside = fmax(ret->inside, bytes / w->inside_bytes_per_ms);
        }
        return true;
}

/* The best cut by period, then by sum, as pipeline.h promises. Of those that are alike in both the one whose
 * chips exchange the least, or the most. */
static bool ties_exchange_most;

static bool is_better(const struct shape *a, const struct shape *b)
{
        if (a->period < b->period * (1 - 1e-9))
                return true;
        if (a->period > b->period * (1 + 1e-9) || a->sum > b->sum * (1 + 1e-9))
                return false;
        return a->sum < b->sum * (1 - 1e-9) ||
               (ties_exchange_most ? a->exchange > b->exchange : a->exchange < b->exchange);
}

static void every_cut(const struct pipeline_problem *p, const size_t *order, size_t count, size_t *ends,
                      size_t s, struct shape *best)
{
        struct shape shape;

        if (s + 1 == count) {
                ends[s] = p->layer_count;
                if (shape_of(p, order, count, ends, &shape) && is_better(&shape, best))
                        *best = shape;
                return;
        }
        for (ends[s] = s == 0 ? 1 : ends[s - 1] + 1; ends[s] + (count - s - 1) <= p->layer_count; ends[s]++)
                every_cut(p, order, count, ends, s + 1, best);
}

static void every_order(const struct pipeline_problem *p, size_t *order, size_t count, size_t placed,
                        struct shape *best)
{
        size_t ends[WORKERS];

        if (placed == count && count <= p->layer_count)
                every_cut(p, order, count, ends, 0, best);
        for (size_t i = placed; i < count; i++) {
                size_t other = order[placed];

                order[placed] = order[i];
                order[i] = other;
                every_order(p, order, count, placed + 1, best);
                order[i] = order[placed];
                order[placed] = other;
        }
}

/* The least longest of all ways to give out the microbatches. */
static double every_share(const struct shape *of, size_t count, size_t i, unsigned left)
{
        double best = INFINITY;

        if (i + 1 == count)
                return left == 0 ? INFINITY : of[i].sum + of[i].period * (left - 1);
        for (unsigned m = 1; m + (count - i - 1) <= left; m++)
                best = fmin(best, fmax(of[i].sum + of[i].period * (m - 1),
                                       every_share(of, count, i + 1, left - m)));
        return best;
}

static bool enough(const struct pipeline_problem *p, const size_t *pipeline_of)
{
        unsigned chips[2] = { 0 };

        for (size_t w = 0; w < p->worker_count; w++)
                chips[p->workers[w].role] += pipeline_of[w] != SIZE_MAX;
        return chips[0] >= p->min_chips[0] && chips[1] >= p->min_chips[1];
}

/* The step of this assignment. */
static double step_of(const struct pipeline_problem *p, const size_t *pipeline_of, size_t pipelines)
{
        struct shape of[WORKERS];
        double exchange = 0, inside = 0;
        bool together = true, first = true;
        unsigned node = 0;

        for (size_t i = 0; i < pipelines; i++) {
                size_t order[WORKERS], count = 0;

                for (size_t w = 0; w < p->worker_count; w++) {
                        if (pipeline_of[w] != i)
                                continue;
                        order[count++] = w;
                        together = together && p->workers[w].inside_bytes_per_ms > 0 &&
                                   (first || node == p->workers[w].node);
                        node = p->workers[w].node;
                        first = false;
                }
                of[i] = (struct shape){ .period = INFINITY, .sum = INFINITY };
                every_order(p, order, count, 0, &of[i]);
                if (!isfinite(of[i].period))
                        return INFINITY;
                exchange = fmax(exchange, of[i].exchange);
                inside = fmax(inside, of[i].inside);
        }
        return pipelines == 0 ? INFINITY
                              : every_share(of, pipelines, 0, p->microbatches) +
                                        2 * (double) (pipelines - 1) / (double) pipelines *
                                                (together ? inside : exchange);
}

/* Each chip in any of the pipelines so far, in a new one, or idle. */
static double every_deal(const struct pipeline_problem *p, size_t next, size_t *pipeline_of, size_t pipelines)
{
        double best = INFINITY;

        if (next == p->worker_count)
                return enough(p, pipeline_of) ? step_of(p, pipeline_of, pipelines) : INFINITY;
        for (size_t i = 0; i <= pipelines; i++) {
                pipeline_of[next] = i;
                best = fmin(best,
                            every_deal(p, next + 1, pipeline_of, i == pipelines ? pipelines + 1 : pipelines));
        }
        pipeline_of[next] = SIZE_MAX;
        return fmin(best, every_deal(p, next + 1, pipeline_of, pipelines));
}

/* Workers of two kinds, a node each; every second problem has other links inside them, every third needs all
 * chips. */
static struct pipeline_problem make(unsigned *seed, unsigned count, size_t layer_count)
{
        struct pipeline_problem p = { .layer_count = layer_count,
                                      .layers = layers,
                                      .workers = workers,
                                      .worker_count = count,
                                      .effort = PIPELINE_EFFORT,
                                      .microbatches = 2 + (unsigned) rand_r(seed) / 5 % 5 };
        bool inside = rand_r(seed) / 7 % 2, all = rand_r(seed) / 7 % 3 == 0;

        for (size_t i = 0; i < layer_count; i++) {
                uint64_t bytes = (uint64_t) rand_r(seed) / 3 % 9;

                layers[i] = (struct pipeline_layer){ .state_bytes = (uint64_t) rand_r(seed) / 3 % 20,
                                                     .held_bytes = bytes + (uint64_t) rand_r(seed) / 3 % 5,
                                                     .output_bytes = bytes };
                params[i] = (uint64_t) rand_r(seed) / 3 % 30;
        }
        for (unsigned c = 0; c < 2; c++) {
                struct pipeline_worker kind = { .role = c,
                                                .chips = 1,
                                                .node = c,
                                                .memory_bytes = 30 + (uint64_t) rand_r(seed) / 3 % 80,
                                                .bytes_per_ms = 4 + (double) (rand_r(seed) / 3 % 9),
                                                .inside_bytes_per_ms = inside ? 40 : 0,
                                                .ms = ms[c] };

                for (size_t i = 0; i < layer_count; i++)
                        ms[c][i] = (1 + (double) c) * (1 + rand_r(seed) / 3 % 9);
                for (unsigned w = c == 0 ? 0 : count / 2; w < (c == 0 ? count / 2 : count); w++)
                        workers[w] = kind;
                p.min_chips[c] = all ? (c == 0 ? count / 2 : count - count / 2) : 0;
        }
        return p;
}

/* Chips are each in one pipeline, whose stages are all layers. */
static void check_whole(const struct pipeline_problem *p, const struct replicas_plan *plan)
{
        bool taken[256] = { false };
        unsigned microbatches = 0;

        for (size_t i = 0; i < plan->count; i++) {
                const struct pipeline_plan *of = &plan->replicas[i].plan;
                size_t next = 0;

                for (size_t k = 0; k < of->stage_count; k++) {
                        assert_true(of->stages[k].worker < p->worker_count && !taken[of->stages[k].worker]);
                        taken[of->stages[k].worker] = true;
                        assert_int_equal(of->stages[k].first, next);
                        next = of->stages[k].last + 1;
                }
                assert_int_equal(next, p->layer_count);
                microbatches += plan->replicas[i].microbatches;
        }
        assert_int_equal(microbatches, p->microbatches);
}

static void no_deal_is_better(void **state)
{
        unsigned seed = 3, fitted = 0, mixed = 0, tied = 0;

        (void) state;
        for (unsigned round = 0; round < 400; round++) {
                struct pipeline_problem p = make(&seed, 2 + round % (WORKERS - 1), LAYERS);
                struct replicas_plan plan = { 0 };
                size_t pipeline_of[WORKERS];
                double best, worst;
                int r = replicas_plan(&p, params, 0, &plan, NULL);

                ties_exchange_most = false;
                best = every_deal(&p, 0, pipeline_of, 0);
                ties_exchange_most = true;
                worst = every_deal(&p, 0, pipeline_of, 0);
                if (!isfinite(best)) {
                        assert_int_equal(r, PIPELINE_NO_FIT);
                        continue;
                }
                assert_int_equal(r, 0);
                assert_true(plan.exact);
                if (plan.step_ms < best * (1 - 1e-9) || plan.step_ms > worst * (1 + 1e-9))
                        fail_msg("round %u: %g ms, the best is %g", round, plan.step_ms, best);
                tied += plan.step_ms > best * (1 + 1e-9);
                assert_true(plan.pipeline_ms < 0 || plan.step_ms <= plan.pipeline_ms * (1 + 1e-9));
                assert_true(plan.data_ms < 0 || p.min_chips[0] > 0 ||
                            plan.step_ms <= plan.data_ms * (1 + 1e-9));
                check_whole(&p, &plan);
                fitted++;
                mixed += plan.count > 1 && plan.replicas[0].plan.stage_count > 1;
                replicas_plan_free(&plan);
        }
        print_message(
                "%u problems, none worse; %u of them replicas of pipelines; of %u another cut of the same "
                "period and sum exchanges less\n",
                fitted, mixed, tied);
        assert_true(fitted > 200 && mixed > 20 && tied * 100 <= fitted);
}

/* More chips than all ways can be tried: never worse than either alone, and every microbatch is somebody's.
 */
static void many_devices_are_dealt_out(void **state)
{
        unsigned seed = 9;
        struct pipeline_problem p = make(&seed, 24, 30);
        struct replicas_plan plan = { 0 };
        struct err err = { 0 };

        (void) state;
        for (size_t w = 0; w < 24; w++) {
                workers[w].memory_bytes = 300;
                workers[w].inside_bytes_per_ms = 0;
        }
        p.microbatches = 16;
        p.min_chips[0] = p.min_chips[1] = 0;
        assert_int_equal(replicas_plan(&p, params, 0, &plan, &err), 0);
        assert_false(plan.exact);
        assert_true(plan.pipeline_ms < 0 || plan.step_ms <= plan.pipeline_ms * (1 + 1e-9));
        assert_true(plan.data_ms < 0 || plan.step_ms <= plan.data_ms * (1 + 1e-9));
        check_whole(&p, &plan);
        replicas_plan_free(&plan);

        assert_int_equal(replicas_plan(&p, params, 2, &plan, &err), 0); /* as many as are wanted */
        assert_int_equal(plan.count, 2);
        replicas_plan_free(&plan);
        assert_int_equal(replicas_plan(&p, params, 17, &plan, &err), -EINVAL);
}

/* What is tried by exchange is as good, where all ways can still be tried. */
static void exchange_is_seldom_worse(void **state)
{
        unsigned seed = 5, compared = 0, worse = 0;
        double most = 1;

        (void) state;
        for (unsigned round = 0; round < 30; round++) {
                struct pipeline_problem p = make(&seed, 8, 12);
                struct replicas_plan all = { 0 }, some = { 0 };

                p.microbatches = 12;
                for (size_t w = 0; w < p.worker_count; w++)
                        workers[w].memory_bytes += 60;
                if (replicas_plan(&p, params, 0, &all, NULL) != 0)
                        continue;
                p.effort = 2e5; /* all ways cost more */
                assert_int_equal(replicas_plan(&p, params, 0, &some, NULL), 0);
                assert_true(all.exact && some.step_ms >= all.step_ms * (1 - 1e-9));
                worse += some.step_ms > all.step_ms * (1 + 1e-9);
                most = fmax(most, some.step_ms / all.step_ms);
                compared++;
                replicas_plan_free(&all);
                replicas_plan_free(&some);
        }
        print_message("by exchange: %u of %u longer, %.3f times at the most\n", worse, compared, most);
        assert_true(compared > 20 && most < 1.2);
}

/* A model that more than half of the chips must hold: what is left then holds none, in whichever mix, and
 * each of those is tried as well. The search ends. */
static void mixes_that_hold_nothing_are_counted(void **state)
{
        static uint64_t nothing[40];
        static struct pipeline_worker four[64];
        static double times[4][40];
        struct pipeline_problem p = { .layer_count = 40,
                                      .layers = layers,
                                      .workers = four,
                                      .worker_count = 64,
                                      .effort = PIPELINE_EFFORT,
                                      .microbatches = 64 };
        struct replicas_plan plan = { 0 };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < 40; i++) {
                layers[i] = (struct pipeline_layer){ .state_bytes = 100 };
                for (size_t c = 0; c < 4; c++)
                        times[c][i] = 1 + (double) c;
        }
        for (size_t w = 0; w < 64; w++)
                four[w] = (struct pipeline_worker){
                        .chips = 1, .memory_bytes = 100, .bytes_per_ms = 1, .ms = times[w / 16]
                };
        assert_int_equal(replicas_plan(&p, nothing, 0, &plan, &err), 0);
        assert_false(plan.exact);
        replicas_plan_free(&plan);
}

/* What a controller waits for: many chips of unlike kinds, each of which holds a part of a long model, or all
 * of it: then every plan is soon known, and sharing the microbatches is what takes its time. */
static void an_event_loop_does_not_wait_long(void **state)
{
        static struct pipeline_worker many[256];
        static double times[16][64];
        static const struct {
                const char *what;
                size_t workers, kinds, wanted;
                uint64_t memory;
        } rows[] = { { "16 chips of two kinds", 16, 2, 0, 2500 },
                     { "64 chips of four kinds", 64, 4, 0, 2500 },
                     { "256 chips of eight kinds", 256, 8, 0, 2500 },
                     { "16 chips, all unlike", 16, 16, 0, 2500 },
                     { "256 chips that hold the model", 256, 4, 200, 100000 } };

        (void) state;
        for (size_t i = 0; i < 64; i++) {
                layers[i] = (struct pipeline_layer){ .state_bytes = 100, .held_bytes = 1, .output_bytes = 1 };
                params[i] = 10;
                for (size_t c = 0; c < 16; c++)
                        times[c][i] = 1 + (double) c / 3;
        }
        for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
                struct pipeline_problem p = { .layer_count = 64,
                                              .layers = layers,
                                              .workers = many,
                                              .worker_count = rows[r].workers,
                                              .effort = PIPELINE_EFFORT_LOOP,
                                              .microbatches = 256 };
                clock_t begin;
                struct replicas_plan plan = { 0 };
                double slow = slowness(), took_ms;

                for (size_t w = 0; w < rows[r].workers; w++)
                        many[w] = (struct pipeline_worker){ .chips = 1,
                                                            .memory_bytes = rows[r].memory,
                                                            .bytes_per_ms = 100,
                                                            .ms = times[w % rows[r].kinds] };
                p.min_chips[0] = (unsigned) rows[r].workers;
                begin = clock();
                assert_int_equal(replicas_plan(&p, params, rows[r].wanted, &plan, NULL), 0);
                took_ms = (double) (clock() - begin) * 1e3 / CLOCKS_PER_SEC;
                print_message("%s: %zu pipelines, %.1f ms of processor time\n", rows[r].what, plan.count,
                              took_ms);
                assert_true(within(took_ms / 1e3, 2, slow));
                check_whole(&p, &plan);
                replicas_plan_free(&plan);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_deal_is_better),
                cmocka_unit_test(many_devices_are_dealt_out),
                cmocka_unit_test(exchange_is_seldom_worse),
                cmocka_unit_test(an_event_loop_does_not_wait_long),
                cmocka_unit_test(mixes_that_hold_nothing_are_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
