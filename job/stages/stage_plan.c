/* From a job, a profile and workers to the pipeline's problem, and its plan in words. */
#include "job/stages/stage_plan.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/levels/levels.h"
#include "planner/splits/replicas.h"

static const char *const times_names[STAGE_TIMES_COUNT + 1] = {
        [STAGE_TIMES_MEASURED] = "the layers' measured times",
        [STAGE_TIMES_PROFILE] = "the profile's times",
        [STAGE_TIMES_SPEEDS] = "the profile's layers and the chips' measured speeds",
        [STAGE_TIMES_COMPARED] = "the profile's layers and how fast the chips are compared with each other",
};

static unsigned microbatches_of(const struct job *job)
{
        return (unsigned) (job->microbatches < job->global_batch ? job->microbatches : job->global_batch);
}

/* Samples of the largest microbatch. */
static uint64_t microbatch_of(const struct job *job)
{
        uint64_t parts = microbatches_of(job);

        return (job->global_batch + parts - 1) / parts;
}

static double ms_by(const struct job_split_layer *layer, const char *key)
{
        for (size_t i = 0; i < layer->ms_count; i++)
                if (key[0] != '\0' && strcmp(layer->ms[i].key, key) == 0)
                        return layer->ms[i].ms;
        return -1;
}

/* What the profile says of such a chip: of its model, else its vendor, else its runtime. */
static double ms_of(const struct job_split_layer *layer, const struct job_split_chips *chip)
{
        const char *const keys[] = { chip->model, chip->vendor, chip->runtime };
        double ms = -1;

        for (size_t i = 0; i < ARRAY_SIZE(keys) && ms < 0; i++)
                ms = ms_by(layer, keys[i]);
        return ms;
}

/* The work of each layer, in any unit: multiply-adds; times on one kind of chip; bytes, of which a layer's
 * parameters and activations are. */
static void weigh(const struct job_split_profile *profile, double *ret)
{
        const struct job_split_layer *layers = profile->layers;
        bool counted = true, timed = layers[0].ms_count > 0;

        for (size_t i = 0; i < profile->layer_count; i++) {
                counted = counted && layers[i].multiply_adds > 0;
                timed = timed && ms_by(&layers[i], layers[0].ms[0].key) >= 0;
        }
        for (size_t i = 0; i < profile->layer_count; i++)
                ret[i] = counted ? layers[i].multiply_adds
                         : timed ? ms_by(&layers[i], layers[0].ms[0].key) + 1e-9
                                 : (double) (layers[i].memory_bytes + layers[i].activation_bytes + 1);
}

struct tables { /* what the problem borrows */
        struct pipeline_layer *layers;
        struct pipeline_worker *workers;
        double *ms; /* [worker][layer] */
        bool *told; /* [worker]: has the profile a time of it? */
        double *weights;
};

static void tables_free(struct tables *t)
{
        free(t->layers);
        free(t->workers);
        free(t->ms);
        free(t->told);
        free(t->weights);
}

static void fill_layers(const struct job *job, const struct job_split_profile *profile, struct tables *t)
{
        double scale = (double) microbatch_of(job) / (double) profile->samples;

        for (size_t i = 0; i < profile->layer_count; i++) {
                const struct job_split_layer *layer = &profile->layers[i];
                uint64_t held = layer->held_bytes > 0 ? layer->held_bytes : layer->activation_bytes;

                t->layers[i] = (struct pipeline_layer){
                        .name = layer->name,
                        .state_bytes = layer->memory_bytes,
                        .held_bytes = (uint64_t) ceil((double) held * scale),
                        .output_bytes = (uint64_t) ceil((double) layer->activation_bytes * scale),
                };
        }
        for (size_t s = 0; s < job->stage_count; s++) { /* checked: within the model, growing */
                const struct job_split_stage *stage = &job->stages[s];

                for (uint64_t i = stage->first; i <= stage->last; i++)
                        t->layers[i].begin = i == stage->first ? PIPELINE_BEGINS : PIPELINE_NO_BEGIN;
                if (stage->last + 1 < profile->layer_count)
                        t->layers[stage->last + 1].begin = PIPELINE_BEGINS;
        }
}

