/* Pipelines: against every order and cut there is; memory, links, layers that are bound to chips, chips that
 * may be left out; many workers. */
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

#include "base/text.h"
#include "planner/splits/pipeline.h"
#include "tests/support/slowness.h"

#define WORKERS 4
#define LAYERS  6
#define MANY    24

static double ms[MANY][64];
static struct pipeline_layer layers[64];
static struct pipeline_worker workers[MANY];

/* The least largest load of all orders and cuts, by the definitions alone; INFINITY = none fits. */
static double stage_ms(const struct pipeline_problem *p, const size_t *chips, size_t count, size_t k,
                       size_t first, size_t end)
{
        const struct pipeline_worker *w = &p->workers[chips[k]];
        uint64_t held = count - k < p->microbatches ? count - k : p->microbatches, memory = 0;
        double load = w->begin_ms;

        for (size_t i = first; i < end; i++) {
                if (w->ms[i] < 0 || (i > first && p->layers[i].begin == PIPELINE_BEGINS))
                        return INFINITY;
                memory += p->layers[i].state_bytes + held * p->layers[i].held_bytes;
                load += w->ms[i];
        }
        if (first > 0 && p->layers[first].begin == PIPELINE_NO_BEGIN)
                return INFINITY;
        if (k > 0)
                load += 2 * (double) p->layers[first - 1].output_bytes /
                        fmin(w->bytes_per_ms, p->workers[chips[k - 1]].bytes_per_ms);
        if (k + 1 < count)
                load += 2 * (double) p->layers[end - 1].output_bytes /
                        fmin(w->bytes_per_ms, p->workers[chips[k + 1]].bytes_per_ms);
        return memory > w->memory_bytes && w->memory_bytes > 0 ? INFINITY : load;
}

static double every_cut(const struct pipeline_problem *p, const size_t *chips, size_t count, size_t k,
                        size_t first)
{
        double best = INFINITY;

        if (k == count)
                return first == p->layer_count ? 0 : INFINITY;
        for (size_t end = first + 1; end <= p->layer_count; end++)
                best = fmin(best, fmax(stage_ms(p, chips, count, k, first, end),
                                       every_cut(p, chips, count, k + 1, end)));
        return best;
}

static double every_order(const struct pipeline_problem *p, size_t *chips, size_t count, unsigned taken)
{
        unsigned of_role[PIPELINE_ROLES_MAX] = { 0 };
        bool enough = count > 0;
        double best;

        for (size_t i = 0; i < p->worker_count; i++)
                of_role[p->workers[i].role] += (taken & 1U << i) != 0 ? p->workers[i].chips : 0;
        for (size_t r = 0; r < PIPELINE_ROLES_MAX; r++)
                enough = enough && of_role[r] >= p->min_chips[r];
        best = enough ? every_cut(p, chips, count, 0, 0) : INFINITY;
        for (size_t i = 0; i < p->worker_count; i++) {
                if ((taken & 1U << i) != 0)
                        continue;
                for (unsigned c = 0; c < p->workers[i].chips; c++)
                        chips[count + c] = i;
                best = fmin(best, every_order(p, chips, count + p->workers[i].chips, taken | 1U << i));
        }
        return best;
}

static unsigned below(unsigned *seed, unsigned n)
{
        return (unsigned) rand_r(seed) / 7 % n;
}

static struct pipeline_problem make(unsigned *seed, size_t worker_count, size_t layer_count)
{
        struct pipeline_problem p = { .layers = layers,
                                      .layer_count = layer_count,
                                      .workers = workers,
                                      .worker_count = worker_count,
                                      .microbatches = 1 + below(seed, 4),
                                      .effort = PIPELINE_EFFORT };
        unsigned tight = below(seed, 3);

        for (size_t i = 0; i < layer_count; i++)
                layers[i] = (struct pipeline_layer){ .state_bytes = below(seed, 40),
                                                     .held_bytes = below(seed, 6),
                                                     .output_bytes = below(seed, 30),
                                                     .begin = below(seed, 8) == 0   ? PIPELINE_BEGINS
                                                              : below(seed, 8) == 0 ? PIPELINE_NO_BEGIN
                                                                                    : PIPELINE_MAY_BEGIN };
        for (size_t w = 0; w < worker_count; w++) {
                double pace = 1 + below(seed, 4);

                workers[w] = (struct pipeline_worker){ .role = below(seed, 2),
                                                       .chips = 1 + (below(seed, 3) == 0),
                                                       .memory_bytes = tight == 0 ? 0 : 60 + below(seed, 80),
                                                       .bytes_per_ms = 5 * (1 + below(seed, 2)),
                                                       .begin_ms = below(seed, 3) * 2,
                                                       .ms = ms[w] };
                for (size_t i = 0; i < layer_count; i++)
                        ms[w][i] = below(seed, 12) == 0 ? -1 : pace * (1 + (double) (i * 7 % 5));
                p.min_chips[workers[w].role] += workers[w].chips;
        }
        for (unsigned r = 0; r < 2; r++)
                p.min_chips[r] -= p.min_chips[r] > 0 ? below(seed, p.min_chips[r]) : 0;
        return p;
}

