/* The chain planner at the top: bounds, the search for the least period, baselines, and the sentence when
 * nothing fits. */
#include "planner/splits/chain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "planner/splits/chain_search.h"
#include "planner/splits/chain_sum.h"

void chain_plan_free(struct chain_plan *plan)
{
        if (plan == NULL)
                return;
        free(plan->stages);
        plan->stages = NULL;
        plan->stage_count = 0;
}

/* Microbatches whose activations a stage holds; @from_end: 1 for the last stage. */
static unsigned held(const struct chain_problem *p, size_t from_end)
{
        if (p->schedule == CHAIN_INFERENCE)
                return 1;
        if (p->schedule == CHAIN_GPIPE || from_end > p->microbatches)
                return p->microbatches;
        return (unsigned) from_end;
}

static int evaluate_stage(const struct chain_problem *p, struct chain_stage *stages, size_t k, size_t count,
                          struct err *err)
{
        struct chain_stage *s = &stages[k];
        const struct chain_class *c = &p->classes[s->class_index];
        unsigned f = held(p, count - k);
        unsigned __int128 memory = 0;

        s->load_ms = c->begin_ms;
        for (size_t i = s->first; i <= s->last; i++) {
                if (c->ms[i] < 0)
                        return err_set(err, CHAIN_NO_FIT, "layer %zu has no ms for its device", i);
                s->load_ms += c->ms[i];
                memory += p->memory_bytes[i] + (unsigned __int128) f * p->held_bytes[i];
        }
        if (memory > c->memory_bytes)
                return err_set(err, CHAIN_NO_FIT,
                               "layers %zu..%zu need %.0f bytes more than their device has", s->first,
                               s->last, (double) (memory - c->memory_bytes));
        s->memory_bytes = (uint64_t) memory;
        if (k > 0)
                s->load_ms += chain_search_boundary_ms(
                        p, s->first,
                        fmin(c->bytes_per_ms, p->classes[stages[k - 1].class_index].bytes_per_ms));
        if (k + 1 < count)
                s->load_ms += chain_search_boundary_ms(
                        p, s->last + 1,
                        fmin(c->bytes_per_ms, p->classes[stages[k + 1].class_index].bytes_per_ms));
        return 0;
}

int chain_evaluate(const struct chain_problem *problem, struct chain_stage *stages, size_t stage_count,
                   double *ret_period_ms, double *ret_latency_ms, struct err *err)
{
        double period = 0, latency = 0;

        for (size_t k = 0; k < stage_count; k++) {
                int r = evaluate_stage(problem, stages, k, stage_count, err);

                if (r != 0)
                        return r;
                period = fmax(period, stages[k].load_ms);
                latency += stages[k].load_ms;
        }
        *ret_period_ms = period;
        *ret_latency_ms = latency;
        return 0;
}

/* Stages from cut points: device d of the input order holds layers ends[d-1]..ends[d]-1, or nothing. */
static double baseline_ms(const struct chain_problem *p, const size_t *ends, size_t devices)
{
        CLEANUP(free_p) struct chain_stage *stages = calloc(devices + 1, sizeof(*stages));
        double period, latency;
        size_t count = 0, d = 0, begin = 0;

        if (stages == NULL)
                return -1;
        for (size_t c = 0; c < p->class_count; c++)
                for (unsigned u = 0; u < p->classes[c].count; u++, d++) {
                        if (ends[d] > begin)
                                stages[count++] = (struct chain_stage){ .class_index = c,
                                                                        .first = begin,
                                                                        .last = ends[d] - 1 };
                        begin = ends[d];
                }
        if (count == 0 || chain_evaluate(p, stages, count, &period, &latency, NULL) != 0)
                return -1;
        return period;
}

static size_t device_total(const struct chain_problem *p)
{
        size_t devices = 0;

        for (size_t c = 0; c < p->class_count; c++)
                devices += p->classes[c].count;
        return devices;
}

double chain_equal_layers_ms(const struct chain_problem *problem)
{
        size_t devices = device_total(problem), end = 0;
        CLEANUP(free_p) size_t *ends = calloc(devices + 1, sizeof(*ends));

        if (ends == NULL || devices == 0)
                return -1;
        for (size_t d = 0; d < devices; d++) {
                end += problem->layer_count / devices + (d < problem->layer_count % devices ? 1 : 0);
                ends[d] = end;
        }
        return baseline_ms(problem, ends, devices);
}