/* Profiles have as many keys a layer as there are kinds of chips; looked up once a kind. */
static const struct stage_plan_worker *alike(const struct stage_plan_worker *workers, size_t index)
{
        const struct stage_plan_worker *worker = &workers[index], *other = workers;

        while (other < worker && (strcmp(other->chip.model, worker->chip.model) != 0 ||
                                  strcmp(other->chip.vendor, worker->chip.vendor) != 0 ||
                                  strcmp(other->chip.runtime, worker->chip.runtime) != 0))
                other++;
        return other;
}

/* What the profile says of each worker's layers, -1 where nothing. */
static void look_up(const struct job_split_profile *profile, const struct stage_plan_worker *workers,
                    size_t count, struct tables *t)
{
        for (size_t w = 0; w < count; w++) {
                size_t first = (size_t) (alike(workers, w) - workers);
                double *ms = t->ms + w * profile->layer_count;

                if (first < w)
                        memcpy(ms, t->ms + first * profile->layer_count, profile->layer_count * sizeof(*ms));
                for (size_t i = 0; i < profile->layer_count; i++) {
                        if (first == w)
                                ms[i] = ms_of(&profile->layers[i], &workers[w].chip);
                        t->told[w] = t->told[w] || ms[i] >= 0; /* one without a time may not go there */
                }
        }
}

/* The times of one worker's layers; *ret: as looked up. Return: where they come from. */
static enum stage_plan_times fill_times(const struct job *job, const struct job_split_profile *profile,
                                        const struct stage_plan_worker *worker, const double *weights,
                                        bool told, double *ret)
{
        double microbatch = (double) microbatch_of(job), work = 0, speed;

        told = told && worker->layer_ms == NULL;
        for (size_t i = 0; i < profile->layer_count; i++)
                work += weights[i];
        /* a model of so much work takes microbatch / speed seconds */
        speed = worker->samples_per_s > 0 ? worker->samples_per_s : worker->speed > 0 ? worker->speed : 1;
        for (size_t i = 0; i < profile->layer_count; i++) {
                double ms = ret[i];

                ret[i] = worker->layer_ms != NULL ? worker->layer_ms[i]
                         : told && ms < 0         ? -1
                         : told                   ? ms * microbatch / (double) profile->samples
                                                  : weights[i] / work * microbatch * 1000 / speed;
        }
        return worker->layer_ms != NULL    ? STAGE_TIMES_MEASURED
               : told                      ? STAGE_TIMES_PROFILE
               : worker->samples_per_s > 0 ? STAGE_TIMES_SPEEDS
                                           : STAGE_TIMES_COMPARED;
}

/* Times that are only compared are of another measure than those that somebody saw: then all are compared. */
static int even_out(const struct tables *t, const struct stage_plan_worker *workers, size_t count,
                    enum stage_plan_times times, struct err *err)
{
        for (size_t w = 0; times == STAGE_TIMES_COMPARED && w < count; w++)
                if (workers[w].layer_ms != NULL || t->told[w]) {
                        const struct stage_plan_worker *other = workers;

                        while (other->layer_ms != NULL || other->samples_per_s > 0 ||
                               t->told[other - workers])
                                other++;
                        return err_set(
                                err, -EINVAL,
                                "spec.profile.layers[0].ms: has times of %s and none of %s; give ms of "
                                "its model, vendor or runtime, or multiply_adds alone",
                                workers[w].chip.runtime, other->chip.runtime);
                }
        return 0;
}

/* Layers that are bound to chips may go to no others. */
static int bind(const struct job *job, const struct stage_plan_worker *workers, size_t count,
                const struct job_split_profile *profile, struct tables *t, struct err *err)
{
        for (size_t s = 0; s < job->stage_count; s++) {
                const struct job_split_stage *stage = &job->stages[s];
                bool any = false;

                for (size_t w = 0; w < count; w++) {
                        double *ms = t->ms + w * profile->layer_count;

                        if (job_split_takes(stage, &workers[w].chip)) {
                                any = true;
                                continue;
                        }
                        for (uint64_t i = stage->first; i <= stage->last; i++)
                                ms[i] = -1;
                }
                if (!any)
                        return err_set(err, -EINVAL,
                                       "spec.stages[%zu].on: none of the job's chips is such; name one that "
                                       "spec.workers asks for (%s), or leave `on` out",
                                       s, workers[0].chip.runtime);
        }
        return 0;
}

static int fill(const struct job *job, const struct job_split_profile *profile,
                const struct stage_plan_worker *workers, size_t count, struct tables *t,
                struct stage_plan *plan, struct err *err)
{
        int r;

