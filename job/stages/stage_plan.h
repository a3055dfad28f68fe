/* Stage plan: which layers of a split model each worker of a job holds, and where it stands in the pipeline:
 * the same for `remuda run`, `remuda plan launch` and the controller.
 *
 *      job (microbatches, spec.stages, minChips), profile (sizes, times), workers (memory, link, speed)
 *           -> planner/splits/pipeline.h -> stages in the order of the ranks
 *
 * With spec.replicas the workers are dealt out to several pipelines (planner/splits/replicas.h), one behind
 * the other in the order of the ranks; each takes microbatches of a step, and so many samples of the batch,
 * by its speed.
 *
 * How long a layer takes a worker's chip is, the first that is known: what was measured of it; what the
 * profile says of its model, vendor or runtime; the chip's own speed with the whole model, spread over the
 * layers by the profile's multiply-adds (else its times on another chip, else its bytes). Bytes in flight are
 * those of a microbatch. Pure but for the heap. */
#pragma once

#include "base/text.h"
#include "job/spec/job.h"
#include "job/stages/stage_ranks.h"
#include "planner/splits/pipeline.h"

#define STAGE_LINK_ASSUMED 1e6 /* bytes per ms, where nothing is known of a link inside a node */

struct stage_plan_worker {           /* chips of one device group, that follow each other */
        const struct job_role *role; /* of the job's workers */
        struct job_split_chips chip;
        unsigned chips;         /* ranks, in truth: several may share one */
        uint64_t memory_bytes;  /* of each; 0 = not known */
        double bytes_per_ms;    /* of its link; 0 = not known */
        bool leaves_node;       /* the pipeline: its link is then a network's */
        bool link_measured;     /* else the inventory says it */
        double samples_per_s;   /* of each with the whole model; 0 = nobody knows */
        double speed;           /* compared with the others: as long as all have one. 0 = nobody knows */
        const double *layer_ms; /* measured, of a microbatch; NULL = not */
        double begin_ms;        /* with them: what a microbatch costs a stage beside its layers */
};

enum stage_plan_times { /* where the times of the layers come from; the least certain of all workers */
                        STAGE_TIMES_MEASURED,
                        STAGE_TIMES_PROFILE,
                        STAGE_TIMES_SPEEDS,
                        STAGE_TIMES_COMPARED, /* only how fast the chips are compared with each other is known
                                               */
                        STAGE_TIMES_COUNT
};

struct stage_plan_replica {    /* a pipeline that has all layers */
        size_t first, count;   /* its stages */
        unsigned microbatches; /* of a step */
        uint64_t batch;        /* samples of each batch */
        double step_ms;        /* without the exchange of gradients */
};

struct stage_plan {
        /* worker: index of the request's; owned. Of several replicas one behind the other, the longest period
         * and sum */
        struct pipeline_plan pipeline;
        struct stage_plan_replica *replicas; /* owned; one or more */
        size_t replica_count;
        double step_ms, exchange_ms; /* a step, as plans are compared; what of it replicas exchange */
        enum stage_plan_times times;
        bool memory_known,
                links_known; /* of all workers: else what is not known is not counted, or assumed */
        bool links_measured, links_leave; /* leave: one that is assumed is a network's */
        unsigned microbatches;            /* of a step */
        struct stage_ranks ranks;         /* what was planned with, of each rank; owned */
};

/* stage_plan() - @profile: of the layers; measured ones have their sizes in it
 * @all: every worker takes part; else those of a range that would slow the job are left out
 * @effort: PIPELINE_EFFORT, or PIPELINE_EFFORT_LOOP in a daemon's event loop
 * Return: 0 and *ret (stage_plan_free()); -EINVAL and *err, which field cannot be honoured or what does not
 * fit, and the remedy; -ENOMEM. */
int stage_plan(const struct job *job, const struct job_split_profile *profile,
               const struct stage_plan_worker *workers, size_t count, bool all, double effort,
               struct stage_plan *ret, struct err *err);
void stage_plan_free(struct stage_plan *plan); /* accepts NULL */

/* stage_plan_part() - the samples of each batch that a stage stands for: equal parts of its pipeline's. */
uint64_t stage_plan_part(const struct stage_plan *plan, size_t stage);

/* stage_plan_ranks() - with what workers that stand in the order of the stages would be planned; nothing is.
 * Return: as stage_plan(). */
int stage_plan_ranks(const struct job *job, const struct job_split_profile *profile,
                     const struct stage_plan_worker *workers, size_t count, struct stage_ranks *ret,
                     struct err *err);

/* stage_plan_link() - bytes per ms of a node's network; 0 = not known, or the pipeline stays in the node. */
double stage_plan_link(uint64_t network_mbps, bool leaves_node);

/* stage_plan_layers() - "0:1,2:3", of the stages of one worker, or of all: @worker SIZE_MAX. Return: NULL
 * without memory; owned. */
char *stage_plan_layers(const struct pipeline_plan *plan, size_t worker);

/* stage_plan_sentence() - what a person is told: "2 stages, by the profile's times: 1.52 ms a microbatch,
 * ...; stages 0:1,2:3". */
void stage_plan_sentence(const struct stage_plan *plan, struct text *out);
