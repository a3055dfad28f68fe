/* Classes of devices become workers, one a device. */
#include "planner/splits/plan_replicas.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

static size_t class_of(const struct plan_split_input *input, size_t worker)
{
        size_t c = 0;

        while (worker >= input->classes[c].count)
                worker -= input->classes[c++].count;
        return c;
}

static void fill_layers(const struct plan_split_input *input, struct pipeline_layer *layers)
{
        for (size_t i = 0; i < input->problem.layer_count; i++)
                layers[i] = (struct pipeline_layer){
                        .name = input->layers[i],
                        .state_bytes = input->memory[i],
                        .held_bytes = input->held[i],
                        .output_bytes = input->activation[i],
                };
}

static void fill_workers(const struct plan_split_input *input, struct pipeline_worker *workers)
{
        for (size_t c = 0; c < input->problem.class_count; c++)
                for (unsigned n = 0; n < input->classes[c].count; n++)
                        *workers++ = (struct pipeline_worker){
                                .chips = 1,
                                .memory_bytes = input->classes[c].memory_bytes,
                                .bytes_per_ms = input->classes[c].bytes_per_ms,
                                .inside_bytes_per_ms = input->inside_bytes_per_ms[c],
                                .node = input->nodes[c],
                                .begin_ms = input->classes[c].begin_ms,
                                .ms = input->classes[c].ms,
                        };
}

int plan_replicas(const struct plan_split_input *input, size_t count, struct replicas_plan *ret,
                  struct err *err)
{
        struct pipeline_problem problem = { .layer_count = input->problem.layer_count,
                                            .microbatches = input->problem.microbatches,
                                            .hold_all = input->problem.schedule == CHAIN_GPIPE,
                                            .effort = PIPELINE_EFFORT };
        CLEANUP(free_p) struct pipeline_layer *layers = calloc(problem.layer_count, sizeof(*layers));
        CLEANUP(free_p) struct pipeline_worker *workers = NULL;

        if (input->problem.schedule == CHAIN_INFERENCE)
                return err_set(err, -EINVAL,
                               "replicas add up gradients, and schedule inference has none; leave --replicas "
                               "out, or write schedule 1f1b");
        for (size_t c = 0; c < input->problem.class_count; c++)
                problem.worker_count += input->classes[c].count;
        if (problem.worker_count > REPLICAS_WORKERS_MAX)
                return err_set(err, -EINVAL, "%zu devices; at most %d are dealt out to replicas",
                               problem.worker_count, REPLICAS_WORKERS_MAX);
        workers = calloc(problem.worker_count + 1, sizeof(*workers));
        if (layers == NULL || workers == NULL)
                return err_set(err, -ENOMEM, "no memory for the replicas");
        fill_layers(input, layers);
        fill_workers(input, workers);
        problem.layers = layers;
        problem.workers = workers;
        return replicas_plan(&problem, input->params, count, ret, err);
}

static json_t *number_or_null(double value)
{
        return value < 0 ? json_null() : json_real(value);
}

static json_t *stages_json(const struct plan_split_input *input, const struct pipeline_plan *plan)
{
        json_t *stages = json_array();

        for (size_t k = 0; k < plan->stage_count; k++) {
                const struct pipeline_stage *s = &plan->stages[k];

                json_array_append_new(stages, json_pack("{s:s, s:I, s:I, s:f, s:I}", "type",
                                                        input->types[class_of(input, s->worker)], "first",
                                                        (json_int_t) s->first, "last", (json_int_t) s->last,
                                                        "load_ms", s->load_ms, "memory_bytes",
                                                        (json_int_t) s->memory_bytes));
        }
        return stages;
}

/* The better of data and pipeline alone; -1 = neither is possible. */
static double better_alone(const struct replicas_plan *plan)
{
        if (plan->data_ms < 0 || plan->pipeline_ms < 0)
                return fmax(plan->data_ms, plan->pipeline_ms);
        return fmin(plan->data_ms, plan->pipeline_ms);
}

/* A step as its passes go; where all forward ones come first it is as plans are compared. */
static double foretold_ms(const struct plan_split_input *input, const struct replicas_plan *plan)
{
        double longest_ms = 0;

        if (input->problem.schedule == CHAIN_GPIPE)
                return plan->step_ms;
        for (size_t i = 0; i < plan->count; i++) {
                const struct replica *r = &plan->replicas[i];

                longest_ms = fmax(longest_ms,
                                  pipeline_foretold_ms(r->plan.stages, r->plan.stage_count, r->microbatches));
        }
        return longest_ms + plan->exchange_ms;
}

json_t *plan_replicas_encode(const struct plan_split_input *input, const struct replicas_plan *plan,
                             double planning_ms)
{
        double alone = better_alone(plan);
        json_t *replicas = json_array();

        for (size_t i = 0; i < plan->count; i++)
                json_array_append_new(replicas, json_pack("{s:i, s:f, s:f, s:o}", "microbatches",
                                                          (int) plan->replicas[i].microbatches, "period_ms",
                                                          plan->replicas[i].plan.period_ms, "step_ms",
                                                          plan->replicas[i].step_ms, "stages",
                                                          stages_json(input, &plan->replicas[i].plan)));
        return json_pack("{s:f, s:f, s:f, s:o, s:b, s:o, s:o, s:o, s:f}", "step_ms", plan->step_ms,
                         "foretold_ms", foretold_ms(input, plan), "exchange_ms", plan->exchange_ms,
                         "replicas", replicas, "exact", (int) plan->exact, "data_alone_ms",
                         number_or_null(plan->data_ms), "pipeline_alone_ms",
                         number_or_null(plan->pipeline_ms), "gain",
                         number_or_null(alone < 0 ? -1 : alone / plan->step_ms), "planning_ms", planning_ms);
}

static void append_baseline(struct text *out, const char *name, double ms)
{
        if (ms < 0)
                text_printf(out, "; %s impossible", name);
        else
                text_printf(out, "; %s %.3f ms", name, ms);
}

void plan_replicas_table(const struct plan_split_input *input, const struct replicas_plan *plan,
                         double planning_ms, struct text *out)
{
        double alone = better_alone(plan);

        text_printf(out, "%-9s%-14s%-20s%-24s%-24s%12s\n", "REPLICA", "MICROBATCHES", "DEVICE", "FIRST",
                    "LAST", "LOAD MS");
        for (size_t i = 0; i < plan->count; i++)
                for (size_t k = 0; k < plan->replicas[i].plan.stage_count; k++) {
                        const struct pipeline_stage *s = &plan->replicas[i].plan.stages[k];

                        text_printf(out, "%-9zu%-14u%-20s%-24s%-24s%12.3f\n", i,
                                    plan->replicas[i].microbatches, input->types[class_of(input, s->worker)],
                                    input->layers[s->first], input->layers[s->last], s->load_ms);
                }
        text_printf(out, "\nstep %.3f ms%s, %.3f of it the exchange of gradients, %.3f ms foretold",
                    plan->step_ms, plan->exact ? " (exact)" : "", plan->exchange_ms,
                    foretold_ms(input, plan));
        append_baseline(out, "data alone", plan->data_ms);
        append_baseline(out, "pipeline alone", plan->pipeline_ms);
        if (alone >= 0)
                text_printf(out, "; %.2f times the better of them", alone / plan->step_ms);
        text_printf(out, "; planned in %.1f ms\n", planning_ms);
}