        *t = (struct tables){ .layers = calloc(profile->layer_count, sizeof(*t->layers)),
                              .workers = calloc(count, sizeof(*t->workers)),
                              .ms = calloc(count * profile->layer_count, sizeof(*t->ms)),
                              .told = calloc(count, sizeof(*t->told)),
                              .weights = calloc(profile->layer_count, sizeof(*t->weights)) };
        if (t->layers == NULL || t->workers == NULL || t->ms == NULL || t->told == NULL || t->weights == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        fill_layers(job, profile, t);
        weigh(profile, t->weights);
        look_up(profile, workers, count, t);
        plan->memory_known = plan->links_known = plan->links_measured = true;
        for (size_t w = 0; w < count; w++) {
                double *ms = t->ms + w * profile->layer_count;
                enum stage_plan_times times =
                        fill_times(job, profile, &workers[w], t->weights, t->told[w], ms);

                plan->times = times > plan->times ? times : plan->times;
                plan->memory_known = plan->memory_known && workers[w].memory_bytes > 0;
                plan->links_known = plan->links_known && workers[w].bytes_per_ms > 0;
                plan->links_leave =
                        plan->links_leave || (workers[w].bytes_per_ms <= 0 && workers[w].leaves_node);
                plan->links_measured = plan->links_measured && workers[w].link_measured;
                t->workers[w] = (struct pipeline_worker){
                        .role = (unsigned) (workers[w].role - job->workers),
                        .chips = workers[w].chips,
                        .memory_bytes = workers[w].memory_bytes,
                        .bytes_per_ms = workers[w].bytes_per_ms > 0 ? workers[w].bytes_per_ms
                                        : workers[w].leaves_node ? stage_plan_link(LEVELS_NETWORK_MBPS, true)
                                                                 : STAGE_LINK_ASSUMED,
                        .begin_ms = times == STAGE_TIMES_MEASURED ? workers[w].begin_ms : 0,
                        .ms = ms,
                };
        }
        r = even_out(t, workers, count, plan->times, err);
        for (size_t w = 0; plan->times == STAGE_TIMES_COMPARED && w < count; w++)
                t->workers[w].bytes_per_ms =
                        INFINITY; /* a link's time does not compare with such a measure */
        return r < 0 ? r : bind(job, workers, count, profile, t, err);
}

static int one_pipeline(const struct job *job, const struct pipeline_problem *problem,
                        struct stage_plan *plan, struct err *err)
{
        int r = pipeline_plan(problem, &plan->pipeline, err);

