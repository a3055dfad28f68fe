/* Run: one TrainingJob on this machine, from its file to its summary (`remuda run`).
 *
 *      job -> chips -> programs -> speeds -> shares -> one MPI world -> watch -> repair -> summary
 *
 * A struct run is what all steps share. Nothing outlives it: every world is started below a guard
 * (run_guard.h). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/inventory.h"
#include "base/err.h"
#include "base/text.h"
#include "job/run/run_sweeper.h"
#include "job/spec/arguments.h"
#include "job/spec/job.h"
#include "job/spec/program_table.h"
#include "job/stages/stage_ranks.h"
#include "job/world/world.h"
#include "planner/speeds/chip_speed.h"

#define RUN_RANKS_MAX  4096
#define RUN_PATH_BYTES 1024

struct run_options {
        const char *programs, *store, *work_dir, *output, *launcher, *mpirun, *report, *profile,
                *replicas;    /* in place of the job's; NULL = none */
        const char *measured; /* of the chips of this machine; NULL = MEASURED_PATH */
        bool resume, measure_again, dry_run;
        unsigned grace_seconds;
        double measure_seconds;
};

struct run_chips { /* of this machine, or of a store's nodes */
        struct inventory *items;
        size_t count;
        char unreadable[300]; /* of the store, a sentence; "" = all could be read */
};

struct run_rank {
        bool server, link_measured;
        const struct job_role *role;
        char runtime[JOB_RUNTIME_BYTES];
        const struct program_table_row *program;                     /* in the table */
        char sha256[SHA256_HEX_BYTES], speed_name[SHA256_HEX_BYTES]; /* run_programs.h */
        char vendor[24], group[DEVICE_GROUP_BYTES], device[DEVICE_ID_BYTES], device_model[DEVICE_MODEL_BYTES];
        char node[254], pci[20];           /* "" = this machine, when its name is not known; no address */
        uint64_t network_mbps;             /* of the node; 0 = not known */
        struct chip_speed_figures figures; /* of the chip */
        uint64_t memory_bytes;             /* of the chip; 0 = not known */
        double *layer_ms, begin_ms; /* of a split: run.measured's, owned; NULL = not measured; beside them */
        double link_bytes_per_ms;   /* measured, else of its node's network; 0 = not known */
        uint64_t layers[2];         /* first and last */
        unsigned device_index;      /* its ordinal */
        char speed_device[SPEED_TABLE_DEVICE_BYTES]; /* its name in the SpeedTable */
        enum chip_speed speed_source;
        enum chip_speed_precision precision;
        struct shard_worker speed;   /* how long a step takes; a time that somebody saw only if measured */
        uint64_t batch, stage_batch; /* of each global batch, 0 for a server; by the plan of its pipelines */
        double weight;               /* batch / global batch */
        uint64_t begin, end;         /* of an epoch's samples; 0:0 when the size of the data is not known */

        /* what is seen of it; the judgement has it in run.world */
        double kept_busy_ms;   /* of what it was busy, what the SpeedTable knows already */
        uint64_t kept_samples; /* and of its samples */
        pid_t pid;             /* 0 = was not started */
        uint64_t restarts;
        uint64_t used_samples; /* whose gradients are in the weights, over all its processes */

        struct device spare_device; /* that it could move to; id "" = none */
        char spare_node[254];
};

struct run {
        const struct run_options *options;
        struct job job;
        struct program_table table;
        struct arguments speed_args; /* the job's own, as the SpeedTable knows programs by them */
        struct run_chips inventories;

        char work[RUN_PATH_BYTES];   /* --work-dir, absolute */
        char folder[RUN_PATH_BYTES]; /* work/NAME */
        char launcher[RUN_PATH_BYTES], mpirun[RUN_PATH_BYTES], programs_path[RUN_PATH_BYTES];
        char checkpoint[RUN_PATH_BYTES]; /* "" = none */
        int lock;                        /* descriptor that holds the job's name */
        int checkpoint_lock;             /* and one that holds its checkpoints */
        struct run_sweeper sweeper;

        struct run_rank *ranks;
        size_t rank_count, server_count;
        struct chip_speed_verdict speeds;  /* of the workers, before they were measured; lacking: a rank */
        uint64_t data_samples;             /* of an epoch; 0 = not known */
        uint64_t left_samples;             /* used by ranks that were left out later */
        struct job_split_profile measured; /* of a split's layers, without times: those are the ranks' */
        struct stage_ranks split;          /* what its layers were planned with, as seen since */
        uint64_t *segments;                /* that the trainer has chosen for `segments: auto` */
        size_t segment_count;
        unsigned cores;
        bool trainer; /* the programs take the options of the reference trainer */
        bool sample_log, planned, layers_planned, replicas; /* batch cut; layers of each rank; of pipelines */

        json_t *events;
        uint64_t started_usec; /* CLOCK_MONOTONIC */
        uint64_t first_world_usec;
        struct world world; /* its places are the ranks' chips, one each */
        uint64_t kept_usec; /* CLOCK_MONOTONIC of the last refinement of the SpeedTable */
        bool speeds_lost, speeds_troubled, interrupted; /* the table could not be written; said once */
        double training_seconds;
        const char *phase; /* NULL while it runs */
        char reason[48], message[512];
};

/* The steps, in order. All return 0, or a negative errno with *err and, where it is not EXIT_FAILED, the exit
 * code in *ret_exit_code. */
int run_read_documents(const char *job_path, json_t **ret, struct err *err); /* of a job file, one at least */
int run_read(struct run *run, const char *job_path, const json_t *document, int *ret_exit_code,
             struct err *err); /* run_read.c */
int run_read_split(struct job *job, const char *profile, const char *replicas, struct err *err); /* options */
int run_choose_chips(struct run *run, int *ret_exit_code, struct err *err); /* run_chips.c */
int run_place(struct run *run, struct err *err); /* chips alone, whether or not there are programs for them */
int run_measure(struct run *run, struct err *err); /* run_measure.c */
int run_plan(struct run *run, struct err *err);    /* run_plan.c */
int run_train(struct run *run, struct err *err);   /* run_train.c */

/* run_plan_cut() - batches, or stages, of a placed job by what is known of its chips, with nothing measured
 * anew; what somebody has to know of it is an event. 0, -EINVAL (no such split), -ENOMEM. */
int run_plan_cut(struct run *run, struct err *err);

/* run_plan_place() - the workers' weights and samples of an epoch, by their batches, in rank order. */
void run_plan_place(struct run *run);
int run_plan_write(const struct run *run, struct err *err); /* plan.json, as it is now */

/* run_event() - note what happened, with a printf-like sentence; also on standard error. */
void run_event(struct run *run, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void run_events_keep(const struct run *run); /* those from before the job had its folder */
void run_finish(struct run *run, const char *phase, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
json_t *run_summary(struct run *run);
const char *run_summary_phase(const json_t *summary); /* "unknown" where it says none */
int run_print_summary(struct run *run, const json_t *summary);
void run_free(struct run *run);

/* run_one() - one job from its document to its summary, which is printed, but as JSON only if ret_summary is
 * NULL. Return: an exit code; *ret_summary is set if the job got as far as that. */
int run_one(const struct run_options *options, const char *job_path, const json_t *document,
            json_t **ret_summary);