/* The mean time of each layer over the classes that can run it. Return: their sum; -1 = one runs nowhere. */
static double layers_work(const struct chain_problem *p, double *work)
{
        double total = 0;

        for (size_t i = 0; i < p->layer_count; i++) {
                double sum = 0;
                unsigned able = 0;

                for (size_t c = 0; c < p->class_count; c++)
                        if (p->classes[c].ms[i] >= 0 && p->classes[c].count > 0) {
                                sum += p->classes[c].ms[i];
                                able++;
                        }
                if (able == 0)
                        return -1;
                work[i] = sum / able;
                total += work[i];
        }
        return total;
}

/* Models per ms over the layers that a class can run. */
static double class_speed(const struct chain_problem *p, size_t c, const double *work)
{
        double ms = 0, of = 0;

        for (size_t i = 0; i < p->layer_count; i++)
                if (p->classes[c].ms[i] >= 0) {
                        ms += p->classes[c].ms[i];
                        of += work[i];
                }
        return ms > 0 ? of / ms : 1;
}

/* A class's share of the layers' work goes by its speed. */
double chain_proportional_ms(const struct chain_problem *problem)
{
        const struct chain_problem *p = problem;
        size_t devices = device_total(p), d = 0, end = 0;
        CLEANUP(free_p) size_t *ends = calloc(devices + 1, sizeof(*ends));
        CLEANUP(free_p) double *work = calloc(p->layer_count, sizeof(*work));
        double speed[CHAIN_CLASSES_MAX] = { 0 }, speeds = 0, total, done = 0, want = 0;

        if (ends == NULL || work == NULL || devices == 0)
                return -1;
        total = layers_work(p, work);
        if (total < 0)
                return -1;
        for (size_t c = 0; c < p->class_count; c++) {
                speed[c] = class_speed(p, c, work);
                speeds += speed[c] * p->classes[c].count;
        }
        for (size_t c = 0; c < p->class_count; c++)
                for (unsigned u = 0; u < p->classes[c].count; u++, d++) {
                        want += total * speed[c] / speeds;
                        while (end < p->layer_count && (d + 1 == devices || done + work[end] / 2 <= want))
                                done += work[end++];
                        ends[d] = end;
                }
        return baseline_ms(p, ends, devices);
}

/* The largest load that no plan can avoid: each layer must be somewhere, and the work must be shared. */
static double lower_bound(const struct chain_problem *p, size_t devices)
{
        double total = 0, largest = 0;

        for (size_t i = 0; i < p->layer_count; i++) {
                double fastest = INFINITY;

                for (size_t c = 0; c < p->class_count; c++)
                        if (p->classes[c].count > 0 && p->classes[c].ms[i] >= 0)
                                fastest = fmin(fastest, p->classes[c].ms[i]);
                total += fastest;
                largest = fmax(largest, fastest);
        }
        return fmax(largest, total / (double) devices);
}

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;

        return x < y ? -1 : x > y;
}

struct loads {
        double *ms;
        size_t count, capacity;
};

static int loads_add(struct loads *loads, double ms)
{
        double *added = array_add(&loads->ms, &loads->count, &loads->capacity, sizeof(*added));

        if (added == NULL)
                return -ENOMEM;
        *added = ms;
        return 0;
}