        if (r != 0)
                return r;
        plan->replicas = calloc(1, sizeof(*plan->replicas));
        if (plan->replicas == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        plan->replica_count = 1;
        plan->step_ms = pipeline_step_ms(&plan->pipeline, problem->microbatches);
        plan->replicas[0] = (struct stage_plan_replica){ .count = plan->pipeline.stage_count,
                                                         .microbatches = problem->microbatches,
                                                         .batch = job->global_batch,
                                                         .step_ms = plan->step_ms };
        return 0;
}

/* The pipelines one behind the other. Their parts of the batch are those of the microbatches. */
static int line_up(const struct job *job, const struct pipeline_problem *problem,
                   const struct replicas_plan *from, struct stage_plan *plan)
{
        struct pipeline_plan *all = &plan->pipeline;
        uint64_t before = 0;
        size_t stages = 0;

        for (size_t i = 0; i < from->count; i++)
                stages += from->replicas[i].plan.stage_count;
        all->stages = calloc(stages + 1, sizeof(*all->stages));
        plan->replicas = calloc(from->count + 1, sizeof(*plan->replicas));
        if (all->stages == NULL || plan->replicas == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < from->count; i++) {
                const struct replica *replica = &from->replicas[i];
                uint64_t microbatches = before + replica->microbatches;

                plan->replicas[i] = (struct stage_plan_replica){
                        .first = all->stage_count,
                        .count = replica->plan.stage_count,
                        .microbatches = replica->microbatches,
                        .batch = job->global_batch * microbatches / problem->microbatches -
                                 job->global_batch * before / problem->microbatches,
                        .step_ms = replica->step_ms,
                };
                memcpy(all->stages + all->stage_count, replica->plan.stages,
                       replica->plan.stage_count * sizeof(*all->stages));
                all->stage_count += replica->plan.stage_count;
                all->period_ms = fmax(all->period_ms, replica->plan.period_ms);
                all->sum_ms = fmax(all->sum_ms, replica->plan.sum_ms);
                before = microbatches;
        }
        plan->replica_count = from->count;
        plan->step_ms = from->step_ms;
        plan->exchange_ms = from->exchange_ms;
        all->exact = from->exact;
        all->effort_spent = from->effort_spent;
        return 0;
}

static int several_pipelines(const struct job *job, const struct job_split_profile *profile,
                             const struct pipeline_problem *problem, struct stage_plan *plan, struct err *err)
{
        CLEANUP(free_p) uint64_t *params = calloc(profile->layer_count + 1, sizeof(*params));
        CLEANUP(replicas_plan_free) struct replicas_plan found = { 0 };
        int r;

        if (params == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        for (size_t i = 0; i < profile->layer_count;
             i++) /* else as stage_profile.h counts: a weight in four */
                params[i] = profile->layers[i].params_bytes > 0 ? profile->layers[i].params_bytes
                                                                : profile->layers[i].memory_bytes / 4;
        r = replicas_plan(problem, params, job->replicas, &found, err);
        if (r == 0 && line_up(job, problem, &found, plan) < 0)
                r = err_set(err, -ENOMEM, "no memory for the stages");
        return r == -E2BIG ? -EINVAL : r;
}

/* Why no cut was found, where spec.stages alone are in the way: each chip holds a layer at least, and a bound
 * stage has one chip. */
static int blame_stages(const struct job *job, const struct pipeline_problem *problem, struct err *err)
{
        size_t chips = 0, free_layers = problem->layer_count;

        for (size_t i = 0; i < job->stage_count; i++)
                free_layers -= (size_t) (job->stages[i].last - job->stages[i].first + 1);
        for (size_t i = 0; i < job->worker_count; i++)
                chips += problem->min_chips[i];
        if (job->replicas != 1 || job->stage_count == 0 || chips <= job->stage_count + free_layers)
                return err_wrap(err, -EINVAL, "no split of the model is possible%s",
                                job->stage_count > 0 ? " with spec.stages as they are" : "");
        return err_set(err, -EINVAL,
                       "spec.stages: %zu stages leave %zu layers to the other chips, and each of the job's "
                       "%zu chips is to hold one at least; ask for %zu chips at most, or bind fewer layers",
                       job->stage_count, free_layers, chips, job->stage_count + free_layers);
}

int stage_plan(const struct job *job, const struct job_split_profile *profile,
               const struct stage_plan_worker *workers, size_t count, bool all, double effort,
               struct stage_plan *ret, struct err *err)
{
        CLEANUP(tables_free) struct tables tables = { 0 };
        struct stage_plan plan = { 0 };
        struct pipeline_problem problem = { .layer_count = profile->layer_count,
                                            .worker_count = count,
                                            .effort = effort };
        int r = job_split_check(job->stages, job->stage_count, profile->layer_count, err);

        if (r == 0)
                r = fill(job, profile, workers, count, &tables, &plan, err);
        if (r < 0)
                return r;
        assert(tables.workers != NULL);
        problem.layers = tables.layers;
        problem.workers = tables.workers;
        problem.microbatches = microbatches_of(job);
        for (size_t i = 0; i < job->worker_count && !all; i++)
                problem.min_chips[i] = (unsigned) job->workers[i].min_chips;
        for (size_t w = 0; w < count && all; w++)
                problem.min_chips[tables.workers[w].role] += tables.workers[w].chips;
        plan.microbatches = problem.microbatches;
        r = job->replicas == 1 ? one_pipeline(job, &problem, &plan, err)
                               : several_pipelines(job, profile, &problem, &plan, err);
        if (r == 0)
                r = stage_ranks_fill(&problem, &plan.pipeline, plan.times == STAGE_TIMES_COMPARED,
                                     &plan.ranks, err);
        if (r == PIPELINE_NO_FIT)
                r = blame_stages(job, &problem, err);
        if (r == 0)
                *ret = plan;
        else
                stage_plan_free(&plan);
        return r;
}

int stage_plan_ranks(const struct job *job, const struct job_split_profile *profile,
                     const struct stage_plan_worker *workers, size_t count, struct stage_ranks *ret,
                     struct err *err)
{
        CLEANUP(tables_free) struct tables tables = { 0 };
        struct pipeline_problem problem = { .layer_count = profile->layer_count,
                                            .worker_count = count,
                                            .microbatches = microbatches_of(job) };
        CLEANUP(pipeline_plan_free) struct pipeline_plan order = { 0 };
        struct stage_plan plan = { 0 };
        size_t ranks = 0;
        int r = job_split_check(job->stages, job->stage_count, profile->layer_count, err);

        if (r == 0)
                r = fill(job, profile, workers, count, &tables, &plan, err);
        if (r < 0)
                return r;
        for (size_t w = 0; w < count; w++)
                ranks += workers[w].chips;
        order.stages = calloc(ranks + 1, sizeof(*order.stages));
        if (order.stages == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        for (size_t w = 0; w < count; w++)
                for (unsigned chip = 0; chip < workers[w].chips; chip++)
                        order.stages[order.stage_count++].worker = w;
        problem.layers = tables.layers;
        problem.workers = tables.workers;
        return stage_ranks_fill(&problem, &order, plan.times == STAGE_TIMES_COMPARED, ret, err);
}

void stage_plan_free(struct stage_plan *plan)
{
        if (plan == NULL)
                return;
        pipeline_plan_free(&plan->pipeline);
        stage_ranks_free(&plan->ranks);
        free(plan->replicas);
        plan->replicas = NULL;
}

uint64_t stage_plan_part(const struct stage_plan *plan, size_t stage)
{
        const struct stage_plan_replica *of = plan->replicas;

        while (stage >= of->first + of->count)
                of++;
        stage -= of->first;
        return of->batch / of->count + (stage < of->batch % of->count);
}

double stage_plan_link(uint64_t network_mbps, bool leaves_node)
{
        return leaves_node ? (double) network_mbps * 125 : 0;
}

char *stage_plan_layers(const struct pipeline_plan *plan, size_t worker)
{
        struct text list = { 0 };

        for (size_t i = 0; i < plan->stage_count; i++)
                if (worker == SIZE_MAX || plan->stages[i].worker == worker)
                        text_printf(&list, "%s%zu:%zu", list.size_bytes == 0 ? "" : ",",
                                    plan->stages[i].first, plan->stages[i].last);
        return text_take(&list, NULL);
}

/* A step as its passes go. */
static double foretold_ms(const struct stage_plan *plan)
{
        double longest_ms = 0;

        for (size_t i = 0; i < plan->replica_count; i++) {
                const struct stage_plan_replica *r = &plan->replicas[i];

                longest_ms = fmax(longest_ms, pipeline_foretold_ms(plan->pipeline.stages + r->first, r->count,
                                                                   r->microbatches));
        }
        return longest_ms + plan->exchange_ms;
}

void stage_plan_sentence(const struct stage_plan *plan, struct text *out)
{
        CLEANUP(free_p) char *layers = stage_plan_layers(&plan->pipeline, SIZE_MAX);
        const struct pipeline_plan *p = &plan->pipeline;

        if (plan->replica_count > 1)
                text_printf(out, "%zu replicas, ", plan->replica_count);
        text_printf(out, "%zu stages, by %s", p->stage_count, times_names[plan->times]);
        if (plan->times != STAGE_TIMES_COMPARED && plan->replica_count > 1)
                text_printf(out, ": %.4g ms a step of %u microbatches, %.4g of it the exchange of gradients",
                            foretold_ms(plan), plan->microbatches, plan->exchange_ms);
        else if (plan->times != STAGE_TIMES_COMPARED)
                text_printf(out, ": %.4g ms a microbatch, %.4g ms a step of %u", p->period_ms,
                            foretold_ms(plan), plan->microbatches);
        text_printf(out, "; memory %s, links %s%s",
                    plan->memory_known ? "of the inventory" : "not known of all",
                    plan->times == STAGE_TIMES_COMPARED         ? "not counted"
                    : plan->links_known && plan->links_measured ? "measured"
                    : plan->links_known                         ? "of the inventory"
                    : plan->links_leave                         ? "assumed at 1 Gbit/s"
                                                                : "assumed at 1 GB/s",
                    p->exact ? "" : "; too many chips to prove that no plan is better");
        for (size_t i = 0; plan->replica_count > 1 && i < plan->replica_count; i++)
                text_printf(out, "%s%llu", i == 0 ? "; of each batch " : " + ",
                            (unsigned long long) plan->replicas[i].batch);
        text_printf(out, "; stages %s", layers == NULL ? "" : layers); /* last: it may be long, and cut off */
}