static void no_order_and_no_cut_is_better(void **state)
{
        unsigned seed = 1, fitted = 0, left_out = 0;

        (void) state;
        for (unsigned round = 0; round < 400; round++) {
                struct pipeline_problem p =
                        make(&seed, 1 + below(&seed, WORKERS), 2 + below(&seed, LAYERS - 1));
                struct pipeline_plan plan = { 0 };
                size_t chips[2 * WORKERS], all = 0;
                double best = every_order(&p, chips, 0, 0);
                int r = pipeline_plan(&p, &plan, NULL);

                if (!isfinite(best)) {
                        assert_true(r != 0);
                        continue;
                }
                assert_int_equal(r, 0);
                assert_true(plan.exact);
                assert_true(fabs(plan.period_ms - best) <= 1e-9 * best);
                for (size_t k = 0; k < plan.stage_count; k++)
                        chips[k] = plan.stages[k].worker;
                for (size_t k = 0, next = 0; k < plan.stage_count; k++) { /* what is said of a stage is so */
                        assert_int_equal(plan.stages[k].first, next);
                        next = plan.stages[k].last + 1;
                        assert_true(
                                fabs(stage_ms(&p, chips, plan.stage_count, k, plan.stages[k].first, next) -
                                     plan.stages[k].load_ms) <= 1e-9 * best);
                }
                for (size_t w = 0; w < p.worker_count; w++)
                        all += p.workers[w].chips;
                fitted++;
                left_out += plan.stage_count < all;
                pipeline_plan_free(&plan);
        }
        assert_true(fitted > 100 && left_out > 10); /* the cases are worth something */
}

/* A chip with 100 KB is not given the layer of 360 KB, though that would be balanced. */
static void what_does_not_fit_is_not_given(void **state)
{
        static const double alike[] = { 1, 1, 1 };
        const struct pipeline_layer three[] = { { .state_bytes = 40000 },
                                                { .state_bytes = 50000 },
                                                { .name = "fc", .state_bytes = 360000, .held_bytes = 8 } };
        const struct pipeline_worker two[] = {
                { .chips = 1, .bytes_per_ms = 1, .ms = alike },
                { .chips = 1, .memory_bytes = 100000, .bytes_per_ms = 1, .ms = alike }
        };
        struct pipeline_problem p = { .layers = three,
                                      .layer_count = 3,
                                      .workers = two,
                                      .worker_count = 2,
                                      .microbatches = 1,
                                      .effort = PIPELINE_EFFORT };
        struct pipeline_plan plan = { 0 };
        struct err err = { 0 };

        (void) state;
        p.min_chips[0] = 2;
        assert_int_equal(pipeline_plan(&p, &plan, NULL), 0);
        assert_int_equal(plan.stages[0].worker, 1); /* the small chip comes first, with what fits */
        assert_int_equal(plan.stages[1].worker, 0);
        assert_true(plan.stages[0].memory_bytes <= 100000);
        pipeline_plan_free(&plan);

        p.worker_count = 1;
        p.workers = &two[1];
        p.min_chips[0] = 1;
        assert_int_equal(pipeline_plan(&p, &plan, &err), PIPELINE_NO_FIT);
        assert_non_null(strstr(err.msg, "layer fc needs 360008 bytes"));
        assert_non_null(strstr(err.msg, "has 100000"));
}

static void more_chips_than_layers_are_refused(void **state)
{
        static const double alike[] = { 1 };
        const struct pipeline_worker worker = { .chips = 2, .bytes_per_ms = 1, .ms = alike };
        struct pipeline_problem p = { .layers = layers,
                                      .layer_count = 1,
                                      .workers = &worker,
                                      .worker_count = 1,
                                      .microbatches = 1,
                                      .effort = PIPELINE_EFFORT };
        struct pipeline_plan plan = { 0 };
        struct err err = { 0 };

        (void) state;
        memset(layers, 0, sizeof(layers));
        p.min_chips[0] = 2;
        assert_int_equal(pipeline_plan(&p, &plan, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "2 chips for the stages, the model has 1 layers"));
}

