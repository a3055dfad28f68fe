/* Kinds of workers, and the plan of each mix of them. */
#include "planner/splits/replicas_mixes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define EFFORT_PARTS 64 /* of the effort: what one mix may cost */

void replicas_mixes_free(struct replicas_mixes *s)
{
        for (size_t i = 0; i < s->count; i++)
                pipeline_plan_free(&s->mixes[i].plan);
        free(s->mixes);
        free(s->kind_of);
}

int replicas_mixes_init(struct replicas_mixes *s, const struct pipeline_problem *p,
                        const uint64_t *params_bytes, struct err *err)
{
        *s = (struct replicas_mixes){ .problem = p, .params_bytes = params_bytes, .exact = true };

        s->kind_of = calloc(p->worker_count + 1, sizeof(*s->kind_of));
        if (s->kind_of == NULL)
                return err_set(err, -ENOMEM, "no memory for the pipelines");
        for (size_t i = 0; i < p->worker_count; i++) {
                size_t k = 0;

                while (k < s->kind_count && !pipeline_alike(p, i, s->kinds[k].worker))
                        k++;
                if (k == REPLICAS_KINDS_MAX)
                        return err_set(err, -E2BIG,
                                       "more than %d kinds of chips are dealt out to no replicas; write "
                                       "speeds that are the same for chips of one model",
                                       REPLICAS_KINDS_MAX);
                if (k == s->kind_count)
                        s->kinds[s->kind_count++] = (struct replicas_mixes_kind){ .worker = i };
                s->kinds[k].count++;
                s->kind_of[i] = k;
        }
        return 0;
}

const struct pipeline_worker *replicas_mixes_worker(const struct replicas_mixes *s, size_t kind)
{
        return &s->problem->workers[s->kinds[kind].worker];
}

/* What its slowest chip sends once, over the links to others or inside its node. */
static double exchange_of(const struct replicas_mixes *s, const struct pipeline_plan *plan, bool inside)
{
        double most = 0;

        for (size_t k = 0; k < plan->stage_count; k++) {
                const struct pipeline_stage *stage = &plan->stages[k];
                const struct pipeline_worker *worker = replicas_mixes_worker(s, stage->worker);
                double bytes = 0;

                for (size_t i = stage->first; i <= stage->last; i++)
                        bytes += (double) s->params_bytes[i];
                most = fmax(most, bytes / (inside ? worker->inside_bytes_per_ms : worker->bytes_per_ms));
        }
        return most;
}

/* The node that all of a mix are on, by one of its kinds. */
static size_t node_of(const struct replicas_mixes *s, const uint16_t *counts)
{
        size_t node = REPLICAS_UNALIKE;

        for (size_t k = 0; k < s->kind_count; k++) {
                if (counts[k] == 0)
                        continue;
                if (replicas_mixes_worker(s, k)->inside_bytes_per_ms <= 0 ||
                    (node != REPLICAS_UNALIKE &&
                     replicas_mixes_worker(s, k)->node != replicas_mixes_worker(s, node)->node))
                        return REPLICAS_UNALIKE;
                node = k;
        }
        return node;
}

/* Have the chips of a mix together too little memory, or too many of them a layer? Then no plan is asked. */
static bool is_hopeless(const struct replicas_mixes *s, const uint16_t *counts)
{
        const struct pipeline_problem *p = s->problem;
        double room = 0, needs = 0;
        size_t chips = 0;

        for (size_t k = 0; k < s->kind_count; k++) {
                const struct pipeline_worker *worker = replicas_mixes_worker(s, k);

                chips += (size_t) counts[k] * worker->chips;
                if (counts[k] > 0 && worker->memory_bytes == 0)
                        room = INFINITY;
                room += (double) counts[k] * worker->chips * (double) worker->memory_bytes;
        }
        for (size_t i = 0; i < p->layer_count; i++)
                needs += (double) p->layers[i].state_bytes + (double) p->layers[i].held_bytes;
        return chips == 0 || chips > p->layer_count || needs > room;
}

/* The workers of these counts, kind by kind. Return: the sub-problem's; NULL without memory. */
static struct pipeline_worker *workers_of(const struct replicas_mixes *s, const uint16_t *counts,
                                          size_t *ret_count)
{
        struct pipeline_worker *workers = calloc(s->problem->worker_count + 1, sizeof(*workers));

        *ret_count = 0;
        for (size_t k = 0; workers != NULL && k < s->kind_count; k++)
                for (unsigned n = 0; n < counts[k]; n++)
                        workers[(*ret_count)++] = *replicas_mixes_worker(s, k);
        return workers;
}

static size_t kind_at(const struct replicas_mixes *s, const uint16_t *counts, size_t worker)
{
        size_t k = 0;

        while (k + 1 < s->kind_count && worker >= counts[k])
                worker -= counts[k++];
        return k;
}

/* Plans a mix, all of whose workers take part; one that does not fit is an answer. 0 or -ENOMEM. */
static int plan_mix(struct replicas_mixes *s, struct replicas_mixes_mix *mix)
{
        struct pipeline_problem problem = *s->problem;
        CLEANUP(free_p)
        struct pipeline_worker *workers = workers_of(s, mix->counts, &problem.worker_count);
        int r;

        if (workers == NULL)
                return -ENOMEM;
        problem.workers = workers;
        problem.effort = s->problem->effort / EFFORT_PARTS;
        memset(problem.min_chips, 0, sizeof(problem.min_chips));
        for (size_t i = 0; i < problem.worker_count; i++)
                problem.min_chips[workers[i].role] += workers[i].chips;
        r = pipeline_plan(&problem, &mix->plan, NULL);
        if (r == -ENOMEM)
                return r;
        s->exact = s->exact && (r != 0 || mix->plan.exact);
        s->spent += r == 0 ? mix->plan.effort_spent : problem.effort;
        for (size_t k = 0; k < mix->plan.stage_count; k++)
                mix->plan.stages[k].worker = kind_at(s, mix->counts, mix->plan.stages[k].worker);
        return 0;
}

int replicas_mixes_find(struct replicas_mixes *s, const uint16_t *counts, size_t *ret, struct err *err)
{
        struct replicas_mixes_mix *mix;

        for (size_t i = 0; i < s->count; i++)
                if (memcmp(s->mixes[i].counts, counts, sizeof(s->mixes[i].counts)) == 0) {
                        *ret = i;
                        return 0;
                }
        mix = array_add(&s->mixes, &s->count, &s->capacity, sizeof(*mix));
        if (mix == NULL)
                return err_set(err, -ENOMEM, "no memory for the pipelines");
        *mix = (struct replicas_mixes_mix){ .node = node_of(s, counts), .inside_ms = INFINITY };
        memcpy(mix->counts, counts, sizeof(mix->counts));
        *ret = s->count - 1;
        if (is_hopeless(s, counts))
                return 0;
        if (plan_mix(s, mix) < 0)
                return err_set(err, -ENOMEM, "no memory for the pipelines");
        mix->exchange_ms = exchange_of(s, &mix->plan, false);
        if (mix->node != REPLICAS_UNALIKE)
                mix->inside_ms = exchange_of(s, &mix->plan, true);
        return 0;
}
