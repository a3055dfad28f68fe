/* Replicas of pipelines: against every assignment of devices to pipelines and of microbatches to those. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/splits/replicas.h"

#define LAYERS  5
#define DEVICES 5

static double ms[3][64];
static struct chain_class classes[3];
static uint64_t memory[64], activation[64], params[64];

/* A pipeline's step over these devices, by the definitions: the best of its cuts by period, then by sum, as
 * chain.h promises. Return: period and latency. */
static bool pipeline(const struct chain_problem *p, const unsigned *counts, double *period, double *latency,
                     double *exchange)
{
        struct chain_class own[3];
        struct chain_problem problem = *p;
        struct chain_plan plan = { 0 };

        memcpy(own, p->classes, sizeof(own));
        for (size_t c = 0; c < p->class_count; c++)
                own[c].count = counts[c];
        problem.classes = own;
        if (chain_split(&problem, &plan, NULL) != 0)
                return false;
        *period = plan.period_ms;
        *latency = plan.latency_ms;
        *exchange = 0;
        for (size_t k = 0; k < plan.stage_count; k++) {
                double bytes = 0;

                for (size_t i = plan.stages[k].first; i <= plan.stages[k].last; i++)
                        bytes += (double) params[i];
                *exchange = fmax(*exchange, bytes / own[plan.stages[k].class_index].bytes_per_ms);
        }
        chain_plan_free(&plan);
        return true;
}

/* The least longest of all ways to give out the microbatches. */
static double every_share(const double *period, const double *latency, size_t count, size_t i, unsigned left)
{
        double best = INFINITY;

        if (i + 1 == count)
                return left == 0 ? INFINITY : latency[i] + period[i] * (left - 1);
        for (unsigned m = 1; m + (count - i - 1) <= left; m++)
                best = fmin(best, fmax(latency[i] + period[i] * (m - 1),
                                       every_share(period, latency, count, i + 1, left - m)));
        return best;
}

/* Each device in any of the pipelines so far, in a new one, or idle. */
static double every_deal(const struct chain_problem *p, const size_t *device_class, size_t devices,
                         size_t next, unsigned counts[DEVICES][3], size_t pipelines)
{
        double best = INFINITY;

        if (next == devices) {
                double period[DEVICES], latency[DEVICES], exchange = 0, own;

                for (size_t i = 0; i < pipelines; i++) {
                        if (!pipeline(p, counts[i], &period[i], &latency[i], &own))
                                return INFINITY;
                        exchange = fmax(exchange, own);
                }
                return pipelines == 0 ? INFINITY
                                      : every_share(period, latency, pipelines, 0, p->microbatches) +
                                                2 * (double) (pipelines - 1) / (double) pipelines * exchange;
        }
        for (size_t i = 0; i <= pipelines; i++) {
                counts[i][device_class[next]]++;
                best = fmin(best, every_deal(p, device_class, devices, next + 1, counts,
                                             i == pipelines ? pipelines + 1 : pipelines));
                counts[i][device_class[next]]--;
        }
        return fmin(best, every_deal(p, device_class, devices, next + 1, counts, pipelines));
}

static struct chain_problem make(unsigned *seed, unsigned devices, size_t layers)
{
        struct chain_problem p = { .layer_count = layers,
                                   .memory_bytes = memory,
                                   .activation_bytes = activation,
                                   .class_count = 2,
                                   .classes = classes,
                                   .schedule = CHAIN_1F1B,
                                   .microbatches = 2 + (unsigned) rand_r(seed) / 5 % 5 };

        for (size_t i = 0; i < layers; i++) {
                memory[i] = (uint64_t) rand_r(seed) / 3 % 20;
                activation[i] = (uint64_t) rand_r(seed) / 3 % 9;
                params[i] = (uint64_t) rand_r(seed) / 3 % 30;
        }
        for (size_t c = 0; c < 2; c++) {
                classes[c] = (struct chain_class){ .count = c == 0 ? devices / 2 : devices - devices / 2,
                                                   .memory_bytes = 30 + (uint64_t) rand_r(seed) / 3 % 80,
                                                   .bytes_per_ms = 4 + (double) (rand_r(seed) / 3 % 9),
                                                   .ms = ms[c] };
                for (size_t i = 0; i < layers; i++)
                        ms[c][i] = (1 + (double) c) * (1 + rand_r(seed) / 3 % 9);
        }
        return p;
}