/* More workers than their mixes can be looked at: planned all the same, and better than equal numbers. */
static void many_unlike_workers_are_planned(void **state)
{
        struct pipeline_problem p = { .layers = layers,
                                      .layer_count = 48,
                                      .workers = workers,
                                      .worker_count = MANY,
                                      .microbatches = 8,
                                      .effort = PIPELINE_EFFORT };
        struct pipeline_plan plan = { 0 };
        double equal = 0, total = 0, speeds = 0;

        (void) state;
        memset(layers, 0, sizeof(layers));
        for (size_t w = 0; w < MANY; w++) {
                workers[w] = (struct pipeline_worker){ .chips = 1, .bytes_per_ms = 1e9, .ms = ms[w] };
                for (size_t i = 0; i < 48; i++)
                        ms[w][i] = (1 + (double) w / 8) * (1 + (double) (i * 5 % 7));
                equal = fmax(equal, ms[w][2 * w] + ms[w][2 * w + 1]);
                speeds += 1 / (1 + (double) w / 8);
        }
        for (size_t i = 0; i < 48; i++)
                total += 1 + (double) (i * 5 % 7);
        p.min_chips[0] = MANY;
        assert_int_equal(pipeline_plan(&p, &plan, NULL), 0);
        assert_int_equal(plan.stage_count, MANY);
        assert_false(plan.exact);
        assert_true(plan.period_ms < 0.7 * equal);
        assert_true(plan.period_ms < 1.7 * total / speeds); /* of what no plan can beat */
        assert_true(fabs(pipeline_step_ms(&plan, 8) - (plan.sum_ms + 7 * plan.period_ms)) < 1e-6);
        pipeline_plan_free(&plan);
}

/* Sixteen of each of two kinds have few mixes: proven, however many they are. */
static void alike_workers_are_one_kind(void **state)
{
        struct pipeline_problem p = { .layers = layers,
                                      .layer_count = 40,
                                      .workers = workers,
                                      .worker_count = MANY,
                                      .microbatches = 8,
                                      .effort = PIPELINE_EFFORT };
        struct pipeline_plan plan = { 0 };

        (void) state;
        memset(layers, 0, sizeof(layers));
        for (size_t i = 0; i < 40; i++) {
                ms[0][i] = 1;
                ms[1][i] = 2;
        }
        for (size_t w = 0; w < MANY; w++)
                workers[w] = (struct pipeline_worker){ .chips = 1, .bytes_per_ms = 1e9, .ms = ms[w % 2] };
        p.min_chips[0] = MANY;
        assert_int_equal(pipeline_plan(&p, &plan, NULL), 0);
        assert_true(plan.exact);
        assert_true(fabs(plan.period_ms - 3) < 1e-6); /* 12 slow ones take a layer, 12 fast ones 28 */
        pipeline_plan_free(&plan);
}

/* What a daemon's event loop pays for the largest models and many chips, on a quiet machine: a bound that is
 * generous for slow ones; about a tenth of it is usual. */
#define LOOP_SECONDS 1.0

struct large_case {
        const char *name;
        size_t worker_count;
        unsigned chips;   /* of each */
        unsigned kinds;   /* of chips */
        double ms, other; /* of a layer; of every seventh */
        enum pipeline_begin
                last; /* the last layers, one more than the chips behind: NO_BEGIN lets nothing fit */
        int want;
};

static void fill_large(const struct large_case *c, struct pipeline_layer *ret_layers,
                       struct pipeline_worker *ret_workers, double (*ret_ms)[PIPELINE_LAYERS_MAX])
{
        for (size_t i = 0; i < PIPELINE_LAYERS_MAX; i++)
                ret_layers[i] = (struct pipeline_layer){
                        .state_bytes = 1 + i % 5,
                        .held_bytes = 1,
                        .output_bytes = 1 + i % 3,
                        .begin = i > 0 && i <= PIPELINE_LAYERS_MAX - c->worker_count * c->chips + 1
                                         ? c->last
                                         : PIPELINE_MAY_BEGIN
                };
        for (size_t w = 0; w < c->worker_count; w++) {
                for (size_t i = 0; i < PIPELINE_LAYERS_MAX; i++)
                        ret_ms[w][i] = (i % 7 == 0 ? c->other : c->ms) * (1 + (double) (w % c->kinds));
                ret_workers[w] = (struct pipeline_worker){ .chips = c->chips,
                                                           .bytes_per_ms = 1000 * (1 + (double) (w % 3)),
                                                           .ms = ret_ms[w] };
        }
}