/* Those of class c between two links, for the stages that end before layer j. */
static int loads_add_stages(struct loads *loads, const struct chain_search *s, size_t c, size_t pair,
                            size_t j, double above, double limit)
{
        const double *prefix = s->prefix + c * (s->n + 1);

        for (size_t i = j; i-- > s->allowed[c * (s->n + 1) + j];) {
                double load = chain_search_load_ms(s, c, i, j, pair % s->links, pair / s->links);

                if (prefix[j] - prefix[i] > limit)
                        break;
                if (load > above && load <= limit && loads_add(loads, load) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Every load that a stage can have in (above, limit], ascending. Return: how many; *ret is owned; -ENOMEM. */
static long loads_between(const struct chain_search *s, double above, double limit, double **ret)
{
        struct loads loads = { 0 };

        for (size_t c = 0; c < s->classes; c++)
                for (size_t pair = 0; pair < s->links * s->links; pair++)
                        for (size_t j = 1; j <= s->n; j++)
                                if (loads_add_stages(&loads, s, c, pair, j, above, limit) < 0) {
                                        free(loads.ms);
                                        return -ENOMEM;
                                }
        if (loads.count > 0)
                qsort(loads.ms, loads.count, sizeof(*loads.ms), compare_doubles);
        *ret = loads.ms;
        return (long) loads.count;
}

/* Narrows (low, high] by halves, then finds the least feasible load in it. Return: 0, CHAIN_NO_FIT or
 * -ENOMEM. */
static int least_period(struct chain_search *s, double *ret)
{
        double low = lower_bound(s->problem, s->devices) * (1 - 1e-9), high, step;
        CLEANUP(free_p) double *loads = NULL;
        long first = 0, last;

        if (!chain_search_is_feasible(s, INFINITY))
                return CHAIN_NO_FIT;
        if (low < 0 || !isfinite(low))
                low = 0;
        low = low > 0 ? low : -1; /* a load of 0 is a candidate too */
        for (high = low > 0 ? low * 1.02 : 1e-3, step = 1.02; !chain_search_is_feasible(s, high);
             step *= step) {
                low = high;
                high *= step < 4 ? step : 4;
        }
        for (int i = 0; i < 10; i++) {
                double middle = low + (high - low) / 2;

                if (chain_search_is_feasible(s, middle))
                        high = middle;
                else
                        low = middle;
        }
        last = loads_between(s, low, high, &loads) - 1;
        if (last < 0)
                return -ENOMEM;
        while (first < last) {
                long middle = first + (last - first) / 2;

                if (chain_search_is_feasible(s, loads[middle]))
                        last = middle;
                else
                        first = middle + 1;
        }
        *ret = loads[last];
        return 0;
}

/* Why nothing fits, in the words of the input. */
static int no_fit(const struct chain_problem *p, struct err *err)
{
        for (size_t i = 0; i < p->layer_count; i++) {
                bool able = false;
                uint64_t largest = 0, needs = p->memory_bytes[i] + p->held_bytes[i]; /* of one microbatch */

                for (size_t c = 0; c < p->class_count; c++)
                        if (p->classes[c].count > 0 && p->classes[c].ms[i] >= 0) {
                                able = true;
                                if (p->classes[c].memory_bytes > largest)
                                        largest = p->classes[c].memory_bytes;
                        }
                if (!able)
                        return err_set(err, CHAIN_NO_FIT,
                                       "layers[%zu] has no ms for any device that is there", i);
                if (needs > largest)
                        return err_set(err, CHAIN_NO_FIT,
                                       "layers[%zu] needs %llu bytes of memory, %llu more than any device "
                                       "that can run it has",
                                       i, (unsigned long long) needs, (unsigned long long) (needs - largest));
        }
        return err_set(
                err, CHAIN_NO_FIT,
                "the layers do not fit into the devices' memory in any order; add devices or memory, or "
                "fewer microbatches");
}

int chain_split(const struct chain_problem *problem, struct chain_plan *ret, struct err *err)
{
        struct chain_search search = { 0 };
        struct chain_plan plan = { .exact = true };
        int r;

        if (problem->layer_count == 0 || problem->layer_count > CHAIN_LAYERS_MAX)
                return err_set(err, -EINVAL, "layers: must be 1..%d, is %zu", CHAIN_LAYERS_MAX,
                               problem->layer_count);
        r = chain_search_init(&search, problem, err);
        if (r == 0)
                r = search.devices == 0 ? no_fit(problem, err) : least_period(&search, &plan.period_ms);
        if (r == CHAIN_NO_FIT)
                (void) no_fit(problem, err);
        if (r == 0) { /* equal loads may differ in their last bit, depending on the order of summation */
                chain_search_set_period(&search, plan.period_ms * (1 + 1e-12));
                r = chain_sum_least(&search, &plan.stages, &plan.stage_count);
        }
        chain_search_free(&search);
        if (r < 0)
                return err != NULL && err->code != 0 ? r : err_set(err, r, "no memory for the plan");
        if (r > 0)
                return r;
        r = chain_evaluate(problem, plan.stages, plan.stage_count, &plan.period_ms, &plan.latency_ms, err);
        if (r != 0) {
                chain_plan_free(&plan);
                return -EPROTO; /* the walk and the evaluation disagree: a defect */
        }
        plan.lower_bound_ms = plan.period_ms;
        *ret = plan;
        return 0;
}