static void no_deal_is_better(void **state)
{
        unsigned seed = 3, fitted = 0, mixed = 0;

        (void) state;
        for (unsigned round = 0; round < 60; round++) {
                unsigned devices = 2 + round % (DEVICES - 1), counts[DEVICES][3] = { { 0 } };
                struct chain_problem p = make(&seed, devices, LAYERS);
                struct replicas_plan plan = { 0 };
                size_t device_class[DEVICES];
                double best;
                int r = replicas_plan(&p, params, 0, &plan, NULL);

                for (size_t d = 0; d < devices; d++)
                        device_class[d] = d >= classes[0].count;
                best = every_deal(&p, device_class, devices, 0, counts, 0);
                if (!isfinite(best)) {
                        assert_int_equal(r, CHAIN_NO_FIT);
                        continue;
                }
                assert_int_equal(r, 0);
                assert_true(plan.exact);
                if (fabs(plan.step_ms - best) > 1e-9 * best)
                        fail_msg("round %u: %g ms, the best is %g", round, plan.step_ms, best);
                assert_true(plan.pipeline_ms < 0 || plan.step_ms <= plan.pipeline_ms * (1 + 1e-9));
                assert_true(plan.data_ms < 0 || plan.step_ms <= plan.data_ms * (1 + 1e-9));
                fitted++;
                mixed += plan.count > 1 && plan.replicas[0].plan.stage_count > 1;
                replicas_plan_free(&plan);
        }
        assert_true(fitted > 30 && mixed > 3);
}

/* More devices than all ways can be tried: never worse than either alone, and every microbatch is somebody's.
 */
static void many_devices_are_dealt_out(void **state)
{
        unsigned seed = 9, sum = 0;
        struct chain_problem p = make(&seed, 24, 30);
        struct replicas_plan plan = { 0 };
        struct err err = { 0 };

        (void) state;
        classes[0].memory_bytes = classes[1].memory_bytes = 300;
        p.microbatches = 16;
        assert_int_equal(replicas_plan(&p, params, 0, &plan, &err), 0);
        assert_false(plan.exact);
        assert_true(plan.pipeline_ms < 0 || plan.step_ms <= plan.pipeline_ms * (1 + 1e-9));
        assert_true(plan.data_ms < 0 || plan.step_ms <= plan.data_ms * (1 + 1e-9));
        for (size_t i = 0; i < plan.count; i++)
                sum += plan.replicas[i].microbatches;
        assert_int_equal(sum, 16);
        replicas_plan_free(&plan);

        assert_int_equal(replicas_plan(&p, params, 2, &plan, &err), 0); /* as many as are wanted */
        assert_int_equal(plan.count, 2);
        replicas_plan_free(&plan);
        assert_int_equal(replicas_plan(&p, params, 17, &plan, &err), -EINVAL);
}

/* A model that more than half of the devices must hold: what is left then holds none, in whichever mix, and
 * each of those is tried as well. The search ends. */
static void mixes_that_hold_nothing_are_counted(void **state)
{
        static uint64_t memory_of[40], nothing[40];
        static double times[4][40];
        struct chain_class four[4];
        struct chain_problem p = { .layer_count = 40,
                                   .memory_bytes = memory_of,
                                   .activation_bytes = nothing,
                                   .class_count = 4,
                                   .classes = four,
                                   .schedule = CHAIN_1F1B,
                                   .microbatches = 64 };
        struct replicas_plan plan = { 0 };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < 40; i++)
                memory_of[i] = 100;
        for (size_t c = 0; c < 4; c++) {
                for (size_t i = 0; i < 40; i++)
                        times[c][i] = 1 + (double) c;
                four[c] = (struct chain_class){
                        .count = 16, .memory_bytes = 100, .bytes_per_ms = 1, .ms = times[c]
                };
        }
        assert_int_equal(replicas_plan(&p, nothing, 0, &plan, &err), 0);
        assert_false(plan.exact);
        replicas_plan_free(&plan);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_deal_is_better),
                cmocka_unit_test(many_devices_are_dealt_out),
                cmocka_unit_test(mixes_that_hold_nothing_are_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