static void the_largest_models_do_not_hold_up_an_event_loop(void **state)
{
        static const struct large_case cases[] = {
                { "four nodes of 64 chips", 4, 64, 4, 1, 3, PIPELINE_MAY_BEGIN, 0 },
                { "64 nodes of 8 chips", 64, 8, 8, 1, 1, PIPELINE_MAY_BEGIN, 0 },
                { "eight nodes of 8 chips", 8, 8, 8, 1, 3, PIPELINE_MAY_BEGIN, 0 },
                { "170 unlike chips", 170, 1, 170, 1, 3, PIPELINE_MAY_BEGIN, 0 },
                { "256 unlike chips", 256, 1, 32, 1, 3, PIPELINE_MAY_BEGIN, 0 },
                { "layers that take no time", 170, 1, 8, 0, 0, PIPELINE_MAY_BEGIN, 0 },
                { "few layers that take time", 64, 1, 8, 0, 5, PIPELINE_MAY_BEGIN, 0 },
                { "16 of one kind", 16, 1, 1, 0, 1, PIPELINE_MAY_BEGIN, 0 },
                { "two kinds", 32, 1, 2, 0, 1, PIPELINE_MAY_BEGIN, 0 },
                { "nothing fits", 170, 1, 8, 0, 1, PIPELINE_NO_BEGIN, PIPELINE_NO_FIT },
        };
        struct pipeline_layer *large = calloc(PIPELINE_LAYERS_MAX, sizeof(*large));
        struct pipeline_worker *many = calloc(256, sizeof(*many));
        double(*times)[PIPELINE_LAYERS_MAX] = calloc(256, sizeof(*times));

        (void) state;
        assert_true(large != NULL && many != NULL && times != NULL);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const struct large_case *c = &cases[i];
                struct pipeline_problem p = { .layers = large,
                                              .layer_count = PIPELINE_LAYERS_MAX,
                                              .workers = many,
                                              .worker_count = c->worker_count,
                                              .microbatches = 8,
                                              .effort = PIPELINE_EFFORT_LOOP };
                struct pipeline_plan plan = { 0 };
                clock_t began;
                double slow = slowness(), sec;

                fill_large(c, large, many, times);
                p.min_chips[0] = (unsigned) c->worker_count * c->chips;
                began = clock();
                assert_int_equal(pipeline_plan(&p, &plan, NULL), c->want);
                sec = (double) (clock() - began) / CLOCKS_PER_SEC;
                print_message("%s: %.1f ms, the machine %.1f times slower than a quiet one\n", c->name,
                              sec * 1e3, slow);
                assert_true(within(sec, LOOP_SECONDS, slow));
                assert_int_equal(plan.stage_count, c->want == 0 ? p.min_chips[0] : 0);
                pipeline_plan_free(&plan);
        }
        free(large);
        free(many);
        free(times);
}

/* What a plan deals out to pipelines as whole microbatches is what they make of their shares. */
static void microbatches_follow_shares(void **state)
{
        (void) state;
        assert_int_equal(pipeline_microbatches(6, 48, 96), 3);
        assert_int_equal(pipeline_microbatches(6, 32, 96), 2);
        assert_int_equal(pipeline_microbatches(6, 16, 96), 1);
        assert_int_equal(pipeline_microbatches(6, 1, 96), 1);
        assert_int_equal(pipeline_microbatches(4, 128, 128), 4);
        assert_int_equal(pipeline_microbatches(4, 0, 0), 4);
        for (size_t all = 1; all <= 32; all++)
                for (size_t own = 1; own <= all; own++)
                        for (size_t batch = 2 * all + 1; batch <= 200; batch += 13) {
                                size_t share =
                                        batch * own / all; /* rounded down: less than one from its due */

                                assert_int_equal(pipeline_microbatches(all, share, batch), own);
                        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_order_and_no_cut_is_better),
                cmocka_unit_test(what_does_not_fit_is_not_given),
                cmocka_unit_test(more_chips_than_layers_are_refused),
                cmocka_unit_test(many_unlike_workers_are_planned),
                cmocka_unit_test(alike_workers_are_one_kind),
                cmocka_unit_test(the_largest_models_do_not_hold_up_an_event_loop),
                cmocka_unit_test(microbatches_follow_shares),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
